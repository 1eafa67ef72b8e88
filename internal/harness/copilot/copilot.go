package copilot

import (
	"path/filepath"

	"cairn/internal/harness"
)

// name is the name of Copilot CLI.
const name = "copilot"

// Harness describes Copilot CLI.
func Harness() harness.Harness {
	return harness.Harness{
		Name: name, Title: "Copilot CLI", Aliases: []string{"github-copilot"}, Program: "copilot-cli",
		Hears: harness.Everywhere(), Helped: true,
		Folder:      dir,
		Transcripts: func(h harness.Homes) []string { return []string{filepath.Join(dir(h), "session-state")} },
		Unnamed:     true,
		Hooks:       hooks(), Files: settings,
		Answer: harness.FlatAnswer, Event: event,
		Sends: isPayload, IsTranscript: harness.IsLines, Writes: isLine, Read: readTranscript,
	}
}

func dir(h harness.Homes) string { return h.In("COPILOT_HOME", ".copilot") }

// hooks returns Copilot CLI's hooks under Claude Code's event names. With these names,
// Copilot CLI sends payloads that contain the event's name.
func hooks() harness.Hooks {
	hooks := harness.HooksFor(10, "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop", "SubagentStop", "SessionEnd")
	hooks[1].Helps, hooks[2].Helps = true, true
	return harness.Hooks{Form: harness.HookForm{Flat: true, Version: true, Typed: true, Timeout: "timeoutSec"}, Wanted: hooks}
}

func settings(h harness.Homes) []harness.File {
	dir := dir(h)
	return []harness.File{
		{Path: filepath.Join(dir, "hooks", "cairn.json"), Hooks: true},
		{Path: filepath.Join(dir, "mcp-config.json"), Server: harness.Server{Under: "mcpServers", Type: "local", Tools: true}},
	}
}
