package replication

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strconv"

	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/rules"
	"cairn/internal/project"
	"cairn/internal/store"
	"cairn/internal/store/follow"
)

// projectUIDs returns the uids of the project of the scope's memory; nil without one.
func projectUIDs(ctx context.Context, s *memory.CallTx) ([]string, error) {
	if s.Memory.Project == "" {
		return nil, nil
	}
	q, ok, err := project.Find(ctx, s.Tx, s.Memory.Project)
	if err != nil || !ok {
		return nil, err
	}
	keys, err := project.KeysOf(ctx, s.Tx, q)
	if err != nil {
		return nil, err
	}
	return memory.UIDsOf(keys), nil
}

// StreamRestoring is the state of a stream whose hub was restored from a backup: rows that the hub
// no longer has are sent again before anything else (memories §13.2).
const StreamRestoring = "restoring"

const (
	metaEpoch       = "hub.epoch." // followed by the user
	restoreStreams  = `UPDATE memory_streams SET state = 'restoring' WHERE user_id = ? AND state = 'ready' AND (subscribed = 1 OR head_seq > 0)`
	selectRestoring = streamsOf + `WHERE s.user_id = ? AND s.state = 'restoring' ORDER BY s.stream`

	// The rows of a memory by the hub's numbers. A negative number marks a row that must be sent
	// again.
	selectNumbers = `SELECT hub_seq, hub_key FROM memory_entries WHERE memory_id = ?1 AND synced = 1 AND hub_key IS NOT NULL AND hub_seq > ?2
UNION ALL SELECT hub_seq, hub_key FROM memory_contexts WHERE memory_id = ?1 AND synced = 1 AND hub_key IS NOT NULL AND hub_seq > ?2`
	markEntry     = `UPDATE memory_entries SET hub_seq = -hub_seq WHERE hub_key = ? AND hub_seq > 0`
	markContext   = `UPDATE memory_contexts SET hub_seq = -hub_seq WHERE hub_key = ? AND hub_seq > 0`
	lowerCursor   = `UPDATE memory_streams SET pull_cursor = min(pull_cursor, ?2), seen_seq = min(seen_seq, ?2) WHERE stream = ?1`
	pullAgain     = `UPDATE memory_streams SET pull_cursor = 0, seen_seq = 0 WHERE user_id = ? AND state <> 'restoring'`
	selectMissing = `SELECT hub_key, 'entry' FROM memory_entries WHERE memory_id = ?1 AND hub_seq < 0
UNION ALL SELECT hub_key, 'context' FROM memory_contexts WHERE memory_id = ?1 AND hub_seq < 0`
	selectNextMissing = `SELECT k, kind FROM (SELECT hub_key AS k, 'entry' AS kind, hub_seq FROM memory_entries WHERE memory_id = ?1 AND hub_seq < 0
UNION ALL SELECT hub_key, 'context', hub_seq FROM memory_contexts WHERE memory_id = ?1 AND hub_seq < 0) ORDER BY hub_seq DESC LIMIT +?2`
	selectContextDoc = `SELECT context_id, session_id, markdown, updated_ns, ifnull(trace_id, ''), ifnull(conflict_with, '') FROM memory_contexts WHERE hub_key = ?`
	confirmContext   = `UPDATE memory_contexts SET hub_seq = ?2, updated_ns = ifnull(?3, updated_ns) WHERE hub_key = ?1`
	unmarkEntry      = `UPDATE memory_entries SET hub_seq = abs(hub_seq) WHERE hub_key = ?`
	unmarkContext    = `UPDATE memory_contexts SET hub_seq = abs(hub_seq) WHERE hub_key = ?`

	selectPatches = `SELECT c.id, c.doc FROM changes c JOIN symbols o ON o.id = c.op WHERE c.stream = (SELECT id FROM symbols WHERE text = ?)
AND o.text = 'patch' AND c.doc IS NOT NULL ORDER BY c.seq`
	selectTombstones = `SELECT id FROM memory_tombstones WHERE memory_id = ?`
)

// NoteEpoch stores the epoch of a user's hub. If it has increased, the hub was restored from a
// backup: the user's streams enter the state StreamRestoring, and are not ready for anything else.
// That ends a stop with StopRestored. NoteEpoch is idempotent.
func (b *Replication) NoteEpoch(ctx context.Context, m memory.Membership, epoch int64) error {
	user := m.User
	if was, err := b.Epoch(ctx, user); err != nil || was >= epoch {
		return err
	}
	return b.replicatorTx(ctx, m, nil, func(ctx context.Context, s *memory.CallTx) error {
		tx := s.Tx
		was, err := epochOf(ctx, tx, user)
		if err != nil || was >= epoch {
			return err
		}
		if was > 0 {
			_, err = tx.Exec(ctx, restoreStreams, user)
		}
		if err == nil && was > 0 {
			_, err = tx.Exec(ctx, pullAgain, user)
		}
		if err == nil {
			_, err = tx.Exec(ctx, updateGoOn, user, StopRestored)
		}
		if err == nil {
			err = tx.SetMeta(ctx, metaEpoch+user, strconv.FormatInt(epoch, 10))
		}
		return err
	})
}

