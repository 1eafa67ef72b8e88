package commands_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"cairn/internal/fault"
	"cairn/internal/record"
	"cairn/internal/record/histories"
	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

// logOf returns the log of project p's records as the history of another writer with the
// given name.
func logOf(t testing.TB, s *store.Store, origin string) (list []histories.Document) {
	t.Helper()
	for _, c := range storetest.Changes(t, s) {
		if c.Stream != "records/p" {
			continue
		}
		list = append(list, histories.Document{Origin: origin, Place: int64(len(list) + 1), Exported: histories.Exported{
			Kind: c.Kind, Project: "p", ID: c.ID, Op: c.Op, Session: c.Session, Agent: c.Agent, At: c.At, Doc: c.Doc,
		}})
	}
	return list
}

// merged applies histories, one document per transaction.
func merged(t testing.TB, s *store.Store, lists ...[]histories.Document) histories.Counts {
	t.Helper()
	docs := histories.NewMerging(filterOf(t))
	for _, d := range slices.Concat(lists...) {
		if err := s.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error { return docs.Apply(ctx, tx, d) }); err != nil {
			t.Fatalf("%s %d (%s): %v", d.Origin, d.Place, d.Doc, err)
		}
	}
	if waiting := docs.Waiting(); len(waiting) > 0 {
		t.Fatalf("%d documents wait, first %d", len(waiting), waiting[0].Place)
	}
	return docs.Counts()
}

// worked returns a desk after random commands, with its own clock.
func worked(t *rapid.T, d *desk, commands int) *desk {
	for range rapid.IntRange(1, commands).Draw(t, "commands") {
		d.random(t, tally{})
	}
	return d
}

// Ticks, numbers and versions are equal too, because each change waits for the one before
// it.
func TestALogInAnyOrderAndTwiceGivesAnEqualStore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		d := newDesk(t)
		d.create("s0", "", "red")
		worked(rt, d, 40)
		log := logOf(t, d.store, "d")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		shuffled := slices.Concat(log, log)
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		other := deskOver(t, d)
		if n := merged(t, other.store, shuffled); n.Added != len(log) || n.Known != len(log) {
			t.Fatalf("%+v of %d", n, len(log))
		}
		wantCopy(t, other, d)
		if n := merged(t, other.store, shuffled); n.Added != 0 {
			t.Fatalf("by another: %+v", n)
		}
		if n := merged(t, d.store, log); n.Added != 0 {
			t.Fatalf("where it comes from: %+v", n)
		}
		restoredAgain := deskOver(t, d)
		reindexed(t, restoredAgain.store, every(t, other.store, "p"), false)
		wantCopy(t, restoredAgain, d)
	})
}

func TestWhatMustWaitIsReportedAndNotLost(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.create("s0", "", "red")
	d.body("s0", "R001", "two\n")
	log := logOf(t, d.store, "d")
	other := deskOver(t, d)
	docs := histories.NewMerging(filterOf(t))
	apply := func(at int) {
		err := other.store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error { return docs.Apply(ctx, tx, log[at]) })
		if err != nil {
			t.Fatal(err)
		}
	}
	apply(2)
	apply(1)
	want(t, "applied", len(exported(t, other.store)), 0)
	if waiting := docs.Waiting(); len(waiting) != 2 || waiting[0].Place != 2 || waiting[1].Place != 3 {
		t.Errorf("waiting: %+v", waiting)
	}
	apply(0)
	want(t, "waiting", len(docs.Waiting()), 0)
	wantCopy(t, other, d)
}

// twoWriters returns two desks with a common history that then diverge.
func twoWriters(t testing.TB) (a, b *desk) {
	a = newDesk(t)
	a.create("sa", "", "root")
	a.body("sa", "R001", "one\ntwo\nthree\n")
	b = deskOver(t, a)
	merged(t, b.store, logOf(t, a.store, "a"))
	return a, b
}

