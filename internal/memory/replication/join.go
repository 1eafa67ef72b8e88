package replication

import (
	"cmp"
	"context"

	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/rules"
	"cairn/internal/store"
)

const (
	updateJoined = `UPDATE memory_users SET hub_url = ?2, hub_user = ?3, generation = generation + 1, stop_code = NULL, stop_why = NULL WHERE user_id = ?1`
	skipUpload   = `UPDATE memory_streams SET acked_seq = head_seq WHERE user_id = ?`
	resetStreams = `UPDATE memory_streams SET acked_seq = 0, sent_seq = 0, state = 'ready',
remote_id = NULL, pull_cursor = 0, seen_seq = 0 WHERE user_id = ?`
	selectUserPending  = contents.EntryColumns + `WHERE e.user_id = ? AND e.synced = 0 ORDER BY e.memory_id, e.creation_ns, e.key`
	selectUserDeleting = contents.EntryColumns + `WHERE e.user_id = ? AND e.deleting_seq IS NOT NULL`
	selectMemsDeleting = `SELECT memory_id FROM memories WHERE user_id = ? AND deleting_seq IS NOT NULL`
	deleteVaultsHidden = `DELETE FROM memory_vaults WHERE user_id = ? AND deleting_seq IS NOT NULL`
	commitContexts     = `UPDATE memory_contexts SET synced = 1, hub_seq = NULL WHERE user_id = ?`
	forgetHubSeq       = `UPDATE memory_entries SET hub_seq = NULL WHERE user_id = ?`
	selectStreamIDs    = `SELECT stream FROM memory_streams WHERE user_id = ?`
	updateLeft         = `UPDATE memory_users SET hub_url = NULL, hub_user = NULL, generation = generation + 1, stop_code = NULL, stop_why = NULL WHERE user_id = ?`
	countPending       = `SELECT count(*) FROM memory_entries WHERE user_id = ? AND synced = 0`
)

// Join connects a local user to a hub, where its id is hubUser. From then on the rows that any
// process writes are inflight until the hub confirms them. With upload, existing rows are sent,
// too. Joining starts a new [Membership].
//
// Errors: CodeNotFound for an unknown user, CodeJoined (Conflict) for a user who has joined another
// hub, or this hub as another user. Join is idempotent.
func (b *Replication) Join(ctx context.Context, local, url, hubUser string, upload bool) error {
	hub, err := rules.UUIDArg("user", hubUser)
	if err != nil {
		return err
	}
	return b.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		u, err := memory.FindUser(ctx, tx, local)
		switch {
		case err != nil:
			return err
		case u.UserID == "":
			return memory.NotFound("user")
		case u.HubURL == url && u.HubUser == hub:
			return nil
		case u.IsJoined():
			return rules.Failure(fault.Conflict, memory.CodeJoined, "leave that hub first, with `cairn hub leave`", "the user is joined to another hub",
				"hub", u.HubURL)
		}
		if _, err = tx.Exec(ctx, updateJoined, local, url, hub); err == nil && !upload {
			_, err = tx.Exec(ctx, skipUpload, local)
		}
		return err
	})
}

// Leave ends a user's replication. Inflight rows prevent it: CodeInflight (Conflict) with
// details.pending. With force they are committed here under new ids. Deletes that the hub has not
// confirmed are executed. A user who joins again sends everything again, under the same keys.
// Leaving ends the [Membership]: later responses of the old hub are refused. Leave is idempotent.
func (b *Replication) Leave(ctx context.Context, local string, force bool) error {
	defer b.Progress.Notify()
	return b.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		u, err := memory.FindUser(ctx, tx, local)
		switch {
		case err != nil:
			return err
		case u.UserID == "":
			return memory.NotFound("user")
		case !u.IsJoined():
			return nil
		}
		s := &memory.CallTx{Kernel: b.Kernel, Tx: tx, User: u}
		var pending int
		if err := tx.Get(ctx, []any{&pending}, countPending, local); err != nil {
			return err
		}
		if pending > 0 && !force {
			return memory.Conflict(memory.CodeInflight, "wait with `cairn replication drain`, or force it", "the hub has not confirmed all entries", "pending", pending)
		}
		if err := cmp.Or(finishDeletes(ctx, s), commitHere(ctx, s)); err != nil {
			return err
		}
		for _, query := range []string{commitContexts, forgetHubSeq, resetStreams, updateLeft} {
			if _, err := tx.Exec(ctx, query, local); err != nil {
				return err
			}
		}
		streams, err := tx.Texts(ctx, selectStreamIDs, local)
		return cmp.Or(err, s.ForgetTries(ctx, streams...), tx.DeleteMeta(ctx, metaEpoch+local)) // it was that hub's
	})
}

// finishDeletes executes the deletes that a hub has not confirmed.
func finishDeletes(ctx context.Context, s *memory.CallTx) error {
	entries, err := contents.Entries(ctx, s, selectUserDeleting, s.User.UserID)
	for i := range entries {
		if err == nil {
			err = contents.RemoveEntry(ctx, s, &entries[i])
		}
	}
	var memories []string
	if err == nil {
		memories, err = s.Tx.Texts(ctx, selectMemsDeleting, s.User.UserID)
	}
	for _, id := range memories {
		if err == nil {
			err = contents.RemoveMemory(ctx, s, id, true)
		}
	}
	if err == nil {
		err = s.Exec(ctx, deleteVaultsHidden, s.User.UserID)
	}
	return err
}

// commitHere commits inflight entries under ids of this store.
func commitHere(ctx context.Context, s *memory.CallTx) error {
	entries, err := contents.Entries(ctx, s, selectUserPending, s.User.UserID)
	for i := range entries {
		e := &entries[i]
		var found bool
		if err == nil {
			found, err = s.FindAny(ctx, e.MemoryID)
		}
		if err == nil && found {
			err = contents.Flip(ctx, s, e, rules.NewID(), max(e.CreationTime, memory.Time(s.Memory.LastCanonicalNS)+1), 0)
		} else if err == nil {
			err = contents.RemoveEntry(ctx, s, e) // its memory was deleted on another device
		}
	}
	return err
}
