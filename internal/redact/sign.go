package redact

import (
	"strings"

	"cairn/internal/redact/looks"
	"cairn/internal/redact/shape"
)

// sign is the operator between a name and its value.
type sign uint8

const (
	signNone    sign = iota
	signAssign       // = := => ?= and the like
	signColon        // :
	signEqual        // == or !=, a comparison
	signBlank        // --flag value
	signTag          // <name>value</name>
	signDefault      // ${name:-value}
	signElse         // name || value, the default of a variable
	signProse        // the password is value
	signCall         // setPassword("value")
	signOther        // not a sign
)

// signs contains the spellings of the signs, longer ones first.
var signs = [...]struct {
	text string
	sign sign
}{
	{"===", signEqual}, {"!==", signEqual}, {"==", signEqual}, {"!=", signEqual},
	{"=>", signAssign}, {":=", signAssign}, {"?=", signAssign}, {":-", signDefault}, {"::", signOther},
	{"||", signElse}, {"??", signElse}, {"?:", signColon}, {"!:", signColon},
	{"=", signAssign}, {":", signColon}, {">", signTag},
}

// readSign returns the sign at the start of s and its length.
func readSign(s string) (sign, int) {
	for i := range signs {
		if strings.HasPrefix(s, signs[i].text) {
			return signs[i].sign, len(signs[i].text)
		}
	}
	return signNone, 0
}

// findSign reads the sign after the name and finds the start of the value.
func (n *naming) findSign() bool {
	t := n.text
	i := shape.Skip(t, n.end, 4, func(c byte) bool { return shape.IsQuote(c) || c == '\\' || c == '*' || c == ']' })
	n.quotedName = i > n.end && (shape.IsQuote(t[i-1]) || t[i-1] == ']')
	if n.findPair(i) {
		return true
	}
	j := shape.Skip(t, i, 40, shape.IsBlank)
	if j == len(t) {
		return false
	}
	sign, width := readSign(t[j:])
	if sign == signNone {
		return n.findCall(j) || n.findBlank(i, j) || n.findProse(j)
	}
	n.sign = sign
	n.value = shape.Skip(t, j+width, 40, func(c byte) bool { return shape.IsBlank(c) || c == '=' })
	n.spaced = j > i || n.value > j+width
	return n.accepts(j, j+width)
}

// accepts reports whether the sign at text[from:to] assigns a value to the name. It
// replaces a special sign with a plain one.
func (n *naming) accepts(from, to int) bool {
	t, before := n.text, n.text[:n.start]
	switch n.sign {
	case signColon:
		if shape.HasFold(t[n.value:], "**") { // **Password:** v
			n.value = shape.Skip(t, n.value+2, 16, shape.IsBlank)
		}
		return !n.endsPath(to)
	case signDefault:
		n.sign = signAssign
		return strings.HasSuffix(before, "${")
	case signElse:
		n.sign = signAssign
		return n.value < len(t) && shape.IsQuote(t[n.value])
	case signTag:
		return from == n.end && strings.HasSuffix(before, "<")
	}
	return n.sign != signOther
}

// endsPath reports whether the name, with a colon before text[:i], is the end of a path or
// a field between two colons.
func (n *naming) endsPath(i int) bool {
	before := n.text[:n.start]
	return strings.HasSuffix(before, "/") || strings.HasSuffix(before, ":") && i < len(n.text) && !shape.IsSpace(n.text[i])
}

// findBlank accepts a value that is separated from its name only by blanks. Examples are a
// flag (also in an argument list: "--password", "v"), a line in a netrc file and an SQL
// clause. The name's quotes end at i, the blanks at j.
func (n *naming) findBlank(i, j int) bool {
	t := n.text
	name := t[n.start:n.end]
	switch {
	case name[0] == '-' && n.quotedName:
		if j = nextElement(t, j); j < 0 {
			return false
		}
	case j == i, n.quotedName:
		return false
	case name[0] == '-':
		if n.start > 0 && !isBreak(t[n.start-1]) {
			return false
		}
	case name == "PASSWORD":
		if t[j] != '\'' {
			return false
		}
	case name == "_authToken", name == "_password", name == "_auth": // npm config set _authToken v
		n.weak = true
	case strings.HasSuffix(name, ".psk"): // nmcli … wifi-sec.psk v
	case name != "password" || !followsLogin(t[:n.start]):
		return false
	}
	n.sign, n.spaced, n.value = signBlank, true, j
	return true
}

// nextElement returns the start of the next string of a list, at its quote, if a comma is
// at or before text[i]. It returns -1 if there is none.
func nextElement(t string, i int) int {
	if i = shape.Skip(t, i, 1, func(c byte) bool { return c == ',' }); !strings.HasSuffix(t[:i], ",") {
		return -1
	}
	i = shape.Skip(t, i, 16, shape.IsSpace)
	if q := shape.Skip(t, i, 2, func(c byte) bool { return c == '\\' }); q == len(t) || !shape.IsQuote(t[q]) {
		return -1
	}
	return i
}

// followsLogin reports whether the last two words of t are "login" and a name.
func followsLogin(t string) bool {
	const longest = 100
	i := shape.Back(t, len(t), 8, shape.IsSpace)
	j := shape.Back(t, i, longest, func(c byte) bool { return !shape.IsSpace(c) })
	return i < len(t) && j < i && !looks.IsSmallWord(t[j:i]) && strings.HasSuffix(strings.TrimRight(t[max(0, j-8):j], " \t\n"), "login")
}

// findPair accepts a name that is a value, with the secret next to it: "name: DB_PASSWORD"
// and "value: v" on the next line. It also accepts JSON and XML.
func (n *naming) findPair(i int) bool {
	t := n.text
	i = shape.Skip(t, i, 1, func(c byte) bool { return c == ',' })
	j := shape.Skip(t, i, 40, shape.IsSpace)
	if j == i && strings.HasSuffix(t[:i], `\`) && strings.HasPrefix(t[i:], "n") { // YAML in JSON
		j = shape.Skip(t, i+1, 40, shape.IsBlank)
	}
	if j == i && !n.quotedName {
		return false
	}
	j = shape.Skip(t, j, 2, func(c byte) bool { return shape.IsQuote(c) || c == '\\' })
	if !shape.HasFold(t[j:], "value") {
		return false
	}
	j = shape.Skip(t, j+len("value"), 2, func(c byte) bool { return shape.IsQuote(c) || c == '\\' })
	j = shape.Skip(t, j, 8, shape.IsBlank)
	if j == len(t) || t[j] != ':' && t[j] != '=' {
		return false
	}
	n.sign, n.value = signAssign, shape.Skip(t, j+1, 16, shape.IsBlank)
	n.quotedName = true
	return true
}
