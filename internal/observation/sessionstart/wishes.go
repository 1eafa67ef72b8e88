package sessionstart

import (
	"context"
	"strings"
	"unicode"

	"cairn/internal/observation"
	"cairn/internal/observation/ledger"
	"cairn/internal/oneline"
	"cairn/internal/store"
)

const (
	maxWishes      = 3
	wishSample     = 200  // number of newest prompts that are searched for wishes
	maxWishPrompt  = 1500 // bytes: longer prompts are mostly pasted text
	maxWishWords   = 40
	maxWish        = 120 // maximum characters shown
	maxWishLeading = 3   // maximum number of filler words before a wish

	// The result is one text, as for selectTouched of package likely, newest first. LIKE instead
	// of mayHoldWish would take several times as long.
	selectWishes = `SELECT ifnull(group_concat(id || ' ' || content, char(0)), '')
FROM (SELECT id, timestamp, content, session_key FROM observation_rows
    WHERE project_key = ? AND obs_type = 'user_prompt' ORDER BY timestamp DESC, id DESC LIMIT +?)
WHERE octet_length(content) <= ? AND timestamp > ? AND session_key != ?`
)

// readWishes finds the newest standing wishes and corrections of the user.
func (b *contextBuilder) readWishes(ctx context.Context, tx *store.Tx) error {
	if b.project.Key == 0 {
		return nil
	}
	var since, but int64
	if b.span.resumed {
		since, but = b.span.since, b.span.session
	}
	seen := map[string]bool{}
	return observation.EachNumbered(ctx, tx, func(id [1]int64, text string) error {
		if len(b.wishes) == maxWishes || !mayHoldWish(text) {
			return nil
		}
		for _, wish := range wishesIn(text) {
			key := strings.ToLower(wish)
			if !seen[key] && len(b.wishes) < maxWishes {
				seen[key] = true
				b.wishes = append(b.wishes, ledger.Line{ID: id[0], Text: "- " + oneline.Quoted(wish, maxWish)})
			}
		}
		return nil
	}, selectWishes, b.project.Key, wishSample, maxWishPrompt, since, but)
}

// mayHoldWish reports whether a prompt contains one of the words that every wish contains. It
// avoids calling wishesIn for most prompts.
func mayHoldWish(prompt string) bool {
	for _, word := range [...]string{
		"never ", "Never ", "NEVER ", "always ", "Always ", "ALWAYS ", " again", " AGAIN", "use ", "Use ", "USE ",
		"prefer ", "Prefer ", "PREFER ", "from now on", "From now on",
	} {
		if strings.Contains(prompt, word) {
			return true
		}
	}
	return false
}

// wishesIn lists the sentences of a prompt that state a standing wish or a correction. Examples
// are "never …", "always …", "from now on …", "don't … again", "use X not Y" and "prefer X over
// Y". Questions, code and quotations are ignored.
func wishesIn(prompt string) (found []string) {
	for _, s := range sentences(prompt) {
		if strings.HasSuffix(s, "?") || strings.HasPrefix(s, "//") || strings.HasPrefix(s, "+") || strings.HasSuffix(s, ":") {
			continue
		}
		if clause := wishClause(s); clause != "" {
			found = append(found, clause)
		}
	}
	return found
}

// wishClause returns the part of a sentence from the start of a wish on, "" if the sentence
// states no wish.
func wishClause(sentence string) string {
	for start := 0; start < len(sentence); {
		rest := strings.TrimLeft(sentence[start:], " ")
		if mayBeWish(rest) {
			if words := foldedWords(rest); len(words) <= maxWishWords && isWish(words) {
				return withoutConjunction(rest)
			}
		}
		next := strings.IndexAny(sentence[start:], ",;:")
		if next < 0 || isCondition(rest) {
			return ""
		}
		start += next + 1
	}
	return ""
}

// isCondition reports whether a clause limits the next clause to one case. Such a sentence is
// part of a task, not a standing wish.
func isCondition(clause string) bool {
	clause = strings.TrimLeft(clause, "0123456789.) ")
	word, _, _ := strings.Cut(strings.ToLower(clause), " ")
	switch word {
	case "if", "when", "while", "since", "because", "as", "for", "after", "before", "once":
		return true
	}
	return false
}

// withoutConjunction returns a clause without its leading conjunctions.
func withoutConjunction(clause string) string {
	for {
		word, rest, ok := strings.Cut(clause, " ")
		switch strings.ToLower(word) {
		case "and", "but", "so", "also":
			if ok {
				clause = rest
				continue
			}
		}
		return clause
	}
}

// mayBeWish reports whether one of a clause's first words can begin a wish. It avoids calling
// isWish for most clauses.
func mayBeWish(clause string) bool {
	const heads = " never always don't don’t dont stop not do use prefer from we i you make remember "
	for range maxWishLeading + 1 {
		word, rest, _ := strings.Cut(clause, " ")
		if word == "" || len(word) > 10 {
			return false
		}
		if strings.Contains(heads, " "+strings.ToLower(word)+" ") {
			return true
		}
		clause = strings.TrimLeft(rest, " ")
	}
	return false
}

// foldedWords returns the words of a text in lower case, without surrounding punctuation.
func foldedWords(s string) []string {
	words := strings.Fields(strings.ToLower(strings.ReplaceAll(s, "’", "'")))
	for i, w := range words {
		words[i] = strings.TrimFunc(w, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	}
	return words
}

// isWish reports whether a clause begins like a standing wish.
func isWish(words []string) bool {
	for range maxWishLeading {
		if len(words) == 0 || !isLead(words[0]) {
			break
		}
		words = words[1:]
	}
	if len(words) < 3 {
		return false
	}
	rest := " " + strings.Join(words[1:], " ") + " "
	switch words[0] {
	case "never", "always":
		return words[1] != "mind" && words[1] != "been" && !strings.HasSuffix(words[1], "ed")
	case "don't", "dont", "stop", "not":
		return forbidsRepeat(rest)
	case "do":
		return words[1] == "not" && forbidsRepeat(rest)
	case "use", "prefer":
		return isChoice(words[0], rest)
	case "from":
		return words[1] == "now" && words[2] == "on"
	case "we", "i", "you":
		return isPersonalWish(words[1], words[2])
	case "make", "remember":
		return strings.Contains(rest, " always ") || strings.Contains(rest, " never ")
	}
	return false
}

// forbidsRepeat reports whether the text after "don't" forbids doing something again, or ever.
func forbidsRepeat(rest string) bool {
	return strings.HasSuffix(rest, " again ") || strings.HasSuffix(rest, " anymore ") || strings.Contains(rest, " ever ")
}

// isChoice reports whether the text after "use" or "prefer" names an alternative not to use.
func isChoice(verb, rest string) bool {
	for _, between := range [...]string{" not ", " instead of ", " rather than "} {
		if strings.Contains(rest, between) {
			return true
		}
	}
	return verb == "prefer" && (strings.Contains(rest, " over ") || strings.Contains(rest, " to "))
}

// isPersonalWish reports whether the words after "we", "you" or "I" state a rule: "we always
// want", "you must never", "I never want".
func isPersonalWish(second, third string) bool {
	switch second {
	case "always", "never":
		switch third {
		case "want", "use", "run", "need", "write", "commit", "push", "add", "put", "prefer", "name", "keep", "test", "do":
			return true
		}
	case "must", "should", "shall":
		return third == "always" || third == "never"
	}
	return false
}

// isLead reports whether a word can precede a wish as a filler.
func isLead(w string) bool {
	const leads = " please and but so also no yes ok okay well hey just again btw oh "
	return strings.Contains(leads, " "+w+" ")
}
