package browse

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"cairn/internal/observation"
	"cairn/internal/observation/observationtest"
	"cairn/internal/store"
)

func TestActivityTellsWhatASessionDidInARange(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	b.Record(observation.Event{Kind: observation.Prompt, Session: "s1", Text: "make the refund test pass again", Source: "UserPromptSubmit"})
	b.Runs("s1", "go test ./refund", "FAIL refund")
	b.Now.Add(600)
	b.Runs("s1", "go vet ./...", "")
	since := b.Now.Load()
	b.Now.Add(60)
	b.Runs("s2", "go build ./...", "")
	list, more, err := ActiveSessions(t.Context(), b.Service, ActivityArgs{Until: b.Now.Load() + 1, Limit: 10})
	if err != nil || more || len(list) != 2 || list[0].SessionID != "s2" {
		t.Fatalf("%+v %v %v", list, more, err)
	}
	s := list[1]
	if s.Asked != "make the refund test pass again" || s.Actions != 2 || len(s.Working) != 2 || len(s.Failing) != 1 || s.Last.ContentPreview != "go vet ./..." {
		t.Errorf("%+v", s)
	}
	if len(s.Marks) != 2 || s.Marks[0].Kind != MarkPrompt || s.Marks[1].Kind != MarkFailure {
		t.Errorf("marks %+v", s.Marks)
	}
	for what, c := range map[string]struct {
		args ActivityArgs
		want int
	}{
		"a later range": {ActivityArgs{Since: since + 1, Until: since + 1000, Limit: 10}, 1},
		"one session":   {ActivityArgs{Until: since + 1000, Session: "s1"}, 1},
		"before all":    {ActivityArgs{Until: 1, Limit: 10}, 0},
		"the project":   {ActivityArgs{Until: since + 1000, Limit: 10, Project: s.Project}, 2},
	} {
		list, _, err := ActiveSessions(t.Context(), b.Service, c.args)
		if err != nil || len(list) != c.want {
			t.Errorf("%s: %d sessions, %v", what, len(list), err)
		}
	}
	if _, more, err := ActiveSessions(t.Context(), b.Service, ActivityArgs{Until: since + 1000, Limit: 1}); err != nil || !more {
		t.Errorf("more: %v, %v", more, err)
	}
	if _, _, err := ActiveSessions(t.Context(), b.Service, ActivityArgs{Project: "nowhere"}); err == nil {
		t.Error("an unknown project is answered")
	}
	failed := []FailedCommands{{s.Failing, Position{s.Last.Timestamp, s.Last.ID}}}
	open, err := StillFailing(t.Context(), b.Service, s.Project, failed)
	if err != nil || !slices.Equal(open[0], s.Failing) {
		t.Errorf("still failing: %q, %v", open, err)
	}
	b.Runs("s2", "go test ./...", "")
	failed = append(failed, FailedCommands{s.Failing, Position{1 << 40, 0}})
	if open, err = StillFailing(t.Context(), b.Service, s.Project, failed); err != nil || len(open[0]) > 0 || !slices.Equal(open[1], s.Failing) {
		t.Errorf("still failing after a run that covers it, and for one that it came before: %q, %v", open, err)
	}
	before, after, err := Neighbours(t.Context(), b.Service, "s1")
	if err != nil || before != "" || after != "s2" {
		t.Errorf("neighbours %q %q %v", before, after, err)
	}
}

// Rows returns the same rows as a plain query, page by page, for every filter.
func TestRowsEqualAPlainQuery(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	other := b.Repository(b.Repo + "-other")
	random := rand.New(rand.NewPCG(1, 2))
	b.Record(observation.Event{Kind: observation.Prompt, Session: "s0", Branch: "fix", Text: "begin", Source: "UserPromptSubmit"})
	b.Record(observation.Event{Kind: observation.Prompt, Session: "s4", Cwd: other, Branch: "fix", Text: "begin there", Source: "UserPromptSubmit"})
	for i := range 150 {
		session, cwd := fmt.Sprint("s", i%5), b.Repo
		if i%5 > 2 {
			cwd = other
		}
		e := observation.Event{Kind: observation.Tool, Session: session, Cwd: cwd, Calls: []observation.Call{{Tool: "Bash", Action: observation.Shell, Command: fmt.Sprint("make step ", i)}}}
		if random.IntN(3) == 0 {
			e.Calls = []observation.Call{{Tool: "Edit", Action: observation.Edit, Path: fmt.Sprintf("%s/f%d.go", cwd, random.IntN(4))}}
		}
		b.Record(e)
		b.Now.Add(int64(random.IntN(3)))
	}
	plain := func(where string, args ...any) (ids []int64) {
		err := b.Store.Read(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
			ids, err = tx.Keys(ctx, `SELECT id FROM observations WHERE `+where+` ORDER BY timestamp DESC, id DESC`, args...)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	first := b.Project("shop").ID
	for where, a := range map[string]RowsArgs{
		"1":                      {},
		"project_id = 'shop'":    {Project: first},
		"obs_type = 'file_edit'": {ObsType: observation.TypeEdit},
		"path_key = 'f1.go' AND project_id = 'shop'": {Project: first, Path: "f1.go"},
		"session_id IN (SELECT s.id FROM sessions s JOIN session_branches b ON b.session_key = s.key WHERE b.branch = 'fix')": {Branch: "fix"},
	} {
		var got []int64
		for a.Limit = 7; ; {
			rows, err := Rows(t.Context(), b.Service, a)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rows {
				got = append(got, r.ID)
			}
			if len(rows) == 0 {
				break
			}
			a.Before = Position{rows[len(rows)-1].Timestamp, rows[len(rows)-1].ID}
		}
		if want := plain(where); !slices.Equal(got, want) || len(want) == 0 {
			t.Errorf("%s: %d rows, want %d", where, len(got), len(want))
		}
	}
}

// FileEdits returns the same edits as a plain query, for every range of time.
func TestFileEditsEqualAPlainQuery(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	for i := range 30 {
		b.Now.Add(60)
		b.Edits(fmt.Sprintf("s%d", i%3), fmt.Sprintf("src/%d.go", i%7))
	}
	all, err := FileEdits(t.Context(), b.Service, FileEditsArgs{Limit: 1000})
	if err != nil || len(all) != 30 {
		t.Fatalf("%d edits, %v", len(all), err)
	}
	for i := 1; i < len(all); i++ {
		if all[i].At > all[i-1].At {
			t.Errorf("edit %d is newer than the one before it", i)
		}
	}
	middle := all[15].At
	for what, c := range map[string]struct {
		args FileEditsArgs
		keep func(FileEdit) bool
	}{
		"since":  {FileEditsArgs{Since: middle, Limit: 1000}, func(e FileEdit) bool { return e.At >= middle }},
		"until":  {FileEditsArgs{Until: middle, Limit: 1000}, func(e FileEdit) bool { return e.At < middle }},
		"newest": {FileEditsArgs{Limit: 4}, nil},
		"of one": {FileEditsArgs{Project: all[0].Project, Limit: 1000}, func(FileEdit) bool { return true }},
	} {
		got, err := FileEdits(t.Context(), b.Service, c.args)
		want := 4
		if c.keep != nil {
			want = 0
			for _, e := range all {
				if c.keep(e) {
					want++
				}
			}
		}
		if err != nil || len(got) != want {
			t.Errorf("%s: %d edits, want %d, %v", what, len(got), want, err)
		}
	}
	if _, err := FileEdits(t.Context(), b.Service, FileEditsArgs{Project: "nowhere"}); err == nil {
		t.Error("an unknown project is answered")
	}
}
