package cairn

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/internal/store/salvage"
	"cairn/internal/store/storetest"

	"pgregory.net/rapid"
)

// essence returns the content of an export line without the numbers that a store assigns.
func essence(t testing.TB, line string) string {
	t.Helper()
	raw := map[string]any{}
	if err := json.Unmarshal([]byte(line), &raw); err != nil {
		t.Fatal(err)
	}
	text := func(names ...string) (out string) {
		for _, name := range names {
			out += fmt.Sprintf(" %v", raw[name])
		}
		return out
	}
	kind := fmt.Sprint(raw["kind"])
	doc, _ := raw["doc"].(map[string]any)
	switch kind {
	case "observation":
		return kind + text("session", "timestamp", "obs_type", "content", "file_path", "pinned")
	case "project", "session":
		return kind + text("id")
	case "record":
		return kind + text("project") + fmt.Sprint(" ", doc["title"], doc["body"], doc["state"])
	case "mail.message":
		return kind + fmt.Sprint(" ", doc["uid"], doc["subject"], doc["body_md"], doc["from"], doc["to"])
	case "mail.agent":
		return kind + fmt.Sprint(" ", doc["project_uid"], doc["name"])
	case "mail.reservation":
		return kind + fmt.Sprint(" ", doc["uid"], doc["path_pattern"], doc["agent"])
	case "mail.contact":
		return kind + fmt.Sprint(" ", doc["from"], doc["to"], doc["status"])
	case "mail.delivery":
		return kind + fmt.Sprint(" ", doc["uid"], doc["agent"], doc["read_ts"], doc["ack_ts"])
	case "memory.vault", "memory.memory", "memory.entry", "memory.context":
		return kind + fmt.Sprint(" ", doc)
	}
	return kind
}

// missing returns the content of one export that another export lacks.
func missing(t testing.TB, before, after []byte) (out []string) {
	t.Helper()
	has := map[string]int{}
	for _, line := range body(after) {
		has[essence(t, line)]++
	}
	for _, line := range body(before) {
		e := essence(t, line)
		if has[e]--; has[e] < 0 {
			out = append(out, e)
		}
	}
	return out
}

// TestASalvagedStoreWithItsLastExportIsWhole performs random actions in all parts and
// exports. It damages one page of the store, salvages it and imports the export. Then no
// exported content is missing.
func TestASalvagedStoreWithItsLastExportIsWhole(t *testing.T) {
	t.Parallel()
	runs, failed := 0, false
	rapid.Check(t, func(r *rapid.T) {
		defer func() { failed = failed || r.Failed() }()
		if runs++; runs > maxHistories() && !failed {
			return
		}
		source, now := randomHome(t, r, 20, 80)
		whole := source.export("")
		if err := source.Close(); err != nil {
			r.Fatal(err)
		}
		db := filepath.Join(source.dir, "cairn.db")
		damage(r, db)
		config := Config{Dir: source.dir, Cwd: source.dir, Home: source.dir, Wait: time.Minute, Clock: source.Config.Clock}
		report, err := Salvage(t.Context(), config, func(string) {})
		if err != nil {
			r.Fatalf("salvage: %v", err)
		}
		mended := home{Cairn: opened(t, config), t: t, dir: source.dir, now: now}
		mended.sound()
		if again := mended.export(""); len(report.Damage) == 0 && !bytes.Equal(again, whole) {
			r.Fatalf("nothing was damaged, and the store is another one\n%s", firstDifference(whole, again))
		}
		lost := missing(t, whole, mended.export(""))
		if want, got := linesOf(whole, isContent), linesOf(mended.export(""), isContent); isWhole(&report) && got != want {
			r.Fatalf("the salvage says that nothing is lost (%q), and the store is another one\n%s", report.Damage, firstDifference([]byte(want), []byte(got)))
		}
		mended.mustRestore(whole, func(a *ImportArgs) { a.Merge, a.IncludePurged = true, true })
		if again := mended.export(""); isWhole(&report) && !bytes.Equal(again, whole) {
			r.Fatalf("with its last export the store is another one\n%s", firstDifference(whole, again))
		}
		if still := missing(t, whole, mended.export("")); len(still) > 0 {
			r.Fatalf("after a salvage (%q) and an import these are missing, of %d that the salvage had lost:\n%s\nin their place stands:\n%s",
				report.Damage, len(lost), strings.Join(still, "\n"), strings.Join(missing(t, mended.export(""), whole), "\n"))
		}
	})
}

