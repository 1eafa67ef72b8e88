package wiring

import (
	"strings"
	"unicode"
)

// shell is the program to which a host passes a hook's command line.
type shell int

const (
	posix      shell = iota // sh, bash, zsh
	gitBash                 // bash on Windows; cmd understands the same line
	powershell              // Windows PowerShell, pwsh
	cmd                     // cmd.exe
)

// line returns a command line that calls a program by its path, with any characters in the path.
// The arguments are cairn's own words and need no quotes.
func (s shell) line(program string, args []string) string {
	if s == gitBash {
		program = strings.ReplaceAll(program, `\`, "/")
	}
	return s.quoted(program) + " " + strings.Join(args, " ")
}

func (s shell) quoted(program string) string {
	if s.plain(program) {
		return program
	}
	switch s {
	case gitBash:
		return `"` + strings.NewReplacer(`"`, `\"`, "$", `\$`, "`", "\\`").Replace(program) + `"`
	case powershell: // a quoted text alone would be an expression
		return "& '" + strings.ReplaceAll(program, "'", "''") + "'"
	case cmd:
		return `"` + program + `"`
	default:
		return "'" + strings.ReplaceAll(program, "'", `'\''`) + "'"
	}
}

// plain reports whether the path needs no quotes in the shell.
func (s shell) plain(path string) bool {
	for _, r := range path {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("/._-+:@", r):
		case r == '\\' && (s == powershell || s == cmd):
		default:
			return false
		}
	}
	return path != ""
}

// splitLine splits a command line of any shell into words. A backslash quotes only where no path
// would contain it: before quotes, before spaces and, outside Windows, before backslashes in
// double quotes.
func splitLine(line string, windows bool) []string {
	line = strings.TrimPrefix(strings.TrimSpace(line), "& ")
	var words []string
	var word strings.Builder
	var quote rune
	inWord := false
	end := func() {
		if inWord {
			words = append(words, word.String())
			word.Reset()
		}
		inWord = false
	}
	runes := append([]rune(line), 0)
	for i := 0; i < len(runes)-1; i++ {
		r, next := runes[i], runes[i+1]
		switch {
		case quote == 0 && unicode.IsSpace(r):
			end()
			continue
		case escapes(r, next, quote, windows):
			word.WriteRune(next)
			i++
		case quote == 0 && (r == '"' || r == '\''):
			quote = r
		case quote != 0 && r == quote:
			quote = 0
		default:
			word.WriteRune(r)
		}
		inWord = true
	}
	end()
	return words
}

// escapes reports whether r, inside quote, makes next a literal character.
func escapes(r, next, quote rune, windows bool) bool {
	switch {
	case r == '\'': // PowerShell's escape
		return quote == '\'' && next == '\'' && windows
	case r != '\\' || quote == '\'':
		return false
	case quote == '"':
		return strings.ContainsRune("\"$`", next) && next != 0 || next == '\\' && !windows
	}
	return next == '\'' || next == '"' || next == ' '
}

// baseName returns a program's name without its folder and without .exe.
func baseName(path string) string {
	name := path[strings.LastIndexAny(path, `/\`)+1:]
	if len(name) > 4 && strings.EqualFold(name[len(name)-4:], ".exe") {
		name = name[:len(name)-4]
	}
	return name
}
