package memory

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"cairn/internal/fault"
	"cairn/internal/memory/rules"
	"cairn/internal/store"
	"cairn/internal/store/follow"
)

// deletion is a pending delete. Seq is the logged change that the hub must confirm, 0 if there is
// nothing to wait for.
type deletion struct {
	Seq  int64  `json:"seq,omitempty"`
	Kind string `json:"kind,omitempty"`
	ID   string `json:"id,omitempty"` // of the vault or the memory; of an entry its row's localId

	route route
	user  string
	shard string
}

// entryDeleteDoc is the document of an entry's delete. Only the localId is known of an entry that
// was being sent when it was deleted.
type entryDeleteDoc struct {
	Key     string `json:"key"`
	EntryID string `json:"entryId,omitempty"`
	LocalID string `json:"localId,omitempty"`
}

const (
	hideEntry  = `UPDATE memory_entries SET deleting_seq = ?2 WHERE key = ?1`
	hideMemory = `UPDATE memories SET deleting_seq = ?2 WHERE memory_id = ?1`
	hideVault  = `UPDATE memory_vaults SET deleting_seq = ?2 WHERE vault_id = ?1`

	showEntry  = `UPDATE memory_entries SET deleting_seq = NULL WHERE key = ? AND deleting_seq = ?`
	showMemory = `UPDATE memories SET deleting_seq = NULL WHERE memory_id = ? AND deleting_seq = ?`
	showVault  = `UPDATE memory_vaults SET deleting_seq = NULL WHERE vault_id = ? AND deleting_seq = ?`

	selectHiddenEntry  = `SELECT deleting_seq FROM memory_entries WHERE key = ?`
	selectHiddenMemory = `SELECT deleting_seq FROM memories WHERE memory_id = ?`
	selectHiddenVault  = `SELECT deleting_seq FROM memory_vaults WHERE vault_id = ?`

	deleteEntry = `DELETE FROM memory_entries WHERE key = ?`
	// Entries of a project's own memory, because the memory's id may be used again.
	buryEntriesOf = `INSERT OR IGNORE INTO memory_tombstones (memory_id, id, deleted_ns)
SELECT e.memory_id, n.value, ?2 FROM memories m JOIN memory_entries e ON e.memory_id = m.memory_id JOIN json_each(json_array(e.entry_id, e.hub_key)) n
WHERE m.memory_id = ?1 AND m.project_key IS NOT NULL AND e.synced = 1 AND n.value IS NOT NULL`
	deleteEntriesOf   = `DELETE FROM memory_entries WHERE memory_id = ?1 AND (synced = 1 OR ?2)`
	deleteContextsOf  = `DELETE FROM memory_contexts WHERE memory_id = ?1 AND (synced = 1 OR ?2)`
	deleteMemory      = `DELETE FROM memories WHERE memory_id = ?`
	deleteVault       = `DELETE FROM memory_vaults WHERE vault_id = ?`
	deleteStream      = `DELETE FROM memory_streams WHERE stream = ?`
	deleteAnswer      = `DELETE FROM memory_idempotency WHERE user_id = ? AND method = ? AND path = ? AND key = ?`
	insertTombstone   = `INSERT OR IGNORE INTO memory_tombstones (memory_id, id, deleted_ns) VALUES (?, ?, ?)`
	selectInVault     = `SELECT count(*) FROM memories WHERE vault_id = ?`
	selectSent        = `SELECT ifnull(max(sent_seq), 0) FROM memory_streams WHERE stream = ?`
	selectFailure     = `SELECT ` + refusalColumns + ` FROM set_aside f WHERE f.follower = 'replication' AND f.seq = ?`
	selectFailureSeen = `SELECT EXISTS (SELECT 1 FROM set_aside WHERE follower = 'replication' AND seq = ?)`
)

