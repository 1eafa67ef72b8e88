package wiring

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares with a file of testdata, or writes it.
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

// The plugin brings what init writes, and calls cairn from the PATH.
func TestThePluginHasTheHooksAndTheServerThatInitWrites(t *testing.T) {
	t.Parallel()
	p := Place{Home: "/nowhere", Program: "cairn"}
	files := p.settingsOf(Claude, true)
	files[0].hooks.exec = oneLine // which every version runs
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
