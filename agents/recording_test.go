package main

import (
	"path/filepath"
	"strings"
	"testing"

	"cairn/agents/model"
)

// TestRecordingsNameNothingOfThisMachine checks that paths become placeholders and ids become
// neutral. Equal ids must stay equal.
func TestRecordingsNameNothingOfThisMachine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := &examiner{stand: &stand{home: filepath.Join(dir, "home"), repo: filepath.Join(dir, "kiln"), model: &model.Server{URL: "http://127.0.0.1:4711"}}}
	const id = "5386df93-8008-443a-a42b-a2facb9de208"
	got := e.newRecorder().clean(strings.Join([]string{
		filepath.Join(e.repo, "calc.py"), filepath.Join(e.home, ".claude"), strings.ReplaceAll(e.repo, "/", "-"),
		id, "toolu_abcdefgh12345678", id, e.model.URL + "/run/x", "a2544fcd4a1a6f194",
	}, " "))
	const want = "{repo}/calc.py {home}/.claude {slug} 00000000-0000-4000-8000-000000000001 toolu_0000000000000002 " +
		"00000000-0000-4000-8000-000000000001 http://127.0.0.1:1/run/x a0000000000000003"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestAProgramThatCannotDoSomethingDoesNotFail also checks that everything else must work.
func TestAProgramThatCannotDoSomethingDoesNotFail(t *testing.T) {
	t.Parallel()
	r := &report{progress: &strings.Builder{}}
	e := &examiner{stand: &stand{program: Program{Name: "p", Cannot: map[string]string{checkMail: "it does not listen to prompts"}}}, cairnName: "new", report: r}
	e.check(checkMail, false, "")
	e.check(checkWarn, false, "")
	e.check(checkBlock, true, "")
	if r.fails() != 1 || r.lines[0].Status != Info || r.lines[1].Status != Fail || r.lines[2].Status != Pass {
		t.Errorf("%+v", r.lines)
	}
	var table strings.Builder
	r.writeTable(&table, "new")
	if !strings.Contains(table.String(), "| guard warns | fail |") || !strings.Contains(table.String(), "not possible: it does not listen to prompts") {
		t.Error(table.String())
	}
}

func TestEveryProgramIsComplete(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, p := range programs() {
		if p.Name == "" || p.Folder == "" || p.Package == "" || p.Version == "" || p.Bin == "" || p.Harness == "" || p.Hooks == nil || p.Rows == nil {
			t.Errorf("%s lacks something: %+v", p.Name, p)
		}
		if names[p.Name] {
			t.Errorf("%s stands twice", p.Name)
		}
		names[p.Name] = true
		for _, args := range [][]string{p.New, p.Continue} {
			if !strings.Contains(strings.Join(args, " "), "{prompt}") {
				t.Errorf("%s gets no prompt: %q", p.Name, args)
			}
		}
	}
}
