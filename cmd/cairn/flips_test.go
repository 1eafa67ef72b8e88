package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	mrand "math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cairn"
	"cairn/internal/doctor"
	"cairn/internal/store/salvage"
)

// fullStore is a store with observations, mail, records and memories. It contains the store's file
// and its write-ahead log while a process has the store open.
type fullStore struct {
	*home
	file, wal []byte
	backup    []byte
	rows      map[string]string // see texts
	found     map[string]string // see hits
	keys      map[string]string // records' keys by number
}

// newFullStore creates a store with all four parts. Unless plain is set, its newest writes are only
// in the log.
func newFullStore(t *testing.T, plain bool) *fullStore {
	t.Helper()
	h := newHome(t)
	newStory(t, filepath.Join(h.dir, "old"), "tale", h.repo, 6, 6, 6, 6, 6, 6, 6, 6)
	h.cairn("import", filepath.Join(h.dir, "old"))
	h.letters(25)
	h.keepRecords(8)
	h.keepEntries(12)
	h.cairn("memory", "update-context", "The context of refunds.")
	f := &fullStore{home: h}
	backup := filepath.Join(h.dir, "backup.tar.gz")
	h.cairn("backup", backup)
	f.backup = readFile(t, backup)
	h.opened(func(ctx context.Context, c *cairn.Cairn) error {
		if plain {
			return nil
		}
		if _, err := c.Store(ctx); err != nil {
			return err
		}
		h.recorded(h.shell("t1", "make refund"))
		h.letters(2)
		h.keepRecords(2)
		h.keepEntries(2)
		f.wal = readFile(t, h.db()+"-wal")
		f.file = readFile(t, h.db())
		return nil
	})
	if plain {
		f.file = h.storeFile()
	} else if len(f.wal) < 20*pageSize {
		t.Fatalf("the log has %d bytes", len(f.wal))
	}
	f.rows, f.found, f.keys = h.texts(), h.hits(), map[string]string{}
	for _, row := range h.rows(`SELECT number, key FROM records`) {
		number, key, _ := strings.Cut(row, "|")
		f.keys["records "+number] = "records " + key
	}
	for table, n := range map[string]int{"observation_rows": 100, "mail_messages": 25, "records": 8, "memory_entries": 12, "memory_contexts": 1} {
		found := 0
		for key := range f.rows {
			if strings.HasPrefix(key, table+" ") {
				found++
			}
		}
		if found < n {
			t.Fatalf("%s has %d rows", table, found)
		}
	}
	return f
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// keepRecords creates records. One of them is in a session that has activated its parent.
func (h *home) keepRecords(n int) {
	h.t.Helper()
	for i := range n {
		args := []string{"records", "create", "--type", "question", "--title", fmt.Sprintf("Question %d of the ledger", i),
			"--body", strings.Repeat(fmt.Sprintf("Reasons %d of the ledger. ", i), 12), "--session", "keeper"}
		if i%3 == 1 {
			h.cairn("records", "activate", "R001", "--session", "keeper", "--override")
			args = append(args, "--parent", "R001")
		}
		h.cairn(args...)
	}
}

// keepEntries adds entries to the project's own memory.
func (h *home) keepEntries(n int) {
	h.t.Helper()
	for i := range n {
		h.cairn("memory", "add-entry", strings.Repeat(fmt.Sprintf("Ana wants refund %d in UTC. ", i), 8), "--tag", "topic=refunds")
	}
}

// texts returns the texts of all four parts by table and row number.
func (h *home) texts() map[string]string {
	h.t.Helper()
	out := map[string]string{}
	for table, query := range map[string]string{
		"observation_rows": `SELECT id, obs_type, source_event, tool_name, content, file_path, timestamp FROM observation_rows`,
		"mail_messages":    `SELECT id, subject, body_md, thread_id, importance, created_ts FROM mail_messages`,
		"records":          `SELECT number, version, state, title, summary, body FROM records`,
		"memory_entries":   `SELECT key, raw_entry, summary, tags, canonical_ns FROM memory_entries`,
		"memory_contexts":  `SELECT seq, markdown FROM memory_contexts`,
	} {
		for _, row := range h.rows(query) {
			id, text, _ := strings.Cut(row, "|")
			out[table+" "+id] = text
		}
	}
	return out
}

// hits returns the rows that a search in each part finds.
func (h *home) hits() map[string]string {
	h.t.Helper()
	out := map[string]string{}
	for name, args := range map[string][]string{
		"observations": {"search", "totals", "--ids", "--limit", "100"},
		"mail":         {"mail", "search", "paragraph", "--limit", "100"},
		"records":      {"records", "search", "reasons ledger", "--limit", "100"},
		"memories":     {"memory", "search", "refund", "--top-k", "100"},
	} {
		e := h.run(h.command(args...), nil)
		if e.code != 0 {
			out[name] = "failed: " + e.stderr
			continue
		}
		lines := strings.Split(strings.TrimSpace(e.stdout), "\n")
		slices.Sort(lines)
		out[name] = strings.Join(lines, "\n")
	}
	return out
}

// unindexed returns the rows that a full-text index does not find by a word they contain.
func (h *home) unindexed() (out []string) {
	h.t.Helper()
	for _, query := range []string{
		`SELECT 'observation ' || id FROM observation_rows WHERE content LIKE '%totals right' AND id NOT IN (SELECT rowid FROM observations_fts WHERE observations_fts MATCH 'totals')`,
		`SELECT 'message ' || id FROM mail_messages WHERE body_md LIKE '%paragraph %' AND id NOT IN (SELECT rowid FROM mail_fts WHERE mail_fts MATCH 'paragraph')`,
		`SELECT 'record ' || number FROM records WHERE body LIKE '%Reasons %' AND key NOT IN (SELECT rowid FROM records_fts WHERE records_fts MATCH 'reasons')`,
	} {
		out = append(out, h.rows(query)...)
	}
	return out
}

// outcome is the result of one damaged store.
type outcome string

// The outcomes. A refusal must name a way out, and the test follows it.
const (
	harmless outcome = "harmless" // doctor --deep finds nothing, and all data is unchanged
	unseen   outcome = "unseen"   // doctor --deep finds nothing, but some data has changed
	// The altered word is a hash of a printed line, or a prefix in the mail index. No check can
	// derive these from the rows.
	indexOnly outcome = "a word of an index altered, not seen"
	earlier   outcome = "an earlier commit, as after a crash" // a log with a cut end shows no damage
	whole     outcome = "salvaged whole"
	lossy     outcome = "salvaged with losses, all named"
	refused   outcome = "refused, and the way out works"
	failed    outcome = "failed"
)

// suffer replaces the home's store by the damaged files and follows the instructions of doctor.
func (f *fullStore) suffer(t *testing.T, file, wal []byte) (o outcome, why string) {
	t.Helper()
	h := f.home
	if err := os.RemoveAll(h.dataDir()); err != nil {
		t.Fatal(err)
	}
	h.putStore(file)
	if len(wal) > 0 {
		if err := os.WriteFile(h.db()+"-wal", wal, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	quick, quickCode := h.diagnosed()
	deep, code := h.diagnosed("--deep")
	if code == 0 && quickCode != 0 {
		return failed, "doctor finds what doctor --deep does not: " + problems(quick)
	}
	e := h.run(h.command("doctor", "--salvage", "--json"), nil)
	if e.code != 0 {
		return f.wayOut(e)
	}
	var r salvage.Report
	if err := json.Unmarshal([]byte(e.stdout), &r); err != nil {
		t.Fatal(err)
	}
	if (len(r.Damage) > 0) != (code != 0) {
		return failed, fmt.Sprintf("doctor --deep exits %d (%s), and a salvage found %q", code, problems(deep), r.Damage)
	}
	if d, code := h.diagnosed("--deep"); code != 0 {
		return failed, "doctor --deep after the salvage: " + problems(d)
	}
	if d, code := h.diagnosed(); code != 0 {
		return failed, "doctor after the salvage: " + problems(d)
	}
	differences := f.differences()
	if code == 0 {
		why = strings.Join(differences, "; ")
		inRows := slices.ContainsFunc(differences, func(d string) bool {
			return !strings.HasPrefix(d, "search in") && !strings.HasSuffix(d, ": not in the index")
		})
		switch {
		case len(differences) == 0:
			return harmless, ""
		case !inRows && !strings.Contains(why, "failed"):
			return indexOnly, why
		case len(wal) < len(f.wal) && !strings.Contains(why, "altered") && !strings.Contains(why, "index") && !strings.Contains(why, "failed"):
			return earlier, why
		}
		return unseen, why
	}
	named := f.named(r)
	o = whole
	for _, d := range differences {
		key, _, _ := strings.Cut(d, ":")
		if !named[key] && !named[f.keys[key]] {
			return failed, "not named: " + d + " (" + strings.Join(r.Damage, "; ") + ")"
		}
		o = lossy
	}
	h.recorded(h.shell("t9", "make more"))
	h.keepEntries(1)
	h.keepRecords(1)
	if d, code := h.diagnosed("--deep"); code != 0 {
		return failed, "doctor --deep after new rows: " + problems(d)
	}
	return o, strings.Join(differences, "; ")
}

// named returns the rows that a salvage reports, by table and row number.
func (f *fullStore) named(r salvage.Report) map[string]bool {
	out := map[string]bool{}
	for _, table := range r.Tables {
		for key := range f.rows { // rows whose number is also unknown
			if name, _, _ := strings.Cut(key, " "); name == table.Name && table.Incomplete && len(table.UnknownRows) == 0 {
				out[key] = true
			}
		}
		for _, rows := range slices.Concat(table.LostRows, table.AlteredRows, table.UnknownRows) {
			first, last, more := strings.Cut(rows, "-")
			from, err := strconv.Atoi(first)
			if err != nil {
				continue // a key with several columns, or a text key
			}
			to := from
			if more {
				if to, err = strconv.Atoi(last); err != nil {
					f.t.Fatal(err)
				}
			}
			for n := from; n <= to; n++ {
				out[fmt.Sprintf("%s %d", table.Name, n)] = true
			}
		}
	}
	return out
}

// differences compares a home's store with the undamaged one. Each difference begins with the table
// and the row, followed by a colon.
func (f *fullStore) differences() (out []string) {
	now := f.texts()
	for _, key := range slices.Sorted(maps.Keys(f.rows)) {
		switch text, ok := now[key]; {
		case !ok:
			out = append(out, key+": lost")
		case text != f.rows[key]:
			out = append(out, fmt.Sprintf("%s: altered: %q was %q", key, text, f.rows[key]))
		}
	}
	for key := range now {
		if _, ok := f.rows[key]; !ok {
			out = append(out, key+": new")
		}
	}
	for _, row := range f.unindexed() {
		out = append(out, row+": not in the index")
	}
	h, hits := f.home, f.hits()
	for _, part := range slices.Sorted(maps.Keys(hits)) {
		gone := part == "mail" && len(h.rows(`SELECT id FROM mail_projects WHERE human_key = ?`, h.repo)) == 0 // the project row itself is lost
		if strings.HasPrefix(hits[part], "failed") && !gone || len(out) == 0 && hits[part] != f.found[part] {
			out = append(out, fmt.Sprintf("search in %s: %q was %q", part, hits[part], f.found[part]))
		}
	}
	return out
}

// wayOut follows the way out that a refused salvage names: it restores a backup.
func (f *fullStore) wayOut(e ending) (outcome, string) {
	if !strings.Contains(e.stderr, "cairn restore") {
		return failed, "refused: " + e.stderr
	}
	backup := filepath.Join(f.dir, "backup.tar.gz")
	if err := os.WriteFile(backup, f.backup, 0o600); err != nil {
		f.t.Fatal(err)
	}
	if e := f.run(f.command("restore", "--force", backup), nil); e.code != 0 {
		return failed, "the restore: " + e.stderr
	}
	if d, code := f.diagnosed("--deep"); code != 0 {
		return failed, "doctor --deep after the restore: " + problems(d)
	}
	return refused, e.stderr
}

func problems(d doctor.Diagnosis) string {
	var out []string
	for _, c := range d.Checks {
		if c.State == doctor.Problem {
			out = append(out, c.Name+": "+c.What)
		}
	}
	return strings.Join(out, "; ")
}

// TestAFlippedBitOrACutEndIsSalvagedAndNamed damages a store with all four parts in one bit or cuts
// its end, with and without a log. Afterwards the store is intact, or the refusal names a way out
// that works. The results of doctor, doctor --deep and the salvage agree. The salvage names every
// row that is lost or altered.
func TestAFlippedBitOrACutEndIsSalvagedAndNamed(t *testing.T) {
	t.Parallel()
	flips, cuts := often(24, 10), often(6, 3)
	if soaking() {
		flips, cuts = 300, 50
	}
	seed := mrand.Uint64()
	if s := os.Getenv("CAIRN_FLIP_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	for name, plain := range map[string]bool{"in one file": true, "with a log": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Logf("seed %d", seed)
			newFullStore(t, plain).sufferAll(t, mrand.New(mrand.NewPCG(seed, uint64(len(name)))), flips/2, cuts/2)
		})
	}
}

// sufferAll flips bits and cuts the end of a store or its log. It logs the outcomes.
func (f *fullStore) sufferAll(t *testing.T, r *mrand.Rand, flips, cuts int) {
	counts := map[string]map[outcome]int{"flips": {}, "cuts": {}}
	try := func(kind, what string, file, wal []byte) {
		o, why := f.suffer(t, file, wal)
		counts[kind][o]++
		switch o {
		case failed, unseen:
			t.Errorf("%s: %s: %s", what, o, why)
		default:
			t.Logf("%s: %s %.300s", what, o, why)
		}
	}
	for n := range flips {
		file, wal := bytes.Clone(f.file), bytes.Clone(f.wal)
		at, bit := r.IntN(len(file)+len(wal)), r.IntN(8)
		what := fmt.Sprintf("flip %d, bit %d of byte %d", n, bit, at)
		if at < len(file) {
			file[at] ^= 1 << bit
		} else {
			wal[at-len(file)] ^= 1 << bit
			what += " (in the log)"
		}
		try("flips", what, file, wal)
	}
	for n := range cuts {
		file, wal := f.file, f.wal
		if len(wal) > 0 && n%2 == 1 {
			wal = wal[:r.IntN(len(wal))]
			try("cuts", fmt.Sprintf("cut %d, the log to %d of %d", n, len(wal), len(f.wal)), file, wal)
			continue
		}
		file = file[:r.IntN(len(file))]
		try("cuts", fmt.Sprintf("cut %d, to %d of %d", n, len(file), len(f.file)), file, wal)
	}
	for _, kind := range []string{"flips", "cuts"} {
		for _, o := range []outcome{harmless, indexOnly, earlier, whole, lossy, refused, unseen, failed} {
			t.Logf("%s: %d %s", kind, counts[kind][o], o)
		}
	}
}
