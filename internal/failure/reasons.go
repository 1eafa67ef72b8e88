package failure

import "strings"

// pytestReason finds the first line of the last block of "E" lines in pytest's
// output: the exception of the failure that was reported last.
func pytestReason(o *output) int {
	found := -1
	for i := range o.lines {
		if !isPytestError(o.lines[i].text) || i > 0 && isPytestError(o.lines[i-1].text) {
			continue
		}
		found = i
	}
	return found
}

func isPytestError(text string) bool {
	rest, ok := strings.CutPrefix(text, "E ")
	return ok && strings.HasPrefix(rest, "  ") && strings.TrimSpace(rest) != ""
}

// tracebackReason finds the exception below the last Python traceback.
func tracebackReason(o *output) int {
	for i := len(o.lines) - 1; i >= 0; i-- {
		if !strings.HasSuffix(o.lines[i].trim, "Traceback (most recent call last):") {
			continue
		}
		depth := indent(o.lines[i].text)
		for j := i + 1; j < len(o.lines); j++ {
			l := o.lines[j]
			if indent(l.text) > depth || strings.HasPrefix(l.trim, `File "`) {
				continue
			}
			if name, _, _ := strings.Cut(l.trim, ":"); isDotted(name) {
				return j
			}
			break
		}
	}
	return -1
}

// syntaxReason finds the error of Python code that does not parse, which has no
// traceback.
func syntaxReason(o *output) int {
	for i := range o.lines {
		if i > 1 && starting("SyntaxError: ", "IndentationError: ", "TabError: ")(o.lines[i].trim) && strings.HasPrefix(o.lines[0].trim, `File "`) {
			return i
		}
	}
	return -1
}

// ruffReason finds the first message in ruff's long form: a code and a text above
// the arrow that points at the place.
func ruffReason(o *output) int {
	for i := 0; i+1 < len(o.lines); i++ {
		code, _, _ := strings.Cut(o.lines[i].trim, " ")
		if isCode(code) && strings.HasPrefix(o.lines[i+1].trim, "--> ") {
			return i
		}
	}
	return -1
}

// isLintCode matches "x.py:1:8: F401 text".
func isLintCode(s string) bool {
	at := strings.Index(s, ".py:")
	if at < 0 {
		return false
	}
	_, rest, ok := strings.Cut(s[at+len(".py:"):], ": ")
	code, _, _ := strings.Cut(rest, " ")
	return ok && isCode(strings.TrimSuffix(code, ":"))
}

// isCode matches a rule's code, such as F401 or PLR0913.
func isCode(s string) bool {
	letters := 0
	for letters < len(s) && s[letters] >= 'A' && s[letters] <= 'Z' {
		letters++
	}
	return letters > 0 && letters <= 4 && len(s)-letters >= 3 && isNumber(s[letters:])
}

// goPlaceReason finds the first error of Go's compiler, vet or a linter. Indented lines
// are skipped, because tests log them.
func goPlaceReason(o *output) int {
	for i := range o.lines {
		if indent(o.lines[i].text) == 0 && isGoError(o.lines[i].trim) {
			return i
		}
	}
	return -1
}

// isGoError matches a position in a Go file followed by a message.
func isGoError(s string) bool {
	s = strings.TrimPrefix(s, "vet: ")
	at := strings.Index(s, ".go:")
	if at <= 0 || strings.ContainsAny(s[:at], " \t(") {
		return false
	}
	rest := s[at+len(".go:"):]
	digits := 0
	for digits < len(rest) && (rest[digits] >= '0' && rest[digits] <= '9' || digits > 0 && rest[digits] == ':' && digits+1 < len(rest) && rest[digits+1] != ' ') {
		digits++
	}
	message, ok := strings.CutPrefix(rest[digits:], ": ")
	return digits > 0 && ok && !strings.HasPrefix(message, ": #")
}

// isGoTestPlace matches a line that a Go test logged.
func isGoTestPlace(s string) bool {
	at := strings.Index(s, ".go:")
	if at <= 0 || strings.ContainsAny(s[:at], " \t(") {
		return false
	}
	line, _, ok := strings.Cut(s[at+len(".go:"):], ":")
	return ok && isNumber(line)
}

// goTestReason finds what the first failed test of a Go package logged, else the
// name of the test.
func goTestReason(o *output) int {
	failed := -1
	for i := range o.lines {
		if strings.HasPrefix(o.lines[i].trim, "--- FAIL: ") {
			failed = i
			break
		}
	}
	if failed < 0 {
		return -1
	}
	for failed+1 < len(o.lines) && strings.HasPrefix(o.lines[failed+1].trim, "--- FAIL: ") { // the subtest that failed
		failed++
	}
	end := failed + 1
	for end < len(o.lines) && indent(o.lines[end].text) > 0 && !strings.HasPrefix(o.lines[end].trim, "--- ") {
		end++
	}
	if i := o.goLog(failed+1, end); i >= 0 {
		return i
	}
	if i := o.goLog(o.goTestStart(failed), failed); i >= 0 {
		return i
	}
	return failed
}