// The second version is kept next to the first, with a proposal. A version based on both
// ends the conflict on either side.
func TestTwoVersionsOfOneRecordAreBothKept(t *testing.T) {
	t.Parallel()
	a, b := twoWriters(t)
	a.body("sa", "R001", "ONE\ntwo\nthree\n")
	b.activate("sb", "R001")
	b.body("sb", "R001", "one\ntwo\nTHREE\n")
	merged(t, a.store, logOf(t, b.store, "b"))
	merged(t, b.store, logOf(t, a.store, "a"))
	want(t, "body at a", a.get("R001").Body, "ONE\ntwo\nthree\n")
	want(t, "body at b", b.get("R001").Body, "one\ntwo\nTHREE\n")
	for _, d := range []*desk{a, b} {
		h := must(d.History(t.Context(), record.HistoryArgs{Caller: as("sa"), ID: "R001"}))(t)
		if h[0].ChangeType != record.ConflictDetected || h[0].Version != 4 || !strings.Contains(h[0].Diff, "+one") && !strings.Contains(h[0].Diff, "+ONE") {
			t.Errorf("history %+v", h[0])
		}
		if o := h[0].Other; o == nil || o.Merged == nil || *o.Merged != "ONE\ntwo\nTHREE\n" || o.Base != 2 {
			t.Errorf("no proposal in %+v", o)
		}
	}
	if c := a.sync("sa").Changes; len(c) != 1 || c[0].ChangeType != "conflict" {
		t.Errorf("synced %+v", c)
	}
	if out := must(a.Update(t.Context(), record.UpdateArgs{Caller: as("sa"), ID: "R001", Body: ptr("blind\n")}))(t); out.Conflict == nil {
		t.Error("the session that knows nothing of it overwrites both")
	}
	a.activate("sa", "R001")
	a.body("sa", "R001", "ONE\ntwo\nTHREE\n")
	merged(t, b.store, logOf(t, a.store, "a"))
	want(t, "body at b after the conflict's end", b.get("R001").Body, "ONE\ntwo\nTHREE\n")
	want(t, "version at b", b.get("R001").Version, 5)
	if n := merged(t, a.store, logOf(t, b.store, "b")); n.Added > 1 {
		t.Errorf("back again: %+v", n)
	}
	want(t, "body at a in the end", a.get("R001").Body, "ONE\ntwo\nTHREE\n")
}

// All references to the record use the new number.
func TestARecordWhoseNumberIsTakenGetsTheNext(t *testing.T) {
	t.Parallel()
	a, b := twoWriters(t)
	a.create("sa", "R001", "mine")
	b.activate("sb", "R001")
	b.create("sb", "R001", "yours")
	b.create("sb", "R002", "below yours")
	b.body("sb", "R003", "as R002 says\n")
	must(b.Update(t.Context(), record.UpdateArgs{Caller: as("sb"), ID: "R003", Related: []string{"R002", "R001"}}))(t)
	log := logOf(t, b.store, "b")
	merged(t, a.store, log)
	if r := a.get("R002"); r.Title != "mine" || r.Version != 1 {
		t.Errorf("what was here: %+v", r)
	}
	if r := a.get("R003"); r.Title != "yours" || *r.ParentID != "R001" || !strings.Contains(string(r.Metadata), `"merged_from":"p R002"`) {
		t.Errorf("R003: %+v %s", r, r.Metadata)
	}
	r := a.get("R004")
	if *r.ParentID != "R003" || r.Body != "as R003 says\n" || !slices.Equal(r.Related, []string{"R003", "R001"}) || r.Version != 3 {
		t.Errorf("R004: %+v", r)
	}
	before := rowsOf(t, a.store)
	if n := merged(t, a.store, log); n.Added != 0 || rowsOf(t, a.store) != before {
		t.Errorf("again: %+v", n)
	}
	copied := deskOver(t, a)
	restored(t, copied.store, exported(t, a.store))
	wantCopy(t, copied, a)
}

// Two stores with a common history continue at random. Each log is applied to the other
// store, and both to a third. Every version of one is then in the history of the other,
// the newest versions stay the newest, and nothing is stored twice.
func TestTwoWritersLoseNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		a, b := twoWriters(t)
		a.clock.Move(1)
		worked(rt, a, 20)
		worked(rt, b, 20)
		logA, logB := logOf(t, a.store, "a"), logOf(t, b.store, "b")
		tops := map[string]string{}
		for n := 1; n <= 6; n++ {
			if r, err := a.Get(t.Context(), record.GetRefArgs{Caller: as(""), ID: fmt.Sprintf("R%03d", n)}); err == nil {
				tops[r.ID] = r.Title + "\x00" + r.Body
			}
		}
		common := 0
		for common < min(len(logA), len(logB)) && string(logA[common].Doc) == string(logB[common].Doc) && logA[common].At == logB[common].At {
			common++
		}
		versions := 0
		for _, d := range logB[common:] {
			if d.Kind == record.KindRecord {
				versions++
			}
		}
		tick := a.tick()
		merged(t, a.store, logB)
		for id, text := range tops {
			r := a.get(id)
			if got := r.Title + "\x00" + r.Body; got != text && !isVersionOf(t, a, id, text) {
				t.Fatalf("%s is %q, and %q is lost", id, got, text)
			}
		}
		if a.tick() < tick+int64(versions) {
			t.Fatalf("%d versions came, and the clock went from %d to %d", versions, tick, a.tick())
		}
		rows := rowsOf(t, a.store)
		if n := merged(t, a.store, logB); n.Added != 0 || rowsOf(t, a.store) != rows {
			t.Fatalf("again: %+v", n)
		}
		copied := deskOver(t, a)
		merged(t, copied.store, logOf(t, a.store, "a"))
		wantRows(t, copied, a)
		merged(t, b.store, logOf(t, a.store, "a"))
		before := exported(t, a.store)
		merged(t, a.store, logOf(t, b.store, "b"))
		if after := exported(t, a.store); len(after) != len(before) {
			t.Fatalf("what came back made %d changes of %d: %s", len(after), len(before), after[len(before)].Doc)
		}
	})
}

