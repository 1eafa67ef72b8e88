package memory

import (
	"slices"
	"strings"
	"time"

	"cairn/internal/words"
)

// maxQueryTerms is how many words of a query count (memories §11).
const maxQueryTerms = 64

// terms are the different words of a text as they stand in the index, in order: small
// letters, the forms of an irregular word as one, then stemmed. Of an identifier that
// humps or digits divide both its parts and the whole are there.
func terms(text string) []string {
	var all []string
	eachWord(text, func(word string) { all = append(all, termOf(word)) })
	slices.Sort(all)
	return slices.Compact(all)
}

// termOf is a word in small letters as it stands in the index.
func termOf(word string) string { return words.Stem(base(word)) }

// eachWord calls do for the words of a text in small letters.
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

// question is a query taken apart.
type question struct {
	terms []string // as in the index, at most maxQueryTerms
	words []string // its words but the stop words
	time  bool     // it asks for a time
}

// ask takes a query apart. A query of stop words alone keeps them; one without any
// letter or digit has no terms.
func ask(query string) (q question) {
	var every []string
	eachWord(query, func(word string) {
		every = append(every, word)
		if !isStopWord(word) {
			q.words = append(q.words, word)
		}
	})
	if len(q.words) == 0 {
		q.words = every
	}
	seen := map[string]bool{}
	for _, word := range q.words {
		if t := termOf(word); !seen[t] && len(q.terms) < maxQueryTerms {
			seen[t] = true
			q.terms = append(q.terms, t)
		}
	}
	small := strings.ToLower(strings.TrimSpace(query))
	q.time = strings.HasPrefix(small, "when") || strings.Contains(small, "how long") || strings.Contains(small, " year") ||
		strings.Contains(small, "date")
	return q
}

// names reports whether a word of the question is in a speaker's name.
func (q *question) names(speaker string) (found bool) {
	if speaker != "" {
		eachWord(speaker, func(word string) { found = found || slices.Contains(q.words, word) })
	}
	return found
}

// stampedLine is what the index holds of an entry besides its summary: when it was
// captured, who spoke, and what (memories §11).
func stampedLine(at Time, speaker, raw string) string {
	line := "(" + time.Unix(0, int64(at)).UTC().Format("3:04 pm on 2 January, 2006") + ") "
	if speaker != "" {
		return line + speaker + " said, \"" + raw + "\""
	}
	return line + "\"" + raw + "\""
}

// asks reports whether the last sentence of a text is a question, which seldom holds
// what somebody looks for.
func asks(text string) bool {
	at := strings.LastIndexAny(text, ".!?")
	return at >= 0 && text[at] == '?'
}

// tellsTime reports whether a text has a word of time: a day, a month, a year, ago …
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

// isStopWord reports whether a word says nothing about what is looked for: those of
// every English sentence, of questions, and what an apostrophe leaves behind.
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
