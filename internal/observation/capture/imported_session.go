package capture

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"cairn/internal/observation"
	"cairn/internal/project"
	"cairn/internal/store"
)

// importedSession caches a session in one working directory for one transaction of an import.
// Session and project are looked up once. Changes by later events are written once, at the end
// of the transaction.
type importedSession struct {
	place   project.Location
	harness string
	session project.Session
	project project.Project
	first   int64 // Unix seconds: the earliest event recorded in the session
	last    int64 // the latest event, recorded or not
	ended   int64 // the latest end of a turn or session not recorded yet, 0 if none
}

type importedKey struct{ session, cwd string }

func (k importedKey) compare(l importedKey) int {
	return cmp.Or(strings.Compare(k.session, l.session), strings.Compare(k.cwd, l.cwd))
}

// findSession determines an event's session and project, from an earlier event of the
// transaction if possible.
func (b *importBatch) findSession(ctx context.Context, tx *store.Tx, w *writing) error {
	e := &w.event
	key := importedKey{e.Session, e.Cwd}
	s := b.sessions[key]
	if s == nil || e.Model != "" || e.At.Unix() < s.first {
		place := w.place
		if err := w.findSession(ctx, tx, project.Process{}); err != nil {
			return err
		}
		if s == nil {
			b.sessions[key] = &importedSession{
				place: place, harness: e.Harness, session: w.session, project: w.project, first: w.at, last: w.at,
			}
			return nil
		}
		s.session, s.first = w.session, min(s.first, w.at)
		return nil
	}
	w.at = e.At.Unix()
	w.setSession(s.session, s.project)
	s.last = max(s.last, w.at)
	if e.Kind == observation.SessionEnd || e.TurnEnds {
		s.ended = max(s.ended, w.at)
	}
	return nil
}

// touchSessions records the latest event and latest end of each session of the transaction.
func (b *importBatch) touchSessions(ctx context.Context, tx *store.Tx) error {
	for _, key := range slices.SortedFunc(maps.Keys(b.sessions), importedKey.compare) {
		s := b.sessions[key]
		for _, told := range [...]project.SessionEvent{
			{At: s.ended, Ends: true}, {At: s.last},
		} {
			if told.At == 0 {
				continue
			}
			told.ID, told.Place, told.Project = key.session, s.place, &s.project
			told.Harness, told.Imported = s.harness, true
			if _, _, err := project.RecordSession(ctx, tx, told); err != nil {
				return err
			}
		}
	}
	return nil
}