// Epoch returns the stored epoch of a user's hub, 0 for none.
func (b *Replication) Epoch(ctx context.Context, user string) (epoch int64, err error) {
	err = b.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		epoch, err = epochOf(ctx, tx, user)
		return err
	})
	return epoch, err
}

func epochOf(ctx context.Context, tx *store.Tx, user string) (int64, error) {
	text, found, err := tx.Meta(ctx, metaEpoch+user)
	if err != nil || !found {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}

// Restoring lists a user's streams in the state StreamRestoring.
func (b *Replication) Restoring(ctx context.Context, user string) (out []Stream, err error) {
	err = b.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		out, err = streams(ctx, tx, selectRestoring, user)
		return err
	})
	return out, err
}

// Numbers returns the hub's numbers of the rows of a stream, by key, if they are greater than
// after. Two keys have one number if a restored hub has assigned it again.
func (b *Replication) Numbers(ctx context.Context, stream string, after int64) (out map[string]int64, err error) {
	err = b.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		out = map[string]int64{}
		return tx.Each(ctx, func(rows *sql.Rows) error {
			var seq int64
			var key string
			err := rows.Scan(&seq, &key)
			out[key] = seq
			return err
		}, selectNumbers, stream, after)
	})
	return out, err
}

// MarkMissing marks the rows of a stream that a restored hub does not have, by their keys. The
// hub's changes with numbers greater than after will be pulled again.
func (b *Replication) MarkMissing(ctx context.Context, m memory.Membership, lease follow.Lease, stream string, after int64, keys []string) error {
	return b.replicatorTx(ctx, m, []follow.Lease{lease}, func(ctx context.Context, s *memory.CallTx) error {
		for _, key := range keys {
			for _, query := range []string{markEntry, markContext} {
				if err := s.Exec(ctx, query, key); err != nil {
					return err
				}
			}
		}
		return s.Exec(ctx, lowerCursor, stream, after)
	})
}

// RecreateChange returns the change that creates a stream at a hub that does not have it: the put
// of its vault or memory, or the delete of a deleted memory. Nil for a deleted vault.
func (b *Replication) RecreateChange(ctx context.Context, stream Stream) (out []Outgoing, err error) {
	err = b.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		out = nil
		s := &memory.CallTx{Kernel: b.Kernel, Tx: tx, User: memory.User{UserID: stream.UserID}}
		o := Outgoing{Stream: stream.ID, Remote: stream.RemoteID, Seq: 1, ID: stream.ID, Op: store.OpPut}
		found, err := s.FindAny(ctx, stream.ID)
		if err != nil {
			return err
		}
		v, unknown := s.Vault(ctx, stream.ID)
		s.Memory.MemoryID = stream.ID
		deleted, err := s.WasDeleted(ctx, stream.ID)
		switch {
		case err != nil:
			return err
		case found:
			if v, err = s.Vault(ctx, s.Memory.VaultID); err != nil {
				return err
			}
			o.Kind, o.Key = memory.KindMemory, memory.HubKey("PUT", "restored", stream.ID)
			doc := s.Memory.Doc(o.Key, v)
			if doc.ProjectUIDs, err = projectUIDs(ctx, s); err != nil {
				return err
			}
			o.Doc, err = json.Marshal(doc)
		case deleted:
			o.Kind, o.Op, o.Key = memory.KindMemory, store.OpDelete, memory.HubKey("DELETE", "restored", stream.ID)
			o.Doc, err = json.Marshal(memory.KeyDoc{Key: o.Key})
		case unknown == nil:
			o.Kind, o.Key = memory.KindVault, memory.HubKey("PUT", "restored", stream.ID)
			o.Doc, err = json.Marshal(v.Doc(o.Key))
		default:
			return nil
		}
		out = []Outgoing{o}
		return err
	})
	return out, err
}

