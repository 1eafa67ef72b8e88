package ranking

import (
	"slices"
	"strings"
	"time"

	"cairn/internal/words"
)

// maxQueryTerms is the maximum number of terms of a question (memories §11).
const maxQueryTerms = 64

// Terms returns the distinct terms of a text, sorted. A term is a word in lower case, reduced
// to its base form and stemmed. An identifier yields its parts and the whole.
func Terms(text string) []string {
	var all []string
	eachWord(text, func(word string) { all = append(all, TermOf(word)) })
	slices.Sort(all)
	return slices.Compact(all)
}

// TermOf returns the term of a word in lower case.
func TermOf(word string) string { return words.Stem(base(word)) }

// eachWord calls do for each word of a text, in lower case.
func eachWord(text string, do func(word string)) {
	words.Each(text, func(whole string, parts []string) {
		do(strings.ToLower(whole))
		if len(parts) > 1 {
			for _, p := range parts {
				do(strings.ToLower(p))
			}
		}
	})
}

// Question is a parsed query.
type Question struct {
	Terms []string // at most maxQueryTerms
	Words []string // without stop words
	Time  bool     // the query asks for a time
}

// Ask parses a query. A query that consists of stop words keeps them. A query without a
// letter or digit has no terms.
func Ask(query string) (q Question) {
	var every []string
	eachWord(query, func(word string) {
		every = append(every, word)
		if !isStopWord(word) {
			q.Words = append(q.Words, word)
		}
	})
	if len(q.Words) == 0 {
		q.Words = every
	}
	seen := map[string]bool{}
	for _, word := range q.Words {
		if t := TermOf(word); !seen[t] && len(q.Terms) < maxQueryTerms {
			seen[t] = true
			q.Terms = append(q.Terms, t)
		}
	}
	small := strings.ToLower(strings.TrimSpace(query))
	q.Time = strings.HasPrefix(small, "when") || strings.Contains(small, "how long") || strings.Contains(small, " year") ||
		strings.Contains(small, "date")
	return q
}

// names reports whether a speaker's name contains a word of the question.
func (q *Question) names(speaker string) (found bool) {
	if speaker != "" {
		eachWord(speaker, func(word string) { found = found || slices.Contains(q.Words, word) })
	}
	return found
}

// StampedLine returns the text of an entry as it is indexed: with the time of its capture and
// its speaker, "" for none (memories §11).
func StampedLine(at time.Time, speaker, raw string) string {
	line := "(" + at.UTC().Format("3:04 pm on 2 January, 2006") + ") "
	if speaker != "" {
		return line + speaker + " said, \"" + raw + "\""
	}
	return line + "\"" + raw + "\""
}

// asks reports whether the last sentence of a text is a question. Questions seldom contain
// the answer.
func asks(text string) bool {
	at := strings.LastIndexAny(text, ".!?")
	return at >= 0 && text[at] == '?'
}

// tellsTime reports whether a text names a time: a day, a month, a year, "ago" …
func tellsTime(text string) bool {
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }) {
		if isTimeWord(word) {
			return true
		}
	}
	return false
}

func isTimeWord(word string) bool {
	switch word {
	case "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday",
		"january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
		"day", "days", "week", "weeks", "weekend", "month", "months", "year", "years",
		"ago", "last", "next", "yesterday", "today", "tomorrow", "tonight", "recently":
		return true
	}
	return len(word) == 4 && (word[:2] == "19" || word[:2] == "20") && strings.Trim(word, "0123456789") == ""
}

// isStopWord reports whether a word carries no meaning in a query: function words, question
// words, and the fragments that an apostrophe leaves.
func isStopWord(word string) bool {
	switch word {
	case "a", "about", "above", "after", "again", "all", "also", "am", "an", "and", "any", "are", "aren", "as", "at", "be", "because",
		"been", "before", "being", "below", "between", "both", "but", "by", "can", "could", "couldn", "d", "did", "didn", "do", "does",
		"doesn", "doing", "don", "down", "during", "each", "few", "for", "from", "further", "had", "hadn", "has", "hasn", "have", "haven",
		"having", "he", "her", "here", "hers", "herself", "him", "himself", "his", "how", "i", "if", "in", "into", "is", "isn", "it",
		"its", "itself", "just", "ll", "m", "me", "might", "more", "most", "must", "mustn", "my", "myself", "no", "nor", "not", "now",
		"o", "of", "off", "on", "once", "only", "or", "other", "our", "ours", "ourselves", "out", "over", "own", "re", "s", "same",
		"shall", "she", "should", "shouldn", "so", "some", "such", "t", "than", "that", "the", "their", "theirs", "them", "themselves",
		"then", "there", "these", "they", "this", "those", "through", "to", "too", "under", "until", "up", "us", "ve", "very", "was",
		"wasn", "we", "were", "weren", "what", "when", "where", "which", "while", "who", "whom", "whose", "why", "will", "with", "won",
		"would", "wouldn", "y", "you", "your", "yours", "yourself", "yourselves":
		return true
	}
	return false
}
