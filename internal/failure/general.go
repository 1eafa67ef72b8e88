package failure

import (
	"strings"
	"unicode/utf8"
)

// general finds the line by rules that hold for any tool.
func (o *output) general() int {
	for _, match := range [...]func(string) bool{
		isShellError, isException, startsWithFailure, holdsFailureWord, holdsComplaint,
	} {
		for i := range o.lines {
			if match(o.lines[i].trim) && o.kind(i) == telling {
				return i
			}
		}
	}
	for i := range o.lines {
		if strings.HasPrefix(strings.ToLower(o.lines[i].trim), "usage:") {
			return i
		}
	}
	for _, worst := range [...]lineKind{telling, harmless} {
		for i := len(o.lines) - 1; i >= 0; i-- {
			if k := o.kind(i); k <= worst && (k == harmless || !isFrame(o.lines[i].trim)) {
				return i
			}
		}
	}
	return last(func(s string) bool { return !isExitCode(s) && strings.ContainsFunc(s, isLetter) })(o)
}

// kind returns the kind of the line i.
func (o *output) kind(i int) lineKind {
	l := &o.lines[i]
	if l.kind == unclassified {
		switch {
		case isMeaningless(l.trim):
			l.kind = meaningless
		case isHarmless(l.trim):
			l.kind = harmless
		default:
			l.kind = telling
		}
	}
	return l.kind
}

// isShellError matches what shells and the basic Unix tools print.
func isShellError(s string) bool {
	return holding("command not found", ": not found", "No such file or directory", "no such file or directory", "Permission denied",
		"syntax error near", "unbound variable", "bad substitution", "no matches found:", "parse error near", "Is a directory",
		"is not recognized as ", "Segmentation fault")(s)
}

// isException matches an exception with its text: a dotted name that ends in Error,
// Exception or similar, then a colon or nothing.
func isException(s string) bool {
	s = strings.TrimPrefix(s, "Uncaught ")
	name := s
	if i := strings.Index(s, ": "); i >= 0 {
		name = s[:i]
	}
	name = strings.TrimSuffix(name, ":")
	if i := strings.IndexByte(name, ' '); i > 0 && strings.HasPrefix(name[i:], " [") && strings.HasSuffix(name, "]") {
		name = name[:i]
	}
	if len(name) > 120 || !isDotted(name) || name == "Error" && s == name {
		return false
	}
	base := name[strings.LastIndexByte(name, '.')+1:]
	for _, end := range [...]string{"Error", "Exception", "Interrupt", "SystemExit", "StopIteration", "DoesNotExist", "Failure"} {
		if strings.HasSuffix(base, end) {
			return true
		}
	}
	return false
}

// startsWithFailure matches lines that start with a word such as error, after an
// optional sign and the name of the program.
func startsWithFailure(s string) bool {
	s = strings.TrimLeft(s, "✗✘✖×❌>!*-[ ")
	if isFailureStart(s) {
		return true
	}
	program, rest, ok := strings.Cut(s, ": ")
	return ok && !strings.Contains(program, " ") && isFailureStart(rest)
}

func isFailureStart(s string) bool {
	n := 0
	for n < len(s) && isLetterByte(s[n]) {
		n++
	}
	switch w := strings.ToLower(s[:n]); w {
	case "error", "errors", "err", "fatal", "fail", "failed", "failure", "panic", "panicked", "exception":
		return true
	default:
		return strings.HasPrefix(w, "assert")
	}
}

// holdsFailureWord matches lines that hold error, fail, panic or assert as a word.
func holdsFailureWord(s string) bool {
	return holdsWord(s, "error", "errors", "fail", "fails", "failed", "failure", "failing", "panic", "panicked", "fatal", "assert", "assertion")
}

// holdsComplaint matches lines that report that something was not possible.
func holdsComplaint(s string) bool {
	s = strings.ToLower(s)
	return holding("cannot ", "can't ", "could not ", "couldn't ", "unable to ", "denied", "refused", "not found", "no such ", "invalid ",
		"missing ", "unexpected ", "unknown ", "unrecognized ", "undefined", "conflict", "rejected", "timed out", "timeout", "abort",
		"does not exist", "doesn't exist", "not a ", "are ignored", "mismatch", "killed", "out of memory", "no space left", "required")(s)
}

// isMeaningless matches lines that never explain a failure: separators, exit codes, bare
// results and the closing words of task runners.
func isMeaningless(s string) bool {
	if !strings.ContainsFunc(s, isLetter) || isExitCode(s) || isBanner(s) {
		return true
	}
	bare := strings.Trim(s, ".!: =-*_#~─━")
	switch bare {
	case "FAIL", "FAILED", "BUILD FAILED", "BUILD FAILURE", "Error", "ERROR", "error", "Failed to compile", "FAILURES", "ERRORS",
		"Failures", "Errors", "Test failed. See above for more details", "Tests failed":
		return true
	}
	return holding("ERROR task failed", "ELIFECYCLE", "A complete log of this run", "Aborting due to", "aborting due to",
		"could not compile `", "error: test failed, to rerun", "Error: Process completed with", "[INFO] BUILD FAILURE",
		"errors generated", "error generated", "FAILURE: Build failed with an exception")(s)
}