// isWhole reports whether a salvage lost or altered no row. It must not have restored rows
// of tables that the change log does not contain.
func isWhole(s *salvage.Report) bool {
	rowsOnly := []string{"observation_rows", "prompt_rows", "sessions", "session_branches", "store_meta"}
	return s.Lost == 0 && !slices.ContainsFunc(s.Tables, func(t salvage.Table) bool {
		return t.Incomplete || len(t.AlteredRows) > 0 || t.Restored > 0 && slices.Contains(rowsOnly, t.Name)
	})
}

// damage overwrites a part of a page of a store, but not of the first page.
func damage(r *rapid.T, db string) {
	file, err := os.ReadFile(db)
	if err != nil {
		r.Fatal(err)
	}
	const pageSize = 4096
	page := rapid.IntRange(1, len(file)/pageSize-1).Draw(r, "page")
	at := page*pageSize + rapid.IntRange(0, pageSize/2).Draw(r, "at")
	size := pick(r, "size", 16, 512, 4096, 4096)
	for i := at; i < min(at+size, (page+1)*pageSize); i++ {
		file[i] ^= 0x55
	}
	if err := os.WriteFile(db, file, 0o600); err != nil {
		r.Fatal(err)
	}
}

// TestEveryRoadOfARandomHistoryEndsAtTheSameStore performs random actions in all parts. The
// export, the archive and the change log each restore a store that exports the same bytes.
func TestEveryRoadOfARandomHistoryEndsAtTheSameStore(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	runs, failed := 0, false
	rapid.Check(t, func(r *rapid.T) {
		defer func() { failed = failed || r.Failed() }()
		if runs++; runs > maxHistories() && !failed {
			return
		}
		source, _ := randomHome(t, r, 20, 80)
		source.sound()
		whole := source.export("")
		source.inPieces(r, whole)
		source.reindexed(r, whole)
		source.fromLog(r, whole)
	})
}

// inPieces imports the exports of the projects in a random order, each twice, and then the
// whole export.
func (h home) inPieces(r *rapid.T, whole []byte) {
	projects, err := h.Projects(context.Background())
	if err != nil {
		r.Fatal(err)
	}
	var pieces [][]byte
	for _, p := range projects {
		piece := h.export(p.ID)
		pieces = append(pieces, piece, piece)
	}
	target := newHome(h.t, h.now, "")
	for _, piece := range rapid.Permutation(pieces).Draw(r, "order") {
		target.mustRestore(piece, includePurged) // within the second of a purge the order is unknown
	}
	target.mustRestore(whole, includePurged)
	again := target.export("")
	lost, more := missing(h.t, whole, again), missing(h.t, again, whole) // numbers are assigned in the order of the imports
	here := map[string]bool{}
	for _, line := range body(again) {
		here[essence(h.t, line)] = true
	}
	// Equal rows of one second without an id are counted within one file, not over several
	// files.
	lost = slices.DeleteFunc(lost, func(row string) bool { return strings.HasPrefix(row, "observation ") && here[row] })
	if len(lost)+len(more) > 0 {
		r.Fatalf("in pieces these are missing:\n%s\nand these are more:\n%s", strings.Join(lost, "\n"), strings.Join(more, "\n"))
	}
}

func includePurged(a *ImportArgs) { a.IncludePurged = true }

