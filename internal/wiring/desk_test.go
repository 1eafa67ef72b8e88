package wiring

import (
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Harness names in the tests.
const (
	Claude = "claude"
	Codex  = "codex"
	Gemini = "gemini"
	Cursor = "cursor"

	OpenCode = "opencode"
	Copilot  = "copilot"
	Qwen     = "qwen"
	Windsurf = "windsurf"
	Cline    = "cline"
)

// desk is a temporary home directory with the folders of all harnesses.
type desk struct {
	Paths
	t *testing.T
}

func newDesk(t *testing.T) desk {
	t.Helper()
	home := filepath.Join(t.TempDir(), `jo's home`) // a path that needs quotes
	d := desk{Paths{
		Home: home, DataDir: filepath.Join(home, ".cairn"), Path: filepath.Join(home, "bin"),
		Program: filepath.Join(home, "bin", "cairn"), Windows: runtime.GOOS == "windows",
	}, t}
	for _, h := range Harnesses() {
		d.mkdir(d.Folder(h))
	}
	d.write(d.Program, "program")
	return d
}

func (d desk) mkdir(dir string) {
	d.t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		d.t.Fatal(err)
	}
}

// write writes a file, in the home directory if the path is relative.
func (d desk) write(path, text string) {
	d.t.Helper()
	if !filepath.IsAbs(path) {
		path = filepath.Join(d.Home, path)
	}
	d.mkdir(filepath.Dir(path))
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

func (d desk) read(path string) string {
	d.t.Helper()
	text, err := os.ReadFile(filepath.Join(d.Home, path))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(text)
}

// snapshot returns the text of every file in the home directory, except the data directory.
func (d desk) snapshot() map[string]string {
	d.t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(d.Home, func(path string, e os.DirEntry, err error) error {
		if err != nil || path == d.DataDir {
			return filepath.SkipDir
		}
		name, _ := filepath.Rel(d.Home, path)
		if e.IsDir() {
			out[name] = "folder"
			return nil
		}
		text, err := os.ReadFile(path)
		out[name] = string(text)
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return out
}

// init runs Init and returns the action for each file, by its path in the home directory.
func (d desk) init(o Options) map[string]Action {
	d.t.Helper()
	r, err := Init(d.Paths, o)
	if err != nil {
		d.t.Fatal(err)
	}
	return d.actions(r.Files)
}

func (d desk) uninstall() map[string]Action {
	d.t.Helper()
	files, err := Uninstall(d.Paths)
	if err != nil {
		d.t.Fatal(err)
	}
	return d.actions(files)
}

func (d desk) actions(files []Change) map[string]Action {
	d.t.Helper()
	out := map[string]Action{}
	for _, c := range files {
		name, err := filepath.Rel(d.Home, c.Path)
		if err != nil || (c.Action == Failed) != (c.Error != "") {
			d.t.Errorf("%+v, %v", c, err)
		}
		out[filepath.ToSlash(name)] = c.Action
	}
	return out
}

func (d desk) want(what string, got, want map[string]Action) {
	d.t.Helper()
	if !maps.Equal(got, want) {
		d.t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}

func all(a Action) map[string]Action {
	out := map[string]Action{}
	for _, path := range []string{
		".claude/settings.json", ".claude.json", ".codex/hooks.json", ".codex/config.toml", ".gemini/settings.json",
		".cursor/hooks.json", ".cursor/mcp.json", ".config/opencode/opencode.json", ".copilot/hooks/cairn.json",
		".copilot/mcp-config.json", ".qwen/settings.json", ".codeium/windsurf/hooks.json", ".codeium/windsurf/mcp_config.json",
		".codeium/windsurf/memories/global_rules.md", ".cline/data/settings/cline_mcp_settings.json", ".cline/rules/cairn.md",
	} {
		out[path] = a
	}
	if a == Restored || a == Cleaned {
		a = Deleted
	}
	for _, path := range wholes() {
		out[path] = a
	}
	return out
}

// plugin is the file that cairn owns as a whole in OpenCode. So it never exists before Init.
const plugin = ".config/opencode/plugin/cairn.js"

// wholes returns the files that cairn owns as a whole.
func wholes() []string {
	all := []string{plugin}
	for _, event := range []string{"PreToolUse", "PostToolUse", "TaskComplete", "TaskCancel", "TaskError", "SessionShutdown"} {
		all = append(all, ".cline/hooks/"+event+".sh")
	}
	return all
}

// first returns the actions of an Init after furnish.
func first(a Action) map[string]Action {
	out := all(a)
	for _, path := range wholes() {
		out[path] = Created
	}
	return out
}

// furnish writes the settings from each harness's documentation.
func (d desk) furnish() {
	d.t.Helper()
	for name, path := range map[string]string{
		"claude-settings.json": ".claude/settings.json", "claude-state.json": ".claude.json",
		"codex-hooks.json": ".codex/hooks.json", "codex-config.toml": ".codex/config.toml",
		"gemini-settings.json": ".gemini/settings.json", "cursor-hooks.json": ".cursor/hooks.json", "cursor-mcp.json": ".cursor/mcp.json",
		"opencode.json": ".config/opencode/opencode.json", "copilot-hooks.json": ".copilot/hooks/cairn.json",
		"copilot-mcp.json": ".copilot/mcp-config.json", "qwen-settings.json": ".qwen/settings.json",
		"windsurf-hooks.json": ".codeium/windsurf/hooks.json", "windsurf-mcp.json": ".codeium/windsurf/mcp_config.json",
		"windsurf-rules.md": ".codeium/windsurf/memories/global_rules.md", "cline-mcp.json": ".cline/data/settings/cline_mcp_settings.json",
		"cline-rules.md": ".cline/rules/cairn.md",
	} {
		d.write(path, string(input(d.t, name)))
	}
}