// DeleteEntry permanently deletes an entry of a memory of the acting user, named by its id or its
// localId (memories §10.6). It is idempotent.
//
// With a hub it waits for the hub's confirmation. It returns CodeHubUnavailable (Unavailable) after
// the delete timeout, or the hub's error; then the entry is unchanged. An entry that was never sent
// is deleted without asking the hub.
func (b *Service) DeleteEntry(ctx context.Context, c Caller, memory, entry string) (r WriteInfo, err error) {
	memory, err = memoryArg(memory)
	entry, badEntry := entryArg(entry)
	if err = firstError(err, badEntry); err != nil {
		return r, err
	}
	shard, err := b.shardKey(ctx, c, memory)
	if err != nil {
		return r, err
	}
	return b.remove(ctx, c, shard, func(ctx context.Context, s *callTx) (step[deletion], error) {
		err := firstError(s.open(ctx, memory), s.c.may(Admin))
		return step[deletion]{route: route{"POST", s.path("entries/" + entry + ":delete")}, do: func(n issued) (deletion, error) {
			return s.deleteEntry(ctx, entry, n)
		}}, err
	})
}

// DeleteMemory deletes a memory with its contents, like DeleteEntry. CodeNotFound for a memory that
// is missing or not the user's.
func (b *Service) DeleteMemory(ctx context.Context, c Caller, memory string) (r WriteInfo, err error) {
	if memory, err = memoryArg(memory); err != nil {
		return r, err
	}
	shard, err := b.shardKey(ctx, c, memory)
	if err != nil {
		return r, err
	}
	return b.remove(ctx, c, shard, func(ctx context.Context, s *callTx) (step[deletion], error) {
		err := s.open(ctx, memory)
		if err == nil && !s.m.exists {
			err = notFound("memory")
		}
		return step[deletion]{route: route{"DELETE", "/v1/memories/" + s.m.MemoryID}, do: func(n issued) (deletion, error) {
			return s.deleteMemory(ctx, n)
		}}, firstError(err, s.c.may(Admin))
	})
}

// DeleteVault deletes a vault, like DeleteMemory. The vault must be empty: CodeVaultNotEmpty
// (Conflict).
func (b *Service) DeleteVault(ctx context.Context, c Caller, vault string) (r WriteInfo, err error) {
	if vault, err = rules.UUIDArg("vault_id", vault); err != nil {
		return r, err
	}
	return b.remove(ctx, c, vault, func(ctx context.Context, s *callTx) (step[deletion], error) {
		v, err := s.vault(ctx, vault)
		return step[deletion]{route: route{"DELETE", "/v1/vaults/" + vault}, do: func(n issued) (deletion, error) {
			return s.deleteVault(ctx, v, n)
		}}, firstError(err, s.c.may(Admin))
	})
}

// remove runs a delete and waits for the hub's confirmation if the user has joined a hub.
func (b *Service) remove(ctx context.Context, c Caller, shard string, prepare func(ctx context.Context, s *callTx) (step[deletion], error)) (WriteInfo, error) {
	var at route
	var user string
	out, r, err := mutate(ctx, b, c, call{body: struct{}{}, shard: shard}, func(ctx context.Context, s *callTx) (step[deletion], error) {
		st, err := prepare(ctx, s)
		at, user = st.route, s.u.ID
		return st, err
	})
	if err != nil || out.Seq == 0 {
		return r, err
	}
	out.route, out.user, out.shard = at, user, shard
	return r, b.confirmed(ctx, c, out, r.Key)
}

