package claude

import (
	"path/filepath"

	"cairn/internal/harness"
	"cairn/internal/harness/lazyjson"
	"cairn/internal/observation"
)

// name is the name of Claude Code.
const name = "claude"

// Harness describes Claude Code.
func Harness() harness.Harness {
	return harness.Harness{
		Name: name, Title: "Claude Code", Aliases: []string{"claude-code"}, Program: "claude-code",
		Hears: harness.Everywhere(), Asks: true, Helped: true, Defers: true,
		ShowsTwo:    []string{harness.OnToolUse, harness.OnToolFailure, harness.OnSessionStart, harness.OnSessionEnd, "Notification"},
		Folder:      dir,
		Transcripts: func(h harness.Homes) []string { return []string{filepath.Join(dir(h), "projects")} },
		KeptDays:    30, KeptSetting: "cleanupPeriodDays", Plugin: true,
		Command: "claude", Package: "@anthropic-ai/claude-code", Noted: "lastReleaseNotesSeen",
		Hooks: hooks(), Files: settings,
		Answer: harness.AnswerWithEvent, Event: event,
		IsTranscript: harness.IsLines, Writes: isLine, Read: readTranscript,
	}
}

// event reads a payload of Claude Code (observations §4.2).
func event(body lazyjson.Value, _ string) (observation.Event, error) {
	e, err := harness.CommonEvent(name, "prompt_id", body)
	if err == nil {
		harness.FillEvent(&e, body)
		e.CannotAsk = e.Source == harness.OnBeforeTool && harness.CannotAsk(body)
	}
	return e, err
}

func dir(h harness.Homes) string { return h.In("CLAUDE_CONFIG_DIR", ".claude") }

func hooks() harness.Hooks {
	return harness.Hooks{
		Form: harness.HookForm{
			Typed: true, Windows: harness.GitBash, Apart: [3]int{2, 1, 139},
			Switches: []harness.Switch{{Path: []string{"disableAllHooks"}, Off: true}},
		},
		Wanted: []harness.HookEntry{
			{Event: "SessionStart", Timeout: 10},
			{Event: "UserPromptSubmit", Timeout: 10, Helps: true},
			{Event: "PreToolUse", Matcher: "*", Bare: "Edit|Write|MultiEdit|NotebookEdit", Timeout: 10, Helps: true}, // the guard needs no other tools (mail §8)
			{Event: "PostToolUse", Matcher: "*", Timeout: 10},
			{Event: "PostToolUseFailure", Matcher: "*", Timeout: 10, Since: [3]int{2, 1, 0}},
			{Event: "Stop", Timeout: 10},
			{Event: "SubagentStop", Timeout: 10},
			{Event: "PostCompact", Timeout: 10, Since: [3]int{2, 1, 76}},
			{Event: "SessionEnd", Timeout: 1}, // the host allows 1.5 s for all hooks
		},
	}
}

// settings returns Claude Code's settings files. Its state file contains the user-level MCP
// servers. The state file is next to the settings folder, or inside a folder that was moved.
func settings(h harness.Homes) []harness.File {
	dir := dir(h)
	state := filepath.Join(h.User, ".claude.json")
	if dir != filepath.Join(h.User, ".claude") {
		state = filepath.Join(dir, ".claude.json")
	}
	return []harness.File{
		{Path: filepath.Join(dir, "settings.json"), Hooks: true, Status: true},
		{Path: state, Server: harness.Server{Under: "mcpServers", Type: "stdio"}},
	}
}
