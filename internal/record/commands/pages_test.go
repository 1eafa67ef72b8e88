package commands_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"cairn/internal/project"
	"cairn/internal/record"
	"cairn/internal/record/archived"
	"cairn/internal/record/histories"
	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

var update = flag.Bool("update", false, "write the golden files of the archive")

// files contains the files of a project in the archive, by path.
type files map[string]string

// render applies the rendered files of a batch, as the archive does.
func (a files) render(t testing.TB, s *store.Store, batch []store.Change) archived.RenderedFiles {
	t.Helper()
	var pages archived.RenderedFiles
	err := s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		pages, err = archived.Render(ctx, tx, batch)
		return err
	})
	if err != nil || len(pages.Refused) > 0 {
		t.Fatalf("%v, refused %v", err, pages.Refused)
	}
	if pages.Anew {
		clear(a)
		maps.Copy(a, every(t, s, "p"))
	}
	here := map[string]bool{}
	for _, f := range pages.Files {
		if here[f.Path] {
			t.Fatalf("%s comes twice", f.Path)
		}
		here[f.Path], a[f.Path] = true, string(f.Content)
	}
	return pages
}

// every returns the files of a project's present records.
func every(t testing.TB, s *store.Store, project string) files {
	t.Helper()
	all := files{}
	err := s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return archived.RenderAll(ctx, tx, project, func(f archived.File) error {
			if _, twice := all[f.Path]; twice {
				t.Fatalf("%s comes twice", f.Path)
			}
			all[f.Path] = string(f.Content)
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func wantFiles(t testing.TB, got, want files) {
	t.Helper()
	for path := range want {
		if got[path] != want[path] {
			t.Fatalf("%s is\n%.3000s\nwant\n%.3000s", path, got[path], want[path])
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%d files %v, want %d %v", len(got), slices.Sorted(maps.Keys(got)), len(want), slices.Sorted(maps.Keys(want)))
	}
}

// reindexed restores the files into a store, as project p.
func reindexed(t testing.TB, s *store.Store, a files, dryRun bool) archived.Reindexed {
	t.Helper()
	r := archived.NewReindexer(s, filterOf(t), dryRun)
	if err := r.Add(t.Context(), "p", a.folder()); err != nil {
		t.Fatal(err)
	}
	return r.Result()
}

func (a files) folder() archived.Folder {
	return archived.Folder{Name: "p", Paths: slices.Collect(maps.Keys(a)), Read: func(_ context.Context, path string) ([]byte, error) {
		text, ok := a[path]
		if !ok || text == "unreadable" {
			return nil, fs.ErrNotExist
		}
		return []byte(text), nil
	}}
}

func wantSound(t testing.TB, out archived.Reindexed, inserted int) {
	t.Helper()
	n := 0
	for _, of := range out.Inserted {
		n += of
	}
	if n != inserted || len(out.Conflicts)+len(out.Unparseable)+len(out.NotRecoverable) > 0 {
		t.Fatalf("reindexed %+v, want %d and nothing else", out, inserted)
	}
}

// ofRecords returns the changes of records in a log. A follower may get others between
// them.
func ofRecords(log []store.Change) []store.Change {
	return slices.DeleteFunc(slices.Clone(log), func(c store.Change) bool { return !strings.HasPrefix(c.Stream, "records/") })
}

// Logs of random commands are rendered in random batches, some of them twice, and
// restored into empty stores.
func TestAnArchiveMadeInAnyBatchesRestoresAnEqualStore(t *testing.T) {
	t.Parallel()
	first := newDesk(t)
	first.create("s0", "", "red")
	first.story(tally{})
	wantArchived(t, first, nil)
	rapid.Check(t, func(rt *rapid.T) {
		d := newDesk(t)
		d.create("s0", "", "red")
		for range rapid.IntRange(1, 40).Draw(rt, "commands") {
			d.random(rt, tally{})
		}
		wantArchived(t, d, rt)
	})
}

// wantArchived fails the test unless the files of a desk restore an equal desk in an
// empty store, and that desk gives the same files.
func wantArchived(t testing.TB, d *desk, rt *rapid.T) {
	t.Helper()
	log := storetest.Changes(t, d.store)
	a := files{}
	for begin := 0; begin < len(log); {
		n := len(log) - begin
		if rt != nil {
			n = rapid.IntRange(1, n).Draw(rt, "batch")
		}
		one, two := files{}, files{}
		one.render(t, d.store, log[begin:begin+n])
		two.render(t, d.store, log[begin:begin+n])
		wantFiles(t, two, one)
		maps.Copy(a, one)
		if rt == nil || rapid.IntRange(0, 4).Draw(rt, "stop") > 0 {
			begin += n // else the follower was killed and does it again
		}
	}
	wantFiles(t, a, every(t, d.store, "p"))
	list := exported(t, d.store)
	if slices.ContainsFunc(list, func(e histories.Exported) bool { return e.Project != "p" }) {
		t.Fatal("another project has records")
	}
	other := deskOver(t, d)
	wantSound(t, reindexed(t, other.store, a, true), len(list))
	wantSound(t, reindexed(t, other.store, a, false), len(list))
	wantCopy(t, other, d)
	for _, at := range []string{"tick:1", fmt.Sprintf("tick:%d", d.tick())} {
		if g, w := pastOf(t, other.Commands, at), pastOf(t, d.Commands, at); g != w {
			t.Fatalf("at %s it has\n%s\nwant\n%s", at, g, w)
		}
	}
	wantFiles(t, every(t, other.store, "p"), a)
	wantSound(t, reindexed(t, other.store, a, false), 0)
	wantSound(t, reindexed(t, d.store, a, false), 0)
}

// TestPagesAreForPeople compares a small project's archive with the files of
// testdata/archive.
func TestPagesAreForPeople(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.create("s1", "", "Which queue do we use?")
	must(d.Create(d.Context(), record.CreateArgs{
		Caller: as("s1"), ParentID: ptr("R001"), Type: "decision", Title: "A table & no broker", Summary: "SQLite is there anyway.\nNothing else to run.",
		Body: "See queue.go#L3-L9.\n\n---\n\nMore below.\n", Related: []string{"R001"}, Metadata: json.RawMessage(`{"by":"<ann>","n":1.50}`),
		Cited: []record.Cited{{Path: "queue.go", Lines: "L3-L9", Hash: "h"}},
	}))(d)
	d.move("s1", "R001", record.Resolved, "R002")
	d.save("s1")
	d.activate("s2", "R002")
	must(d.Update(d.Context(), record.UpdateArgs{Caller: as("s2"), ID: "R002", Title: ptr("A table, no broker")}))(d)
	d.move("s2", "R002", record.Discarded, "it was slow")
	d.close("s2")
	a := files{}
	pages := a.render(t, d.store, storetest.Changes(t, d.store))
	a["ops.txt"] = strings.Join(pages.Ops, "\n") + "\n"
	golden := files{}
	if *update {
		for path, text := range a {
			path = filepath.Join("testdata", "archive", filepath.FromSlash(path))
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
	}
	err := fs.WalkDir(os.DirFS("testdata/archive"), ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join("testdata", "archive", filepath.FromSlash(path)))
		golden[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	wantFiles(t, a, golden)
}

// It keeps the file for any titles, and every system supports the file's name.
func TestARecordKeepsItsFile(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	titles := map[string]string{
		"../../x": "R001-x", "con": "R002-con", strings.Repeat("é", 200): "R003-record", "A  b\tc": "R004-a-b-c", "---json": "R005-json",
		"..": "R006-record", strings.Repeat("Long ", 40): "R007-" + strings.TrimSuffix(strings.Repeat("long-", 16), "-"), "a/b\\c:d*e": "R008-a-b-c-d-e",
		"\u202egpj.exe": "R009-gpj.exe", "Änderung  am Schloß": "R010-nderung-am-schlo", "[x](y)<b>`": "R011-x-y-b", " - . _ ": "R012-record",
	}
	for _, title := range slices.SortedFunc(maps.Keys(titles), func(x, y string) int { return strings.Compare(titles[x], titles[y]) }) {
		body := "---json\n{}\n---\n\n# No\r\n\n---\n\n" + title + "\r\n\x01"
		must(d.Create(d.Context(), record.CreateArgs{
			Caller: as("s1"), Type: "---", Title: strings.ReplaceAll(title, "\t", " "), Summary: "---\n\n---\r\n# " + title, Body: body,
		}))(d)
	}
	before := every(t, d.store, "p")
	for _, name := range titles {
		if before["records/"+name+".md"] == "" {
			t.Errorf("no file %s", name)
		}
	}
	must(d.Update(d.Context(), record.UpdateArgs{Caller: as("s1"), ID: "R001", Title: ptr("another")}))(d)
	after := every(t, d.store, "p")
	if len(after) != len(before) || !strings.Contains(after["records/R001-x.md"], "# R001 another\n") {
		t.Errorf("%d files became %d:\n%s", len(before), len(after), after["records/R001-x.md"])
	}
	wantArchived(t, d, nil)
}

// It is divided by ticks, lines and bytes, independent of the batches.
func TestHistoryIsDividedIntoSmallFiles(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.create("s1", "", "root")
	for n := range 12 {
		d.body("s1", "R001", strings.Repeat(fmt.Sprint(n%10), 60<<10))
	}
	for n := range 1001 {
		if n%3 == 0 {
			d.activate("s2", "R001")
			d.close("s2")
		}
		d.save("s1")
	}
	log := storetest.Changes(t, d.store)
	a := files{}
	for batch := range slices.Chunk(log, 190) {
		a.render(t, d.store, batch)
	}
	wantFiles(t, a, every(t, d.store, "p"))
	var got []string
	for _, path := range slices.Sorted(maps.Keys(a)) {
		if text := a[path]; strings.HasPrefix(path, "records/history/") {
			got = append(got, strings.TrimPrefix(path, "records/history/"))
			if n := strings.Count(text, "\n"); n > 1000 || len(text) > 256<<10+n*300 {
				t.Errorf("%s has %d lines and %d bytes", path, n, len(text))
			}
		}
	}
	want := []string{"0001/0001.jsonl", "0001/0002.jsonl", "0001/0003.jsonl", "0001/0004.jsonl", "0001/0005.jsonl", "0002/0001.jsonl"}
	if !slices.Equal(got[:4], want[:4]) || got[len(got)-1] != "0002/0001.jsonl" || len(got) < 5 {
		t.Errorf("the files are %v, want such as %v", got, want)
	}
	other := deskOver(t, d)
	wantSound(t, reindexed(t, other.store, a, false), len(exported(t, d.store)))
	wantRows(t, other, d)
	small := (files{}).render(t, d.store, log[len(log)-1:])
	if len(small.Files) != 1 || small.Files[0].Path != "records/history/0002/0001.jsonl" {
		t.Errorf("one change gives %d files", len(small.Files))
	}
}

// Links to these pages work too (mail §10.1).
func TestFromThe1000thOnPagesAreInSubfolders(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.create("s1", "", "root")
	list := exported(t, d.store)
	for n := 2; n <= 1001; n++ { // written as an export, which is quicker than by commands
		var e record.Entry
		if err := json.Unmarshal(list[len(list)-1].Doc, &e); err != nil {
			t.Fatal(err)
		}
		e.ID, e.Tick, e.SyncTick, e.ParentID = fmt.Sprintf("R%03d", n), int64(n), int64(n), ptr("R001")
		doc, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		next := list[len(list)-1]
		next.ID, next.Doc = e.ID, doc
		list = append(list, next)
	}
	other := deskOver(t, d)
	docs := histories.NewDocuments(filterOf(t))
	err := other.store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		for _, e := range list {
			if err := docs.Apply(ctx, tx, histories.Document{Exported: e}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	must(other.Update(t.Context(), record.UpdateArgs{Caller: as("s1"), ID: "R999", Related: []string{"R1000"}}))(t)
	a := every(t, other.store, "p")
	if text := a["records/001/R1000-root.md"]; !strings.Contains(text, "Part of [R001](../R001-root.md)") {
		t.Errorf("R1000 is\n%s", text)
	}
	if text := a["records/R999-root.md"]; !strings.Contains(text, "[R1000](001/R1000-root.md)") {
		t.Errorf("R999 is\n%s", text)
	}
	wantSound(t, reindexed(t, deskOver(t, d).store, a, true), len(list)+1)
}

// The archive still restores the rest, with its ticks and ids.
func TestForgottenDataIsInNoFile(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.create("s1", "", "root")
	d.create("s1", "R001", "shameful")
	d.body("s1", "R002", "shameful too\n")
	must(d.Update(d.Context(), record.UpdateArgs{Caller: as("s1"), ID: "R001", Related: []string{"R002"}}))(d)
	a := files{}
	a.render(t, d.store, storetest.Changes(t, d.store))
	from := len(storetest.Changes(t, d.store))
	if !strings.Contains(a["records/R001-root.md"], "[R002](R002-shameful.md)") {
		t.Errorf("R001 is\n%s", a["records/R001-root.md"])
	}
	err := d.store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		if _, err := tx.Blank(ctx, "records/p", record.KindRecord, "R002"); err != nil {
			return err
		}
		_, err := tx.Append(ctx, store.Change{Project: "p", Stream: "records/p", Kind: record.KindRecord, ID: "R002", Op: store.OpPurge, Session: "s1"})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	pages := a.render(t, d.store, storetest.Changes(t, d.store)[from:])
	if !pages.Anew || len(pages.Files) > 0 || !slices.Equal(pages.Ops, []string{"record: R002 forgotten"}) {
		t.Errorf("a purge gives %+v", pages)
	}
	for path, text := range a {
		if strings.Contains(path+text, "shameful") {
			t.Errorf("%s still contains it:\n%s", path, text)
		}
	}
	if n := strings.Count(a[firstFile], `"doc":null,"doc_sha256":"`); n != 2 {
		t.Errorf("%d lines keep the hash alone:\n%s", n, a[firstFile])
	}
	d.create("s1", "R001", "after")
	a.render(t, d.store, storetest.Changes(t, d.store)[from+1:])
	wantFiles(t, a, every(t, d.store, "p"))

	other := deskOver(t, d)
	wantSound(t, reindexed(t, other.store, a, true), len(exported(t, d.store))+2)
	wantSound(t, reindexed(t, other.store, a, false), len(exported(t, d.store))+2)
	wantFiles(t, every(t, other.store, "p"), a)
	want(t, "tick", other.tick(), d.tick())
	want(t, "the next id", other.create("s1", "", "new").ID, d.create("s1", "", "new").ID)
	wantSound(t, reindexed(t, other.store, a, false), 0)
	if found := must(checked(t.Context(), other.store))(t); len(found) > 0 {
		t.Errorf("check: %q", found)
	}
}

func TestAChangeThatCannotBeRenderedIsRefusedAlone(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.create("s1", "", "root")
	err := d.store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		for _, c := range []store.Change{
			{Stream: "records/p", Kind: record.KindEvent, ID: "s1", Doc: json.RawMessage(`{"type":`)},
			{Stream: "records/p", Kind: record.KindRecord, ID: "x", Doc: json.RawMessage(`{"id":"x"}`)},
			{Stream: "records/none", Kind: record.KindRecord, ID: "R001", Doc: json.RawMessage(`{"id":"R001"}`)},
		} {
			c.Op = store.OpPut
			if _, err := tx.Append(ctx, c); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	log := ofRecords(storetest.Changes(t, d.store))
	for begin, want := range map[int]struct{ refused, files int }{0: {3, 2}, len(log) - 1: {1, 0}} {
		err := d.store.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			pages, err := archived.Render(ctx, tx, log[begin:])
			if err == nil && (len(pages.Refused) != want.refused || len(pages.Files) != want.files) {
				t.Errorf("from %d: %v refused, %d files", begin, pages.Refused, len(pages.Files))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Their changes stay in the old stream.
func TestRecordsOfAMergedProjectAreInItsFolder(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.create("s1", "", "root")
	err := d.store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		if _, err := project.Ensure(ctx, tx, "q"); err != nil {
			return err
		}
		return project.Merge(ctx, tx, "p", "q", histories.MoveRows)
	})
	if err != nil {
		t.Fatal(err)
	}
	d.create("s1", "R001", "child")
	a := files{}
	a.render(t, d.store, storetest.Changes(t, d.store))
	wantFiles(t, a, every(t, d.store, "q"))
	if len(a) != 3 || !strings.Contains(a[firstFile], `"project":"q"`) {
		t.Errorf("%v", a)
	}
}
