package codex

import (
	"path/filepath"

	"cairn/internal/harness"
	"cairn/internal/harness/lazyjson"
)

// name is the name of Codex.
const name = "codex"

// Harness describes Codex.
func Harness() harness.Harness {
	return harness.Harness{
		Name: name, Title: "Codex", Aliases: []string{"codex-cli"}, Program: "codex-cli",
		Hears: harness.Everywhere(), Helped: true,
		Folder:      dir,
		Transcripts: func(h harness.Homes) []string { return []string{filepath.Join(dir(h), "sessions")} },
		Hooks:       hooks(), Files: settings,
		Answer: harness.AnswerWithEvent, Event: event,
		Sends:        func(body lazyjson.Value) bool { return body.Get("turn_id") != nil },
		IsTranscript: harness.IsLines, Writes: isLine, Read: readTranscript, Settled: settled,
	}
}
func dir(h harness.Homes) string { return h.In("CODEX_HOME", ".codex") }

// hooks returns Codex's hooks. Codex has no event for failures and allows SessionEnd 3 s.
func hooks() harness.Hooks {
	return harness.Hooks{
		Form: harness.HookForm{
			Typed: true, Trusted: true,
			Switches: []harness.Switch{{Path: []string{"features", "hooks"}}, {Path: []string{"features", "codex_hooks"}}},
		},
		Wanted: []harness.HookEntry{
			{Event: "SessionStart", Timeout: 10},
			{Event: "UserPromptSubmit", Timeout: 10, Helps: true},
			{Event: "PreToolUse", Timeout: 10, Helps: true},
			{Event: "PostToolUse", Timeout: 10},
			{Event: "Stop", Timeout: 10},
			{Event: "SubagentStop", Timeout: 10},
			{Event: "PostCompact", Timeout: 10},
			{Event: "SessionEnd", Timeout: 3},
		},
	}
}

func settings(h harness.Homes) []harness.File {
	dir := dir(h)
	return []harness.File{
		{Path: filepath.Join(dir, "hooks.json"), Hooks: true},
		{Path: filepath.Join(dir, "config.toml"), Format: harness.TOML, Server: harness.Server{Under: "mcp_servers"}},
	}
}
