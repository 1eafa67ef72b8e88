package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn/internal/store"
	"cairn/internal/store/gosqlite"
	"cairn/internal/store/salvage"
	"cairn/internal/store/storetest"
)

const pageSize = 4096

// salvaged repairs the store at path and checks the guarantees of every salvage: the result is
// intact, and the damaged files are next to it, byte for byte.
func salvaged(t testing.TB, path string) salvage.Report {
	t.Helper()
	before := map[string][]byte{}
	for _, suffix := range []string{"", "-wal"} {
		if b, err := os.ReadFile(path + suffix); err == nil {
			before[suffix] = b
		}
	}
	c := salvageConfig(path)
	tables := 0
	c.Progress = func(what string) {
		// Leftovers of reading one table would still exist some tables later.
		if strings.HasPrefix(what, "reading ") {
			if tables++; tables%8 != 0 {
				return
			}
		}
		expectNoPlainText(t, path)
	}
	r, err := salvage.Run(t.Context(), c)
	expectNoPlainText(t, path)
	if err != nil {
		t.Fatalf("salvage: %v", err)
	}
	if len(r.Damage) == 0 || r.Kept == "" {
		t.Fatalf("nothing was salvaged: %+v", r)
	}
	for suffix, b := range before {
		expectUnchanged(t, r.Kept+suffix, b)
	}
	storetest.Check(t, path)
	for _, e := range entries(t, filepath.Dir(path)) {
		if strings.Contains(e, "-salvage-") {
			t.Errorf("%s was left behind", e)
		}
	}
	return r
}

// salvageConfig returns a config with the key if stores must be encrypted.
func salvageConfig(path string) salvage.Config {
	return salvage.Config{Path: path, Key: storetest.Key()}
}

// expectNoPlainText fails the test if a file next to an encrypted store contains the text
// that is in every row of populated, or SQLite's header.
func expectNoPlainText(t testing.TB, path string) {
	t.Helper()
	if storetest.Key() == nil {
		return
	}
	expectNowhere(t, filepath.Dir(path), strings.Repeat("x", 24), strings.Repeat("y", 24), "SQLite format 3", "CREATE TABLE")
}

// examine is store.Examine with the key if stores must be encrypted.
func examine(ctx context.Context, path string) (*store.Store, error) {
	return store.Examine(ctx, storetest.Config(store.Config{Path: path}))
}

// inside returns the decrypted content of a database or write-ahead log.
func inside(t testing.TB, file []byte) []byte {
	t.Helper()
	if storetest.Key() == nil {
		return file
	}
	return decrypted(t, file, storetest.Key())
}

func decrypted(t testing.TB, file, key []byte) []byte {
	t.Helper()
	out := make([]byte, gosqlite.Whole(int64(len(file))))
	if _, err := gosqlite.NewReader(bytes.NewReader(file), key).ReadAt(out, 0); err != nil {
		t.Fatal(err)
	}
	return out
}

func entries(t testing.TB, dir string) (names []string) {
	t.Helper()
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range found {
		names = append(names, e.Name())
	}
	return names
}

// changesOf returns the change log without the changes that salvages added.
func changesOf(t testing.TB, path string) (out []store.Change) {
	t.Helper()
	s, err := open(t.Context(), store.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer storetest.Closed(t, s)
	for _, c := range storetest.Changes(t, s) {
		if c.Kind != "salvage" {
			out = append(out, c)
		}
	}
	return out
}

// damages returns ways to damage a page.
func damages() map[string]func(page []byte, r *rand.Rand) {
	return map[string]func([]byte, *rand.Rand){
		"noise": func(p []byte, r *rand.Rand) {
			for i := range p {
				p[i] = byte(r.Uint32())
			}
		},
		"zeros": func(p []byte, _ *rand.Rand) { clear(p) },
		"second half": func(p []byte, r *rand.Rand) {
			for i := len(p) / 2; i < len(p); i++ {
				p[i] = byte(r.Uint32())
			}
		},
		"head": func(p []byte, r *rand.Rand) {
			for i := range 16 {
				p[i] = byte(r.Uint32())
			}
		},
	}
}

// A row may be lost only if it was on the damaged page.
func TestSalvageLosesNothingOutsideADamagedPage(t *testing.T) {
	t.Parallel()
	origin := populated(t)
	want := changesOf(t, origin)
	intact := content(t, origin)
	held := inside(t, intact)
	pages := len(intact) / pageSize
	rounds, fixed := 6, 4
	if storetest.Key() != nil || testing.Short() { // the driver is slow, or this is the run with the second driver
		rounds, fixed = 3, 1
	}
	if os.Getenv("CAIRN_SOAK") != "" {
		rounds, fixed = 400, 4
	}
	for name, damage := range damages() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			r := rand.New(rand.NewPCG(seed, 1))
			for round := range rounds {
				n := r.IntN(pages)
				if round < fixed {
					n = round // header and schema, pointer map, first root pages
				}
				broken := bytes.Clone(intact)
				page := broken[n*pageSize : (n+1)*pageSize]
				damage(page, r)
				path := storetest.Path(t)
				place(t, path, broken)
				if !damageFound(t, path) {
					continue // for instance a free page
				}
				salvaged(t, path)
				expectLostOnly(t, fmt.Sprintf("page %d", n+1), want, changesOf(t, path), held[n*pageSize:(n+1)*pageSize])
			}
		})
	}
}

