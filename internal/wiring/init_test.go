package wiring

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestUninstallGivesEveryFileBackByteForByte(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.furnish()
	before := d.snapshot()
	d.want("first init", d.init(Options{}), first(Changed))
	wired := d.snapshot()
	d.want("second init", d.init(Options{}), all(Unchanged))
	if !maps.Equal(wired, d.snapshot()) {
		t.Error("the second init changed something")
	}
	d.want("uninstall", d.uninstall(), all(Restored))
	if after := d.snapshot(); !maps.Equal(before, after) {
		t.Errorf("not as before:\n%q\n%q", before, after)
	}
	d.want("second uninstall", d.uninstall(), map[string]Action{})
	if _, err := os.Stat(d.DataDir); err == nil {
		t.Error("a data directory stays that only the originals were in")
	}
}

func TestUninstallDeletesWhatInitMade(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	if err := os.RemoveAll(d.Folder(Cursor)); err != nil {
		t.Fatal(err)
	}
	d.Getenv = func(name string) string {
		if name != "CODEX_HOME" {
			return ""
		}
		return filepath.Join(d.Home, "deep", "down", "codex")
	}
	before := d.snapshot()
	want := all(Created)
	delete(want, ".cursor/hooks.json")
	delete(want, ".cursor/mcp.json")
	delete(want, ".codex/hooks.json")
	delete(want, ".codex/config.toml")
	d.want("what is found", d.init(Options{}), want)
	d.want("what is named", d.init(Options{Harnesses: []string{Cursor, Codex}}), map[string]Action{
		".cursor/hooks.json": Created, ".cursor/mcp.json": Created,
		"deep/down/codex/hooks.json": Created, "deep/down/codex/config.toml": Created,
	})
	gone := d
	gone.Getenv = nil // the variable is no longer set
	for path, action := range gone.uninstall() {
		if action != Deleted {
			t.Errorf("%s: %s", path, action)
		}
	}
	if after := d.snapshot(); !maps.Equal(before, after) {
		t.Errorf("not as before:\n%q\n%q", before, after)
	}
}

func TestOfAFileThatWasChangedSinceOnlyOurEntriesAreTakenOut(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.furnish()
	d.init(Options{})
	settings := d.read(".claude/settings.json")
	d.write(".claude/settings.json", strings.Replace(settings, `"deny": ["Read(./.env)"]`, `"deny": []`, 1))
	d.write(".gemini/settings.json", d.read(".gemini/settings.json")+"// the end\n")
	d.write(".codex/config.toml", d.read(".codex/config.toml")+"\n[mcp_servers.cairn.tools.search]\nenabled = true\n\n[tui]\ntheme = \"x\"\n")
	want := all(Restored)
	want[".claude/settings.json"], want[".gemini/settings.json"], want[".codex/config.toml"] = Cleaned, Cleaned, Cleaned
	d.want("uninstall", d.uninstall(), want)
	for path, text := range map[string]string{
		".claude/settings.json": strings.Replace(string(input(t, "claude-settings.json")), `"deny": ["Read(./.env)"]`, `"deny": []`, 1),
		".gemini/settings.json": string(input(t, "gemini-settings.json")) + "// the end\n",
		".codex/config.toml":    string(input(t, "codex-config.toml")) + "\n[tui]\ntheme = \"x\"\n",
	} {
		if got := d.read(path); got != text {
			t.Errorf("%s:\n%s", path, diff(path, []byte(text), []byte(got)))
		}
	}
}

// A later init finds a file with cairn's entries and other changes. The stored original must be
// neither the text with these entries nor the stale original.
func TestAnInitAfterOthersChangesKeepsTheirsAsTheOriginal(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.furnish()
	d.init(Options{})
	d.write(".cursor/hooks.json", strings.Replace(d.read(".cursor/hooks.json"), "audit.sh", "other.sh", 1))
	d.write(".cursor/mcp.json", d.read(".cursor/mcp.json")+"\n")
	moved := d
	moved.Program = filepath.Join(d.Home, "elsewhere", "cairn")
	d.want("init from another place", moved.init(Options{}), all(Changed))
	if text := d.read(".cursor/hooks.json"); strings.Contains(text, d.Program) || strings.Count(text, "elsewhere") != 9 {
		t.Errorf("the entries are not corrected in place: %s", text)
	}
	d.want("uninstall", d.uninstall(), all(Restored))
	for path, text := range map[string]string{
		".cursor/hooks.json":    strings.Replace(string(input(t, "cursor-hooks.json")), "audit.sh", "other.sh", 1),
		".cursor/mcp.json":      string(input(t, "cursor-mcp.json")) + "\n",
		".claude/settings.json": string(input(t, "claude-settings.json")),
	} {
		if got := d.read(path); got != text {
			t.Errorf("%s:\n%s", path, diff(path, []byte(text), []byte(got)))
		}
	}
}

