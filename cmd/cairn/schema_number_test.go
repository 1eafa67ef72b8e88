package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
)

// atSchemaNumber is the offset of user_version in SQLite's header.
const atSchemaNumber = 60

// TestADamagedSchemaNumberIsSalvagedAndANewerStoreIsNot flips bits, so that the number is
// negative, older, newer or zero. A store of a newer cairn has a second copy of the number.
func TestADamagedSchemaNumberIsSalvagedAndANewerStoreIsNot(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.recorded(h.shell("t1", "make refund"))
	h.recorded(h.shell("t2", "make more"))
	file, rows := h.storeFile(), h.rows(everyRow)
	number := binary.BigEndian.Uint32(file[atSchemaNumber:])
	damaged := []uint32{0, 1<<32 - 1}
	for bit := range often(32, 4) {
		damaged = append(damaged, number^1<<bit)
	}
	for _, n := range damaged {
		broken := bytes.Clone(file)
		binary.BigEndian.PutUint32(broken[atSchemaNumber:], n)
		h.putStore(broken)
		says := fmt.Sprintf("its header has schema %d, its tables are those of schema %d", int32(n), number)
		h.fails("the hook", h.record(h.shell("t3", "make it")), 2, says, "cairn doctor --salvage")
		for _, args := range [][]string{{"doctor"}, {"doctor", "--deep"}} {
			e := h.run(h.command(args...), nil)
			if e.code != 1 || !strings.Contains(e.stdout, says) || !strings.Contains(e.stdout, "cairn doctor --salvage") || strings.Contains(e.stdout, "upgrade cairn") {
				t.Errorf("%v: exit %d, %s", args, e.code, e.stdout)
			}
		}
		if r := h.salvage(broken); r.Lost > 0 {
			t.Errorf("%d rows are lost", r.Lost)
		}
		h.wantRows(everyRow, rows...)
		h.cairn("doctor", "--deep")
	}
	h.putStore(file)
	h.sqlite(h.raw(), `UPDATE store_meta SET value = '99' WHERE name = 'schema'`, `PRAGMA user_version=99`, `PRAGMA wal_checkpoint(TRUNCATE)`)
	for _, args := range [][]string{{"doctor"}, {"doctor", "--deep"}} {
		if e := h.run(h.command(args...), nil); e.code != 1 || !strings.Contains(e.stdout, "upgrade cairn") || strings.Contains(e.stdout, "salvage") {
			t.Errorf("%v: exit %d, %s", args, e.code, e.stdout)
		}
	}
	h.fails("salvage", h.run(h.command("doctor", "--salvage"), nil), 2, "schema 99", "upgrade cairn")
}

// TestAFlippedBitInAnObservationIsSeenAndNamed flips bits in every part of a row that
// describes the event. The row stays and is marked.
func TestAFlippedBitInAnObservationIsSeenAndNamed(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.recorded(h.shell("t1", "make the rare refund"))
	file := h.storeFile()
	for text, id := range map[string]int64{"make the rare refund": 1, "PostToolUse": 0} {
		broken := bytes.Clone(file)
		at := bytes.LastIndex(broken, []byte(text))
		if at < 0 {
			t.Fatalf("%q is not in the file", text)
		}
		broken[at+5] ^= 1
		h.putStore(broken)
		e := h.run(h.command("doctor", "--deep"), nil)
		if e.code != 1 || !strings.Contains(e.stdout, "is not what was written") {
			t.Fatalf("%s: exit %d, %s", text, e.code, e.stdout)
		}
		r := h.salvage(broken)
		var altered []string
		for _, table := range r.Tables {
			if table.Name == "observation_rows" {
				altered = table.AlteredRows
			}
		}
		if len(altered) != 1 || id > 0 && altered[0] != fmt.Sprint(id) || r.Lost > 0 {
			t.Errorf("%s: altered %q, %d lost", text, altered, r.Lost)
		}
		if marked := h.rows(`SELECT id FROM observations WHERE metadata ->> '$.damaged'`); len(marked) != 1 || marked[0] != altered[0] {
			t.Errorf("%s: marked %q", text, marked)
		}
		h.cairn("doctor", "--deep")
	}
}

// TestTextsThatAreRewrittenKeepTheirChecksums rewrites texts by a rescan, which redacts
// them. A sweep adds checksums to rows of an older store.
func TestTextsThatAreRewrittenKeepTheirChecksums(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	for i := range 5 {
		h.recorded(h.shell(fmt.Sprint("t", i), fmt.Sprintf("make number %d with zebra", i)))
	}
	h.sqlite(h.raw(), `UPDATE observation_rows SET checksum = NULL WHERE id < 4`)
	h.cairn("doctor", "--deep") // unknown, but not damaged
	h.cairn("sweep")
	h.wantRows(`SELECT count(*) FROM observation_rows WHERE checksum IS NULL`, "0")
	h.put(".cairn/config.toml", []byte("[observations.filter]\nextra_patterns = ['zebra']\n"))
	h.cairn("sweep", "--rescan")
	h.wantRows(`SELECT count(*) FROM observation_rows WHERE content LIKE '%zebra%'`, "0")
	h.cairn("doctor", "--deep")
}
