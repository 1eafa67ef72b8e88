package record

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
)

const (
	maxListed   = 50 // maximum number of records of a kind in an overview
	newestCount = 20 // number of events in an overview

	selectRoots = `SELECT ` + refColumns + ` FROM records r INDEXED BY records_by_parent
WHERE r.project_key = ?1 AND r.parent IS NULL ORDER BY r.number LIMIT +?2`
	selectByState = `SELECT ` + refColumns + ` FROM records r INDEXED BY records_by_state
WHERE r.project_key = ?1 AND r.state = ?3 ORDER BY r.path LIMIT +?2`
	selectTotals = `SELECT
(SELECT count(*) FROM records WHERE project_key = ?1 AND parent IS NULL),
(SELECT count(*) FROM records WHERE project_key = ?1 AND state = 'OPEN'),
(SELECT count(*) FROM records WHERE project_key = ?1 AND state = 'LATER')`
	selectOpenSessions = `SELECT s.id, r.session_key, r.last_sync_tick FROM record_sessions r JOIN sessions s ON s.key = r.session_key
WHERE r.project_key = ? AND r.closed = 0 ORDER BY r.last_activity DESC, r.session_key DESC LIMIT +?`
	selectSessionCount = `SELECT count(*) FROM record_sessions WHERE project_key = ? AND closed = 0`
	selectActive       = `SELECT number FROM activations WHERE project_key = ? AND session_key = ? ORDER BY at, number`
)

// Overview returns the state of the project (records §2, get_project_overview). It
// creates nothing; a current project without a row is empty.
//
// Errors: CodeProjectNotFound, CodeInvalid for at.
func (b *Service) Overview(ctx context.Context, a OverviewArgs) (out Overview, err error) {
	err = b.read(ctx, a.Caller, a.At, func(ctx context.Context, s *callTx) error {
		p, err := s.details(ctx)
		if err != nil {
			return err
		}
		out.At = s.then
		out.Project = OverviewProject{p.ID, p.Name, p.Description, p.Tick}
		if err := s.openSessions(ctx, a.AllSessions, &out); err != nil {
			return err
		}
		if out.RootRecords, err = s.refs(ctx, selectRoots, s.p.Key, maxListed); err != nil {
			return err
		}
		if out.OpenRecords, err = s.refs(ctx, selectByState, s.p.Key, maxListed, string(Open)); err != nil {
			return err
		}
		if out.LaterRecords, err = s.refs(ctx, selectByState, s.p.Key, maxListed, string(Later)); err != nil {
			return err
		}
		if err := s.tx.Get(ctx, []any{&out.Totals.Roots, &out.Totals.Open, &out.Totals.Later}, selectTotals, s.p.Key); err != nil {
			return err
		}
		out.RecentActivity, err = s.activity(ctx, ActivityArgs{Limit: newestCount}, parsedActivity{})
		return err
	})
	return out, err
}

// openSessions adds the open sessions to out, and their number if it does not list all.
func (s *callTx) openSessions(ctx context.Context, all bool, out *Overview) error {
	list, limit := []OpenSession{}, maxListed
	if all {
		limit = -1
	}
	err := s.tx.Each(ctx, func(rows *sql.Rows) error {
		var o OpenSession
		var key int64
		if err := rows.Scan(&o.ID, &key, &o.LastSyncTick); err != nil {
			return err
		}
		o.TickGap = s.tick - o.LastSyncTick
		var err error
		o.ActiveRecords, err = s.activeOf(ctx, key)
		list = append(list, o)
		return err
	}, selectOpenSessions, s.p.Key, limit)
	if out.OpenSessions = list; err != nil || len(list) != limit {
		return err
	}
	var n int
	if err := s.tx.Get(ctx, []any{&n}, selectSessionCount, s.p.Key); err != nil {
		return err
	}
	if n > limit {
		out.Totals.Sessions = n
	}
	return nil
}

// activeOf returns the records that a session has active, in the order of activation.
func (s *callTx) activeOf(ctx context.Context, session int64) ([]string, error) {
	ids := []string{}
	err := s.tx.Each(ctx, func(rows *sql.Rows) error {
		var number int64
		err := rows.Scan(&number)
		ids = append(ids, formatID(number))
		return err
	}, selectActive, s.p.Key, session)
	return ids, err
}

const (
	// Arguments ?1 to ?3 are those of callTx.shown.
	selectTree = `SELECT ` + refColumns + ` FROM records r
WHERE r.project_key = ?1 AND r.path > ?4 AND r.path < ?5 AND (?6 = 0 OR length(r.path) <= 4 * ?6)
  AND (?7 IS NULL OR r.state IN (SELECT value FROM json_each(?7))) AND (?8 IS NULL OR r.type IN (SELECT value FROM json_each(?8)))
ORDER BY r.path LIMIT coalesce(nullif(?9, 0), -1)`

	countStates = `SELECT r.state, count(*) FROM records r WHERE r.project_key = ? GROUP BY r.state`

	selectQuestions = `SELECT ` + refColumns + ` FROM records r INDEXED BY records_by_state
WHERE r.project_key = ? AND r.state = 'OPEN' AND r.type = 'question' ORDER BY r.path DESC LIMIT +?`
)

