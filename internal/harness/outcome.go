package harness

import (
	"strconv"
	"strings"

	"cairn/internal/harness/lazyjson"
	"cairn/internal/observation"
)

// ErrorPrefix is the start of a result that is an error message.
const ErrorPrefix = "Error: "

// DecideFailure decides whether a call failed that its harness reports as finished (observations
// §5). also contains further objects that may have an exit code or an error flag.
func DecideFailure(c *observation.Call, response lazyjson.Value, also ...lazyjson.Value) {
	shell := c.Action == observation.Shell
	if response.Kind() == '"' {
		said := response.Text()
		words, marked := strings.CutPrefix(said, ErrorPrefix)
		if code, ok := ExitCode(words); shell && ok {
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
		f := object.Pick("exit_code", "exitCode", "is_error", "isError")
		failed := f[2].IsTrue() || f[3].IsTrue()
		if code := lazyjson.First(f[0], f[1]).Code(); code != nil && shell {
			c.ExitCode = code
			failed = failed || *code != 0
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
	MarkInterrupted(c)
}

// MarkInterrupted marks a call that the user stopped as interrupted, not as failed. An exit code
// or error that the harness reports for it only shows that it was stopped. A call that exceeded
// its time limit was not stopped by the user.
func MarkInterrupted(c *observation.Call) {
	said := c.Error
	if _, ok := ExitCode(said); ok {
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
		Interrupted, "Request interrupted by user", "Command was cancelled by user", "Operation cancelled by user",
		"[Operation Cancelled]", "aborted by user", "command aborted by user", "user cancelled MCP tool call",
		"User aborted", "User cancelled", "The user interrupted",
	} {
		if strings.HasPrefix(said, start) {
			return true
		}
	}
	return false
}

// SetFailed marks a call that its harness reports as failed. said is the error message. If it is blank,
// SetFailed reads the message from the response, where older hosts put it.
func SetFailed(c *observation.Call, said string, response lazyjson.Value) {
	c.Failed = true
	if strings.TrimSpace(said) == "" {
		said = complaint(response)
	}
	c.Error, c.Output = said, ""
	defer MarkInterrupted(c)
	if c.Action != observation.Shell {
		return
	}
	if code, ok := ExitCode(said); ok {
		c.ExitCode = &code
	} else if code := lazyjson.First(response.Pick("exit_code", "exitCode")...).Code(); code != nil {
		c.ExitCode = code
	}
}

// complaint returns the error message in a failed call's response.
func complaint(response lazyjson.Value) string {
	if response.Kind() != '{' {
		return strings.TrimPrefix(response.Plain(), ErrorPrefix)
	}
	f := response.Pick("error", "stderr")
	return lazyjson.FirstNonBlank(f[0].Plain(), f[1].Text(), response.Plain(), response.Get("stdout").Text())
}

// ExitCode parses the number in a text that begins with "Exit code N".
func ExitCode(said string) (int, bool) {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(said, ErrorPrefix), "Exit code ")
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
	Rejected     = "call rejected by the user"
	Stopped      = "call stopped by the user"
	Denied       = "call denied permission"
	Blocked      = "call blocked by a hook"
	InvalidCall  = "invalid call"
	ResultLost   = "result lost by the harness"
	NeverRefused = ""
)