func (s *callTx) deleteEntry(ctx context.Context, name string, n issued) (out deletion, err error) {
	query, arg := selectByID, any(name)
	if key, err := parseLocalID(name); err == nil {
		query, arg = selectByRow, key
	}
	e, found, err := s.entry(ctx, query, arg)
	if err != nil || !found || e.MemoryID != s.m.MemoryID {
		return out, err
	}
	if e.deleting != 0 {
		return deletion{Seq: e.deleting, Kind: KindEntry, ID: localID(e.key)}, nil
	}
	known, err := s.known(ctx, &e)
	if err != nil {
		return out, err
	}
	doc := entryDeleteDoc{Key: n.hub, EntryID: e.EntryID}
	id := e.EntryID
	if !e.synced {
		id, doc.LocalID = localID(e.key), localID(e.key)
	}
	switch {
	case !known:
		if err = s.removeEntry(ctx, &e); err == nil {
			err = s.note(ctx, s.m.MemoryID, KindEntry, id, store.OpDelete)
		}
		return out, err
	case !s.u.hub():
		if err = s.removeEntry(ctx, &e); err == nil {
			_, err = s.log(ctx, KindEntry, id, store.OpDelete, doc)
		}
		return out, err
	}
	seq, err := s.log(ctx, KindEntry, id, store.OpDelete, doc)
	if err == nil {
		_, err = s.tx.Exec(ctx, hideEntry, e.key, seq)
	}
	return deletion{Seq: seq, Kind: KindEntry, ID: localID(e.key)}, err
}

// known reports whether a hub may have an entry: the entry came from the hub, or was part of a
// request that was not refused.
func (s *callTx) known(ctx context.Context, e *entryRow) (bool, error) {
	if e.hubSeq != 0 {
		return true, nil
	}
	if e.seq > s.m.sentSeq || e.synced && e.seq <= s.m.ackedSeq {
		return false, nil // not sent yet, or skipped
	}
	var failed bool
	err := s.tx.Get(ctx, []any{&failed}, selectFailureSeen, e.seq)
	return !failed, err
}

func (s *callTx) deleteMemory(ctx context.Context, n issued) (out deletion, err error) {
	id := s.m.MemoryID
	known := s.m.sentSeq > 0 || s.m.remoteID != ""
	if known && s.u.hub() {
		seq, err := s.log(ctx, KindMemory, id, store.OpDelete, keyDoc{n.hub})
		if err == nil {
			_, err = s.tx.Exec(ctx, hideMemory, id, seq)
		}
		return deletion{Seq: seq, Kind: KindMemory, ID: id}, err
	}
	if err = s.removeMemory(ctx, id, true); err != nil {
		return out, err
	}
	if known {
		_, err = s.log(ctx, KindMemory, id, store.OpDelete, keyDoc{n.hub})
		return out, err
	}
	if _, err = s.tx.Exec(ctx, deleteStream, id); err == nil {
		err = s.note(ctx, id, KindMemory, id, store.OpDelete)
	}
	return out, err
}

func (s *callTx) deleteVault(ctx context.Context, v Vault, n issued) (out deletion, err error) {
	var held, sent int64
	err = firstError(s.tx.Get(ctx, []any{&held}, selectInVault, v.VaultID), s.tx.Get(ctx, []any{&sent}, selectSent, v.VaultID))
	if err == nil && held > 0 {
		err = conflict(CodeVaultNotEmpty, "delete its memories first", "the vault still holds memories", "count", held)
	}
	if err != nil {
		return out, err
	}
	if !s.u.hub() {
		err = s.removeVault(ctx, v.VaultID)
		if err == nil && sent > 0 {
			_, err = s.logOn(ctx, v.VaultID, "", KindVault, v.VaultID, store.OpDelete, keyDoc{n.hub})
		} else if err == nil {
			_, err = s.tx.Exec(ctx, deleteStream, v.VaultID)
			err = firstError(err, s.note(ctx, v.VaultID, KindVault, v.VaultID, store.OpDelete))
		}
		return out, err
	}
	seq, err := s.logOn(ctx, v.VaultID, "", KindVault, v.VaultID, store.OpDelete, keyDoc{n.hub})
	if err == nil {
		_, err = s.tx.Exec(ctx, hideVault, v.VaultID, seq)
	}
	return deletion{Seq: seq, Kind: KindVault, ID: v.VaultID}, err
}

// removeVault permanently deletes an empty vault, with its documents in the log.
func (s *callTx) removeVault(ctx context.Context, id string) error {
	if _, err := s.tx.Exec(ctx, deleteVault, id); err != nil {
		return err
	}
	return firstError(s.forgetTries(ctx, id), s.tx.BlankStream(ctx, id))
}

