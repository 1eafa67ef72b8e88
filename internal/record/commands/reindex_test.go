package commands_test

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"cairn/internal/fault"
	"cairn/internal/record"
	"cairn/internal/record/archived"
	"cairn/internal/record/histories"
	"cairn/internal/redact"
)

// edit changes one line of a file.
func (a files) edit(t testing.TB, path string, number int, to func(line string) string) {
	t.Helper()
	lines := strings.SplitAfter(a[path], "\n")
	lines[number-1] = to(lines[number-1])
	a[path] = strings.Join(lines, "")
}

// lineOf returns the number of the first line that contains a text.
func (a files) lineOf(t testing.TB, path, text string) int {
	t.Helper()
	before, _, ok := strings.Cut(a[path], text)
	if !ok {
		t.Fatalf("%s has no %s", path, text)
	}
	return strings.Count(before, "\n") + 1
}

const firstFile = "records/history/0001/0001.jsonl"

// damaged returns a project whose history has eight ticks.
func damaged(t testing.TB) (*desk, files) {
	d := newDesk(t)
	d.create("s1", "", "root")
	d.create("s1", "R001", "child")
	d.activate("s2", "R002")
	d.body("s2", "R002", "two\n")
	d.save("s2")
	d.activate("s2", "R001")
	d.body("s2", "R001", "three\n")
	d.body("s2", "R002", "four\n")
	d.create("s2", "R001", "late")
	d.save("s2")
	return d, every(t, d.store, "p")
}

func TestALineWithoutATickMayBeDamaged(t *testing.T) {
	t.Parallel()
	d, a := damaged(t)
	n := a.lineOf(t, firstFile, `"activation"`)
	a.edit(t, firstFile, n, func(line string) string { return line[:len(line)/2] + "\n" })
	other := deskOver(t, d)
	out := reindexed(t, other.store, a, false)
	if len(out.Unparseable) != 1 || out.Unparseable[0].Path != fmt.Sprintf("%s:%d", firstFile, n) || len(out.NotRecoverable)+len(out.Conflicts) > 0 {
		t.Fatalf("%+v", out)
	}
	want(t, "tick", other.tick(), d.tick())
	for _, id := range []string{"R001", "R002", "R003"} {
		if g, w := other.get(id), d.get(id); g.Body != w.Body || g.Version != w.Version || g.Modified != w.Modified {
			t.Errorf("%+v, want %+v", g, w)
		}
	}
}

// Newer versions in pages are reported.
func TestNothingIsTakenAfterAMissingTick(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(line string) string{
		"changed": func(line string) string { return strings.Replace(line, "three", "tHree", 1) },
		"cut":     func(line string) string { return line[:len(line)-20] },
		"gone":    func(string) string { return "" },
		"zeros":   func(line string) string { return strings.Repeat("\x00", len(line)-1) + "\n" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, a := damaged(t)
			a.edit(t, firstFile, a.lineOf(t, firstFile, `three`), harm)
			a["records/R002-child.md"] = "not a page"
			other := deskOver(t, d)
			out := reindexed(t, other.store, a, false)
			want(t, "tick", other.tick(), 4)
			want(t, "R001", other.get("R001").Version, 1)
			want(t, "R002", other.get("R002").Body, "two\n")
			var lost []string
			for _, u := range out.NotRecoverable {
				path, _, _ := strings.Cut(u.Path, ":")
				lost = append(lost, path)
			}
			if !slices.Equal(lost, []string{firstFile, "records/R001-root.md", "records/R003-late.md"}) {
				t.Errorf("not recoverable: %+v", out.NotRecoverable)
			}
			if last := out.Unparseable[len(out.Unparseable)-1]; last.Path != "records/R002-child.md" {
				t.Errorf("unparseable: %+v", out.Unparseable)
			}
			if again := reindexed(t, other.store, a, false); len(again.Inserted) != 0 || len(again.Conflicts) > 0 {
				t.Errorf("again %+v", again)
			}
			intact := every(t, d.store, "p")
			reindexed(t, other.store, intact, false) // it was mended: from Git, say
			want(t, "tick", other.tick(), d.tick())
			wantCopy(t, other, d)
		})
	}
}

