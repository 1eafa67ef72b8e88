package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// howToUse ends the showing: the commands to try, and how to connect Claude Code.
func (d *demo) howToUse(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	snippet, err := hookSettings(d.home.program)
	if err != nil {
		return err
	}
	program := shellWord(d.home.program)
	d.heading("On your own sessions")
	d.say("Read what Claude Code still keeps (it deletes transcripts after 30 days), then look around. This writes to ~/.cairn only:")
	d.line("\n  alias cairn=%s", program)
	for _, c := range []struct{ command, what string }{
		{"import", "reads old transcripts; importing again adds nothing"},
		{"search 'failing test'", "finds what happened, in all projects"},
		{"context", "prints what the next session in this folder would be told"},
	} {
		d.line("  cairn %-22s  %s", c.command, d.dim(c.what))
	}
	d.blank()
	d.say("To record from now on, merge this into ~/.claude/settings.json:")
	d.line("\n%s\n", snippet)
	d.say("And let the agent ask by itself:")
	d.line("\n  claude mcp add --scope user cairn -- %s serve\n", program)
	d.say("The paths must stay: copy the program to where it shall live before you connect it. " +
		"`make demo ARGS=--mine` shows the same on your own transcripts without touching ~/.cairn.")
	return nil
}

// hookSettings is the part of Claude Code's settings.json that makes it call
// the program at every event that cairn stores. Timeouts are in seconds.
func hookSettings(program string) (string, error) {
	command, err := json.Marshal(shellWord(program) + " record --from claude")
	if err != nil {
		return "", err
	}
	var lines []string
	for _, event := range []string{
		"SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure",
		"Stop", "SubagentStop", "PostCompact", "SessionEnd",
	} {
		timeout := 10
		if event == "SessionEnd" {
			timeout = 1
		}
		lines = append(lines, fmt.Sprintf(`    %s: [{"hooks": [{"type": "command", "timeout": %d, "command": %s}]}]`,
			strconv.Quote(event), timeout, command))
	}
	return "{\n  \"hooks\": {\n" + strings.Join(lines, ",\n") + "\n  }\n}", nil
}

// shellWord is a path as one word of a command line.
func shellWord(path string) string {
	path = filepath.ToSlash(path)
	if strings.ContainsAny(path, " '&;()$`\"*?[]<>|") {
		return `"` + strings.NewReplacer("`", "\\`", `"`, `\"`, `$`, `\$`).Replace(path) + `"`
	}
	return path
}