func TestAFileThatInitMadeIsDeletedEvenIfItWasLaidOutAnew(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	before := d.snapshot()
	d.init(Options{})
	for _, path := range []string{".cursor/hooks.json", ".cursor/mcp.json", ".gemini/settings.json", ".codex/config.toml"} {
		d.write(path, "\n"+d.read(path)+"\n\n")
	}
	moved := d
	moved.Program = filepath.Join(d.Home, "elsewhere", "cairn")
	moved.init(Options{Harnesses: []string{Cursor, Codex}})
	d.want("uninstall", d.uninstall(), all(Deleted))
	if after := d.snapshot(); !maps.Equal(before, after) {
		t.Errorf("not as before:\n%q\n%q", before, after)
	}
}

func TestEntriesWithoutARecordAreTakenOutToo(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write(".claude/settings.json", `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"cairn record"}]}]},"a":1}`)
	d.write(".cursor/hooks.json", "{\n  // not for cairn, record or serve\n  broken\n}")
	d.write(".codex/config.toml", "broken = ")
	d.want("uninstall", d.uninstall(), map[string]Action{".claude/settings.json": Cleaned, ".cursor/hooks.json": Failed})
	if got := d.read(".claude/settings.json"); got != `{"a":1}` {
		t.Error(got)
	}
	// The same entry written by hand, then init, then uninstall.
	d.write(".cursor/hooks.json", `{"version":1,"hooks":{"stop":[{"command":"cairn record --from cursor"}]}}`)
	d.init(Options{Harnesses: []string{Cursor}})
	d.uninstall()
	if got := d.read(".cursor/hooks.json"); got != `{"version":1}` {
		t.Error(got)
	}
}

func TestADryRunShowsDiffsAndWritesNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.furnish()
	d.write(".codex/hooks.json", "")
	before := d.snapshot()
	r, err := Init(d.Paths, Options{DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Files {
		from := c.Path
		if c.Action == Created {
			from = os.DevNull
		}
		if !strings.HasPrefix(c.Diff, "--- "+from+"\n+++ "+c.Path+"\n@@ ") || !strings.Contains(c.Diff, "\n+") {
			t.Errorf("%s: %s", c.Path, c.Diff)
		}
		text, err := os.ReadFile(c.Path)
		if err != nil && c.Action != Created {
			t.Error(err)
		}
		for line := range strings.Lines(c.Diff) {
			if removed, ok := strings.CutPrefix(line, "-"); ok && !strings.HasPrefix(line, "---") && !bytes.Contains(text, []byte(strings.TrimSuffix(removed, "\n"))) {
				t.Errorf("%s: the diff removes %q, which is not there", c.Path, removed)
			}
		}
	}
	if !maps.Equal(before, d.snapshot()) {
		t.Error("the dry run wrote")
	}
	if _, err := os.Stat(d.DataDir); err == nil {
		t.Error("the dry run made the data directory")
	}
}

func TestAFileThatCannotBeParsedIsLeftAloneAndTheOthersAreDone(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.furnish()
	d.write(".gemini/settings.json", "{\"a\": }")
	d.write(".codex/config.toml", "a = = 1")
	want := first(Changed)
	want[".gemini/settings.json"], want[".codex/config.toml"] = Failed, Failed
	d.want("init", d.init(Options{}), want)
	if d.read(".gemini/settings.json") != "{\"a\": }" || d.read(".codex/config.toml") != "a = = 1" {
		t.Error("a broken file was changed")
	}
}

func TestLinksAreFollowedAndPermissionsKept(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("links and permissions are those of Unix")
	}
	d := newDesk(t)
	real := filepath.Join(d.Home, "dotfiles", "claude.json")
	d.write(real, string(input(t, "claude-settings.json")))
	link := filepath.Join(d.Folder(Claude), "settings.json")
	if err := os.Symlink(filepath.Join("..", "dotfiles", "claude.json"), link); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(real, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/nowhere/at/all", filepath.Join(d.Folder(Cursor), "mcp.json")); err != nil {
		t.Fatal(err)
	}
	check := func(what string) {
		t.Helper()
		if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("%s: the link is gone", what)
		}
		if info, err := os.Stat(real); err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("%s: the permissions are %v", what, info.Mode())
		}
	}
	got := d.init(Options{})
	if got[".claude/settings.json"] != Changed || got[".cursor/mcp.json"] != Failed {
		t.Errorf("init: %v", got)
	}
	check("init")
	if text := d.read("dotfiles/claude.json"); !strings.Contains(text, "record --from claude") {
		t.Error("the linked file is not wired")
	}
	for _, name := range []string{".claude.json", ".gemini/settings.json"} {
		if info, err := os.Stat(filepath.Join(d.Home, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s is new with %v, %v", name, info.Mode(), err)
		}
	}
	if got := d.uninstall(); got[".claude/settings.json"] != Restored {
		t.Errorf("uninstall: %v", got)
	}
	check("uninstall")
	if text := d.read("dotfiles/claude.json"); text != string(input(t, "claude-settings.json")) {
		t.Error("the linked file is not as it was")
	}
}

