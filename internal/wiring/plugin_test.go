package wiring

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares a text with a file of testdata, or writes the file.
func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs:\n%s", path, diff(path, want, got))
	}
}

// The plugin contains the content that init writes, and calls cairn from the PATH.
func TestThePluginHasTheHooksAndTheServerThatInitWrites(t *testing.T) {
	t.Parallel()
	p := Paths{Home: "/nowhere", Program: "cairn"}
	files := p.settingsOf(Claude, parts{assist: true})
	files[0].hooks.exec = oneLine // every version runs this form
	for i, path := range []string{"../../plugin/hooks/hooks.json", "../../plugin/.mcp.json"} {
		text, err := files[i].edited(nil)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, path, text)
	}
	manifest, err := os.ReadFile("../../plugin/.claude-plugin/plugin.json")
	if err != nil {
		t.Fatal(err)
	}
	said := meaning(t, manifest, false)
	if said["name"] != serverName || said["hooks"] != nil || said["mcpServers"] != nil {
		t.Errorf("plugin.json: %v; hosts load hooks/hooks.json and .mcp.json by themselves", said)
	}
	if !reflect.DeepEqual(Events(Claude), []string{
		"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop", "SubagentStop", "PostCompact", "SessionEnd",
	}) {
		t.Errorf("events: %v", Events(Claude))
	}
}

func TestWithThePluginNoSecondSetIsAdded(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]map[string]string{
		"enabled":   {".claude/settings.json": `{"enabledPlugins": {"cairn@tools": true}}`},
		"installed": {".claude/plugins/installed_plugins.json": `{"version": 2, "plugins": {"cairn@tools": [{"scope": "user"}]}}`},
	} {
		d := newDesk(t)
		for path, text := range files {
			d.write(path, text)
		}
		r, err := Init(d.Paths, Options{Harnesses: []string{Claude}})
		if err != nil || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "plugin") {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		for _, c := range r.Files {
			if c.Action != Unchanged {
				t.Errorf("%s: %+v", name, c)
			}
		}
		if i := slices.IndexFunc(Inspect(d.Paths), func(r Report) bool { return r.Harness == Claude && r.Plugin && r.Wired && len(r.Entries) == 0 }); i < 0 {
			t.Errorf("%s: the plugin is not reported", name)
		}
	}
	for name, files := range map[string]map[string]string{
		"disabled":     {".claude/settings.json": `{"enabledPlugins": {"cairn@tools": false}}`, ".claude/plugins/installed_plugins.json": `{"plugins": {"cairn@tools": [{}]}}`},
		"of a project": {".claude/plugins/installed_plugins.json": `{"plugins": {"cairn@tools": [{"scope": "project"}]}}`},
		"another":      {".claude/settings.json": `{"enabledPlugins": {"cairns@tools": true}}`},
	} {
		d := newDesk(t)
		for path, text := range files {
			d.write(path, text)
		}
		d.init(Options{Harnesses: []string{Claude}})
		if !strings.Contains(d.read(".claude/settings.json"), "record --from claude") {
			t.Errorf("%s: nothing was added", name)
		}
	}
	// Plugin installed after init: the entries in the settings are removed.
	d := newDesk(t)
	d.init(Options{Harnesses: []string{Claude}})
	d.write(".claude/plugins/installed_plugins.json", `{"plugins": {"cairn@tools": [{"scope": "user"}]}}`)
	if r := Inspect(d.Paths)[0]; len(r.Double) != 1 {
		t.Errorf("double wiring is not reported: %+v", r)
	}
	d.want("init with the plugin", d.init(Options{Harnesses: []string{Claude}}), map[string]Action{".claude/settings.json": Changed, ".claude.json": Changed})
	if text := d.read(".claude/settings.json") + d.read(".claude.json"); strings.Contains(text, "cairn") {
		t.Errorf("entries are left: %s", text)
	}
	if r := Inspect(d.Paths)[0]; len(r.Double) != 0 {
		t.Errorf("double wiring is still reported: %+v", r)
	}
}

func TestPurgeDeletesTheDataDirectoryAndNothingElse(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write(".cairn/cairn.db", "data")
	if err := Purge(d.Paths); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(d.DataDir); err == nil {
		t.Error("the data directory is still there")
	}
	d.mkdir(filepath.Join(d.Home, "repo", ".git"))
	for _, dir := range []string{d.Home, filepath.Join(d.Home, "repo"), string(filepath.Separator)} {
		p := d.Paths
		p.DataDir = dir
		if err := Purge(p); err == nil {
			t.Errorf("%s was deleted", dir)
		}
	}
}
