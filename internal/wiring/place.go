package wiring

import (
	"os"
	"path/filepath"
)

// The harnesses that can be wired, by the names that `record --from` takes.
const (
	Claude = "claude"
	Codex  = "codex"
	Gemini = "gemini"
	Cursor = "cursor"
)

// Harnesses lists the harnesses in the order in which they are shown.
func Harnesses() []string { return []string{Claude, Codex, Gemini, Cursor} }

// Title is a harness's name for people.
func Title(harness string) string {
	switch harness {
	case Claude:
		return "Claude Code"
	case Codex:
		return "Codex"
	case Gemini:
		return "Gemini CLI"
	case Cursor:
		return "Cursor"
	}
	return harness
}

// Place says where the harnesses and cairn are. It is read from the environment
// by the command line.
type Place struct {
	Home      string // the user's home directory
	ClaudeDir string // CLAUDE_CONFIG_DIR, "" for ~/.claude
	CodexDir  string // CODEX_HOME, "" for ~/.codex
	DataDir   string // cairn's data directory
	Path      string // PATH, where claude is looked for
	Program   string // the absolute path by which hooks call cairn; see Program
	Windows   bool   // whether shells and paths are those of Windows
}

// Folder is where a harness keeps its user-level settings.
func (p Place) Folder(harness string) string {
	switch {
	case harness == Claude && p.ClaudeDir != "":
		return filepath.Clean(p.ClaudeDir)
	case harness == Codex && p.CodexDir != "":
		return filepath.Clean(p.CodexDir)
	}
	return filepath.Join(p.Home, "."+harness)
}

// Found reports whether a harness's folder is there.
func (p Place) Found(harness string) bool {
	info, err := os.Stat(p.Folder(harness))
	return err == nil && info.IsDir()
}

// claudeState is Claude Code's own file beside its folder, or in it when the
// folder was moved by CLAUDE_CONFIG_DIR. It holds the user-level MCP servers.
func (p Place) claudeState() string {
	if p.ClaudeDir != "" {
		return filepath.Join(p.Folder(Claude), ".claude.json")
	}
	return filepath.Join(p.Home, ".claude.json")
}
