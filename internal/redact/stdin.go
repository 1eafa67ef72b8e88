package redact

import (
	"strings"

	"cairn/internal/redact/shape"
)

// standardInput handles a program that reads a password from its standard input, according
// to the flag or name at text[start:end]. It redacts the text piped into the program: echo
// v | docker login --password-stdin, or a here-string: <<< v.
func (s *scan) standardInput(start, end int) {
	const reach = 512 // bytes of the line before and after
	t := s.text
	if end < len(t) && (shape.IsAlnum(t[end]) || t[end] == '-') {
		return
	}
	line := shape.Back(t, start, reach, func(c byte) bool { return c != '\n' })
	pairs := t[start] == 'c' // chpasswd reads user:password
	if pipe := strings.LastIndexByte(t[line:start], '|'); pipe >= 0 && !strings.HasSuffix(t[:line+pipe], "|") {
		if from, to := echoed(t, line, line+pipe); from < to {
			s.piped(from, to, pairs)
		}
	}
	if i := strings.Index(t[end:min(len(t), end+reach)], "<<<"); i >= 0 && strings.IndexByte(t[end:end+i], '\n') < 0 {
		if from, to := nextArgument(t, end+i+len("<<<"), min(len(t), end+reach)); from < to {
			s.piped(from, to, pairs)
		}
	}
}

// echoed returns the bounds of the last argument of the last echo or printf in
// text[line:pipe]. They are equal if another command writes into the pipe.
func echoed(t string, line, pipe int) (from, to int) {
	i := max(strings.LastIndex(t[line:pipe], "echo "), strings.LastIndex(t[line:pipe], "printf "))
	if i < 0 || !shape.WordStart(t, line+i) || strings.IndexByte(t[line+i:pipe], '|') >= 0 {
		return 0, 0
	}
	i = shape.Skip(t, line+i, len("printf"), shape.IsLetter)
	for {
		arg, argEnd := nextArgument(t, i, pipe)
		if arg == argEnd {
			return from, to
		}
		if strings.ContainsAny(t[argEnd-1:argEnd], ";&") {
			return 0, 0
		}
		if t[arg] != '-' {
			from, to = arg, argEnd
		}
		i = argEnd
	}
}

// piped redacts the password text[from:to], or the part after the user name.
func (s *scan) piped(from, to int, pairs bool) {
	from, to = unquote(s.text, from, to)
	if pairs {
		i := strings.IndexByte(s.text[from:max(from, to)], ':')
		if i < 0 {
			return
		}
		from += i + 1
	}
	if to-from >= shortestPassword {
		s.password(from, to)
	}
}
