package project

import (
	"context"
	"database/sql"
	"encoding/json"

	"cairn/internal/store"
)

// Lineage names the sessions that continue each other: those of one harness in one
// checkout (amendments §B.7). A session whose harness or checkout is unknown has no
// lineage.
type Lineage struct{ Harness, Checkout string }

// IsKnown reports whether there is a lineage.
func (l Lineage) IsKnown() bool { return l.Harness != "" && l.Checkout != "" }

// Lineage returns the lineage of a session.
func (s *Session) Lineage() Lineage { return Lineage{s.Harness, s.Checkout} }

// isOpen reports whether a session may go on. Sessions without an event since the column
// checkout was added are not open.
func (s *Session) isOpen() bool { return s.ClosedAt == 0 && s.Checkout != "" }

// HasEnded reports whether a session has ended: its harness said so, another session
// replaced it, or the process of its harness no longer runs. A session with an unknown
// process is open until it is closed.
func (s *Session) HasEnded() bool {
	return s.ClosedAt != 0 || s.Process.PID != 0 && !s.Process.Runs()
}

// Checkout returns the root of the worktree at a place, with symbolic links resolved. In
// a bare repository it is the git directory, outside a repository the folder. It is ""
// for the zero Location.
func (p Location) Checkout() string {
	switch {
	case p.Root != "":
		return p.Root
	case p.Identity != "":
		return p.Identity
	}
	return p.Canonical()
}

const (
	// Sessions of a lineage, the one seen last first. Sessions from before the column
	// checkout count for the main worktree.
	selectLineage = `SELECT ` + sessionColumns + `, '' FROM sessions s JOIN projects r ON r.id = s.project_id
WHERE s.project_id = ? AND s.harness = ? AND ifnull(s.checkout, r.root) = ? AND s.key <> ? ORDER BY s.last_seen DESC, s.key DESC LIMIT +?`

	selectByKeys = `SELECT ` + sessionColumns + `, '' FROM json_each(?) j CROSS JOIN sessions s ON s.key = j.value
JOIN projects r ON r.id = s.project_id ORDER BY j.key`

	// The open sessions of a process and a lineage, besides one session.
	selectReplaced = `SELECT s.key FROM sessions s WHERE s.harness_pid = ? AND s.harness_pid_start = ?
AND s.harness = ? AND s.checkout = ? AND s.closed_at IS NULL AND s.key <> ?`

	closeSession = `UPDATE sessions SET closed_at = max(?, last_seen) WHERE key = ? AND closed_at IS NULL`
)

// maxLineage limits how many sessions of a lineage are read.
const maxLineage = 100

// LineageSessions returns the other sessions of the same lineage in the same project, the
// one seen last first, at most 100; none if the session has no lineage.
func LineageSessions(ctx context.Context, tx *store.Tx, s Session) ([]Session, error) {
	if !s.Lineage().IsKnown() {
		return nil, nil
	}
	return sessions(ctx, tx, selectLineage, s.ProjectID, s.Harness, s.Checkout, s.Key, maxLineage)
}

// SessionsByKey returns the sessions with some keys, in the order of the keys. Missing
// sessions are left out.
func SessionsByKey(ctx context.Context, tx *store.Tx, keys []int64) ([]Session, error) {
	list, err := json.Marshal(keys)
	if err != nil || len(keys) == 0 {
		return nil, err
	}
	return sessions(ctx, tx, selectByKeys, string(list))
}

// sessions reads sessions without their digests. Sessions from before the column checkout
// count for the main worktree.
func sessions(ctx context.Context, tx *store.Tx, query string, args ...any) (all []Session, err error) {
	err = tx.Each(ctx, func(rows *sql.Rows) error {
		var s Session
		var own Project
		err := rows.Scan(scanSession(&s, &own)...)
		if s.Checkout == "" {
			s.Checkout = own.Root
		}
		all = append(all, s)
		return err
	}, query, args...)
	return all, err
}

// Close records that a session ended without an event, at the time of the transaction. A
// later prompt or start of the session opens it again. Closing a closed session changes
// nothing.
func Close(ctx context.Context, tx *store.Tx, key int64) error {
	_, err := tx.Exec(ctx, closeSession, tx.Now().Unix(), key)
	return err
}

// closeReplaced closes the session that a new one replaces: the only other open session
// of its process and lineage. With several open sessions it is unknown which one was
// replaced, so none is closed.
func closeReplaced(ctx context.Context, tx *store.Tx, s Session) error {
	if s.Process.PID == 0 || !s.Lineage().IsKnown() {
		return nil
	}
	var keys []int64
	err := tx.Each(ctx, func(rows *sql.Rows) error {
		var key int64
		err := rows.Scan(&key)
		keys = append(keys, key)
		return err
	}, selectReplaced, s.Process.PID, s.Process.Start, s.Harness, s.Checkout, s.Key)
	if err != nil || len(keys) != 1 {
		return err
	}
	return Close(ctx, tx, keys[0])
}
