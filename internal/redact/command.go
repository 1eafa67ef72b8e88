package redact

import "strings"

const ruleCommand = "command_line"

// program is a command that takes a password in a flag without a telling name.
type program struct {
	name  string
	flag  string // the flag, which the password follows
	style flagStyle
}

type flagStyle uint8

const (
	attached flagStyle = iota // -psecret
	apart                     // -p secret
	either                    // -p secret or -psecret
	userPass                  // -u user:secret, and headers
)

var programs = [...]program{
	{"curl", "-u", userPass},
	{"mysql", "-p", attached},
	{"mariadb", "-p", attached},
	{"sshpass", "-p", either},
	{"redis-cli", "-a", apart},
	{"docker login", "-p", apart},
	{"podman login", "-p", apart},
	{"mongosh", "-p", apart},
	{"ldapsearch", "-w", apart},
}

// command reads the arguments of the program at text[start:end].
func (s *scan) command(row, start, end int) {
	t, p := s.text, &programs[row]
	if !wordStart(t, start) || start > 0 && t[start-1] == '-' {
		return
	}
	end = skip(t, end, 16, func(c byte) bool { return isLetter(c) || c == '_' }) // mysqldump, …
	end = max(end, s.commandEnd[row])
	last := commandEnd(t, end, p.style == userPass)
	sure := true // that this is still the same command
	for i := end; i < last; {
		arg := skip(t, i, last-i, func(c byte) bool { return isSpace(c) || c == '\\' })
		argEnd := argumentEnd(t, arg, last)
		if arg == argEnd {
			break
		}
		line := i + strings.IndexByte(t[i:arg], '\n')
		sure = sure && (line < i || continued(t, line))
		if p.style == userPass {
			s.curlArgument(arg, argEnd, last, sure)
		} else {
			s.argument(p, arg, argEnd, last)
		}
		i = argEnd
	}
	s.commandEnd[row] = last
}

// argument takes the password from the argument text[arg:argEnd], or from the next
// one, if it is the program's flag.
func (s *scan) argument(p *program, arg, argEnd, last int) {
	t := s.text
	value := arg + len(p.flag)
	switch {
	case !strings.HasPrefix(t[arg:argEnd], p.flag):
	case value == argEnd && p.style != attached:
		if v := skip(t, argEnd, last-argEnd, isBlank); v < last && t[v] != '-' {
			s.password(v, argumentEnd(t, v, last))
		}
	case p.style != apart && argEnd > value+2:
		s.password(value, argEnd)
	}
}

// commandEnd returns where the command with its arguments from i on ends: at the
// line's end unless it is continued there (or anyway, if it is read on), or at
// the next command.
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
			if i+1 < len(t) && isSpace(t[i+1]) {
				return i
			}
		}
	}
	return i
}

// continued reports whether a backslash stands before the line end t[i].
func continued(t string, i int) bool {
	return strings.HasSuffix(strings.TrimSuffix(t[:i], "\r"), "\\")
}

// argumentEnd returns where the argument at i ends: at white space outside
// quotes.
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
		case isSpace(c) || c == '`':
			return i
		}
	}
	return last
}

// password takes out text[start:end], less its quotes, unless it only stands for
// a password.
func (s *scan) password(start, end int) {
	start, end = unquote(s.text, start, end)
	if start >= end {
		return
	}
	if v := s.text[start:end]; len(v) > longestReference || !onlyMarks(v) && !isPlaceholder(v) {
		s.add(ruleCommand, start, end)
	}
}

func unquote(t string, start, end int) (int, int) {
	if end-start >= 2 && isQuote(t[start]) && t[end-1] == t[start] {
		return start + 1, end - 1
	}
	return start, end
}

// curlArgument looks at one argument of curl: -u user:password and -H "X-Key: v".
// If it is not sure to be one of curl's, user:password must not be two words, as
// user:group is.
func (s *scan) curlArgument(arg, argEnd, last int, sure bool) {
	t := s.text
	value, valueEnd := argEnd, argEnd
	flag := t[arg:argEnd]
	for _, name := range [...]string{"--user", "-u", "--proxy-user", "-U", "--header", "-H"} {
		if !strings.HasPrefix(flag, name) {
			continue
		}
		switch rest := flag[len(name):]; {
		case rest == "":
			value = skip(t, argEnd, last-argEnd, func(c byte) bool { return isSpace(c) || c == '\\' })
			valueEnd = argumentEnd(t, value, last)
		case rest[0] == '=':
			value = arg + len(name) + 1
		case name[1] != '-' || isQuote(rest[0]):
			value = arg + len(name)
		default:
			continue
		}
		if name == "-H" || name == "--header" {
			s.curlHeader(value, valueEnd)
		} else if sure || !areNames(t[value:valueEnd]) {
			s.curlUser(value, valueEnd)
		}
		return
	}
}

// areNames reports whether v is nothing but names and numbers, joined by a colon.
func areNames(v string) bool {
	v = strings.Trim(v, `"'`)
	plain := skip(v, 0, longestReference, func(c byte) bool { return isWord(c) || c == ':' || c == '.' || c == '-' })
	return plain == len(v) && strangest(v).halfBits < 6
}

// curlUser takes the password from user:password, or the user from "user:".
func (s *scan) curlUser(start, end int) {
	t := s.text
	start, end = unquote(t, start, end)
	colon := strings.IndexByte(t[start:max(start, end)], ':')
	if colon < 0 {
		return
	}
	colon += start
	if colon+1 == end {
		if colon-start > 3 {
			s.password(start, colon)
		}
		return
	}
	s.password(colon+1, end)
}

// curlHeader takes the value of a header whose name ends in Key or Token, or of
// an Authorization header without a scheme.
func (s *scan) curlHeader(start, end int) {
	const shortest = 8
	t := s.text
	start, end = unquote(t, start, end)
	colon := strings.IndexByte(t[start:max(start, end)], ':')
	if colon < 0 {
		return
	}
	name, value := t[start:start+colon], skip(t, start+colon+1, 8, isBlank)
	if end-value >= shortest && (endsFold(name, "key") || endsFold(name, "token")) && !strings.ContainsAny(t[value:min(end, value+longestReference)], " \t") {
		s.password(value, end)
	}
}
