package claude

import (
	"strings"

	"cairn/internal/harness"
)

// refusal returns the reason why a call never ran, or harness.NeverRefused if it ran. kind is
// the reason that the line states; only recent versions write it. said is the result's text.
// response is the text that replaces the hook's response, which may be "".
func refusal(kind, said, response string) string {
	_, ran := harness.ExitCode(said)
	switch {
	case ran:
		return harness.NeverRefused
	case kind == "user-rejected":
		return harness.Rejected
	case kind == "interrupted", kind == "cancelled":
		return harness.Stopped
	case kind != "":
		return harness.Denied
	}
	if why := refusalOf(said); why != harness.NeverRefused {
		return why
	}
	return refusalOf(strings.TrimPrefix(response, harness.ErrorPrefix))
}

func refusalOf(said string) string {
	for _, form := range [...]struct{ start, within, why string }{
		{"The user doesn't want to proceed with this tool use", "", harness.Rejected},
		{"The user doesn't want to take this action", "", harness.Rejected},
		{"The agent proposed a plan that was rejected by the user", "", harness.Rejected},
		{"User rejected tool use", "", harness.Rejected},
		{harness.Interrupted, "", harness.Stopped},
		{"<tool_use_error>", "", harness.InvalidCall},
		{"InputValidationError", "", harness.InvalidCall},
		{"No such tool available", "", harness.InvalidCall},
		{"Permission for this ", " denied", harness.Denied},
		{"Permission to use ", " denied", harness.Denied},
		{"Permission to ", "has been denied", harness.Denied},
		{"Claude requested permissions to ", "", harness.Denied},
		{"This command requires approval", "", harness.Denied},
		{"This Bash command contains multiple operations", "", harness.Denied},
		{"", " was blocked. For security, Claude Code", harness.Denied},
		{"PreToolUse:", " hook error", harness.Blocked},
		{"Hook PreToolUse:", " denied this tool", harness.Blocked},
		{"", " operation blocked by hook:", harness.Blocked},
		{"[Tool result missing due to internal error]", "", harness.ResultLost},
	} {
		where := said
		if form.start == "" { // a message that starts with a tool's name or a path contains the phrase early
			where = said[:min(len(said), 500)]
		}
		if strings.HasPrefix(said, form.start) && strings.Contains(where, form.within) {
			return form.why
		}
	}
	return harness.NeverRefused
}
