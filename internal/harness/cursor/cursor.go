package cursor

import (
	"path/filepath"

	"cairn/internal/harness"
)

// name is the name of Cursor.
const name = "cursor"

// Harness describes Cursor.
func Harness() harness.Harness {
	return harness.Harness{
		Name: name, Title: "Cursor", Program: name,
		Hears: []string{harness.OnSessionStart}, Asks: true, NeedsAnswer: true,
		Folder:      dir,
		Transcripts: func(h harness.Homes) []string { return []string{filepath.Join(dir(h), "projects")} },
		Unnamed:     true, Runs: "claude",
		Hooks: hooks(), Files: settings,
		Answer: answerTo, Event: event,
		Sends: isPayload, IsTranscript: harness.IsLines, Writes: isLine, Read: readTranscript,
	}
}
func dir(h harness.Homes) string { return h.In("", ".cursor") }

// hooks returns Cursor's hooks without postToolUse, which would repeat the after… events.
func hooks() harness.Hooks {
	hooks := harness.HooksFor(0, "sessionStart", "beforeSubmitPrompt", "preToolUse", "afterShellExecution", "afterFileEdit", "afterMCPExecution",
		"afterAgentResponse", "stop", "sessionEnd")
	hooks[2].Matcher = "Write|Edit|StrReplace|MultiEdit|EditNotebook|Delete|ApplyPatch" // for the guard
	return harness.Hooks{Form: harness.HookForm{Flat: true, Version: true, Windows: harness.Cmd}, Wanted: hooks}
}

func settings(h harness.Homes) []harness.File {
	dir := dir(h)
	return []harness.File{
		{Path: filepath.Join(dir, "hooks.json"), Hooks: true},
		{Path: filepath.Join(dir, "mcp.json"), Server: harness.Server{Under: "mcpServers"}},
	}
}
