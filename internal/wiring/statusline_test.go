package wiring

import (
	"path/filepath"
	"strings"
	"testing"
)

const claudeFile = ".claude/settings.json"

func (d desk) statusLine() string {
	d.t.Helper()
	_, line, _ := strings.Cut(d.read(claudeFile), `"statusLine"`)
	return line
}

func TestInitSetsTheStatusLineAndCorrectsItsPath(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.init(Options{Harnesses: []string{Claude}})
	if !strings.Contains(d.statusLine(), "bin/cairn' status --line") {
		t.Fatalf("it is %q", d.statusLine())
	}
	d.write(claudeFile, strings.Replace(d.read(claudeFile), "bin/cairn' status", "old/cairn' status", 1))
	if got := states(Inspect(d.Paths)[0]); !strings.Contains(strings.Join(got, " "), statusMember) {
		t.Errorf("the old path is not noticed: %v", got)
	}
	d.init(Options{Harnesses: []string{Claude}})
	if !strings.Contains(d.statusLine(), "bin/cairn' status --line") || strings.Contains(d.read(claudeFile), "old/cairn") {
		t.Errorf("it is %q", d.statusLine())
	}
	d.init(Options{Harnesses: []string{Claude}, NoStatus: true})
	if line := d.statusLine(); line != "" {
		t.Errorf("it was to go: %q", line)
	}
	if got := states(Inspect(d.Paths)[0]); len(got) > 0 {
		t.Errorf("without it something is missing: %v", got)
	}
}

func TestAStatusLineOfTheUserStays(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"a script":           `{ "type": "command", "command": "~/.claude/line.sh" }`,
		"cairn among others": `{ "type": "command", "command": "cairn status --line | tail -c 40" }`,
		"no object":          `"cairn status --line"`,
		"without a command":  `{ "type": "static" }`,
	} {
		d := newDesk(t)
		before := "{\n  \"statusLine\": " + line + "\n}\n"
		d.write(claudeFile, before)
		r, err := Init(d.Paths, Options{Harnesses: []string{Claude}})
		if err != nil || !strings.Contains(d.read(claudeFile), line) {
			t.Errorf("%s: %v, %s", name, err, d.read(claudeFile))
		}
		if !strings.Contains(strings.Join(r.Notes, " "), "status line of your own") {
			t.Errorf("%s: notes %q", name, r.Notes)
		}
		if d.uninstall(); d.read(filepath.FromSlash(claudeFile)) != before {
			t.Errorf("%s: after uninstall %q", name, d.read(claudeFile))
		}
	}
}