// damageFound reports whether the store is damaged, so that it can be salvaged.
func damageFound(t testing.TB, path string) bool {
	t.Helper()
	s, err := examine(t.Context(), path)
	if err != nil {
		return true
	}
	defer storetest.Closed(t, s)
	found, err := s.Check(t.Context())
	return err != nil || len(found) > 0
}

func place(t testing.TB, path string, file []byte) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, file, 0o600)); err != nil {
		t.Fatal(err)
	}
	if storetest.Key() == nil || filepath.Ext(path) != ".db" || exists(path+"-cipher") {
		return
	}
	s := storetest.Open(t, store.Config{}) // any store's key check depends on the key
	if err := os.WriteFile(path+"-cipher", content(t, s.Path()+"-cipher"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// expectLostOnly compares two logs. Missing changes must have been on the page. The
// others must be unchanged, except for documents and words that were on the page.
func expectLostOnly(t testing.TB, what string, want, got []store.Change, page []byte) {
	t.Helper()
	there := map[int64]store.Change{}
	for _, c := range got {
		there[c.Seq] = c
	}
	lost := 0
	for _, c := range want {
		g, ok := there[c.Seq]
		switch {
		case !ok && !bytes.Contains(page, []byte(c.ID)):
			t.Fatalf("%s: change %d is lost, which was not there", what, c.Seq)
		case !ok:
			lost++
		case g.ID != c.ID && !bytes.Contains(page, []byte(c.ID)), g.DeviceSeq != c.DeviceSeq && !bytes.Contains(page, []byte(c.ID)):
			t.Fatalf("%s: change %d was %s and is now %s", what, c.Seq, c.ID, g.ID)
		}
	}
	t.Logf("%s: %d of %d changes lost", what, lost, len(want))
}

func TestSalvageOfATruncatedFileKeepsTheRest(t *testing.T) {
	t.Parallel()
	origin := populated(t)
	want := changesOf(t, origin)
	intact := content(t, origin)
	held := inside(t, intact)
	for _, keep := range []int{len(intact) - 1, len(intact) / 2, len(intact)/2 + 1000, 20 * pageSize, pageSize, 500} {
		path := storetest.Path(t)
		place(t, path, intact[:keep])
		salvaged(t, path)
		expectLostOnly(t, fmt.Sprintf("cut to %d", keep), want, changesOf(t, path), held[keep/pageSize*pageSize:])
	}
}

func TestSalvageWorksWithoutTheHeader(t *testing.T) {
	t.Parallel()
	for name, upTo := range map[string]int{"header": 100, "first page": pageSize} {
		path := populated(t)
		want := changesOf(t, path)
		broken := content(t, path)
		clear(broken[:upTo])
		place(t, path, broken)
		r := salvaged(t, path)
		if got := changesOf(t, path); len(got) != len(want) || r.Gaps > 0 {
			t.Errorf("%s: %d of %d changes, %d gaps", name, len(got), len(want), r.Gaps)
		}
	}
}

// A rebuilt file, as after a purge, has its tables at other pages than a new one.
func TestSalvageOfARebuiltFileWithoutItsSchema(t *testing.T) {
	t.Parallel()
	path := populated(t)
	want := changesOf(t, path)
	storetest.RawExec(t, storetest.Raw(t, path), "DROP INDEX changes_by_device", "VACUUM", "CREATE UNIQUE INDEX changes_by_device ON changes (device, device_seq)")
	intact := content(t, path)
	held := inside(t, intact)
	for n := range len(intact) / pageSize {
		page := held[n*pageSize : (n+1)*pageSize]
		if !bytes.Contains(page, []byte("CREATE TABLE")) && n > 0 {
			continue
		}
		broken := bytes.Clone(intact)
		clear(broken[n*pageSize : (n+1)*pageSize])
		path := storetest.Path(t)
		place(t, path, broken)
		salvaged(t, path)
		if got := changesOf(t, path); len(got) != len(want) || got[999].ID != want[999].ID {
			t.Errorf("without page %d: %d of %d changes", n+1, len(got), len(want))
		}
	}
}

// heldOpen returns a store whose newest writes are only in its log, as after a kill.
func heldOpen(t testing.TB) (path string, want []store.Change) {
	t.Helper()
	origin := populated(t)
	s, err := open(t.Context(), store.Config{Path: origin, Role: store.Hook})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 60 {
		storetest.MustWrite(t, s, fmt.Sprintf("late-%d-%s", n, strings.Repeat("y", 300)))
	}
	want = storetest.Changes(t, s)
	path = storetest.Path(t)
	place(t, path, content(t, origin))
	place(t, path+"-wal", content(t, origin+"-wal"))
	storetest.Closed(t, s)
	return path, want
}

// ruined damages a page of the file that is not in its log.
func ruined(t testing.TB, path string) (page []byte) {
	t.Helper()
	broken := content(t, path)
	page = bytes.Clone(inside(t, broken)[99*pageSize : 100*pageSize])
	clear(broken[99*pageSize : 100*pageSize])
	place(t, path, broken)
	return page
}

func TestSalvageIncludesTheLog(t *testing.T) {
	t.Parallel()
	path, want := heldOpen(t)
	page := ruined(t, path)
	salvaged(t, path)
	expectLostOnly(t, "a page beside the log", want, changesOf(t, path), page)
}

// Changes that SQLite would not read from a damaged log are not part of the store; all
// changes before are.
func TestSalvageReadsADamagedLogUpToTheDamage(t *testing.T) {
	t.Parallel()
	last := 0
	for _, share := range []int{1, 2, 3} {
		path, want := heldOpen(t)
		wal := content(t, path+"-wal")
		cut := len(wal) * share / 4
		for i := range 64 {
			wal[cut+i] ^= 0x5a
		}
		place(t, path+"-wal", wal)
		page := ruined(t, path)
		salvaged(t, path)
		got := changesOf(t, path)
		late := 0
		for _, c := range got {
			if strings.HasPrefix(c.ID, "late-") {
				late++
			}
		}
		if late <= last || late >= 60 {
			t.Errorf("damaged at %d of %d: %d of the log's changes, %d with more damage", cut, len(wal), late, last)
		}
		last = late
		expectLostOnly(t, "a damaged log", want[:1000+late], got, page)
	}
}

func TestSalvageOfALogWithoutItsFile(t *testing.T) {
	t.Parallel()
	for _, there := range []bool{true, false} {
		path, want := heldOpen(t)
		wal := inside(t, content(t, path+"-wal"))
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if there {
			place(t, path, nil)
		}
		salvaged(t, path)
		got := changesOf(t, path)
		late := 0
		for _, c := range want {
			if bytes.Contains(wal, []byte(c.ID)) && slices.ContainsFunc(got, func(g store.Change) bool { return g.ID == c.ID }) {
				late++
			}
		}
		if late < 60 {
			t.Errorf("with an empty file %v: %d changes of the log's", there, late)
		}
		s := storetest.Open(t, store.Config{Path: path})
		storetest.MustWrite(t, s, "after")
	}
}

func TestSalvageOfAFileThatIsNotAStoreCreatesAnEmptyOne(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"text": strings.Repeat("once upon a time ", 3000), "zeros": strings.Repeat("\x00", 40960), "short": "x"} {
		path := storetest.Path(t)
		place(t, path, []byte(text))
		r := salvaged(t, path)
		if got := changesOf(t, path); len(got) > 0 {
			t.Errorf("%s: %d changes, %+v", name, len(got), r)
		}
		storetest.MustWrite(t, storetest.Open(t, store.Config{Path: path}), "first")
	}
}

func TestSalvageLeavesIntactMissingNewerAndForeignStoresUnchanged(t *testing.T) {
	t.Parallel()
	path := populated(t)
	before, names := content(t, path), entries(t, filepath.Dir(path))
	r, err := salvage.Run(t.Context(), salvageConfig(path))
	if err != nil || len(r.Damage) > 0 || r.Kept != "" {
		t.Errorf("a intact store: %+v, %v", r, err)
	}
	expectUnchanged(t, path, before)
	if now := entries(t, filepath.Dir(path)); !slices.Equal(names, now) {
		t.Errorf("beside it: %q, was %q", now, names)
	}
	missing := storetest.Path(t)
	if r, err := salvage.Run(t.Context(), salvageConfig(missing)); err != nil || len(r.Damage) > 0 {
		t.Errorf("no store: %+v, %v", r, err)
	}
	if _, err := os.Stat(filepath.Dir(missing)); !errors.Is(err, os.ErrNotExist) {
		t.Error("its folder was made")
	}
	path = populated(t)
	db := storetest.Raw(t, path)
	storetest.RawExec(t, db, "UPDATE store_meta SET value = '4711' WHERE name = 'schema'", "PRAGMA user_version=4711", "PRAGMA wal_checkpoint(TRUNCATE)")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	newer := content(t, path)
	clear(newer[30*pageSize : 31*pageSize])
	path = storetest.Path(t)
	place(t, path, newer)
	_, err = salvage.Run(t.Context(), salvageConfig(path))
	storetest.ExpectCode(t, err, store.CodeNewer)
	expectUnchanged(t, path, newer)

	path = storetest.Path(t)
	place(t, path, nil)
	db = storetest.Raw(t, path)
	storetest.RawExec(t, db, "CREATE TABLE t (x)")
	foreign := content(t, path)
	_, err = salvage.Run(t.Context(), salvageConfig(path))
	storetest.ExpectCode(t, err, store.CodeForeign)
	expectUnchanged(t, path, foreign)
}

// A damaged store of an older schema becomes an intact one of the newest.
func TestSalvageOfAnOlderSchemaBringsItToTheNewest(t *testing.T) {
	t.Parallel()
	path := populated(t)
	want := changesOf(t, path)
	db := storetest.Raw(t, path)
	storetest.RawExec(t, db, "DROP VIEW injections", "DROP TABLE injection_rows", "DROP TABLE tombstones", "UPDATE store_meta SET value = '2' WHERE name = 'schema'", "PRAGMA user_version=2", "PRAGMA wal_checkpoint(TRUNCATE)")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := examine(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := s.Check(t.Context()); err != nil || len(found) > 0 {
		t.Errorf("before the damage: %q, %v", found, err)
	}
	storetest.Closed(t, s)
	found, known, err := store.Schema(path, storetest.Key())
	if err != nil || found != 2 || known < 3 {
		t.Errorf("schema %d of %d, %v", found, known, err)
	}
	page := ruined(t, path)
	salvaged(t, path)
	if found, _, err := store.Schema(path, storetest.Key()); err != nil || found != known {
		t.Errorf("afterwards schema %d of %d, %v", found, known, err)
	}
	expectLostOnly(t, "an older schema", want, changesOf(t, path), page)
}

// If a store is opened through a link, its log is next to the store.
func TestSalvageThroughALinkRepairsTheFileItLeadsTo(t *testing.T) {
	t.Parallel()
	path, want := heldOpen(t)
	link := filepath.Join(t.TempDir(), "cairn.db")
	if err := os.Symlink(path, link); err != nil {
		t.Skip(err)
	}
	s, err := examine(t.Context(), link)
	if err != nil {
		t.Fatal(err)
	}
	if got := storetest.Changes(t, s); len(got) != len(want) {
		t.Errorf("through the link %d of %d changes are seen", len(got), len(want))
	}
	storetest.Closed(t, s)
	page := ruined(t, path)
	if r, err := salvage.Run(t.Context(), salvageConfig(link)); err != nil || filepath.Dir(r.Kept) != filepath.Dir(path) {
		t.Fatalf("%+v, %v", r, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode().IsRegular() {
		t.Errorf("the link was replaced: %v, %v", info, err)
	}
	expectLostOnly(t, "through a link", want, changesOf(t, path), page)
}

// A number that other devices may have received is not used again, not even that of a lost
// row.
func TestSalvageUsesNoNumberTwice(t *testing.T) {
	t.Parallel()
	path := populated(t)
	want := changesOf(t, path)
	last := want[len(want)-1]
	broken := content(t, path)
	held := inside(t, broken)
	damaged := 0
	for at := 0; at < len(broken); at += pageSize {
		if page := held[at : at+pageSize]; bytes.Contains(page, []byte(last.ID)) {
			clear(broken[at : at+pageSize])
			damaged++
		}
	}
	place(t, path, broken)
	r := salvaged(t, path)
	s := storetest.Open(t, store.Config{Path: path})
	storetest.MustWrite(t, s, "after")
	all := storetest.Changes(t, s)
	if got := all[len(all)-1]; got.Seq <= last.Seq || got.Device == last.Device {
		t.Errorf("the next change is %d of %s after %d of %s (%d pages, %+v)", got.Seq, got.Device, last.Seq, last.Device, damaged, r)
	}
	if slices.ContainsFunc(all, func(c store.Change) bool { return c.ID == last.ID }) {
		t.Error("the last change is not lost at all")
	}
}