func isVersionOf(t testing.TB, d *desk, id, text string) bool {
	for n := d.get(id).Version; n > 0; n-- {
		v := must(d.Diff(t.Context(), record.DiffArgs{Caller: as(""), ID: id, From: fmt.Sprintf("v%d", n)}))(t).FromVersion
		if v.Title+"\x00"+v.Body == text {
			return true
		}
	}
	return false
}

// An import never merges.
func TestAnExportOfAnotherHistoryIsRefusedCompletely(t *testing.T) {
	t.Parallel()
	a, b := twoWriters(t)
	a.create("sa", "", "mine")
	b.create("sb", "", "yours")
	docs := histories.NewDocuments(filterOf(t))
	var err error
	for _, e := range exported(t, b.store) {
		err = a.store.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, why, err := docs.Check(ctx, tx, histories.Document{Exported: e})
			if why != nil {
				t.Fatal(why)
			}
			return err
		})
		if err != nil {
			break
		}
	}
	if !fault.HasCode(err, histories.CodeOtherHistory) {
		t.Errorf("%v", err)
	}
}

// Another store still has the forgotten data.
func TestForgottenDataIsNotRestored(t *testing.T) {
	t.Parallel()
	a, b := twoWriters(t)
	log := logOf(t, a.store, "a")
	err := b.store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Blank(ctx, "records/p", record.KindRecord, "R001")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	before := len(exported(t, b.store))
	if n := merged(t, b.store, log); n.Added != 0 || len(exported(t, b.store)) != before {
		t.Errorf("%+v", n)
	}
}

// It costs the tick in both stores.
func TestAForgottenChangeCostsItsTick(t *testing.T) {
	t.Parallel()
	a, _ := twoWriters(t)
	a.create("sa", "R001", "child")
	log := logOf(t, a.store, "a")
	for i := range log {
		if log[i].ID == "R002" {
			sum := sha256.Sum256(log[i].Doc)
			log[i].Doc, log[i].DocSHA256, log[i].Tick = nil, hex.EncodeToString(sum[:]), 3
		}
	}
	c := deskOver(t, a)
	merged(t, c.store, log, log)
	want(t, "tick", c.tick(), 3)
	if n := merged(t, c.store, log); n.Added != 0 {
		t.Errorf("again %+v", n)
	}
	c.activate("sa", "R001")
	want(t, "the next record", c.create("sa", "R001", "next").ID, "R003")
}

// Arbitrary documents are merged into a store with records. They are refused or stored,
// and the store stays intact.
func FuzzDocuments(f *testing.F) {
	a, b := twoWriters(f)
	a.create("sa", "R001", "mine")
	b.create("sb", "", "yours")
	b.activate("sb", "R001")
	b.body("sb", "R001", "other\n")
	b.save("sb")
	b.close("sb")
	log := logOf(f, b.store, "b")
	for i, d := range log {
		f.Add(i, d.Kind, d.ID, d.Session, string(d.Doc))
		f.Add(i, d.Kind, d.ID, d.Session, strings.Replace(string(d.Doc), "{", `{"origin":{"sha256":"`+strings.Repeat("ab", 32)+`","id":"R009"},`, 1))
		f.Add(i, d.Kind, d.ID, d.Session, strings.Replace(string(d.Doc), `"base_version":`, `"base_version":9`, 1))
	}
	f.Fuzz(func(t *testing.T, at int, kind, id, session, doc string) {
		if at < 0 || at >= len(log) || !json.Valid([]byte(doc)) {
			t.Skip()
		}
		d := deskOver(t, a)
		merged(t, d.store, logOf(t, a.store, "a"))
		docs := histories.NewMerging(filterOf(t))
		forged := log[at]
		forged.Kind, forged.ID, forged.Session, forged.Doc = kind, id, session, json.RawMessage(doc)
		list := slices.Concat(log[:at], []histories.Document{forged}, log[at+1:])
		for _, l := range list {
			err := d.store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
				if err := l.Validate(); err != nil {
					return err
				}
				return docs.Apply(ctx, tx, l)
			})
			if err != nil {
				return // the desk checks its store in the end
			}
		}
	})
}
