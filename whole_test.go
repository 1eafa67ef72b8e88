package cairn

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cairn/internal/observation"

	"pgregory.net/rapid"
)

// essence is what a line of an export says, without numbers that a store gives out.
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

// missing is what one export says and another one does not.
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

// TestASalvagedStoreWithItsLastExportIsWhole does random things in all parts, exports,
// damages one page of the store, salvages it and imports the export: nothing that was
// exported is missing then.
func TestASalvagedStoreWithItsLastExportIsWhole(t *testing.T) {
	t.Parallel()
	runs, failed := 0, false
	rapid.Check(t, func(r *rapid.T) {
		defer func() { failed = failed || r.Failed() }()
		if runs++; runs > maxHistories() && !failed {
			return
		}
		now := &atomic.Int64{}
		now.Store(1_770_000_000)
		source := newHome(t, now, "")
		x := newHistory(r, source)
		x.event(observation.Event{Kind: observation.SessionStart, Session: "s1", Cwd: x.shop, Source: "SessionStart", Text: "startup"})
		for range rapid.IntRange(20, 80).Draw(r, "steps") {
			x.step()
		}
		whole := source.export("")
		if err := source.Close(); err != nil {
			r.Fatal(err)
		}
		db := filepath.Join(source.dir, "cairn.db")
		damage(r, db)
		config := Config{Dir: source.dir, Cwd: source.dir, Home: source.dir, Wait: time.Minute, Clock: source.config.Clock}
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
		mended.mustRestore(whole, func(a *ImportArgs) { a.Merge, a.IncludePurged = true, true })
		if still := missing(t, whole, mended.export("")); len(still) > 0 {
			r.Fatalf("after a salvage (%q) and an import these are missing, of %d that the salvage had lost:\n%s\nin their place stands:\n%s",
				report.Damage, len(lost), strings.Join(still, "\n"), strings.Join(missing(t, mended.export(""), whole), "\n"))
		}
	})
}

// damage overwrites a part of a page of a store behind its first one.
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