// note logs a change without a document, which is never sent.
func (s *callTx) note(ctx context.Context, stream, kind, id, op string) error {
	_, err := s.tx.Append(ctx, store.Change{Project: s.m.project, Stream: stream, Kind: kind, ID: id, Op: op, Session: s.c.Session, Agent: s.c.Agent})
	return err
}

// removeEntry permanently deletes an entry: it blanks the entry's documents in the log and stores
// tombstones of its id and key (memories P10).
func (s *callTx) removeEntry(ctx context.Context, e *entryRow) error {
	if err := s.deleteRow(ctx, e.key); err != nil {
		return err
	}
	if err := follow.Settle(ctx, s.tx, PushFollower, e.seq); err != nil {
		return err
	}
	if err := s.blankEntry(ctx, e); err != nil {
		return err
	}
	return s.storeTombstones(ctx, e.MemoryID, e.EntryID, e.hubKey)
}

// deleteRow deletes only the row of an entry.
func (s *callTx) deleteRow(ctx context.Context, key int64) error {
	_, err := s.tx.Exec(ctx, deleteEntry, key)
	return err
}

// blankEntry blanks an entry's documents in the log, under its entryId and its localId.
func (s *callTx) blankEntry(ctx context.Context, e *entryRow) error {
	for _, id := range []string{e.EntryID, localID(e.key)} {
		if id == "" {
			continue
		}
		if _, err := s.tx.Blank(ctx, e.MemoryID, KindEntry, id); err != nil {
			return err
		}
	}
	return nil
}

// storeTombstones stores tombstones of a memory.
func (s *callTx) storeTombstones(ctx context.Context, memory string, ids ...string) error {
	for _, id := range ids {
		if id == "" {
			continue
		}
		if _, err := s.tx.Exec(ctx, insertTombstone, memory, id, s.tx.Now().UnixNano()); err != nil {
			return err
		}
	}
	return nil
}

// removeMemory permanently deletes a memory with its contents. Without inflight it keeps entries
// and contexts that no hub has. The stream stays.
func (s *callTx) removeMemory(ctx context.Context, id string, inflight bool) error {
	_, err := s.tx.Exec(ctx, buryEntriesOf, id, s.tx.Now().UnixNano())
	if err == nil {
		_, err = s.tx.Exec(ctx, deleteEntriesOf, id, inflight)
	}
	if err == nil {
		_, err = s.tx.Exec(ctx, deleteContextsOf, id, inflight)
	}
	if err == nil {
		_, err = s.tx.Exec(ctx, deleteMemory, id)
	}
	return firstError(err, s.forgetTries(ctx, id), s.tx.BlankStream(ctx, id), s.storeTombstones(ctx, id, id))
}

// confirmed waits until the hub has confirmed a delete, or withdraws it.
func (b *Service) confirmed(ctx context.Context, c Caller, d deletion, key string) error {
	if b.config.PollHub != nil {
		asking, stop := context.WithCancel(ctx)
		var asked sync.WaitGroup
		asked.Go(func() { b.config.PollHub(asking, d.user) })
		defer asked.Wait()
		defer stop()
	}
	timer := time.NewTimer(b.config.Settings.DeleteTimeout)
	defer timer.Stop()
	for {
		seen := b.progress.changed()
		over, err := b.deleted(ctx, d)
		if over && err != nil {
			return firstError(b.forget(ctx, d, key), err)
		}
		if over || err != nil {
			return err
		}
		if err := b.pause(ctx, seen, timer.C); err != nil {
			return b.withdraw(ctx, c, d, key)
		}
	}
}

// errTime is the error of pause after the timeout.
var errTime = errors.New("time is up")

