package wiring

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"cairn/internal/harness/harnesses"
)

// states describes the entries of a harness that are not Present.
func states(r Report) []string {
	out := []string{}
	for _, e := range r.Entries {
		if e.State != Present {
			out = append(out, fmt.Sprintf("%s %s: %s, unit %v", e.Name, e.State, e.Why, e.WrongUnit))
		}
	}
	return out
}

func TestInspectSaysWhatIsThereMissingAndOutOfDate(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, r := range Inspect(d.Paths) {
		if !r.Found || r.Wired || len(r.Binaries) > 0 || len(r.Double) > 0 || len(states(r)) != len(r.Entries) || len(r.Entries) == 0 {
			t.Errorf("before init: %+v", r)
		}
	}
	for _, noAssist := range []bool{true, false} {
		d.init(Options{NoAssist: noAssist})
		for _, r := range Inspect(d.Paths) {
			if want := []Binary{{d.Program, true, false}}; !r.Wired || len(states(r)) > 0 || !slices.Equal(r.Binaries, want) {
				t.Errorf("after init, no assist %v: %+v %v", noAssist, r, states(r))
			}
			if h, _ := harnesses.Of(r.Harness); r.Assist != (!noAssist && h.Helped) {
				t.Errorf("no assist %v: %+v", noAssist, r)
			}
			if (r.Harness == Cursor) != (len(r.Double) == 1) {
				t.Errorf("double: %+v", r)
			}
		}
	}
	replace := func(path, old, text string) {
		t.Helper()
		is := d.read(path)
		if !strings.Contains(is, old) {
			t.Fatalf("%s has no %s", path, old)
		}
		d.write(path, strings.Replace(is, old, text, 1))
	}
	replace(".gemini/settings.json", `"timeout": 10000`, `"timeout": 10`)
	replace(".claude/settings.json", `"timeout": 10`, `"timeout": 10000`)
	replace(".claude/settings.json", "record --from claude --assist", "record --from claude")
	replace(".codex/config.toml", "/bin/", "/gone/")
	replace(".codex/hooks.json", `"SubagentStop"`, `"SubagentStart"`)
	replace(".cursor/hooks.json", `--from cursor"`, `--from cursor", "timeout": 10`)
	d.write(".cursor/mcp.json", "{")
	got := map[string][]string{}
	for _, r := range Inspect(d.Paths) {
		got[r.Harness] = states(r)
		if r.Harness == Codex && (len(r.Binaries) != 2 || r.Binaries[1].Exists) {
			t.Errorf("binaries: %+v", r.Binaries)
		}
		if r.Harness == Cursor && r.Files[1].Error == "" {
			t.Errorf("files: %+v", r.Files)
		}
	}
	gone := strings.Replace(d.Program, string(filepath.Separator)+"bin"+string(filepath.Separator), "/gone/", 1)
	want := map[string][]string{
		Gemini: {"hooks.SessionStart outdated: its timeout is 10, not 10000 milliseconds, unit true"},
		Claude: {
			"hooks.SessionStart outdated: its timeout is 10000, not 10 seconds, unit true",
			"hooks.UserPromptSubmit outdated: has other options: record --from claude, unit false",
		},
		Codex:  {"hooks.SubagentStop missing: , unit false", "mcpServers.cairn outdated: calls " + gone + ", unit false"},
		Cursor: {"hooks.sessionStart outdated: has a timeout, which versions of this host read in different units, unit false"},
	}
	for h, w := range want {
		if runtime.GOOS != "windows" && !slices.Equal(got[h], w) {
			t.Errorf("%s:\n got %q\nwant %q", h, got[h], w)
		}
	}
	d.write(".cursor/mcp.json", "{}")
	d.init(Options{})
	for _, r := range Inspect(d.Paths) {
		if len(states(r)) > 0 {
			t.Errorf("init does not put right: %s %v", r.Harness, states(r))
		}
	}
}

