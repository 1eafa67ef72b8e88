package redact

import (
	"strings"

	"cairn/internal/redact/looks"
	"cairn/internal/redact/shape"
)

// findCall accepts a quoted argument of a call as the value. It is the argument of a
// function named like the secret, setPassword("v"). Or it follows the name in a call that
// stores a value, Setenv("DB_PASSWORD", "v"). The name's quotes end at i.
func (n *naming) findCall(i int) bool {
	t := n.text
	switch {
	case i == len(t):
		return false
	case t[i] == '(' && i == n.end:
		if !storesSecret(t[n.start:n.end]) {
			return false
		}
	case t[i] == ',' && n.quotedName:
		if !storesNamed(t[:n.start]) {
			return false
		}
	default:
		return false
	}
	j := shape.Skip(t, i+1, 4, shape.IsBlank)
	if q := shape.Skip(t, j, 2, func(c byte) bool { return c == '\\' }); q == len(t) || !shape.IsQuote(t[q]) {
		return false
	}
	n.sign, n.value, n.quotedName = signCall, j, true
	return true
}

// storesSecret reports whether a function with that name accepts the secret as an
// argument, and does not read it or prompt for it.
func storesSecret(name string) bool {
	name = name[strings.LastIndexByte(name, '.')+1:]
	for _, word := range [...]string{
		"get", "read", "ask", "prompt", "has", "is", "find", "lookup", "load", "fetch", "require", "need", "missing", "no", "invalid",
		"expect", "unexpected", "describe", "delete", "remove", "list", "create", "generate", "parse", "next", "peek", "label", "show",
		"input", "enter", "add", "split", "env", "from", "forgot", "strip", "redact", "mask", "tostring", "wrong", "bad", "test",
	} {
		if shape.HasFold(name, word) {
			return false
		}
	}
	return true
}

// storesNamed reports whether before ends with a call that stores a value under a
// name, up to the name's quote: os.Setenv(" or headers.set(".
func storesNamed(before string) bool {
	open := strings.TrimRight(before, "\"'`\\")
	if len(open) == len(before) || !strings.HasSuffix(open, "(") {
		return false
	}
	name := open[shape.Back(open, len(open)-1, 32, shape.IsWord) : len(open)-1]
	switch strings.ToLower(name) {
	case "setenv", "putenv", "set", "put", "add", "append", "header", "setheader", "addheader", "with_header", "withheader", "setproperty",
		"setitem", "set_var", "setdefault", "setstring", "env", "withenv", "withenvvar", "with_env", "addenv", "setvar", "setvariable", "setsecret",
		"addsecret", "withsecret", "setparameter", "addparameter", "setrequestheader", "set_header", "add_header", "setconfig", "set_env",
		"setenvironmentvariable", "addenvironmentvariable", "setvalue", "define":
		return true
	}
	return false
}

// isCallSecret reports whether the quoted text[from:to], an argument of a call, is
// a secret. A password is any single word; a token or key must look chosen.
func (n *naming) isCallSecret(from, to int, quoted bool) bool {
	v := n.text[from:to]
	if !quoted || strings.ContainsAny(v, " \t") || strings.Trim(v, ":?*.-_ ") == "" || strings.HasSuffix(v, ":") {
		return false
	}
	if name := n.text[n.start:n.end]; looks.IsConstant(name) && strings.Contains(name, "_") {
		return true // an environment variable
	}
	if n.shortest == shortestPassword && !shape.EndsFold(n.text[:n.end], "secret") {
		return !looks.IsStateWord(v) && !looks.IsTypeWord(v)
	}
	letters, digits, _ := looks.CountKinds(v)
	return letters > 0 && digits > 0 && looks.Chosen(v) && looks.Strangest(v).HalfBits >= 6
}

// keyWord handles a word such as "access" or "auth" at text[start:end].
func (s *scan) keyWord(start, end int) {
	if end-start != len("auth") || !s.basicAuth(start, end) {
		s.randomNamed(start, end)
	}
}

// basicAuth handles a function of basic authentication whose name ends with "auth" at
// text[start:end], and a pair that is assigned to "auth". The second string is a password:
// SetBasicAuth("bob", "v"), auth=("bob", "v"). It reports whether it found such a function
// or pair.
func (s *scan) basicAuth(start, end int) bool {
	t := s.text
	if shape.EndsFold(t[:start], "basic") || shape.EndsFold(t[:start], "basic_") {
		return s.userAndPassword(end)
	}
	return shape.WordStart(t, start) && end < len(t) && t[end] == '=' && s.userAndPassword(end+1)
}

// userAndPassword redacts the second of two quoted strings in brackets that open at
// text[i]. It reports whether it found them.
func (s *scan) userAndPassword(i int) bool {
	t := s.text
	if i >= len(t) || t[i] != '(' {
		return false
	}
	_, user := s.quotedString(shape.Skip(t, i+1, 4, shape.IsBlank))
	if user < 0 {
		return false
	}
	comma := shape.Skip(t, user, 2, func(c byte) bool { return shape.IsQuote(c) || c == '\\' })
	if comma == len(t) || t[comma] != ',' {
		return false
	}
	from, to := s.quotedString(shape.Skip(t, comma+1, 4, shape.IsBlank))
	if to < 0 {
		return false
	}
	if v := t[from:to]; v != "" && (len(v) > longestReference || !onlyMarks(v) && !looks.IsPlaceholder(v)) {
		s.add(ruleNamed, from, to)
	}
	return true
}

// quotedString returns the bounds of the string whose quote, escaped or not, opens
// at text[i]; to is -1 if there is none.
func (s *scan) quotedString(i int) (from, to int) {
	quote := shape.Skip(s.text, i, 1, func(c byte) bool { return c == '\\' })
	if quote == len(s.text) || !shape.IsQuote(s.text[quote]) {
		return 0, -1
	}
	return quote + 1, quotedEnd(s.text, quote+1, s.text[i:quote+1])
}
