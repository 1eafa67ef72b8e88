package contents

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"cairn/internal/memory"
	"cairn/internal/memory/ranking"
	"cairn/internal/store"
)

// The type of a term in the index, which follows the memory's id.
const (
	OfEntry   = "e" // a word of an entry
	OfTag     = "t" // a hash of a tag of an entry
	OfContext = "c" // a word of a context
)

const (
	countEntry = `INSERT INTO memory_groups (memory_id, name, next) VALUES (?1, ?2, 1)
ON CONFLICT (memory_id, name) DO UPDATE SET next = next + 1 RETURNING key, next`
	selectPlace      = `SELECT ifnull(place, 0) FROM memory_entries WHERE key = ?`
	updateEntryPlace = `UPDATE memory_entries SET place = ?2 WHERE key = ?1`
	insertWords      = `INSERT INTO memory_words (rowid, words) VALUES (?, ?)`
	deleteWords      = `DELETE FROM memory_words WHERE rowid = ?`

	dropVector = `DELETE FROM memory_vectors WHERE key = ?`
)

// Space returns the prefix of a memory's terms.
func Space(memory string) string { return strings.ReplaceAll(memory, "-", "") }

// indexEntry adds a committed entry to the index, in the transaction that commits it, or replaces it
// after a change. It is idempotent.
func indexEntry(ctx context.Context, s *memory.CallTx, e *EntryRow) error {
	var place int64
	if err := s.Tx.Get(ctx, []any{&place}, selectPlace, e.Key); err != nil {
		return err
	}
	if place != 0 {
		if err := unindex(ctx, s, e.Key, place); err != nil {
			return err
		}
	} else if err := assignPlace(ctx, s, e, &place); err != nil {
		return err
	}
	return s.Exec(ctx, insertWords, place, entryTerms(e))
}

func unindex(ctx context.Context, s *memory.CallTx, key, place int64) error {
	err := s.Exec(ctx, deleteWords, place)
	if err == nil {
		err = s.Exec(ctx, dropVector, key)
	}
	return err
}

// assignPlace assigns the next place of its group to an entry.
func assignPlace(ctx context.Context, s *memory.CallTx, e *EntryRow, place *int64) error {
	var group, next int64
	if err := s.Tx.Get(ctx, []any{&group, &next}, countEntry, e.MemoryID, groupOf(&e.Entry)); err != nil {
		return err
	}
	*place = group<<ranking.PlaceBits | (next - 1)
	return s.Exec(ctx, updateEntryPlace, e.Key, *place)
}

// groupOf returns the name of an entry's group: its session, else its UTC day.
func groupOf(e *Entry) string {
	if e.SessionID != "" {
		return e.SessionID
	}
	return time.Unix(0, int64(e.CapturedTime)).UTC().Format(time.DateOnly)
}

// entryTerms returns the terms of an entry, as the index stores them.
func entryTerms(e *EntryRow) string {
	of := Space(e.MemoryID)
	var b strings.Builder
	writeTerms(&b, of+OfEntry, ranking.Terms(ranking.StampedLine(time.Unix(0, int64(e.CapturedTime)), SpeakerOf(e.Metadata), e.RawEntry)+"\n"+e.Summary))
	for k, v := range e.Tags {
		b.WriteString(TagTerm(of, k, v) + " ")
	}
	return b.String()
}

func writeTerms(b *strings.Builder, prefix string, terms []string) {
	for _, t := range terms {
		b.WriteString(prefix)
		b.WriteString(t)
		b.WriteByte(' ')
	}
}

// TagTerm returns the term of a tag. It is a hash, so readers must compare the tag itself, too.
func TagTerm(of, key, value string) string {
	sum := sha256.Sum256([]byte(key + "\x00" + value))
	return of + OfTag + hex.EncodeToString(sum[:8])
}

// SpeakerOf returns the member `speaker` of an entry's metadata if it is a string, else "".
func SpeakerOf(metadata json.RawMessage) string {
	if len(metadata) == 0 {
		return ""
	}
	var all map[string]json.RawMessage
	var speaker string
	if json.Unmarshal(metadata, &all) != nil || json.Unmarshal(all["speaker"], &speaker) != nil {
		return ""
	}
	return speaker
}

// indexInserted is indexContext for a context that was just inserted.
func indexInserted(ctx context.Context, tx *store.Tx, memory string, inserted sql.Result, markdown string) error {
	seq, err := inserted.LastInsertId()
	if err != nil {
		return err
	}
	return indexContext(ctx, tx, memory, seq, markdown)
}

// indexContext adds a context to the index.
func indexContext(ctx context.Context, tx *store.Tx, memory string, seq int64, markdown string) error {
	_, err := tx.Exec(ctx, insertWords, -seq, contextTerms(memory, markdown))
	return err
}

// contextTerms returns the terms of a context, as the index stores them.
func contextTerms(memory, markdown string) string {
	var b strings.Builder
	writeTerms(&b, Space(memory)+OfContext, ranking.Terms(markdown))
	return b.String()
}
