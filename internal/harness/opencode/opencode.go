package opencode

import (
	_ "embed" // the plugin
	"os"
	"path/filepath"

	"cairn/internal/harness"
)

// name is the name of OpenCode.
const name = "opencode"

// Harness describes OpenCode. Its plugin adds text from before a call to the call's result.
func Harness() harness.Harness {
	return harness.Harness{
		Name: name, Title: "OpenCode", Program: name,
		Hears: harness.Everywhere(), Helped: true,
		Folder: dir, Transcripts: kept, Files: settings,
		Answer: harness.FlatAnswer, Event: event,
		IsTranscript: isDatabaseFile, WritesDocument: isDatabase, Log: log, Read: readDatabase,
	}
}

// log is the suffix of the database's write-ahead log.
const log = "-wal"

func dir(h harness.Homes) string {
	return filepath.Join(h.In("XDG_CONFIG_HOME", ".config"), "opencode")
}

// kept returns the SQLite file in which OpenCode stores its sessions.
func kept(h harness.Homes) []string {
	return []string{filepath.Join(h.In("XDG_DATA_HOME", ".local", "share"), "opencode", "opencode.db")}
}

// plugin calls cairn on OpenCode's events and adds cairn's output to the conversation.
// OpenCode has no hooks that run commands.
//
//go:embed opencode.js
var plugin string

// settings returns OpenCode's settings files. An existing file under another supported
// name is kept. A new file gets the default name.
func settings(h harness.Homes) []harness.File {
	dir := dir(h)
	config := filepath.Join(dir, "opencode.json")
	if _, err := os.Stat(config); err != nil {
		if other := filepath.Join(dir, "opencode.jsonc"); harness.IsFile(other) {
			config = other
		}
	}
	return []harness.File{
		{Path: filepath.Join(dir, "plugin", "cairn.js"), Format: harness.Script, Text: plugin},
		{Path: config, Server: harness.Server{Under: "mcp", Type: "local", OneList: true}},
	}
}
