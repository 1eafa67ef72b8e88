package vaults

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"net/http"
	"sync"
	"time"

	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/rules"
	"cairn/internal/store"
	"cairn/internal/store/follow"
)

// Deletion is a pending delete. Seq is the logged change that the hub must confirm, 0 if there is
// nothing to wait for.
type Deletion struct {
	Seq  int64  `json:"seq,omitempty"`
	Kind string `json:"kind,omitempty"`
	ID   string `json:"id,omitempty"` // of the vault or the memory; of an entry its row's localId

	route memory.Route
	user  string
	shard string
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
	deleteStream       = `DELETE FROM memory_streams WHERE stream = ?`
	selectSent         = `SELECT ifnull(max(sent_seq), 0) FROM memory_streams WHERE stream = ?`
	selectFailure      = `SELECT ` + memory.RefusalColumns + ` FROM set_aside f WHERE f.follower = 'replication' AND f.seq = ?`
	selectFailureSeen  = `SELECT EXISTS (SELECT 1 FROM set_aside WHERE follower = 'replication' AND seq = ?)`
)

// DeleteEntry permanently deletes an entry of a memory of the acting user, named by its id or its
// localId (memories §10.6). It is idempotent.
//
// With a hub it waits for the hub's confirmation. It returns CodeHubUnavailable (Unavailable) after
// the delete timeout, or the hub's error; then the entry is unchanged. An entry that was never sent
// is deleted without asking the hub.
func (b *Calls) DeleteEntry(ctx context.Context, c memory.Caller, memoryID, entry string) (r memory.WriteInfo, err error) {
	memoryID, err = memory.MemoryArg(memoryID)
	entry, badEntry := contents.EntryArg(entry)
	if err = cmp.Or(err, badEntry); err != nil {
		return r, err
	}
	shard, err := b.ShardKey(ctx, c, memoryID)
	if err != nil {
		return r, err
	}
	return b.remove(ctx, c, shard, func(ctx context.Context, s *memory.CallTx) (memory.Step[Deletion], error) {
		err := cmp.Or(s.Open(ctx, memoryID), s.Caller.May(memory.Admin))
		return memory.Step[Deletion]{Route: memory.Route{Method: "POST", Path: s.Path("entries/" + entry + ":delete")}, Do: func(n memory.Issued) (Deletion, error) {
			return deleteEntry(ctx, s, entry, n)
		}}, err
	})
}

// DeleteMemory deletes a memory with its contents, like DeleteEntry. CodeNotFound for a memory that
// is missing or not the user's.
func (b *Calls) DeleteMemory(ctx context.Context, c memory.Caller, memoryID string) (r memory.WriteInfo, err error) {
	if memoryID, err = memory.MemoryArg(memoryID); err != nil {
		return r, err
	}
	shard, err := b.ShardKey(ctx, c, memoryID)
	if err != nil {
		return r, err
	}
	return b.remove(ctx, c, shard, func(ctx context.Context, s *memory.CallTx) (memory.Step[Deletion], error) {
		err := s.Open(ctx, memoryID)
		if err == nil && !s.Memory.Exists {
			err = memory.NotFound("memory")
		}
		return memory.Step[Deletion]{Route: memory.Route{Method: "DELETE", Path: "/v1/memories/" + s.Memory.MemoryID}, Do: func(n memory.Issued) (Deletion, error) {
			return deleteMemory(ctx, s, n)
		}}, cmp.Or(err, s.Caller.May(memory.Admin))
	})
}

// DeleteVault deletes a vault, like DeleteMemory. The vault must be empty: CodeVaultNotEmpty
// (Conflict).
func (b *Calls) DeleteVault(ctx context.Context, c memory.Caller, vault string) (r memory.WriteInfo, err error) {
	if vault, err = rules.UUIDArg("vault_id", vault); err != nil {
		return r, err
	}
	return b.remove(ctx, c, vault, func(ctx context.Context, s *memory.CallTx) (memory.Step[Deletion], error) {
		v, err := s.Vault(ctx, vault)
		return memory.Step[Deletion]{Route: memory.Route{Method: "DELETE", Path: "/v1/vaults/" + vault}, Do: func(n memory.Issued) (Deletion, error) {
			return deleteVault(ctx, s, v, n)
		}}, cmp.Or(err, s.Caller.May(memory.Admin))
	})
}

// remove runs a delete and waits for the hub's confirmation if the user has joined a hub.
func (b *Calls) remove(ctx context.Context, c memory.Caller, shard string,
	prepare func(ctx context.Context, s *memory.CallTx) (memory.Step[Deletion], error)) (memory.WriteInfo, error) {
	var at memory.Route
	var user string
	out, r, err := memory.Mutate(ctx, b.Kernel, c, memory.Call{Body: struct{}{}, Shard: shard}, func(ctx context.Context, s *memory.CallTx) (memory.Step[Deletion], error) {
		st, err := prepare(ctx, s)
		at, user = st.Route, s.User.UserID
		return st, err
	})
	if err != nil || out.Seq == 0 {
		return r, err
	}
	out.route, out.user, out.shard = at, user, shard
	return r, b.confirmed(ctx, c, out, r.Key)
}

