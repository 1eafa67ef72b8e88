package capture

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"
	"time"

	"cairn/internal/fault"
	"cairn/internal/observation"
	"cairn/internal/project"
	"cairn/internal/store"
)

// MarkArgs describes a note that a user adds to the history.
type MarkArgs struct {
	Text    string
	Project string // id or alias, "" for the project of Cwd
	Session string // "" for the project's newest session that was active within a day
	Cwd     string
	Pin     bool
}

// Mark stores a marker and returns its id (observations §11.2). Without a session, the marker
// goes to the project's newest session that was active within 24 hours, else to a new session
// mark-<unix time>. A blank text is Invalid; an unknown session or project is NotFound. Each
// call stores a new marker. Without a store it only validates the arguments.
func Mark(ctx context.Context, svc *observation.Service, a MarkArgs) (id int64, err error) {
	text, redacted := svc.Config.Filter.Head(strings.TrimSpace(a.Text), 2000)
	if strings.TrimSpace(text) == "" {
		return 0, fault.New(fault.Invalid, "invalid_argument", "the text of a mark must not be blank")
	}
	place, err := project.Locate(a.Cwd, svc.Config.Home)
	if err != nil {
		return 0, err
	}
	d := draft{Type: observation.TypeMarker, Content: text}
	if redacted {
		d.Meta = observation.Metadata{"redacted": true}
	}
	err = write(ctx, svc, func(ctx context.Context, tx *store.Tx) error {
		w, err := markSession(ctx, svc, tx, a, place)
		if err != nil {
			return err
		}
		if err = w.findParent(ctx, tx); err != nil {
			return err
		}
		if id, err = w.insert(ctx, tx, d); err != nil || !a.Pin {
			return err
		}
		_, err = tx.Exec(ctx, updatePinned, 1, id)
		return err
	})
	return id, err
}

// write runs fn in a transaction. Without a store it uses a temporary one, so nothing persists.
func write(ctx context.Context, svc *observation.Service, fn func(ctx context.Context, tx *store.Tx) error) error {
	if svc.Store == nil {
		return store.Scratch(ctx, time.Unix(0, 0), fn)
	}
	return svc.Store.Write(ctx, store.Normal, fn)
}

// markSession finds or creates the session for a marker.
func markSession(ctx context.Context, svc *observation.Service, tx *store.Tx, a MarkArgs, place project.Location) (*writing, error) {
	now := tx.Now().Unix()
	w := &writing{event: observation.Event{Source: "Mark"}, at: now, place: place}
	p, err := markProject(ctx, tx, a.Project, place)
	if err != nil {
		return nil, err
	}
	id := a.Session
	if id == "" {
		err := tx.Get(ctx, []any{&id}, selectActiveSession, p.ID, now-24*60*60)
		if errors.Is(err, sql.ErrNoRows) {
			w.session, err = project.NewSession(ctx, tx, "mark-"+strconv.FormatInt(now, 10), p)
			w.project = p
			return w, err
		}
		if err != nil {
			return nil, err
		}
	}
	ses, ok, err := project.FindSession(ctx, tx, id)
	if err == nil && !ok {
		err = observation.SessionNotFound(id)
	}
	w.session, w.project = ses, p
	return w, err
}

func markProject(ctx context.Context, tx *store.Tx, name string, place project.Location) (project.Project, error) {
	if name == "" {
		return project.Resolve(ctx, tx, place)
	}
	p, ok, err := project.Find(ctx, tx, name)
	if err == nil && !ok {
		err = project.NotFound(name)
	}
	return p, err
}

// PinArgs selects the rows to pin or unpin: ids, a whole session, or a file's rows. Exactly one
// of these is set.
type PinArgs struct {
	IDs     []int64
	Session string
	File    string
	Cwd     string // File is relative to it
	Unpin   bool
}

// Pin pins or unpins rows and returns the number of rows now in that state. An unknown target is
// NotFound and changes nothing. It is idempotent.
func Pin(ctx context.Context, svc *observation.Service, a PinArgs) (n int64, err error) {
	place, err := project.Locate(a.Cwd, svc.Config.Home)
	if err != nil {
		return 0, err
	}
	pinned := 1
	if a.Unpin {
		pinned = 0
	}
	err = svc.Store.Write(ctx, store.Normal, func(ctx context.Context, tx *store.Tx) error {
		ids, err := pinTargets(ctx, tx, a, place)
		if err != nil {
			return err
		}
		n = int64(len(ids))
		for _, id := range ids {
			if _, err := tx.Exec(ctx, updatePinned, pinned, id); err != nil {
				return err
			}
		}
		return nil
	})
	return n, err
}

func pinTargets(ctx context.Context, tx *store.Tx, a PinArgs, place project.Location) (ids []int64, err error) {
	collect := func(query string, args ...any) error {
		return tx.Each(ctx, func(r *sql.Rows) error {
			var id int64
			err := r.Scan(&id)
			ids = append(ids, id)
			return err
		}, query, args...)
	}
	var missing error
	switch {
	case a.Session != "":
		err, missing = collect(selectSessionIDs, a.Session), observation.SessionNotFound(a.Session)
	case a.File != "":
		missing = fault.Newf(fault.NotFound, "not_found", "no observation touches %s", a.File)
		p, ok, ferr := project.Current(ctx, tx, place)
		if ferr != nil || !ok {
			return nil, errors.Join(ferr, missing)
		}
		err = collect(selectFileIDs, p.Key, place.Within(p).PathKey(a.File))
	default:
		for _, id := range a.IDs {
			before := len(ids)
			if err := collect(selectID, id); err != nil {
				return nil, err
			}
			if len(ids) == before {
				return nil, fault.Newf(fault.NotFound, "not_found", "no observation has the id %d", id)
			}
		}
	}
	if err == nil && len(ids) == 0 {
		err = missing
	}
	return ids, err
}