// After an interruption at any step, the original is still stored. A second init and an
// uninstall both reach their normal result.
func TestInterruptedAtAnyPointNothingIsLost(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{true, false} {
		for _, edited := range []bool{true, false} {
			d := newDesk(t)
			d.furnish()
			before := d.snapshot()
			s := fileOf(d.Paths, Gemini, "settings.json")
			old := []byte(d.read(".gemini/settings.json"))
			text, err := s.edited(old)
			if err != nil {
				t.Fatal(err)
			}
			m, err := openManifest(d.DataDir)
			if err != nil {
				t.Fatal(err)
			}
			if err := m.prepare(s, s.path, old, text); err != nil { // the interruption is here
				t.Fatal(err)
			}
			if edited {
				d.write(".gemini/settings.json", string(text))
			}
			if again {
				d.init(Options{})
				d.want("a later init", d.init(Options{}), all(Unchanged))
			}
			d.uninstall()
			if !maps.Equal(before, d.snapshot()) {
				t.Errorf("init again %v, edited %v: not as before", again, edited)
			}
			// An uninstall that was killed between a file and its record.
			d.init(Options{})
			kept := d.read(".cairn/wiring/manifest.json")
			originals, err := filepath.Glob(filepath.Join(d.DataDir, "wiring", "*.original"))
			if err != nil || len(originals) == 0 {
				t.Fatalf("%v, %v", originals, err)
			}
			saved := map[string]string{}
			for _, path := range originals {
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				saved[path] = string(text)
			}
			d.uninstall()
			d.write(".cairn/wiring/manifest.json", kept)
			for path, text := range saved {
				d.write(path, text)
			}
			d.want("the uninstall after it", d.uninstall(), map[string]Action{})
			if !maps.Equal(before, d.snapshot()) {
				t.Error("the uninstall after an interrupted one changed something")
			}
		}
	}
}

func TestALostOrDamagedOriginalCostsOnlyTheLayout(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.furnish()
	before := d.snapshot()
	d.init(Options{})
	originals, err := filepath.Glob(filepath.Join(d.DataDir, "wiring", "*.original"))
	if err != nil {
		t.Fatal(err)
	}
	for i, path := range originals {
		if i%2 == 0 {
			err = os.Remove(path)
		} else {
			err = os.WriteFile(path, []byte("damaged"), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	want := all(Cleaned)
	want[plugin] = Deleted
	d.want("uninstall", d.uninstall(), want)
	if !maps.Equal(before, d.snapshot()) {
		t.Error("these settings come back without their originals too")
	}
}

func TestOriginalsAreTheUsersAlone(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("permissions are those of Unix")
	}
	d := newDesk(t)
	d.furnish()
	d.init(Options{})
	err := filepath.WalkDir(d.DataDir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if want := map[bool]os.FileMode{true: 0o700, false: 0o600}[e.IsDir()]; err == nil && info.Mode().Perm() != want {
			t.Errorf("%s: %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