// isExitCode matches lines that report nothing but an exit code.
func isExitCode(s string) bool {
	for _, p := range [...]string{"Exit code ", "Error: Exit code ", "exit status ", "Process exited with code ", "exit code ", "Exit status "} {
		if rest, ok := strings.CutPrefix(s, p); ok && isNumber(strings.TrimLeft(strings.TrimSpace(rest), "-")) {
			return true
		}
	}
	if strings.HasPrefix(s, "make") && strings.Contains(s, ": *** [") && strings.Contains(s, "] Error ") {
		return true
	}
	return len(s) < 100 && holding("Command failed with exit code", "exited with code ", "exited with exit code", "collect2: error: ld returned")(s)
}

// isBanner matches headings framed by repeated characters.
func isBanner(s string) bool {
	for _, sign := range [...]string{"====", "----", "****", "____", "────", "━━━━"} {
		if strings.HasPrefix(s, sign) && strings.HasSuffix(s, sign) {
			return true
		}
	}
	return false
}

// isHarmless matches lines that contain words such as error but report no failure: counts
// of zero, passed tests, warnings, progress, hints and echoes of commands.
func isHarmless(s string) bool {
	lower := strings.ToLower(s)
	for _, p := range [...]string{
		"warning", "warn", "npm warn", "hint:", "note:", "= note", "= help", "help:", "usage:", "info", "[info]", "debug", "=== ",
		"downloading", "downloaded", "compiling ", "fetching", "resolving", "installing", "collecting ", "building ", "checking ",
		"auto-merging", "rebasing (", "pass", "ok ", "ok\t", "✓", "✔", "√", "$ ", "+ ", "> ", "running ", "starting ", "finished ",
		"?   \t", "at ", "test tests", "entering directory", "---", "+++", "@@", "diff --git", "#",
	} {
		if strings.HasPrefix(lower, p) {
			return true
		}
	}
	if strings.HasSuffix(lower, "... ok") || strings.HasSuffix(lower, " passed") || strings.Contains(lower, "%|") || strings.HasSuffix(lower, "%") ||
		strings.Contains(s, " INFO ") || strings.Contains(s, " DEBUG ") || strings.Contains(s, " WARN ") ||
		strings.Contains(lower, "successfully") {
		return true
	}
	return isTask(s) || isZeroCount(lower)
}

// isTask matches the echo of a command by a task runner: "[lint] $ golangci-lint".
func isTask(s string) bool {
	_, rest, ok := strings.Cut(s, "] ")
	return ok && strings.HasPrefix(s, "[") && strings.HasPrefix(rest, "$ ")
}

func isZeroCount(lower string) bool {
	return holding("no error", "no issues", "without error")(lower) ||
		holding("0 error", "0 fail", "errors: 0", "failed: 0", "failures: 0", "failed=0", "errors=0")(" "+lower) &&
			!containsCount(lower)
}

// containsCount reports whether a count above zero is before error or fail.
func containsCount(lower string) bool {
	for _, w := range [...]string{" error", " fail"} {
		for rest := lower; ; {
			i := strings.Index(rest, w)
			if i < 0 {
				break
			}
			end := i
			for end > 0 && rest[end-1] >= '0' && rest[end-1] <= '9' {
				end--
			}
			if strings.Trim(rest[end:i], "0") != "" {
				return true
			}
			rest = rest[i+len(w):]
		}
	}
	return false
}

// isFrame matches a line of a stack trace or of code that a compiler prints.
func isFrame(s string) bool {
	return starting("at ", "File \"", "--> ", "^", "|", "~")(s)
}

// holdsWord reports whether s contains one of the words, in any case, not as a part
// of a longer word.
func holdsWord(s string, words ...string) bool {
	for i := 0; i < len(s); {
		if !isLetterByte(s[i]) {
			i++
			continue
		}
		end := i
		for end < len(s) && isLetterByte(s[end]) {
			end++
		}
		for _, w := range words {
			if strings.EqualFold(s[i:end], w) {
				return true
			}
		}
		i = end
	}
	return false
}

// located matches "dir/file.ext:3: mark".
func located(s, ext, mark string) bool {
	at := strings.Index(s, mark)
	return at > 0 && strings.Contains(s[:at], ext+":")
}

// afterNumber matches lines that hold one of the marks directly before a digit.
func afterNumber(s string, marks ...string) bool {
	for _, m := range marks {
		if i := strings.Index(s, m); i >= 0 && i+len(m) < len(s) && s[i+len(m)] >= '0' && s[i+len(m)] <= '9' {
			return true
		}
	}
	return false
}

// isDotted matches a name of identifiers joined by dots.
func isDotted(s string) bool {
	if s == "" || !isLetterByte(s[0]) && s[0] != '_' {
		return false
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; !isLetterByte(c) && c != '_' && c != '.' && c != '$' && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

func indent(s string) int { return len(s) - len(strings.TrimLeft(s, " \t")) }

func isNumber(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

func isDecimal(s string) bool {
	whole, part, _ := strings.Cut(s, ".")
	return isNumber(whole) && isNumber(part)
}

func isLetterByte(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

func isLetter(r rune) bool {
	return r < utf8.RuneSelf && isLetterByte(byte(r)) || r > 0x2fff || r >= 0xc0 && r < 0x2000
}