func deleteEntry(ctx context.Context, s *memory.CallTx, name string, n memory.Issued) (out Deletion, err error) {
	e, found, err := contents.EntryNamed(ctx, s, name)
	if err != nil || !found || e.MemoryID != s.Memory.MemoryID {
		return out, err
	}
	if e.Deleting != 0 {
		return Deletion{Seq: e.Deleting, Kind: memory.KindEntry, ID: contents.LocalID(e.Key)}, nil
	}
	known, err := known(ctx, s, &e)
	if err != nil {
		return out, err
	}
	doc := contents.EntryDeleteDoc{Key: n.Hub, EntryID: e.EntryID}
	id := e.EntryID
	if !e.Synced {
		id, doc.LocalID = contents.LocalID(e.Key), contents.LocalID(e.Key)
	}
	switch {
	case !known:
		if err = contents.RemoveEntry(ctx, s, &e); err == nil {
			err = s.Note(ctx, s.Memory.MemoryID, memory.KindEntry, id, store.OpDelete)
		}
		return out, err
	case !s.User.IsJoined():
		if err = contents.RemoveEntry(ctx, s, &e); err == nil {
			_, err = s.Log(ctx, memory.KindEntry, id, store.OpDelete, doc)
		}
		return out, err
	}
	seq, err := s.Log(ctx, memory.KindEntry, id, store.OpDelete, doc)
	if err == nil {
		err = s.Exec(ctx, hideEntry, e.Key, seq)
	}
	return Deletion{Seq: seq, Kind: memory.KindEntry, ID: contents.LocalID(e.Key)}, err
}

// known reports whether a hub may have an entry: the entry came from the hub, or was part of a
// request that was not refused.
func known(ctx context.Context, s *memory.CallTx, e *contents.EntryRow) (bool, error) {
	if e.HubSeq != 0 {
		return true, nil
	}
	if e.Seq > s.Memory.SentSeq || e.Synced && e.Seq <= s.Memory.AckedSeq {
		return false, nil // not sent yet, or skipped
	}
	var failed bool
	err := s.Tx.Get(ctx, []any{&failed}, selectFailureSeen, e.Seq)
	return !failed, err
}

func deleteMemory(ctx context.Context, s *memory.CallTx, n memory.Issued) (out Deletion, err error) {
	id := s.Memory.MemoryID
	known := s.Memory.SentSeq > 0 || s.Memory.RemoteID != ""
	if known && s.User.IsJoined() {
		seq, err := s.Log(ctx, memory.KindMemory, id, store.OpDelete, memory.KeyDoc{Key: n.Hub})
		if err == nil {
			err = s.Exec(ctx, hideMemory, id, seq)
		}
		return Deletion{Seq: seq, Kind: memory.KindMemory, ID: id}, err
	}
	if err = contents.RemoveMemory(ctx, s, id, true); err != nil {
		return out, err
	}
	if known {
		_, err = s.Log(ctx, memory.KindMemory, id, store.OpDelete, memory.KeyDoc{Key: n.Hub})
		return out, err
	}
	if err = s.Exec(ctx, deleteStream, id); err == nil {
		err = s.Note(ctx, id, memory.KindMemory, id, store.OpDelete)
	}
	return out, err
}

func deleteVault(ctx context.Context, s *memory.CallTx, v memory.Vault, n memory.Issued) (out Deletion, err error) {
	var sent int64
	held, err := s.MemoriesIn(ctx, v.VaultID)
	err = cmp.Or(err, s.Tx.Get(ctx, []any{&sent}, selectSent, v.VaultID))
	if err == nil && held > 0 {
		err = memory.Conflict(memory.CodeVaultNotEmpty, "delete its memories first", "the vault still holds memories", "count", held)
	}
	if err != nil {
		return out, err
	}
	if !s.User.IsJoined() {
		err = contents.RemoveVault(ctx, s, v.VaultID)
		if err == nil && sent > 0 {
			_, err = s.LogOn(ctx, v.VaultID, "", memory.KindVault, v.VaultID, store.OpDelete, memory.KeyDoc{Key: n.Hub})
		} else if err == nil {
			err = s.Exec(ctx, deleteStream, v.VaultID)
			err = cmp.Or(err, s.Note(ctx, v.VaultID, memory.KindVault, v.VaultID, store.OpDelete))
		}
		return out, err
	}
	seq, err := s.LogOn(ctx, v.VaultID, "", memory.KindVault, v.VaultID, store.OpDelete, memory.KeyDoc{Key: n.Hub})
	if err == nil {
		err = s.Exec(ctx, hideVault, v.VaultID, seq)
	}
	return Deletion{Seq: seq, Kind: memory.KindVault, ID: v.VaultID}, err
}

