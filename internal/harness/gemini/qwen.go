package gemini

import (
	"path/filepath"

	"cairn/internal/harness"
)

// qwenName is the name of Qwen Code.
const qwenName = "qwen"

// Qwen describes Qwen Code.
func Qwen() harness.Harness {
	return harness.Harness{
		Name: qwenName, Title: "Qwen Code", Aliases: []string{"qwen-code"}, Program: "qwen-code",
		Hears: []string{harness.OnPrompt, harness.OnToolUse}, WarnsLate: true, LateStart: true, Defers: true, Helped: true,
		Folder:      qwenDir,
		Transcripts: func(h harness.Homes) []string { return []string{filepath.Join(qwenDir(h), "projects")} },
		Unnamed:     true,
		Hooks:       qwenHooks(), Files: qwenSettings,
		Answer: harness.ObjectAnswer, Event: qwenEvent,
		Sends: isQwenPayload, IsTranscript: harness.IsLines, Writes: isQwenLine, Read: readQwen,
	}
}

func qwenDir(h harness.Homes) string { return h.In("", ".qwen") }

func qwenHooks() harness.Hooks {
	hooks := harness.HooksFor(10_000, "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop", "SubagentStop", "SessionEnd")
	hooks[1].Helps = true
	hooks[2].Matcher = "^(edit|write_file)$" // for the guard
	return harness.Hooks{
		Form:   harness.HookForm{Typed: true, Named: true, Millis: true, Switches: []harness.Switch{{Path: []string{"disableAllHooks"}, Off: true}}},
		Wanted: hooks,
	}
}

func qwenSettings(h harness.Homes) []harness.File {
	return []harness.File{{Path: filepath.Join(qwenDir(h), "settings.json"), Hooks: true, Server: harness.Server{Under: "mcpServers"}}}
}