func TestTheVersionOfClaudeCodeDecidesOnFormAndEvents(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("links need rights on Windows")
	}
	link := func(d desk, to string) {
		t.Helper()
		d.write(to, "program")
		d.mkdir(d.Path)
		if err := os.Symlink(filepath.Join(d.Home, to), filepath.Join(d.Path, "claude")); err != nil {
			t.Fatal(err)
		}
	}
	pkg := func(d desk, dir, v string) {
		d.write(dir+"/package.json", `{"name": "@anthropic-ai/claude-code", "version": "`+v+`"}`)
	}
	for name, c := range map[string]struct {
		arrange func(d desk)
		want    version
	}{
		"native":   {func(d desk) { link(d, ".local/share/claude/versions/2.1.139") }, version{2, 1, 139}},
		"homebrew": {func(d desk) { link(d, "Caskroom/claude-code/2.1.138/claude") }, version{2, 1, 138}},
		"npm below a node version": {func(d desk) {
			pkg(d, ".nvm/versions/node/v20.1.0/lib/node_modules/@anthropic-ai/claude-code", "2.1.75")
			link(d, ".nvm/versions/node/v20.1.0/lib/node_modules/@anthropic-ai/claude-code/cli.js")
		}, version{2, 1, 75}},
		"npm on Windows": {func(d desk) {
			d.write("bin/claude.cmd", "script")
			pkg(d, "bin/node_modules/@anthropic-ai/claude-code", "2.2.0")
		}, version{2, 2, 0}},
		"local":   {func(d desk) { pkg(d, ".claude/local/node_modules/@anthropic-ai/claude-code", "2.0.76") }, version{2, 0, 76}},
		"noted":   {func(d desk) { d.write(".claude.json", `{"lastReleaseNotesSeen": "2.1.200"}`) }, version{2, 1, 200}},
		"unknown": {func(d desk) { link(d, "opt/node/v20.1.0/claude") }, version{}},
	} {
		d := newDesk(t)
		c.arrange(d)
		v, known := d.versionOf(harnesses.All()[0])
		if v != c.want || known != (c.want != version{}) {
			t.Errorf("%s: %v, %v", name, v, known)
		}
		d.init(Options{Harnesses: []string{Claude}, NoStatus: true})
		text := d.read(".claude/settings.json")
		if apart := strings.Contains(text, `"args"`); apart != (known && !less(v, harnesses.All()[0].Hooks.Form.Apart)) {
			t.Errorf("%s: arguments apart: %v", name, apart)
		}
		if strings.Contains(text, `"args"`) == strings.Contains(text, `'\\''`) { // the quote in the home's name
			t.Errorf("%s: quoted: %s", name, text)
		}
		for event, since := range map[string]version{"PostCompact": {2, 1, 76}, "PostToolUseFailure": {2, 1, 0}, "SessionEnd": {}} {
			if has := strings.Contains(text, event); has != (!known || !less(v, since)) {
				t.Errorf("%s: %s is there: %v", name, event, has)
			}
		}
		if got := states(Inspect(d.Paths)[0]); len(got) > 0 {
			t.Errorf("%s: %v", name, got)
		}
		d.want(name+", again", d.init(Options{Harnesses: []string{Claude}, NoStatus: true}), map[string]Action{".claude/settings.json": Unchanged, ".claude.json": Unchanged})
	}
}

func TestAnUpgradeOfClaudeCodeBringsTheBetterForm(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write(".claude.json", `{"lastReleaseNotesSeen": "2.1.100"}`)
	d.init(Options{Harnesses: []string{Claude}})
	d.write(".claude.json", `{"lastReleaseNotesSeen": "2.1.150"}`)
	if got := states(Inspect(d.Paths)[0]); len(got) != 10 || !strings.Contains(got[0], "is written in an older form") {
		t.Errorf("%q", got)
	}
	d.init(Options{Harnesses: []string{Claude}})
	apart := d.read(".claude/settings.json")
	if strings.Count(apart, `"args"`) != 9 {
		t.Error(apart)
	}
	d.write(".claude.json", `{}`) // the version is unknown, so both forms are accepted
	d.init(Options{Harnesses: []string{Claude}})
	if d.read(".claude/settings.json") != apart {
		t.Error("changed without need")
	}
	d.write(".claude.json", `{"lastReleaseNotesSeen": "2.1.50"}`) // this version would skip the file because of PostCompact
	r, err := Init(d.Paths, Options{Harnesses: []string{Claude}})
	if err != nil || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "2.1.50") {
		t.Errorf("%+v, %v", r, err)
	}
	if text := d.read(".claude/settings.json"); strings.Contains(text, "PostCompact") || strings.Contains(text, `"args"`) {
		t.Error(text)
	}
}

func TestTheProgramIsThePathThatOutlivesAnUpgrade(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("links need rights on Windows")
	}
	d := newDesk(t)
	cellar := filepath.Join(d.Home, "Cellar", "cairn", "1.2.3", "bin", "cairn")
	d.write(cellar, "the real one")
	brew := filepath.Join(d.Home, "brew", "cairn")
	d.mkdir(filepath.Dir(brew))
	if err := os.Symlink(cellar, brew); err != nil {
		t.Fatal(err)
	}
	path := strings.Join([]string{"relative", filepath.Join(d.Home, "bin"), filepath.Dir(brew)}, string(filepath.ListSeparator))
	for args0, want := range map[string]string{
		"cairn": brew, // found through the PATH; the other cairn on it is ignored
		brew:    brew,
		cellar:  brew,
		filepath.Join(d.Home, "brew", "..", "brew", "cairn"): brew,
	} {
		if got := Program(args0, cellar, path, false); got != want {
			t.Errorf("%s: %s", args0, got)
		}
	}
	if got := Program(brew, cellar, "", false); got != brew {
		t.Errorf("not on the PATH: %s", got)
	}
	if got := Program("cairn", cellar, "", false); got != cellar {
		t.Errorf("not found at all: %s", got)
	}
}

func TestNotesSayWhenAHostDoesNotRunHooks(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write(".codex/config.toml", "[features]\nhooks = false\n")
	d.write(".gemini/settings.json", `{"hooksConfig": {"enabled": false}}`)
	d.write(".claude/settings.json", `{"disableAllHooks": true}`)
	r, err := Init(d.Paths, Options{})
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Join(r.Notes, "\n")
	for _, want := range []string{"trusted", "Codex's settings turn hooks off (features", "Gemini CLI's settings turn hooks off", "Claude Code's settings turn hooks off"} {
		if !strings.Contains(said, want) {
			t.Errorf("no word of %q in %s", want, said)
		}
	}
	if r, err = Init(d.Paths, Options{}); err != nil || strings.Contains(strings.Join(r.Notes, "\n"), "trusted") {
		t.Errorf("nothing changed, yet trust is asked for: %v, %v", r.Notes, err)
	}
}