// NextMissing returns the next marked rows of a stream as changes, in the order of the hub's
// numbers: the present rows under their old keys and ids.
func (b *Replication) NextMissing(ctx context.Context, stream Stream, limit int) (out []Outgoing, err error) {
	err = b.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		out = nil
		s := &memory.CallTx{Kernel: b.Kernel, Tx: tx, User: memory.User{UserID: stream.UserID}}
		err := tx.Each(ctx, func(rows *sql.Rows) error {
			o := Outgoing{Stream: stream.ID, Remote: stream.RemoteID, Seq: int64(len(out) + 1), Op: store.OpPut}
			err := rows.Scan(&o.Key, &o.Kind)
			out = append(out, o)
			return err
		}, selectNextMissing, stream.ID, limit)
		for i := range out {
			if err == nil {
				err = document(ctx, s, &out[i])
			}
		}
		return err
	})
	return out, err
}

// document sets the document of a change to that of its row.
func document(ctx context.Context, s *memory.CallTx, o *Outgoing) error {
	if o.Kind == memory.KindEntry {
		e, found, err := contents.EntryByHubKey(ctx, s, o.Key)
		if err != nil || !found {
			return err
		}
		doc := e.Doc()
		o.ID, doc.LocalID = e.EntryID, ""
		o.Doc, err = json.Marshal(doc)
		return err
	}
	d := contents.ContextDoc{Key: o.Key}
	err := s.Tx.Get(ctx, []any{&d.ContextID, &d.SessionID, &d.Markdown, &d.UpdatedAt, &d.Trace, &d.ConflictWith}, selectContextDoc, o.Key)
	if err == nil {
		o.ID = d.ContextID
		o.Doc, err = json.Marshal(d)
	}
	return err
}

// ConfirmResent stores the result of sending a row again. A row that the hub has refused gets its
// old number; the next pull updates it.
func (b *Replication) ConfirmResent(ctx context.Context, m memory.Membership, lease follow.Lease, o Outgoing, out Outcome) error {
	return b.replicatorTx(ctx, m, []follow.Lease{lease}, func(ctx context.Context, s *memory.CallTx) error {
		taken := out.Status >= 200 && out.Status < 300
		switch {
		case o.Kind == memory.KindEntry && taken:
			e, found, err := contents.EntryByHubKey(ctx, s, o.Key)
			if err != nil || !found {
				return err
			}
			s.User = memory.User{UserID: e.ActorID}
			if _, err = s.FindAny(ctx, e.MemoryID); err != nil {
				return err
			}
			return contents.Flip(ctx, s, &e, out.EntryID, memory.Clamped(out.CreationTime), out.HubSeq)
		case o.Kind == memory.KindContext && taken:
			var at any
			if !out.CreationTime.IsZero() {
				at = memory.Clamped(out.CreationTime)
			}
			return s.Exec(ctx, confirmContext, o.Key, out.HubSeq, at)
		case o.Kind == memory.KindEntry:
			return s.Exec(ctx, unmarkEntry, o.Key)
		}
		return s.Exec(ctx, unmarkContext, o.Key)
	})
}

// LaterChanges returns the patches and deletes of a stream. They are idempotent at the hub.
func (b *Replication) LaterChanges(ctx context.Context, stream Stream) (out []Outgoing, err error) {
	err = b.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		out = nil
		add := func(id, op, key string, doc []byte) {
			out = append(out, Outgoing{Stream: stream.ID, Remote: stream.RemoteID, Seq: int64(len(out) + 1), Kind: memory.KindEntry, ID: id, Op: op, Key: key, Doc: doc})
		}
		err := tx.Each(ctx, func(rows *sql.Rows) error {
			var id, doc string
			var d memory.KeyDoc
			err := rows.Scan(&id, &doc)
			if err == nil {
				err = json.Unmarshal([]byte(doc), &d)
			}
			if d.Key != "" {
				add(id, memory.OpPatch, d.Key, []byte(doc))
			}
			return err
		}, selectPatches, stream.ID)
		if err != nil {
			return err
		}
		return tx.Each(ctx, func(rows *sql.Rows) error {
			var name string
			if err := rows.Scan(&name); err != nil {
				return err
			}
			id, ok := rules.ParseID(name)
			if !ok || id == stream.ID {
				return nil
			}
			d := contents.EntryDeleteDoc{Key: memory.HubKey("DELETE", "restored", id), EntryID: id}
			doc, err := json.Marshal(d)
			add(id, store.OpDelete, d.Key, doc)
			return err
		}, selectTombstones, stream.ID)
	})
	return out, err
}

// FinishRestore sets a stream without marked rows to the state StreamReady.
func (b *Replication) FinishRestore(ctx context.Context, m memory.Membership, lease follow.Lease, stream string) error {
	return b.replicatorTx(ctx, m, []follow.Lease{lease}, func(ctx context.Context, s *memory.CallTx) error {
		var key, kind string
		err := s.Tx.Get(ctx, []any{&key, &kind}, selectMissing, stream)
		if errors.Is(err, sql.ErrNoRows) {
			err = ready(ctx, s, stream)
		}
		return err
	})
}
