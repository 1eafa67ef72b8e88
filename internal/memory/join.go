package memory

import (
	"context"

	"cairn/internal/fault"
	"cairn/internal/store"
)

const (
	updateJoined = `UPDATE memory_users SET hub_url = ?2, hub_user = ?3 WHERE user_id = ?1`
	skipUpload   = `UPDATE memory_streams SET acked_seq = head_seq, sent_seq = head_seq WHERE user_id = ?`
	updateLeft   = `UPDATE memory_users SET hub_url = NULL, hub_user = NULL WHERE user_id = ?`
	countPending = `SELECT count(*) FROM memory_entries WHERE user_id = ? AND synced = 0`
)

// Join connects a local user to a hub, where it is hubUser; whatever process writes
// from then on, its rows are inflight until that hub confirms them. upload says
// whether what is here already is to be sent, from the log's start.
//
// Errors: CodeNotFound for an unknown user, CodeJoined (Conflict) for one that is
// joined to another hub or as another user; joining as before changes nothing.
func (b *Book) Join(ctx context.Context, local, url, hubUser string, upload bool) error {
	hub, err := uuidArg("user", hubUser)
	if err != nil {
		return err
	}
	return b.write(ctx, func(ctx context.Context, tx *store.Tx) error {
		u, err := findUser(ctx, tx, local)
		switch {
		case err != nil:
			return err
		case u.ID == "":
			return notFound("user")
		case u.HubURL == url && u.HubUser == hub:
			return nil
		case u.hub():
			return failure(fault.Conflict, CodeJoined, "leave that hub first, with `cairn hub leave`", "the user is joined to another hub",
				"hub", u.HubURL)
		}
		if _, err = tx.Exec(ctx, updateJoined, local, url, hub); err == nil && !upload {
			_, err = tx.Exec(ctx, skipUpload, local)
		}
		return err
	})
}
