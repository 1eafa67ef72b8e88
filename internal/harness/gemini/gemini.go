package gemini

import (
	"path/filepath"

	"cairn/internal/harness"
	"cairn/internal/harness/lazyjson"
)

// name is the name of Gemini CLI.
const name = "gemini"

// Harness describes Gemini CLI.
func Harness() harness.Harness {
	return harness.Harness{
		Name: name, Title: "Gemini CLI", Aliases: []string{"gemini-cli"}, Program: "gemini-cli",
		Hears: []string{harness.OnSessionStart, harness.OnPrompt, harness.OnToolUse}, WarnsLate: true,
		Folder:      dir,
		Transcripts: func(h harness.Homes) []string { return []string{filepath.Join(dir(h), "tmp")} },
		Unnamed:     true,
		Hooks:       hooks(), Files: settings,
		Answer: answerTo, Event: event,
		Sends: isGeminiPayload, IsTranscript: isGeminiFile, Writes: func(line lazyjson.Value) bool { return looksLikeGemini(line) }, WritesDocument: looksLikeGemini, Read: readGemini,
	}
}
func dir(h harness.Homes) string { return h.In("", ".gemini") }

func hooks() harness.Hooks {
	hooks := harness.HooksFor(10_000, "SessionStart", "BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent", "SessionEnd")
	hooks[2].Matcher = "write_file|replace" // for the guard
	return harness.Hooks{
		Form:   harness.HookForm{Typed: true, Named: true, Millis: true, Switches: []harness.Switch{{Path: []string{"hooksConfig", "enabled"}}}},
		Wanted: hooks,
	}
}

func settings(h harness.Homes) []harness.File {
	return []harness.File{{Path: filepath.Join(dir(h), "settings.json"), Hooks: true, Server: harness.Server{Under: "mcpServers"}}}
}