// goTestStart returns the line after the one with which go test -v announces the failed
// test, or 0 if there is none.
func (o *output) goTestStart(failed int) int {
	name, _, _ := strings.Cut(strings.TrimPrefix(o.lines[failed].trim, "--- FAIL: "), " ")
	for start := failed; start > 0; start-- {
		fields := strings.Fields(o.lines[start-1].trim)
		if len(fields) > 2 && fields[0] == "===" && fields[1] == "RUN" && fields[2] == name {
			return start
		}
	}
	return 0
}

// goLog returns the line in the range with the value that a Go test expected, else the
// last logged line. It returns -1 if the test logged nothing.
func (o *output) goLog(from, to int) int {
	found := -1
	for i := from; i < to; i++ {
		l := o.lines[i].trim
		if strings.HasPrefix(l, "Error:") && found >= 0 && strings.HasSuffix(o.lines[found].trim, ":") { // testify
			return i
		}
		if !isGoTestPlace(l) || indent(o.lines[i].text) == 0 || found >= 0 && isHarmless(l) {
			continue
		}
		found = i
		if !isHarmless(l) && holding("want", "expected", "Expected", "should", "mismatch", "must ", "got ", "failed", "error")(l) {
			return i
		}
	}
	return found
}

// goSetupReason finds the line above the first package that go test could not load.
func goSetupReason(o *output) int {
	for i := range o.lines {
		if !strings.HasSuffix(o.lines[i].trim, "[setup failed]") {
			continue
		}
		for j := i - 1; j >= 0; j-- {
			if !starting("#", "FAIL")(o.lines[j].trim) {
				return j
			}
		}
	}
	return -1
}

// eslintReason finds the first error of ESLint's default form.
func eslintReason(o *output) int {
	for i := range o.lines {
		fields := strings.Fields(o.lines[i].trim)
		if len(fields) > 2 && fields[1] == "error" && indent(o.lines[i].text) > 0 {
			row, column, ok := strings.Cut(fields[0], ":")
			if ok && isNumber(row) && isNumber(column) {
				return i
			}
		}
	}
	return -1
}

// jestReason finds, for the first failed test of Jest, the exception that the test
// threw, else the test's name.
func jestReason(o *output) int {
	const near = 12
	for i := range o.lines {
		name, ok := strings.CutPrefix(o.lines[i].trim, "● ")
		if !ok || strings.HasPrefix(name, "Console") {
			continue
		}
		if strings.HasSuffix(name, "suite failed to run") && i+1 < len(o.lines) {
			return i + 1
		}
		for j := i + 1; j < len(o.lines) && j <= i+near && !strings.HasPrefix(o.lines[j].trim, "● "); j++ {
			if isException(o.lines[j].trim) {
				return j
			}
		}
		return i
	}
	return -1
}

// stackReason finds the first exception of JavaScript: the line above a stack.
func stackReason(o *output) int {
	const near = 10
	for i := range o.lines {
		if !isException(o.lines[i].trim) {
			continue
		}
		for j := i + 1; j < len(o.lines) && j <= i+near; j++ {
			if starting("at ", "❯ ")(o.lines[j].trim) {
				return i
			}
		}
	}
	return -1
}

// surefireReason finds the first failed test in the summary of Maven's Surefire.
func surefireReason(o *output) int {
	for i := 1; i < len(o.lines); i++ {
		if holding("[ERROR] Failures:", "[ERROR] Errors:")(o.lines[i-1].trim) && strings.HasPrefix(o.lines[i].trim, "[ERROR] ") {
			return i
		}
	}
	return -1
}

// gradleTestReason finds the exception of the first test that Gradle reports as
// failed.
func gradleTestReason(o *output) int {
	for i := 0; i+1 < len(o.lines); i++ {
		if strings.HasSuffix(o.lines[i].trim, " FAILED") && strings.Contains(o.lines[i].trim, " > ") && !strings.HasPrefix(o.lines[i].trim, ">") {
			if name, _, _ := strings.Cut(o.lines[i+1].trim, ":"); isDotted(strings.Fields(name)[0]) {
				return i + 1
			}
			return i
		}
	}
	return -1
}

// gradleReason finds the cause that Gradle reports: the line with an arrow below "What
// went wrong", else the line below it.
func gradleReason(o *output) int {
	for i := 0; i+1 < len(o.lines); i++ {
		if o.lines[i].trim != "* What went wrong:" {
			continue
		}
		for j := i + 1; j < len(o.lines) && !strings.HasPrefix(o.lines[j].trim, "* "); j++ {
			if strings.HasPrefix(o.lines[j].trim, "> ") && !strings.HasPrefix(o.lines[j].trim, "> There were failing tests") {
				return j
			}
		}
		return i + 1
	}
	return -1
}

// rakeReason finds the exception below "rake aborted!".
func rakeReason(o *output) int {
	for i := 0; i+1 < len(o.lines); i++ {
		if strings.HasSuffix(o.lines[i].trim, " aborted!") {
			return i + 1
		}
	}
	return -1
}

// compilerError matches "file:3:5: error: text" of C compilers and Swift.
func compilerError(s string) bool {
	for _, mark := range [...]string{": error: ", ": fatal error: "} {
		at := strings.Index(s, mark)
		if at <= 0 {
			continue
		}
		place := s[:at]
		if i := strings.LastIndexByte(place, ':'); i > 0 && isNumber(place[i+1:]) {
			return true
		}
	}
	return false
}
