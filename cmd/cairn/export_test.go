package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestKilledImportsOfAnExportGoOnAndEndEqual kills imports of one export into the same store at
// random times, until one completes. A new export then equals the imported one. The store is
// readable throughout.
func TestKilledImportsOfAnExportGoOnAndEndEqual(t *testing.T) {
	t.Parallel()
	seed := number(t, "CAIRN_SEED", time.Now().UnixNano())
	t.Logf("CAIRN_SEED=%d", seed)
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	h := newHome(t)
	path := filepath.Join(h.dir, "large.jsonl")
	text := largeExport(often(6000, 3000))
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	typical, killed := 150*time.Millisecond, 0
	for range 60 {
		cmd := h.command("import", path)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(time.Duration(random.Int64N(int64(typical))), func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		timer.Stop()
		if err == nil {
			break
		}
		if killed++; cmd.ProcessState.Exited() {
			t.Fatalf("it was not killed and failed: %v", err)
		}
		typical += typical / 8 // each attempt gets a little further
		if _, err := os.Stat(h.db()); err == nil && killed%4 == 0 {
			h.cairn("status", "--json")
		}
	}
	h.cairn("import", path)
	if killed == 0 {
		t.Error("no import was killed before it ended")
	}
	t.Logf("killed %d", killed)
	again := []byte(h.cairn("export", "--all"))
	if want, got := inner(text), inner(again); !bytes.Equal(want, got) {
		t.Errorf("what is exported is not what was imported: %d bytes, %d", len(want), len(got))
	}
}

// inner returns the lines between header and trailer.
func inner(export []byte) []byte {
	_, rest, _ := bytes.Cut(export, []byte("\n"))
	return rest[:bytes.LastIndexByte(rest[:max(0, len(rest)-1)], '\n')+1]
}

// largeExport returns an export with the given number of rows.
func largeExport(rows int) []byte {
	var b bytes.Buffer
	sessions := (rows + 99) / 100
	fmt.Fprintf(&b, `{"cairn_export":1,"cairn":"test","at":"2026-02-02T00:00:00Z","all":true,"projects":["shop"],"counts":{"observation":%d,"project":1,"session":%d}}`+"\n", rows, sessions)
	b.WriteString(`{"kind":"project","id":"shop","name":"shop","created_at":1770000000,"changed_ns":1770000000000000000}` + "\n")
	for i := range rows {
		s, at := fmt.Sprintf("s%05d", i/100), 1_770_000_000+i
		if i%100 == 0 {
			fmt.Fprintf(&b, `{"kind":"session","id":%q,"project":"shop","started_at":%d,"last_seen":%d}`+"\n", s, at, at+99)
		}
		fmt.Fprintf(&b, `{"kind":"observation","id":%d,"timestamp":%d,"session":%q,"project":"shop","obs_type":"command","source_event":"PostToolUse","content":"make page %d"}`+"\n",
			i+1, at, s, i%7)
	}
	sum := sha256.Sum256(b.Bytes())
	fmt.Fprintf(&b, `{"kind":"end","lines":%d,"sha256":"%s"}`+"\n", bytes.Count(b.Bytes(), []byte("\n")), hex.EncodeToString(sum[:]))
	return b.Bytes()
}
