package redact

import (
	"strings"

	"cairn/internal/redact/looks"
	"cairn/internal/redact/shape"
)

const ruleCommand = "command_line"

// command checks the arguments of the program at text[start:end].
func (s *scan) command(row, start, end int) {
	t, p := s.text, &programs[row]
	if p.style == stdin {
		s.standardInput(start, end)
		return
	}
	if !shape.WordStart(t, start) || start > 0 && t[start-1] == '-' {
		return
	}
	if !strings.HasSuffix(p.name, " ") {
		end = shape.Skip(t, end, 16, func(c byte) bool { return shape.IsLetter(c) || c == '_' }) // mysqldump, …
	}
	end = max(end, s.commandEnd[row])
	if p.style == positional {
		const reach = 512 // bytes of arguments
		t = t[:min(len(t), end+reach)]
	}
	last := commandEnd(t, end, p.style == userPass)
	switch p.style {
	case userPass:
		s.curl(end, last)
	case positional:
		last = s.positionalPassword(p, end, last)
	default:
		for i := end; i < last; {
			arg, argEnd := nextArgument(t, i, last)
			if arg == argEnd {
				break
			}
			s.argument(p, arg, argEnd, last)
			i = argEnd
		}
	}
	s.commandEnd[row] = last
}

// argument redacts the password in the argument text[arg:argEnd]. If that argument is the
// program's flag, it redacts the next argument.
func (s *scan) argument(p *program, arg, argEnd, last int) {
	t := s.text
	value := arg + len(p.flag)
	switch {
	case !strings.HasPrefix(t[arg:argEnd], p.flag):
	case p.style == percent:
		s.percentPassword(value, argEnd, last)
	case value == argEnd && p.style != attached:
		if v := shape.Skip(t, argEnd, last-argEnd, shape.IsBlank); v < last && t[v] != '-' {
			s.password(v, argumentEnd(t, v, last))
		}
	case p.style != apart && argEnd > value+2:
		s.password(value, argEnd)
	}
}

// nextArgument returns the bounds of the argument after text[i], equal if there
// is none before last.
func nextArgument(t string, i, last int) (arg, argEnd int) {
	arg = shape.Skip(t, i, last-i, func(c byte) bool { return shape.IsSpace(c) || c == '\\' })
	return arg, argumentEnd(t, arg, last)
}

// commandEnd returns the end of the command whose arguments start at i: the next command
// or the end of the line. With readOn, or after a backslash, the command continues on the
// next line.
func commandEnd(t string, i int, readOn bool) int {
	const lines = 12
	seen := 0
	for ; i < len(t); i++ {
		switch t[i] {
		case '\n':
			if seen++; seen == lines || !readOn && !continued(t, i) {
				return i
			}
		case '|', '&':
			if i+1 < len(t) && shape.IsSpace(t[i+1]) {
				return i
			}
		}
	}
	return i
}

// continued reports whether a backslash is before the line end t[i].
func continued(t string, i int) bool {
	return strings.HasSuffix(strings.TrimSuffix(t[:i], "\r"), "\\")
}

// argumentEnd returns the end of the argument at i: the next white space outside quotes.
func argumentEnd(t string, i, last int) int {
	var quote byte
	for ; i < last; i++ {
		switch c := t[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			if strings.IndexByte(t[i+1:last], c) < 0 {
				return i
			}
			quote = c
		case shape.IsSpace(c) || c == '`':
			return i
		}
	}
	return last
}

// password redacts text[start:end] without its quotes, unless it is a placeholder or a
// reference.
func (s *scan) password(start, end int) {
	start, end = unquote(s.text, start, end)
	if start >= end {
		return
	}
	if v := s.text[start:end]; len(v) > longestReference || !onlyMarks(v) && !looks.IsPlaceholder(v) {
		s.add(ruleCommand, start, end)
	}
}

func unquote(t string, start, end int) (int, int) {
	if end-start > 2 && t[start] == '\\' && shape.IsQuote(t[start+1]) {
		start++
	}
	if end-start < 2 || !shape.IsQuote(t[start]) || t[end-1] != t[start] {
		return start, end
	}
	if start > 0 && t[start-1] == '\\' && end-start > 2 && t[end-2] == '\\' { // \"v\"
		end--
	}
	return start + 1, end - 1
}

// positionalPassword redacts a password that is identified by its position. For htpasswd
// -b it follows a file and a user name, or only the user name if -n is given. It also
// handles ConvertTo-SecureString, and other programs where the password follows a name. It
// returns the offset after the text that it has read.
func (s *scan) positionalPassword(p *program, i, last int) int {
	t := s.text
	htpasswd := p.name == "htpasswd"
	before, batch := 1, !htpasswd
	switch {
	case htpasswd:
		before = 2
	case shape.Lower(p.name[0]) == 'c':
		before = 0
	}
	for i < last {
		arg, argEnd := nextArgument(t, i, last)
		i = argEnd
		switch {
		case arg == argEnd, t[arg] == '>', t[arg] == ';':
			return argEnd
		case t[arg] == '-' && htpasswd:
			batch = batch || strings.Contains(t[arg:argEnd], "b")
			if strings.Contains(t[arg:argEnd], "n") {
				before--
			}
			if t[argEnd-1] == 'C' { // a cost follows
				_, i = nextArgument(t, argEnd, last)
			}
		case t[arg] == '-':
		case before > 0:
			before--
		default:
			if batch && argEnd-arg >= shortestPassword {
				s.password(arg, argEnd)
			}
			return argEnd
		}
	}
	return last
}

// percentPassword redacts the password in user%password, which text[start:end] contains,
// or the next argument if start is end.
func (s *scan) percentPassword(start, end, last int) {
	t := s.text
	if start == end {
		start, end = nextArgument(t, end, last)
	}
	start, end = unquote(t, start, end)
	if i := strings.IndexByte(t[start:max(start, end)], '%'); i > 0 {
		s.password(start+i+1, end)
	}
}