// List lists records, parents first, siblings by creation (records §2, list_records).
// Without records the list is empty. Filters hide records, not their descendants.
//
// Errors: CodeNotFound for ParentID, CodeInvalid for states and at.
func (b *Service) List(ctx context.Context, a ListArgs) (list []Ref, err error) {
	if err := checkStates("states", a.States); err != nil {
		return nil, err
	}
	states, err := filterOf(a.States)
	if err != nil {
		return nil, err
	}
	types, err := filterOf(a.Types)
	if err != nil {
		return nil, err
	}
	err = b.readRecords(ctx, a.Caller, a.At, func(ctx context.Context, s *callTx) (err error) {
		above, below, levels := []byte{}, behindAll(), 0
		depth := min(max(a.Depth, 1), maxDocumentDepth) // no tree is deeper
		switch {
		case a.ParentID != "":
			r, err := s.mustFind(ctx, a.ParentID)
			if err != nil {
				return err
			}
			above, below, levels = r.path, behind(r.path), len(r.path)/4+depth
		case a.Roots:
			levels = depth
		}
		query, args := s.shown(selectTree, above, below, levels, states, types, a.Limit)
		list, err = s.refs(ctx, query, args...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// CountStates counts the records of a project by state; states without a record are missing.
func (b *Service) CountStates(ctx context.Context, c Caller) (counts map[State]int, err error) {
	counts = map[State]int{}
	err = b.read(ctx, c, "", func(ctx context.Context, s *callTx) error {
		return s.tx.Each(ctx, func(rows *sql.Rows) error {
			var state State
			var n int
			err := rows.Scan(&state, &n)
			counts[state] = n
			return err
		}, countStates, s.p.Key)
	})
	return counts, err
}

// OpenQuestions returns the last n open records of type question in a project's tree, the
// last one first. Without records the list is empty.
func (b *Service) OpenQuestions(ctx context.Context, c Caller, n int) (list []Ref, err error) {
	err = b.read(ctx, c, "", func(ctx context.Context, s *callTx) error {
		list, err = s.refs(ctx, selectQuestions, s.p.Key, n)
		return err
	})
	return list, err
}

// behindAll returns an upper bound of all paths.
func behindAll() []byte { return slices.Repeat([]byte{0xff}, 4) }

// filterOf returns a list for json_each, or nil if it is empty and filters nothing.
func filterOf[T any](list []T) (any, error) {
	if len(list) == 0 {
		return nil, nil
	}
	return pack(list)
}

// GetRef returns one record's reference without activating it.
//
// Errors: CodeNotFound, CodeInvalid for at.
func (b *Service) GetRef(ctx context.Context, a GetRefArgs) (r Ref, err error) {
	err = b.readRecords(ctx, a.Caller, a.At, func(ctx context.Context, s *callTx) error {
		number, err := s.mustExist(ctx, a.ID)
		if err != nil {
			return err
		}
		list, err := s.ref(ctx, number)
		if err == nil && len(list) == 1 {
			r = list[0]
		}
		return err
	})
	return r, err
}

// Get returns one complete record without activating it, for people and pages. An agent
// that wants to change it must call Activate.
//
// Errors: CodeNotFound, CodeInvalid for at.
func (b *Service) Get(ctx context.Context, a GetRefArgs) (r Record, err error) {
	err = b.readRecords(ctx, a.Caller, a.At, func(ctx context.Context, s *callTx) error {
		found, err := s.mustFind(ctx, a.ID)
		r = found.Record
		return err
	})
	return r, err
}

const selectCiting = `SELECT ` + recordColumns + ` FROM records r INDEXED BY records_citing
WHERE r.project_key = ?1 AND r.cited IS NOT NULL
  AND EXISTS (SELECT 1 FROM json_each(r.cited) c WHERE c.value ->> 'path' = ?2) ORDER BY r.key`

// Citing returns the records of the project whose Cited contains a path, in order of
// creation. Without records the list is empty.
//
// Errors: CodeProjectNotFound.
func (b *Service) Citing(ctx context.Context, c Caller, path string) (list []Record, err error) {
	err = b.read(ctx, c, "", func(ctx context.Context, s *callTx) (err error) {
		list, err = s.records(ctx, selectCiting, s.p.Key, path)
		return err
	})
	return list, err
}

const selectLastSession = `SELECT r.session_key, r.closed, s.id FROM record_sessions r JOIN sessions s ON s.key = r.session_key
WHERE r.project_key = ? ORDER BY r.last_activity DESC, r.session_key DESC LIMIT 1`

// LastActive returns the records that the project's last session had active and that are
// OPEN now, at most limit, in the order of activation. It serves the start of a session
// (records §3). For a closed session these are the records that it had active when it was
// closed.
//
// Errors: CodeProjectNotFound.
func (b *Service) LastActive(ctx context.Context, c Caller, limit int) (list []Ref, err error) {
	list = []Ref{}
	err = b.read(ctx, c, "", func(ctx context.Context, s *callTx) error {
		ids, err := s.lastActive(ctx)
		if err != nil {
			return err
		}
		for _, id := range ids {
			number, ok := parseID(id)
			if !ok || len(list) == limit {
				continue
			}
			found, err := s.ref(ctx, number)
			if err != nil {
				return fmt.Errorf("%s: %w", id, err)
			}
			list = append(list, slices.DeleteFunc(found, func(r Ref) bool { return r.State != Open })...)
		}
		return nil
	})
	return list, err
}

func (s *callTx) lastActive(ctx context.Context) (ids []string, err error) {
	var key int64
	var closed bool
	var id string
	err = s.tx.Each(ctx, func(rows *sql.Rows) error { return rows.Scan(&key, &closed, &id) }, selectLastSession, s.p.Key)
	if err != nil || key == 0 {
		return nil, err
	}
	if !closed {
		return s.activeOf(ctx, key)
	}
	err = s.eachEvent(ctx, func(e happened) bool {
		ids = e.event.Records
		return e.event.Type != SessionClosed
	}, selectEventsOf, s.stream, id, s.until)
	return ids, err
}
