package harness

import (
	"strconv"
	"strings"

	"cairn/internal/observation"
)

const errorPrefix = "Error: "

// decideFailure decides whether a call failed that its harness reports as finished (observations
// §5). also contains further objects that may have an exit code or an error flag.
func decideFailure(c *observation.Call, response []byte, also ...[]byte) {
	shell := c.Action == observation.Shell
	if kindOf(response) == '"' {
		said := text(response)
		words, marked := strings.CutPrefix(said, errorPrefix)
		if code, ok := exitCode(words); shell && ok {
			c.ExitCode = &code
			marked = code != 0
		} else if shell {
			marked = false
		}
		if marked {
			c.Failed, c.Error = true, words
		}
	}
	for _, object := range append(also, response) {
		f := pick(object, "exit_code", "exitCode", "is_error", "isError")
		failed := isTrue(f[2]) || isTrue(f[3])
		if n, ok := integer(firstOf(f[0], f[1])); ok && shell {
			code := int(n)
			c.ExitCode = &code
			failed = failed || code != 0
		}
		if failed {
			c.Failed = true
		}
	}
	if c.Failed && c.Error == "" {
		c.Error = complaint(response)
	}
	if c.Failed {
		c.Output = "" // Error contains it
	}
	markInterrupted(c)
}

// markInterrupted marks a call that the user stopped as interrupted, not as failed. An exit code
// or error that the harness reports for it only shows that it was stopped. A call that exceeded
// its time limit was not stopped by the user.
func markInterrupted(c *observation.Call) {
	said := c.Error
	if _, ok := exitCode(said); ok {
		_, said, _ = strings.Cut(said, "\n")
	}
	said = strings.TrimSpace(said)
	switch {
	case strings.HasPrefix(said, "Command timed out after "):
		c.Interrupted = false
	case c.Failed && stoppedByUser(said):
		c.Interrupted = true
	}
	if c.Interrupted {
		c.Failed, c.Error, c.ExitCode = false, "", nil
	}
}

// stoppedByUser reports whether a call's error message shows that the user stopped the call.
func stoppedByUser(said string) bool {
	for _, start := range [...]string{
		interrupted, "Request interrupted by user", "Command was cancelled by user", "Operation cancelled by user",
		"[Operation Cancelled]", "aborted by user", "command aborted by user", "user cancelled MCP tool call",
		"User aborted", "User cancelled", "The user interrupted",
	} {
		if strings.HasPrefix(said, start) {
			return true
		}
	}
	return false
}

// fail marks a call that its harness reports as failed. said is the error message. If it is blank,
// fail reads the message from the response, where older hosts put it.
func fail(c *observation.Call, said string, response []byte) {
	c.Failed = true
	if strings.TrimSpace(said) == "" {
		said = complaint(response)
	}
	c.Error, c.Output = said, ""
	defer markInterrupted(c)
	if c.Action != observation.Shell {
		return
	}
	if code, ok := exitCode(said); ok {
		c.ExitCode = &code
	} else if n, ok := integer(firstOf(pick(response, "exit_code", "exitCode")...)); ok {
		code := int(n)
		c.ExitCode = &code
	}
}

// complaint returns the error message in a failed call's response.
func complaint(response []byte) string {
	if kindOf(response) != '{' {
		return strings.TrimPrefix(plain(response), errorPrefix)
	}
	f := pick(response, "error", "stderr")
	return firstNonBlank(plain(f[0]), text(f[1]), plain(response), text(get(response, "stdout")))
}

// exitCode parses the number in a text that begins with "Exit code N".
func exitCode(said string) (int, bool) {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(said, errorPrefix), "Exit code ")
	if !ok {
		return 0, false
	}
	end := 0
	for end < len(rest) && (rest[end] >= '0' && rest[end] <= '9' || end == 0 && rest[end] == '-') {
		end++
	}
	code, err := strconv.Atoi(rest[:end])
	return code, err == nil
}

// Reasons why a call in a transcript never ran. Live hooks do not see such calls, so an import
// omits them (observations §12).
const (
	rejected     = "call rejected by the user"
	stopped      = "call stopped by the user"
	denied       = "call denied permission"
	blocked      = "call blocked by a hook"
	invalidCall  = "invalid call"
	resultLost   = "result lost by the harness"
	neverRefused = ""
)

// refusal returns the reason why a call never ran, neverRefused if it ran. kind is the reason that
// the line states, which only recent versions write. said is the result's text. response is the
// text that replaces the hook's response, "" if there is none.
func refusal(kind, said, response string) string {
	_, ran := exitCode(said)
	switch {
	case ran:
		return neverRefused
	case kind == "user-rejected":
		return rejected
	case kind == "interrupted", kind == "cancelled":
		return stopped
	case kind != "":
		return denied
	}
	if why := refusalOf(said); why != neverRefused {
		return why
	}
	return refusalOf(strings.TrimPrefix(response, errorPrefix))
}

func refusalOf(said string) string {
	for _, form := range [...]struct{ start, within, why string }{
		{"The user doesn't want to proceed with this tool use", "", rejected},
		{"The user doesn't want to take this action", "", rejected},
		{"The agent proposed a plan that was rejected by the user", "", rejected},
		{"User rejected tool use", "", rejected},
		{interrupted, "", stopped},
		{"<tool_use_error>", "", invalidCall},
		{"InputValidationError", "", invalidCall},
		{"No such tool available", "", invalidCall},
		{"Permission for this ", " denied", denied},
		{"Permission to use ", " denied", denied},
		{"Permission to ", "has been denied", denied},
		{"Claude requested permissions to ", "", denied},
		{"This command requires approval", "", denied},
		{"This Bash command contains multiple operations", "", denied},
		{"", " was blocked. For security, Claude Code", denied},
		{"PreToolUse:", " hook error", blocked},
		{"Hook PreToolUse:", " denied this tool", blocked},
		{"", " operation blocked by hook:", blocked},
		{"[Tool result missing due to internal error]", "", resultLost},
	} {
		where := said
		if form.start == "" { // a message that starts with a tool's name or a path contains the phrase early
			where = said[:min(len(said), 500)]
		}
		if strings.HasPrefix(said, form.start) && strings.Contains(where, form.within) {
			return form.why
		}
	}
	return neverRefused
}
