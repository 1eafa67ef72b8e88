package why_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"cairn"
	"cairn/internal/project"
	"cairn/internal/record"
	"cairn/internal/redact"
	"cairn/internal/why"
)

// inRepository creates a folder that counts as a repository, and a Service in it.
func inRepository(t *testing.T, files map[string]string) (*why.Service, string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "shop")
	if err := os.MkdirAll(filepath.Join(root, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		write(t, filepath.Join(root, name), text)
	}
	return serviceIn(t, dir, root), root
}

func openIn(t *testing.T, home, cwd string) *cairn.Cairn {
	t.Helper()
	c, err := cairn.Open(cairn.Config{Home: home, Dir: filepath.Join(home, ".cairn"), Cwd: cwd})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// serviceIn returns a Service without a store, in a folder of a home directory.
func serviceIn(t *testing.T, home, cwd string) *why.Service {
	t.Helper()
	filter, err := redact.New(redact.Options{})
	s := &why.Service{Filter: filter, Cwd: cwd, Home: home}
	if err == nil && cwd != "" {
		s.Place, err = project.Locate(cwd, home)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func cited(t *testing.T, s *why.Service, body string, old record.Record) []record.Cited {
	t.Helper()
	list, err := s.Cite(t.Context(), record.Caller{}, body, old)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// judged returns a record's citations after Judge.
func judged(t *testing.T, s *why.Service, at string, list []record.Cited) record.Record {
	t.Helper()
	r, ref := record.Record{Cited: list}, record.Ref{Cited: list}
	before, after := record.Record{}, record.Record{Cited: []record.Cited{{Path: "none", Lines: "L1", Hash: "?"}}}
	var all why.Shown
	for _, one := range []*record.Record{&before, &after, &r} {
		all.Record(one)
	}
	all.Ref(&record.Ref{})
	all.Ref(&ref)
	if err := s.Judge(t.Context(), record.Caller{}, at, all); err != nil {
		t.Fatal(err)
	}
	if r.Drifted != ref.Drifted || before.Drifted || before.Citations != nil || after.Drifted {
		t.Errorf("record %v, reference %v, others %v, %v", r.Drifted, ref.Drifted, before, after)
	}
	return r
}

func TestACitationKeepsTheTextItWasMadeFor(t *testing.T) {
	t.Parallel()
	const code = "one\ntwo\nthree\n"
	for name, step := range map[string]struct {
		code, body string // when the record is updated
		drifted    bool   // after the update
		nowAt      string
	}{
		"nothing changed":                         {code, "See a.go#L2.", false, ""},
		"the text moved and the line is edited":   {"zero\n" + code, "Look at a.go#L2!", false, "L3"},
		"the text is gone, another line is new":   {"one\nTWO\n", "More.\nSee a.go#L2.", true, ""},
		"the text is gone, its line is rewritten": {"one\nTWO\n", "Now it is TWO: a.go#L2.", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, root := inRepository(t, map[string]string{"a.go": code})
			old := record.Record{Body: "See a.go#L2.", Cited: cited(t, c, "See a.go#L2.", record.Record{})}
			write(t, filepath.Join(root, "a.go"), step.code)
			got := judged(t, c, "", cited(t, c, step.body, old))
			want := record.Citation{Path: "a.go", Lines: "L2", Drifted: &step.drifted, NowAt: step.nowAt}
			if !reflect.DeepEqual(got.Citations, []record.Citation{want}) || got.Drifted != step.drifted {
				t.Errorf("got %+v, want %+v", got.Citations, want)
			}
			if past := judged(t, c, "tick:1", got.Cited); past.Drifted || past.Citations[0].Drifted != nil {
				t.Errorf("the past is compared with today's tree: %+v", past.Citations)
			}
		})
	}
}

func TestWithoutAWorkingTreeNothingIsJudgedAndNothingForgotten(t *testing.T) {
	t.Parallel()
	c, root := inRepository(t, map[string]string{"a.go": "one\n"})
	old := record.Record{Body: "a.go#L1", Cited: cited(t, c, "a.go#L1", record.Record{})}
	for name, cwd := range map[string]string{"no folder": "", "the home directory": filepath.Dir(root)} {
		elsewhere := serviceIn(t, filepath.Dir(root), cwd)
		list := cited(t, elsewhere, "a.go#L1 and b.go#L2", old)
		if len(list) != 2 || list[0] != old.Cited[0] || list[1].Hash != "" {
			t.Errorf("%s: %+v", name, list)
		}
		if got := judged(t, elsewhere, "", list); got.Drifted || got.Citations[0].Drifted != nil || got.Citations[1].Drifted != nil {
			t.Errorf("%s: judged %+v", name, got.Citations)
		}
	}
}

func TestNoSecretIsKeptAsAPath(t *testing.T) {
	t.Parallel()
	c, _ := inRepository(t, nil)
	secret := "gh" + "p_" + strings.Repeat("a1B2", 9)
	for _, k := range cited(t, c, "see "+secret+"/a.go#L1 and <private>hidden/b.go#L2</private>", record.Record{}) {
		if strings.Contains(k.Path, secret) || strings.Contains(k.Path, "hidden") {
			t.Errorf("kept %+v", k)
		}
	}
}

func TestABodyThatIsTooLongIsNotRead(t *testing.T) {
	t.Parallel()
	c, _ := inRepository(t, nil)
	if list := cited(t, c, "a.go#L1 "+strings.Repeat("x", 1<<20), record.Record{}); list != nil {
		t.Errorf("%v", list)
	}
}

func TestBothVersionsOfADiffHaveTheirCitations(t *testing.T) {
	t.Parallel()
	_, root := inRepository(t, map[string]string{"a.go": "one\ntwo\n"})
	ctx, r := t.Context(), openIn(t, filepath.Dir(root), root).Records()
	as := record.Caller{SessionID: "s", Ancestors: []project.Process{}}
	made, err := r.Create(ctx, record.CreateArgs{Caller: as, Type: "note", Title: "t", Body: "See a.go#L2."})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "a.go"), "one\n")
	body := "See a.go#L1 and a.go#L2."
	if _, err := r.Update(ctx, record.UpdateArgs{Caller: as, ID: made.Record.ID, Body: &body}); err != nil {
		t.Fatal(err)
	}
	d, err := r.Diff(ctx, record.DiffArgs{Caller: as, ID: made.Record.ID, From: "v1"})
	if err != nil || len(d.FromVersion.Citations) != 1 || len(d.ToVersion.Citations) != 2 {
		t.Fatalf("citations %+v and %+v, %v", d.FromVersion.Citations, d.ToVersion.Citations, err)
	}
	if d.FromVersion.Drifted || d.FromVersion.Citations[0].Drifted != nil {
		t.Errorf("the older version is judged by today's tree: %+v", d.FromVersion.Citations)
	}
}
