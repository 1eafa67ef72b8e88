package replication

import (
	"cmp"
	"context"
	"database/sql"
	"math"
	"time"

	"cairn/internal/crashpoint"
	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/store"
)

// Purged counts the rows that a purge has deleted here. The hub keeps them.
type Purged struct {
	Entries  int `json:"entries"`
	Contexts int `json:"contexts"`
}

const (
	selectJoined = `SELECT user_id FROM memory_users WHERE hub_url IS NOT NULL ORDER BY user_id`

	// Committed rows that the hub has, oldest first. A row without a number of the hub exists
	// only here, and a change that was not sent would be lost.
	purgeable = `FROM memory_entries e JOIN memory_streams s ON s.stream = e.memory_id
WHERE e.user_id = ?1 AND e.synced = 1 AND e.hub_seq > 0 AND e.deleting_seq IS NULL AND e.canonical_ns < ?2 AND s.acked_seq >= s.head_seq `
	selectPurgeable = `SELECT e.key, e.entry_id, e.memory_id, e.canonical_ns, length(CAST(e.raw_entry AS BLOB)) + length(CAST(e.summary AS BLOB)) + length(e.tags) + ifnull(length(e.metadata), 0)
` + purgeable + `ORDER BY e.canonical_ns LIMIT +?3`
	updatePurged = `UPDATE memory_streams SET purged_before_ns = max(purged_before_ns, ?2) WHERE stream = ?1`

	selectOldContexts = `SELECT c.seq, c.context_id, c.memory_id, length(CAST(c.markdown AS BLOB)) FROM memory_contexts c
WHERE c.user_id = ?1 AND c.synced = 1 AND c.hub_seq > 0 AND c.updated_ns < ?2 AND NOT (` + contents.IsOpenConflict + `)
AND EXISTS (SELECT 1 FROM memory_contexts n WHERE n.memory_id = c.memory_id AND ` + contents.IsNewerContext + `)
ORDER BY c.updated_ns LIMIT +?3`
	deleteContext = `DELETE FROM memory_contexts WHERE seq = ?`

	selectHeld = `SELECT (SELECT ifnull(sum(length(CAST(raw_entry AS BLOB)) + length(CAST(summary AS BLOB)) + length(tags) + ifnull(length(metadata), 0)), 0)
FROM memory_entries WHERE user_id = ?1) + (SELECT ifnull(sum(length(CAST(markdown AS BLOB))), 0) FROM memory_contexts WHERE user_id = ?1)`
)

// Purge deletes rows of joined users that their hub has: rows older than the retention, or with
// ignoreAge all rows, then the oldest rows until the rest fits the maximum size (memories §10.7).
// It keeps inflight rows, rows with changes that were not sent, the newest context of a memory,
// and versions of open conflicts. Without a hub it deletes nothing. It works in chunks, so that
// writers hardly wait, and returns free pages to the volume. It may be stopped between chunks,
// and is safe to retry.
func (b *Replication) Purge(ctx context.Context, ignoreAge bool) (out Purged, err error) {
	var users []string
	err = b.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		users, err = tx.Texts(ctx, selectJoined)
		return err
	})
	for _, u := range users {
		if err == nil {
			err = b.purgeUser(ctx, u, ignoreAge, &out)
		}
	}
	if err != nil || out == (Purged{}) {
		return out, err
	}
	b.Measures.Purged.Add(uint64(out.Entries + out.Contexts))
	return out, b.giveBack(ctx)
}

func (b *Replication) purgeUser(ctx context.Context, user string, ignoreAge bool, out *Purged) error {
	before := int64(math.MaxInt64)
	if !ignoreAge {
		before = b.Store.Now().Add(-time.Duration(b.Config.Settings.RetentionDays) * 24 * time.Hour).UnixNano()
	}
	if err := b.purgeChunks(ctx, user, before, math.MaxInt64, out); err != nil || ignoreAge {
		return err
	}
	var held int64
	err := b.Read(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.Get(ctx, []any{&held}, selectHeld, user) })
	if excess := held - int64(b.Config.Settings.RetentionMB)<<20; err == nil && excess > 0 {
		err = b.purgeChunks(ctx, user, math.MaxInt64, excess, out)
	}
	return err
}

// purgeChunks purges rows older than a time until the given number of bytes is deleted.
func (b *Replication) purgeChunks(ctx context.Context, owner string, before, bytes int64, out *Purged) error {
	for bytes > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		var entries, contexts int
		err := b.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			s := &memory.CallTx{Kernel: b.Kernel, Tx: tx, User: memory.User{UserID: owner}}
			left := bytes
			if entries, err = purgeEntries(ctx, s, before, &left); err == nil {
				contexts, err = purgeContexts(ctx, s, before, &left)
			}
			if entries+contexts > 0 {
				crashpoint.Pass("mid_purge")
			}
			bytes = left
			return err
		})
		if err != nil {
			return err
		}
		out.Entries += entries
		out.Contexts += contexts
		if entries+contexts == 0 {
			return nil
		}
	}
	return nil
}

// purgeEntries purges one chunk of entries.
func purgeEntries(ctx context.Context, s *memory.CallTx, before int64, bytes *int64) (n int, err error) {
	type old struct {
		contents.EntryRow
		size int64
	}
	var all []old
	err = s.Tx.Each(ctx, func(rows *sql.Rows) error {
		var o old
		err := rows.Scan(&o.Key, &o.EntryID, &o.MemoryID, &o.CreationTime, &o.size)
		all = append(all, o)
		return err
	}, selectPurgeable, s.User.UserID, before, s.Config.Settings.PurgeChunk)
	for _, o := range all {
		if err != nil || *bytes <= 0 {
			break
		}
		if err = cmp.Or(contents.DeleteRow(ctx, s, o.Key), contents.BlankEntry(ctx, s, &o.EntryRow)); err == nil {
			err = s.Exec(ctx, updatePurged, o.MemoryID, o.CreationTime+1)
		}
		*bytes -= o.size
		n++
	}
	return n, err
}

// purgeContexts purges one chunk of contexts, except the newest of each memory.
func purgeContexts(ctx context.Context, s *memory.CallTx, before int64, bytes *int64) (n int, err error) {
	type old struct {
		seq, size  int64
		id, memory string
	}
	var all []old
	err = s.Tx.Each(ctx, func(rows *sql.Rows) error {
		var o old
		err := rows.Scan(&o.seq, &o.id, &o.memory, &o.size)
		all = append(all, o)
		return err
	}, selectOldContexts, s.User.UserID, before, s.Config.Settings.PurgeChunk)
	for _, o := range all {
		if err != nil || *bytes <= 0 {
			break
		}
		if err = s.Exec(ctx, deleteContext, o.seq); err == nil {
			_, err = s.Tx.Blank(ctx, o.memory, memory.KindContext, o.id)
		}
		*bytes -= o.size
		n++
	}
	return n, err
}

// giveBack checkpoints the write-ahead log and returns free pages to the volume.
func (b *Replication) giveBack(ctx context.Context) error {
	if err := b.Store.Checkpoint(ctx); err != nil {
		return memory.ToFault(err)
	}
	return memory.ToFault(b.Store.Write(ctx, store.Normal, func(ctx context.Context, tx *store.Tx) error {
		return tx.Each(ctx, func(*sql.Rows) error { return nil }, `PRAGMA incremental_vacuum(1000)`)
	}))
}
