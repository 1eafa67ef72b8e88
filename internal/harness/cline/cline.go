package cline

import (
	"path/filepath"

	"cairn/internal/harness"
)

// name is the name of Cline.
const name = "cline"

// Harness describes Cline. Its hooks cannot add text to the
// first request, so its rules instruct the model to call cairn. Prompts and replies are read from
// the conversation at the end of a turn.
func Harness() harness.Harness {
	return harness.Harness{
		Name: name, Title: "Cline", Program: name,
		Folder: dir, Transcripts: func(h harness.Homes) []string { return []string{filepath.Join(data(h), "sessions")} },
		Hears:  []string{harness.OnBeforeTool, harness.OnToolUse},
		Files:  settings,
		Answer: answer, Event: event, Sends: isPayload,
		IsTranscript: isConversationFile, WritesDocument: isConversation, Read: readConversation, Settled: readTurn,
	}
}

func dir(h harness.Homes) string { return h.In("CLINE_DIR", ".cline") }

func data(h harness.Homes) string {
	if h.Getenv != nil && h.Getenv("CLINE_DATA_DIR") != "" {
		return filepath.Clean(h.Getenv("CLINE_DATA_DIR"))
	}
	return filepath.Join(dir(h), "data")
}

// hook is the script that Cline runs with bash on an event. The script's file name is the
// event's name.
const hook = `# {{head}}
exec {{quoted}} record --from cline
`

// settings returns the settings files of Cline's own program. If its extension for VS Code is
// used, they include the extension's file for MCP servers.
func settings(h harness.Homes) []harness.File {
	const settings = "cline_mcp_settings.json"
	files := []harness.File{
		{Path: filepath.Join(data(h), "settings", settings), Server: harness.Server{Under: "mcpServers"}},
		{Path: filepath.Join(dir(h), "rules", "cairn.md"), Format: harness.Block, Text: harness.Rules},
	}
	for _, event := range [...]string{"PreToolUse", "PostToolUse", "TaskComplete", "TaskCancel", "TaskError", "SessionShutdown"} {
		files = append(files, harness.File{Path: filepath.Join(dir(h), "hooks", event+".sh"), Format: harness.Script, Text: hook})
	}
	for _, app := range [...]string{".config", filepath.Join("Library", "Application Support"), filepath.Join("AppData", "Roaming")} {
		path := filepath.Join(h.User, app, "Code", "User", "globalStorage", "saoudrizwan.claude-dev", "settings", settings)
		if harness.IsFile(path) {
			files = append(files, harness.File{Path: path, Server: harness.Server{Under: "mcpServers"}})
		}
	}
	return files
}