// Archives are damaged at random. Only changes that existed are restored, in order, and
// each one that is not restored is reported.
func TestDamageNeverInventsChanges(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		d := newDesk(t)
		d.create("s0", "", "red")
		for range rapid.IntRange(1, 30).Draw(rt, "commands") {
			d.random(rt, tally{})
		}
		a := every(t, d.store, "p")
		text := []byte(a[firstFile])
		for range rapid.IntRange(1, 3).Draw(rt, "harms") {
			at := rapid.IntRange(0, len(text)-1).Draw(rt, "at")
			switch rapid.IntRange(0, 3).Draw(rt, "harm") {
			case 0:
				text[at] ^= 1 << rapid.IntRange(0, 7).Draw(rt, "bit")
			case 1:
				text = text[:max(at, 1)]
			case 2:
				text = slices.Insert(text, at, []byte(rapid.SampledFrom([]string{"\n", "{}\n", "\x00", "null\n"}).Draw(rt, "text"))...)
			default:
				end := min(at+rapid.IntRange(1, 600).Draw(rt, "length"), len(text)-1)
				text = slices.Delete(text, at, max(end, at))
			}
		}
		a[firstFile] = string(text)
		other := deskOver(t, d)
		out := reindexed(t, other.store, a, false)
		whole, part := exported(t, d.store), exported(t, other.store)
		left := whole
		for _, e := range part {
			i := slices.IndexFunc(left, func(w histories.Exported) bool {
				return w.Kind == e.Kind && w.ID == e.ID && w.Session == e.Session && w.At == e.At && string(w.Doc) == string(e.Doc)
			})
			if i < 0 {
				t.Fatalf("%s was never so:\n%s", e.ID, e.Doc)
			}
			left = left[i+1:]
		}
		if newest := d.tick(); len(out.Unparseable)+len(out.NotRecoverable) == 0 && other.tick() != newest {
			told := slices.ContainsFunc(whole[len(part):], func(e histories.Exported) bool { return e.Kind == record.KindRecord })
			if told { // a save at the end has no page that could contain it
				t.Fatalf("tick %d of %d was restored, and nothing told", other.tick(), newest)
			}
		}
	})
}

func TestAMissingFileIsReported(t *testing.T) {
	t.Parallel()
	d, a := damaged(t)
	delete(a, firstFile)
	bare := deskOver(t, d)
	out := reindexed(t, bare.store, a, false)
	if len(out.NotRecoverable) != 3 || len(out.Inserted) != 0 {
		t.Errorf("without history %+v", out)
	}
	want(t, "an id that was never used", bare.create("s1", "", "again").ID, "R004")
	again := deskOver(t, bare)
	restored(t, again.store, exported(t, bare.store))
	wantCopy(t, again, bare)
	wantSound(t, reindexed(t, deskOver(t, bare).store, every(t, bare.store, "p"), false), len(exported(t, bare.store)))
	d, a = damaged(t)
	a["records/history/0002/0002.jsonl"], a["records/history/0003/0001.jsonl"], a["records/history/x.jsonl"] = "", "unreadable", "x"
	out = reindexed(t, deskOver(t, d).store, a, false)
	if len(out.Unparseable) != 2 || out.Unparseable[0].Path != "records/history/0002/0001.jsonl" ||
		out.Unparseable[1].Path != "records/history/0003/0001.jsonl" || len(out.NotRecoverable) > 0 {
		t.Errorf("with gaps %+v", out)
	}
}

// The store wins over an archive of another history, and continues with an archive of its
// own history.
func TestTheStoreTakesPrecedence(t *testing.T) {
	t.Parallel()
	d, a := damaged(t)
	other := newDesk(t)
	other.create("s9", "", "mine")
	before := rowsOf(t, other.store)
	out := reindexed(t, other.store, a, false)
	if len(out.Conflicts) != 1 || out.Conflicts[0].Path != firstFile+":1" || len(out.Inserted) > 0 || rowsOf(t, other.store) != before {
		t.Errorf("%+v", out)
	}
	d.create("s1", "", "later than the archive")
	wantSound(t, reindexed(t, d.store, a, false), 0)
	half := deskOver(t, d)
	list := exported(t, d.store)
	restored(t, half.store, list[:5])
	wantSound(t, reindexed(t, half.store, every(t, d.store, "p"), true), len(list)-5)
	want(t, "tick after a dry run", half.tick(), 2)
	wantSound(t, reindexed(t, half.store, every(t, d.store, "p"), false), len(list)-5)
	wantCopy(t, half, d)
}

func TestANewerCairnsHistoryIsNotTaken(t *testing.T) {
	t.Parallel()
	d, a := damaged(t)
	filter, err := redact.New(redact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a.edit(t, firstFile, 2, func(line string) string {
		plain, _, _ := strings.Cut(strings.Replace(line, `"doc":{`, `"doc":{"mood":1,`, 1), `,"sha256":`)
		return fmt.Sprintf("%s,\"sha256\":\"%x\"}\n", plain, sha256.Sum256([]byte(plain+"}")))
	})
	other := deskOver(t, d)
	err = archived.NewReindexer(other.store, filter, false).Add(t.Context(), "p", a.folder())
	if !fault.HasCode(err, histories.CodeNewerDocument) || len(exported(t, other.store)) > 0 {
		t.Errorf("%v", err)
	}
}
