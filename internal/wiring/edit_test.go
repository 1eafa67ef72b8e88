package wiring

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cairn/internal/harness"
	"cairn/internal/harness/harnesses"
)

// fileOf returns one settings file of a harness, by its file name.
func fileOf(p Paths, harness, name string) settings {
	for _, s := range p.settingsOf(harness, allParts()) {
		if filepath.Base(s.path) == name {
			return s
		}
	}
	panic(name)
}

// input returns the content of a file in testdata/in.
func input(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "in", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// examples returns the settings file for each example from the hosts' documentation, by the
// example's name.
func examples(p Paths) map[string]settings {
	return map[string]settings{
		"claude-settings.json": fileOf(p, Claude, "settings.json"),
		"claude-outdated.json": fileOf(p, Claude, "settings.json"),
		"claude-state.json":    fileOf(p, Claude, ".claude.json"),
		"codex-hooks.json":     fileOf(p, Codex, "hooks.json"),
		"codex-config.toml":    fileOf(p, Codex, "config.toml"),
		"gemini-settings.json": fileOf(p, Gemini, "settings.json"),
		"cursor-hooks.json":    fileOf(p, Cursor, "hooks.json"),
		"cursor-mcp.json":      fileOf(p, Cursor, "mcp.json"),
		"opencode.json":        fileOf(p, OpenCode, "opencode.json"),
		"copilot-hooks.json":   fileOf(p, Copilot, "cairn.json"),
		"copilot-mcp.json":     fileOf(p, Copilot, "mcp-config.json"),
		"qwen-settings.json":   fileOf(p, Qwen, "settings.json"),
		"windsurf-hooks.json":  fileOf(p, Windsurf, "hooks.json"),
		"windsurf-mcp.json":    fileOf(p, Windsurf, "mcp_config.json"),
		"cline-mcp.json":       fileOf(p, Cline, "cline_mcp_settings.json"),
	}
}

// variants returns a text in the layouts that people and editors produce.
func variants(text []byte) map[string][]byte {
	tabs := bytes.ReplaceAll(text, []byte("  "), []byte("\t"))
	crlf := bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
	return map[string][]byte{
		"": text, " tabs": tabs, " CRLF": crlf, " BOM": append([]byte(bom), text...),
		" BOM, tabs and CRLF": append([]byte(bom), bytes.ReplaceAll(tabs, []byte("\n"), []byte("\r\n"))...),
		" no last line break": bytes.TrimRight(text, "\n"),
	}
}

var jo = Paths{Home: "/home/jo", Program: "/home/jo/.local/bin/cairn"}

func TestDocumentedSettingsGetOurEntriesAndNothingElseMoves(t *testing.T) {
	t.Parallel()
	for name, s := range examples(jo) {
		edited, err := s.edited(input(t, name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		golden(t, filepath.Join("testdata", "golden", name), edited)
	}
	for name, s := range map[string]settings{
		"empty-claude-settings.json": fileOf(jo, Claude, "settings.json"),
		"empty-claude-state.json":    fileOf(jo, Claude, ".claude.json"),
		"empty-codex-hooks.json":     fileOf(jo, Codex, "hooks.json"),
		"empty-codex-config.toml":    fileOf(jo, Codex, "config.toml"),
		"empty-gemini-settings.json": fileOf(jo, Gemini, "settings.json"),
		"empty-cursor-hooks.json":    fileOf(jo, Cursor, "hooks.json"),
		"empty-cursor-mcp.json":      fileOf(jo, Cursor, "mcp.json"),
		"empty-opencode.json":        fileOf(jo, OpenCode, "opencode.json"),
		"empty-opencode-cairn.js":    fileOf(jo, OpenCode, "cairn.js"),
		"empty-copilot-hooks.json":   fileOf(jo, Copilot, "cairn.json"),
		"empty-copilot-mcp.json":     fileOf(jo, Copilot, "mcp-config.json"),
		"empty-qwen-settings.json":   fileOf(jo, Qwen, "settings.json"),
		"empty-windsurf-hooks.json":  fileOf(jo, Windsurf, "hooks.json"),
		"empty-windsurf-rules.md":    fileOf(jo, Windsurf, "global_rules.md"),
	} {
		fromNothing, err := s.edited(nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		golden(t, filepath.Join("testdata", "golden", name), fromNothing)
		if s.format != harness.JSON {
			continue
		}
		if fromBraces, err := s.edited([]byte("{}\n")); err != nil || !bytes.Equal(fromBraces, fromNothing) {
			t.Errorf("%s: {} becomes %q, %v", name, fromBraces, err)
		}
	}
}

func TestASecondEditChangesNoByteAndStrippingGivesTheTextBackInEveryLayout(t *testing.T) {
	t.Parallel()
	for name, s := range examples(jo) {
		for how, text := range variants(input(t, name)) {
			edited, err := s.edited(text)
			if err != nil || bytes.Equal(edited, text) {
				t.Errorf("%s%s: nothing was added, %v", name, how, err)
				continue
			}
			if again, err := s.edited(edited); err != nil || !bytes.Equal(again, edited) {
				t.Errorf("%s%s: the second edit changes\n%s%v", name, how, diff(name, edited, again), err)
			}
			if strings.Contains(how, "CRLF") && bytes.Count(edited, []byte("\n")) != bytes.Count(edited, []byte("\r\n")) {
				t.Errorf("%s%s: line ends are mixed", name, how)
			}
			if strings.Contains(name, "outdated") {
				continue
			}
			if back, err := s.stripped(edited, text); err != nil || !bytes.Equal(back, text) {
				t.Errorf("%s%s comes back with\n%s%v", name, how, diff(name, text, back), err)
			}
		}
	}
}

func TestOurEntriesAreKnownAgainAfterOthersReformatTheFile(t *testing.T) {
	t.Parallel()
	for name, s := range examples(jo) {
		if s.format == harness.TOML {
			continue
		}
		edited, err := s.edited(input(t, name))
		if err != nil {
			t.Fatal(err)
		}
		d, err := parseDocument(edited)
		if err != nil {
			t.Fatal(err)
		}
		d.root.Standardize()
		var sorted map[string]any // for programs that write members in any order
		if err := json.Unmarshal(d.root.Pack(), &sorted); err != nil {
			t.Fatal(err)
		}
		for _, indent := range []string{"", "    "} {
			text, err := json.MarshalIndent(sorted, "", indent)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := s.edited(text); err != nil || !bytes.Equal(again, text) {
				t.Errorf("%s, indented by %d: changed\n%s%v", name, len(indent), diff(name, text, again), err)
			}
		}
	}
}

func TestStrippingWithoutTheOriginalLeavesOnlyWhatIsOthers(t *testing.T) {
	t.Parallel()
	for name, s := range examples(jo) {
		edited, err := s.edited(input(t, name))
		if err != nil {
			t.Fatal(err)
		}
		alone, err := s.stripped(edited, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		golden(t, filepath.Join("testdata", "golden", "stripped-"+name), alone)
	}
}

func TestWithoutHelpDuringTheTurnNothingAsksForIt(t *testing.T) {
	t.Parallel()
	for _, h := range harnesses.All() {
		asks, before := false, false // with help; a PreToolUse entry also calls cairn without help
		for _, w := range h.Hooks.Wanted {
			asks = asks || w.Helps
			before = before || w.Event == "PreToolUse"
		}
		s := jo.settingsOf(h.Name, allParts())[0]
		if s.format == harness.Script {
			continue
		}
		with, err := s.edited(nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := bytes.Contains(with, []byte("--assist")); got != asks || asks && !h.Helped {
			t.Errorf("%s with assist: %v", h.Name, got)
		}
		without, err := jo.settingsOf(h.Name, parts{status: true})[0].edited(with)
		if err != nil || bytes.Contains(without, []byte("--assist")) || bytes.Contains(without, []byte("PreToolUse")) != before {
			t.Errorf("%s without assist: %s%v", h.Name, without, err)
		}
		if again, err := s.edited(without); err != nil || !bytes.Equal(meaningBytes(t, again), meaningBytes(t, with)) {
			t.Errorf("%s with assist again: %s%v", h.Name, again, err)
		}
	}
}

func meaningBytes(t *testing.T, text []byte) []byte {
	t.Helper()
	out, err := json.Marshal(meaning(t, text, false))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestWhatHasAnotherShapeIsLeftAlone(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"hooks": [}`:                 "invalid character",
		`[]`:                           "the top level is not an object",
		`{"hooks": []}`:                "hooks is not an object",
		`{"hooks": {"AfterTool": {}}}`: "hooks.AfterTool is not a list",
		`{"mcpServers": null}`:         "mcpServers is not an object",
		`{"mcpServers": {"cairn": {"url": "http://localhost"}}}`:           "another MCP server is called cairn",
		`{"mcpServers": {"cairn": {"command": "cairn", "args": ["run"]}}}`: "another MCP server is called cairn",
	} {
		s := fileOf(jo, Gemini, "settings.json")
		if out, err := s.edited([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s, %v, want %q", text, out, err, want)
		}
	}
	s := fileOf(jo, Gemini, "settings.json")
	for _, text := range []string{`{"mcpServers": {"cairn": {"url": "x"}}}`, `{"hooks": {"enabled": true, "AfterTool": 1}, "mcpServers": []}`} {
		if out, err := s.stripped([]byte(text), nil); err != nil || string(out) != text {
			t.Errorf("stripping %s: %s, %v", text, out, err)
		}
	}
}

func TestTheUsersOwnAdditionsToOurServerStay(t *testing.T) {
	t.Parallel()
	s := fileOf(jo, Cursor, "mcp.json")
	text := `{"mcpServers": {"cairn": {"command": "/old/cairn", "args": ["serve", "--project", "shop"], "env": {"CAIRN_DB": "/x"}}}}`
	want := strings.Replace(text, "/old/cairn", jo.Program, 1)
	if out, err := s.edited([]byte(text)); err != nil || string(out) != want {
		t.Errorf("%s, %v", out, err)
	}
}

func TestCodexServerIsCorrectedInPlaceOrCutOutWithWhatBelongsToIt(t *testing.T) {
	t.Parallel()
	s := fileOf(jo, Codex, "config.toml")
	for text, want := range map[string]string{
		// cairn's entry, outdated
		"[mcp_servers.cairn] # memory\ncommand = '/old/cairn' # path\nargs = [\n  'serve', '--project', 'x',\n]\nstartup_timeout_sec = 5\n": "[mcp_servers.cairn] # memory\ncommand = \"/home/jo/.local/bin/cairn\" # path\nargs = [\n  'serve', '--project', 'x',\n]\nstartup_timeout_sec = 5\n",
		// correct, in any form
		"[mcp_servers]\ncairn = {command = \"/home/jo/.local/bin/cairn\", args = [\"serve\"]}\n": "[mcp_servers]\ncairn = {command = \"/home/jo/.local/bin/cairn\", args = [\"serve\"]}\n",
	} {
		if out, err := s.edited([]byte(text)); err != nil || string(out) != want {
			t.Errorf("%q becomes %q, %v", text, out, err)
		}
	}
	for text, want := range map[string]string{
		"[mcp_servers.cairn]\ncommand = \"other\"\n":                           "another MCP server",
		"mcp_servers.cairn = {command = \"/old/cairn\", args = [\"serve\"]}\n": "not a table of its own",
		"mcp_servers = {}\n":        "not a table that can be added to",
		"a = \nb = 1\n":             "config.toml: line 1",
		"[mcp_servers\nmodel = 1\n": "config.toml: line",
	} {
		if out, err := s.edited([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q, %v, want %q", text, out, err, want)
		}
	}
	wired := "a = 1\n\n[mcp_servers.cairn]\ncommand = \"/x/cairn\"\nargs = [\"serve\"]\n\n[mcp_servers.cairn.tools.search]\napproval_mode = \"approve\"\n\n# mine\n[b]\n"
	if out, err := s.stripped([]byte(wired), nil); err != nil || string(out) != "a = 1\n\n# mine\n[b]\n" {
		t.Errorf("stripped: %q, %v", out, err)
	}
}