// reindexed reads the archive of a home into a new home, twice. Mail and records must be
// equal then, and everything else after the import of the export.
func (h home) reindexed(r *rapid.T, whole []byte) {
	if done, err := h.SyncArchive(context.Background(), ArchiveArgs{}); err != nil || len(done.Failed) > 0 {
		r.Fatalf("sync: %+v, %v", done, err)
	}
	target := newHome(h.t, h.now, "")
	if err := os.CopyFS(target.ArchiveDir(), os.DirFS(h.ArchiveDir())); err != nil && !os.IsNotExist(err) {
		r.Fatal(err)
	}
	// By the contract the file of a reservation does not contain its session. An archive
	// contains neither a project's location nor the times when the project and a session
	// were seen.
	told := func(export []byte, wanted func(string) bool) string {
		return reservingSession.ReplaceAllString(linesOf(export, wanted), "${1}null")
	}
	want := told(whole, isArchived)
	for range 2 {
		done, err := target.ReindexArchive(context.Background(), ArchiveArgs{})
		if err != nil || len(done.Conflicts)+len(done.Unparseable) > 0 {
			r.Fatalf("reindex: %+v, %v", done, err)
		}
		if got := told(target.export(""), isArchived); got != want {
			r.Fatalf("the archive gives another store\n%s", firstDifference([]byte(want), []byte(got)))
		}
	}
	target.mustRestore(whole)
	want = told(whole, isContent)
	if again := told(target.export(""), isContent); again != want {
		r.Fatalf("the archive and then the export give another store\n%s", firstDifference([]byte(want), []byte(again)))
	}
}

var reservingSession = regexp.MustCompile(`("kind":"mail.reservation".*"session_id":)("[^"]*"|null)`)

// linesOf returns the wanted lines of an export, in an order that does not depend on the
// start times of sessions.
func linesOf(export []byte, wanted func(line string) bool) string {
	lines := slices.DeleteFunc(body(export), func(l string) bool { return !wanted(l) })
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// isArchived reports whether an archive contains the content of an export line.
func isArchived(line string) bool {
	return strings.HasPrefix(line, `{"kind":"mail.`) || strings.HasPrefix(line, `{"kind":"record`)
}

func isContent(line string) bool {
	return !strings.HasPrefix(line, `{"kind":"project"`) && !strings.HasPrefix(line, `{"kind":"session"`)
}

// fromLog deletes all rows that the change log describes, and salvages the store, twice.
func (h home) fromLog(r *rapid.T, whole []byte) {
	if err := h.Close(); err != nil {
		r.Fatal(err)
	}
	db := filepath.Join(h.dir, "cairn.db")
	for range 2 {
		forgetRows(r, db)
		config := Config{Dir: h.dir, Cwd: h.dir, Home: h.dir, Wait: time.Minute, Clock: h.Config.Clock}
		if _, err := Salvage(context.Background(), config, func(string) {}); err != nil {
			r.Fatalf("salvage: %v", err)
		}
		again := home{Cairn: opened(h.t, config), t: h.t, dir: h.dir, now: h.now}
		again.sound()
		if text := again.export(""); !bytes.Equal(text, whole) {
			r.Fatalf("the log gives another store\n%s", firstDifference(whole, text))
		}
		if err := again.Close(); err != nil {
			r.Fatal(err)
		}
	}
}

// forgetRows deletes the rows of records, mail and memories from a closed store.
func forgetRows(r *rapid.T, db string) {
	raw := storetest.OpenFile(db, "mode=rw")
	for _, table := range []string{
		"records", "record_ticks", "activations", "record_sessions",
		"mail_recipients", "mail_messages", "mail_threads", "mail_contacts", "mail_reservations", "mail_agents", "mail_projects",
		"memory_entries", "memory_contexts", "memories", "memory_vaults",
	} {
		if _, err := raw.Exec("DELETE FROM " + table); err != nil {
			r.Fatal(err)
		}
	}
	if err := raw.Close(); err != nil {
		r.Fatal(err)
	}
}
