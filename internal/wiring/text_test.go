package wiring

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestABlockInAUsersRulesGoesAsItCame(t *testing.T) {
	t.Parallel()
	s := fileOf(jo, Windsurf, "global_rules.md")
	for how, text := range variants(input(t, "windsurf-rules.md")) {
		edited, err := s.edited(text)
		if err != nil || !bytes.HasPrefix(edited, bytes.TrimRight(text, "\r\n")) {
			t.Fatalf("%s: %q, %v", how, edited, err)
		}
		if again, err := s.edited(edited); err != nil || !bytes.Equal(again, edited) {
			t.Errorf("%s: a second edit makes %q", how, again)
		}
		if back, err := s.stripped(edited, text); err != nil || !bytes.Equal(back, text) {
			t.Errorf("%s comes back as %q", how, back)
		}
		later := append(bytes.Clone(edited), "More of mine.\n"...)
		out, err := s.stripped(later, text)
		if err != nil || isOurs(out) || !bytes.HasPrefix(out, bytes.TrimRight(text, "\r\n")) || !bytes.HasSuffix(out, []byte("More of mine.\n")) {
			t.Errorf("%s, changed since: %q", how, out)
		}
	}
}

func TestAFileOfAnotherInThePlaceOfThePluginIsLeftAlone(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const theirs = "export const Mine = async () => ({})\n"
	d.write(plugin, theirs)
	r, err := Init(d.Paths, Options{Harnesses: []string{OpenCode}})
	if err != nil || !AnyFailed(r.Files) || d.read(plugin) != theirs {
		t.Errorf("%+v, %v", r, err)
	}
	for path, action := range d.uninstall() {
		if path == plugin || action == Failed {
			t.Errorf("%s: %s", path, action)
		}
	}
	if d.read(plugin) != theirs {
		t.Error("uninstall took it away")
	}
}

func TestThePluginIsKnownAgainAndBroughtUpToDateByItsFirstLine(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.init(Options{Harnesses: []string{OpenCode}, NoAssist: true})
	if text := d.read(plugin); !strings.Contains(text, "const assist = false") || !isOurs([]byte(text)) {
		t.Errorf("%s", text)
	}
	d.write(plugin, d.read(plugin)+"// touched\n")
	for _, r := range Inspect(d.Paths) {
		if r.Harness == OpenCode && (!r.Wired || r.Assist || r.Entries[0].State != Outdated || len(r.Binaries) != 1 || !r.Binaries[0].Exists) {
			t.Errorf("%+v", r)
		}
	}
	d.init(Options{Harnesses: []string{OpenCode}})
	if text := d.read(plugin); !strings.Contains(text, "const assist = true") || strings.Contains(text, "touched") {
		t.Errorf("%s", text)
	}
	if got := d.uninstall(); got[plugin] != Deleted {
		t.Errorf("%v", got)
	}
	if _, err := os.Stat(filepath.Join(d.Home, plugin)); err == nil {
		t.Error("the plugin stays")
	}
}

func TestTheServerOfAnEarlierCairnGetsTheLeanProfileAndAUsersArgumentsStay(t *testing.T) {
	t.Parallel()
	const program = "/home/jo/.local/bin/cairn"
	for _, c := range []struct{ harness, file, old, want string }{
		{Gemini, "settings.json", `["serve"]`, `["serve", "--profile", "lean"]`},
		{Gemini, "settings.json", `["serve", "--profile", "full"]`, `["serve", "--profile", "full"]`},
		{Cursor, "mcp.json", `["serve", "--project", "x"]`, `["serve", "--project", "x"]`},
		{Claude, ".claude.json", `["serve"]`, `["serve"]`},
		{Qwen, "settings.json", `["serve"]`, `["serve"]`},
	} {
		s := fileOf(jo, c.harness, c.file)
		s.hooks = nil
		text := func(args string) string {
			return `{"mcpServers": {"cairn": {"command": "` + program + `", "args": ` + args + `}}}`
		}
		got, err := s.edited([]byte(text(c.old)))
		if err != nil || string(got) != text(c.want) {
			t.Errorf("%s: %s becomes %s, %v", c.harness, c.old, got, err)
		}
	}
	s := fileOf(jo, Codex, "config.toml")
	got, err := s.edited([]byte("[mcp_servers.cairn]\ncommand = \"" + program + "\"\nargs = [\"serve\"] # mine\n"))
	if want := "[mcp_servers.cairn]\ncommand = \"" + program + "\"\nargs = [\"serve\", \"--profile\", \"lean\"] # mine\n"; err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
}

// For any content of a rules file, uninstall removes the block that init adds byte for byte, and
// nothing else.
func FuzzABlockComesOutAsItWentIn(f *testing.F) {
	for _, s := range []string{"", "\n", "# Rules", "# Rules\r\n\r\n- x\r\n", blockEnd + "\n", "<!-- cairn: written by", "a\n\n\n"} {
		f.Add([]byte(s))
	}
	s := fileOf(jo, Windsurf, "global_rules.md")
	f.Fuzz(func(t *testing.T, text []byte) {
		if start, _ := blockIn(text); start >= 0 {
			return
		}
		edited, err := s.edited(text)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := s.edited(edited); err != nil || !bytes.Equal(again, edited) {
			t.Errorf("%q: a second edit makes %q of %q", text, again, edited)
		}
		if back, err := s.stripped(edited, text); err != nil || !bytes.Equal(back, text) {
			t.Errorf("%q comes back as %q from %q", text, back, edited)
		}
		if alone, err := s.stripped(edited, nil); err != nil || !sameButEnd(alone, text) {
			t.Errorf("%q comes back without its original as %q", text, alone)
		}
	})
}
