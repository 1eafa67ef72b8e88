package redact

import (
	"strings"

	"cairn/internal/redact/shape"
)

// findValue returns the bounds of the value, without quotes.
func (n *naming) findValue() (start, end int, quoted bool) {
	t, i := n.text, n.value
	if n.sign == signColon {
		i = afterType(t, i)
	}
	if i+1 < len(t) && strings.IndexByte("fbruFBRU@$", t[i]) >= 0 && shape.IsQuote(t[i+1]) {
		i++
	}
	i = lastOfQuotes(t, i)
	open := shape.Skip(t, i, 4, func(c byte) bool { return c == '\\' })
	switch {
	case open == len(t):
		return 0, 0, false
	case n.sign == signTag:
		return i, tagEnd(t, i), false
	case !shape.IsQuote(t[open]):
		return i, unquotedEnd(t, i), false
	}
	start = open + 1
	if !n.quotedName && n.sign != signBlank && n.endsString(start) {
		return 0, 0, false
	}
	end = quotedEnd(t, start, t[i:open+1])
	if end < 0 { // the quote is not closed, or closed by a different quote
		end = shape.Skip(t, start, len(t), func(c byte) bool { return !shape.IsSpace(c) })
		return start, start + len(strings.TrimRight(t[start:end], "\"'`.,;:)")), false
	}
	return start, end, true
}

// afterType skips a type between a colon and an assignment: str = "v".
func afterType(t string, i int) int {
	const longest = 48
	j := shape.Skip(t, i, longest, func(c byte) bool { return shape.IsWord(c) || strings.IndexByte(" .<>[]|&'?", c) >= 0 })
	if j == i || j+1 >= len(t) || t[j] != '=' || t[j-1] != ' ' {
		return i
	}
	if v := shape.Skip(t, j+1, 4, shape.IsBlank); v < len(t) && shape.IsQuote(t[v]) {
		return v
	}
	return i
}

// endsString reports whether the quote before i ends a string and does not begin one:
// "token: " + t.
func (n *naming) endsString(i int) bool {
	t := n.text
	if i == len(t) || shape.IsSpace(t[i]) || strings.IndexByte("+,);", t[i]) >= 0 {
		return true
	}
	return (n.sign == signColon || n.spaced) && strings.IndexByte(".&|}]", t[i]) >= 0
}

// quotedEnd returns the index of the closing quote of the value that begins at start, on
// the same line. The closing quote must equal the opening one, including backslashes. It
// returns -1 if there is none.
func quotedEnd(t string, start int, quote string) int {
	escaped := len(quote) > 1
	q := quote[len(quote)-1]
	for i := start; i < len(t) && t[i] != '\n'; i++ {
		switch {
		case t[i] == '\\' && !escaped:
			i++
		case t[i] == '\\' && strings.HasPrefix(t[i:], quote):
			return i
		case t[i] == q:
			return i
		}
	}
	return -1
}

// lastOfQuotes skips all but the last of consecutive quotes, as in """v""".
func lastOfQuotes(t string, i int) int {
	for i+2 < len(t) && shape.IsQuote(t[i]) && t[i+1] == t[i] && (shape.IsQuote(t[i+2]) || shape.IsWord(t[i+2])) {
		i++
	}
	return i
}

// tagEnd returns the end of the text of an XML element that begins at i. It returns i if
// the element is not closed on the line.
func tagEnd(t string, i int) int {
	const longest = 1024
	end := shape.Skip(t, i, longest, func(c byte) bool { return c != '<' && c != '\n' })
	if !strings.HasPrefix(t[end:], "</") {
		return i
	}
	return end
}

// unquotedEnd returns the end of the value that begins at start: white space, a quote, or
// punctuation of the surrounding text.
func unquotedEnd(t string, start int) int {
	depth, i := 0, start
	for ; i < len(t) && !shape.IsSpace(t[i]) && !shape.IsQuote(t[i]); i++ {
		ends := false
		switch t[i] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
			ends = depth < 0 && (i+1 == len(t) || !shape.IsWord(t[i+1]))
		case ',', ';', '&', '|':
			ends = depth <= 0 && endsValue(t, i+1)
		case '<':
			ends = strings.HasPrefix(t[i:], "</")
		}
		if ends {
			return trimmed(t, start, i)
		}
	}
	return trimmed(t, start, i)
}

// trimmed returns the end of t[start:end] without trailing punctuation of a sentence.
func trimmed(t string, start, end int) int {
	return start + len(strings.TrimRight(t[start:end], `.,;:\`))
}

// endsValue reports whether the text after a comma, semicolon, ampersand or bar is not
// part of the value. Such text is empty, another sign, or another name with its value.
func endsValue(t string, i int) bool {
	if i == len(t) || shape.IsSpace(t[i]) || isBreak(t[i]) || t[i] == '&' || t[i] == '|' {
		return true
	}
	const longest = 40
	j := shape.Skip(t, i, longest, func(c byte) bool { return shape.IsWord(c) || c == '-' || c == '.' || c == ' ' })
	return j > i && j < len(t) && (t[j] == '=' || t[j] == ':')
}