// pause waits until the replication in this process has changed something, or for a moment, after
// which the caller checks for changes by other processes.
func (b *Service) pause(ctx context.Context, changed <-chan struct{}, over <-chan time.Time) error {
	look := time.NewTimer(25 * time.Millisecond)
	defer look.Stop()
	select {
	case <-changed:
	case <-look.C:
	case <-over:
		return errTime
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// deleted reports whether a delete has finished. The error is nil if it was executed.
func (b *Service) deleted(ctx context.Context, d deletion) (over bool, err error) {
	err = b.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		hidden, there, err := d.hidden(ctx, tx)
		if err != nil || hidden {
			return err
		}
		over = true
		if !there {
			return nil
		}
		var why HubRefusal
		err = tx.Get(ctx, why.scan(), selectFailure, d.Seq)
		if errors.Is(err, sql.ErrNoRows) {
			return hubUnavailable()
		}
		return firstError(err, refusedByHub(why.Status, why.Code, why.Message))
	})
	return over, err
}

// hidden reports whether the object of this delete is still hidden by it, and whether it exists.
func (d deletion) hidden(ctx context.Context, tx *store.Tx) (hidden, there bool, err error) {
	var seq sql.NullInt64
	switch d.Kind {
	case KindEntry:
		key, _ := parseLocalID(d.ID)
		err = tx.Get(ctx, []any{&seq}, selectHiddenEntry, key)
	case KindMemory:
		err = tx.Get(ctx, []any{&seq}, selectHiddenMemory, d.ID)
	default:
		err = tx.Get(ctx, []any{&seq}, selectHiddenVault, d.ID)
	}
	return seq.Int64 == d.Seq, err == nil, ignoreNone(err)
}

// show makes the object of a delete visible again.
func (d deletion) show(ctx context.Context, tx *store.Tx) (shown bool, err error) {
	query, arg := showVault, any(d.ID)
	switch d.Kind {
	case KindEntry:
		key, _ := parseLocalID(d.ID)
		query, arg = showEntry, key
	case KindMemory:
		query = showMemory
	}
	res, err := tx.Exec(ctx, query, arg, d.Seq)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n > 0, err
}

// withdraw cancels an unconfirmed delete. Neither the delete nor the undelete is sent.
func (b *Service) withdraw(ctx context.Context, c Caller, d deletion, key string) error {
	var done bool
	err := b.job(context.WithoutCancel(ctx), d.shard, func(ctx context.Context, tx *store.Tx) error {
		s := &callTx{Service: b, tx: tx, c: c, u: user{ID: d.user}}
		shown, err := d.show(ctx, tx)
		if err != nil {
			return err
		}
		if _, there, err := d.hidden(ctx, tx); err != nil || !there {
			done = err == nil
			return err
		}
		if _, err := tx.Exec(ctx, deleteAnswer, d.user, d.route.method, d.route.path, key); err != nil || !shown {
			return err
		}
		return s.undelete(ctx, d)
	})
	if err != nil || done {
		return err
	}
	return hubUnavailable()
}

// undelete logs that a delete was cancelled.
func (s *callTx) undelete(ctx context.Context, d deletion) error {
	changes, err := s.tx.Changes(ctx, d.Seq-1, 1)
	if err != nil || len(changes) == 0 {
		return err
	}
	s.m.project = changes[0].Project
	return firstError(s.tx.BlankChange(ctx, d.Seq), s.note(ctx, changes[0].Stream, d.Kind, changes[0].ID, OpUndelete))
}

// forget deletes the stored result and failure of a delete that the hub has refused, because the
// caller gets the error.
func (b *Service) forget(ctx context.Context, d deletion, key string) error {
	return b.write(context.WithoutCancel(ctx), func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, deleteAnswer, d.user, d.route.method, d.route.path, key)
		if err == nil {
			err = follow.Settle(ctx, tx, PushFollower, d.Seq)
		}
		return err
	})
}

func hubUnavailable() error {
	return failure(fault.Unavailable, CodeHubUnavailable, "try again when the hub can be reached; see `cairn replication status`",
		"the hub did not confirm in time; nothing was deleted")
}