// confirmed waits until the hub has confirmed a delete, or withdraws it.
func (b *Calls) confirmed(ctx context.Context, c memory.Caller, d Deletion, key string) error {
	if b.Config.PollHub != nil {
		asking, stop := context.WithCancel(ctx)
		var asked sync.WaitGroup
		asked.Go(func() { b.Config.PollHub(asking, d.user) })
		defer asked.Wait()
		defer stop()
	}
	timer := time.NewTimer(b.Config.Settings.DeleteTimeout)
	defer timer.Stop()
	for {
		seen := b.Progress.Changed()
		over, err := b.deleted(ctx, d)
		if over && err != nil {
			return cmp.Or(b.forget(ctx, d, key), err)
		}
		if over || err != nil {
			return err
		}
		if err := b.Pause(ctx, seen, timer.C); err != nil {
			return b.withdraw(ctx, c, d, key)
		}
	}
}

// deleted reports whether a delete has finished. The error is nil if it was executed.
func (b *Calls) deleted(ctx context.Context, d Deletion) (over bool, err error) {
	err = b.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		hidden, there, err := d.hidden(ctx, tx)
		if err != nil || hidden {
			return err
		}
		over = true
		if !there {
			return nil
		}
		var why memory.HubRefusal
		err = tx.Get(ctx, why.Scan(), selectFailure, d.Seq)
		if errors.Is(err, sql.ErrNoRows) {
			return memory.HubUnavailable()
		}
		return cmp.Or(err, refusedByHub(why.Status, why.Code, why.Message))
	})
	return over, err
}

// hidden reports whether the object of this delete is still hidden by it, and whether it exists.
func (d Deletion) hidden(ctx context.Context, tx *store.Tx) (hidden, there bool, err error) {
	var seq sql.NullInt64
	switch d.Kind {
	case memory.KindEntry:
		key, _ := contents.ParseLocalID(d.ID)
		err = tx.Get(ctx, []any{&seq}, selectHiddenEntry, key)
	case memory.KindMemory:
		err = tx.Get(ctx, []any{&seq}, selectHiddenMemory, d.ID)
	default:
		err = tx.Get(ctx, []any{&seq}, selectHiddenVault, d.ID)
	}
	return seq.Int64 == d.Seq, err == nil, memory.IgnoreNone(err)
}

// show makes the object of a delete visible again.
func (d Deletion) show(ctx context.Context, tx *store.Tx) (shown bool, err error) {
	query, arg := showVault, any(d.ID)
	switch d.Kind {
	case memory.KindEntry:
		key, _ := contents.ParseLocalID(d.ID)
		query, arg = showEntry, key
	case memory.KindMemory:
		query = showMemory
	}
	res, err := tx.Exec(ctx, query, arg, d.Seq)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n > 0, err
}

// Cancel makes the object of a delete visible again and logs that the delete was cancelled. It
// does nothing if the delete does not hide the object.
func (d Deletion) Cancel(ctx context.Context, s *memory.CallTx) error {
	shown, err := d.show(ctx, s.Tx)
	if err != nil || !shown {
		return err
	}
	return undelete(ctx, s, d)
}

// withdraw cancels an unconfirmed delete. Neither the delete nor the undelete is sent.
func (b *Calls) withdraw(ctx context.Context, c memory.Caller, d Deletion, key string) error {
	var done bool
	err := b.Job(context.WithoutCancel(ctx), d.shard, func(ctx context.Context, tx *store.Tx) error {
		s := &memory.CallTx{Kernel: b.Kernel, Tx: tx, Caller: c, User: memory.User{UserID: d.user}}
		shown, err := d.show(ctx, tx)
		if err != nil {
			return err
		}
		if _, there, err := d.hidden(ctx, tx); err != nil || !there {
			done = err == nil
			return err
		}
		if err := memory.ForgetResult(ctx, tx, d.user, d.route, key); err != nil || !shown {
			return err
		}
		return undelete(ctx, s, d)
	})
	if err != nil || done {
		return err
	}
	return memory.HubUnavailable()
}

// undelete logs that a delete was cancelled.
func undelete(ctx context.Context, s *memory.CallTx, d Deletion) error {
	changes, err := s.Tx.Changes(ctx, d.Seq-1, 1)
	if err != nil || len(changes) == 0 {
		return err
	}
	s.Memory.Project = changes[0].Project
	return cmp.Or(s.Tx.BlankChange(ctx, d.Seq), s.Note(ctx, changes[0].Stream, d.Kind, changes[0].ID, memory.OpUndelete))
}

// forget deletes the stored result and failure of a delete that the hub has refused, because the
// caller gets the error.
func (b *Calls) forget(ctx context.Context, d Deletion, key string) error {
	return b.Write(context.WithoutCancel(ctx), func(ctx context.Context, tx *store.Tx) error {
		return cmp.Or(memory.ForgetResult(ctx, tx, d.user, d.route, key), follow.Settle(ctx, tx, memory.PushFollower, d.Seq))
	})
}

// refusedByHub returns a hub's error for the caller of a delete.
func refusedByHub(status int, code, message string) error {
	kind := fault.Unavailable
	switch {
	case status == http.StatusNotFound:
		kind = fault.NotFound
	case status == http.StatusConflict:
		kind = fault.Conflict
	case status == http.StatusForbidden || status == http.StatusUnauthorized:
		kind = fault.Denied
	case status >= 400 && status < 500:
		kind = fault.Invalid
	}
	return rules.Failure(kind, code, "the hub has refused the delete; nothing was deleted", message)
}
