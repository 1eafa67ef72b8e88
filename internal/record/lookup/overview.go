package lookup

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"cairn/internal/record"
)

const (
	maxListed   = 50 // maximum number of records of a kind in an overview
	newestCount = 20 // number of events in an overview

	selectRoots = `SELECT ` + record.RefColumns + ` FROM records r INDEXED BY records_by_parent
WHERE r.project_key = ?1 AND r.parent IS NULL ORDER BY r.number LIMIT +?2`
	selectByState = `SELECT ` + record.RefColumns + ` FROM records r INDEXED BY records_by_state
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
func (b *Lookup) Overview(ctx context.Context, a record.OverviewArgs) (out record.Overview, err error) {
	err = b.Read(ctx, a.Caller, a.At, func(ctx context.Context, s *record.CallTx) error {
		p, err := s.Details(ctx)
		if err != nil {
			return err
		}
		out.At = s.Then
		out.Project = record.OverviewProject{ID: p.ID, Name: p.Name, Description: p.Description, Tick: p.Tick}
		if err := openSessions(ctx, s, a.AllSessions, &out); err != nil {
			return err
		}
		if out.RootRecords, err = s.Refs(ctx, selectRoots, s.Project.Key, maxListed); err != nil {
			return err
		}
		if out.OpenRecords, err = s.Refs(ctx, selectByState, s.Project.Key, maxListed, string(record.Open)); err != nil {
			return err
		}
		if out.LaterRecords, err = s.Refs(ctx, selectByState, s.Project.Key, maxListed, string(record.Later)); err != nil {
			return err
		}
		if err := s.Tx.Get(ctx, []any{&out.Totals.Roots, &out.Totals.Open, &out.Totals.Later}, selectTotals, s.Project.Key); err != nil {
			return err
		}
		out.RecentActivity, err = activityOf(ctx, s, record.ActivityArgs{Limit: newestCount}, parsedActivity{})
		return err
	})
	return out, err
}

// openSessions adds the open sessions to out, and their number if it does not list all.
func openSessions(ctx context.Context, s *record.CallTx, all bool, out *record.Overview) error {
	list, limit := []record.OpenSession{}, maxListed
	if all {
		limit = -1
	}
	err := s.Tx.Each(ctx, func(rows *sql.Rows) error {
		var o record.OpenSession
		var key int64
		if err := rows.Scan(&o.ID, &key, &o.LastSyncTick); err != nil {
			return err
		}
		o.TickGap = s.Tick - o.LastSyncTick
		var err error
		o.ActiveRecords, err = ActiveRecords(ctx, s, key)
		list = append(list, o)
		return err
	}, selectOpenSessions, s.Project.Key, limit)
	if out.OpenSessions = list; err != nil || len(list) != limit {
		return err
	}
	var n int
	if err := s.Tx.Get(ctx, []any{&n}, selectSessionCount, s.Project.Key); err != nil {
		return err
	}
	if n > limit {
		out.Totals.Sessions = n
	}
	return nil
}

// ActiveRecords returns the records that a session has active, in the order of activation.
func ActiveRecords(ctx context.Context, s *record.CallTx, session int64) ([]string, error) {
	ids := []string{}
	err := s.Tx.Each(ctx, func(rows *sql.Rows) error {
		var number int64
		err := rows.Scan(&number)
		ids = append(ids, record.FormatID(number))
		return err
	}, selectActive, s.Project.Key, session)
	return ids, err
}

const (
	// Arguments ?1 to ?3 are those of CallTx.Shown.
	selectTree = `SELECT ` + record.RefColumns + ` FROM records r
WHERE r.project_key = ?1 AND r.path > ?4 AND r.path < ?5 AND (?6 = 0 OR length(r.path) <= 4 * ?6)
  AND (?7 IS NULL OR r.state IN (SELECT value FROM json_each(?7))) AND (?8 IS NULL OR r.type IN (SELECT value FROM json_each(?8)))
ORDER BY r.path LIMIT coalesce(nullif(?9, 0), -1)`

	countStates = `SELECT r.state, count(*) FROM records r WHERE r.project_key = ? GROUP BY r.state`

	selectQuestions = `SELECT ` + record.RefColumns + ` FROM records r INDEXED BY records_by_state
WHERE r.project_key = ? AND r.state = 'OPEN' AND r.type = 'question' ORDER BY r.path DESC LIMIT +?`
)

// List lists records, parents first, siblings by creation (records §2, list_records).
// Without records the list is empty. Filters hide records, not their descendants.
//
// Errors: CodeNotFound for ParentID, CodeInvalid for states and at.
func (b *Lookup) List(ctx context.Context, a record.ListArgs) (list []record.Ref, err error) {
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
	err = b.ReadRecords(ctx, a.Caller, a.At, func(ctx context.Context, s *record.CallTx) (err error) {
		above, below, levels := []byte{}, behindAll(), 0
		depth := min(max(a.Depth, 1), record.MaxTreeDepth) // no tree is deeper
		switch {
		case a.ParentID != "":
			r, err := s.MustFind(ctx, a.ParentID)
			if err != nil {
				return err
			}
			above, below, levels = r.Path, record.Behind(r.Path), len(r.Path)/4+depth
		case a.Roots:
			levels = depth
		}
		query, args := s.Shown(selectTree, above, below, levels, states, types, a.Limit)
		list, err = s.Refs(ctx, query, args...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// CountStates counts the records of a project by state; states without a record are missing.
func (b *Lookup) CountStates(ctx context.Context, c record.Caller) (counts map[record.State]int, err error) {
	counts = map[record.State]int{}
	err = b.Read(ctx, c, "", func(ctx context.Context, s *record.CallTx) error {
		return s.Tx.Each(ctx, func(rows *sql.Rows) error {
			var state record.State
			var n int
			err := rows.Scan(&state, &n)
			counts[state] = n
			return err
		}, countStates, s.Project.Key)
	})
	return counts, err
}

// OpenQuestions returns the last n open records of type question in a project's tree, the
// last one first. Without records the list is empty.
func (b *Lookup) OpenQuestions(ctx context.Context, c record.Caller, n int) (list []record.Ref, err error) {
	err = b.Read(ctx, c, "", func(ctx context.Context, s *record.CallTx) error {
		list, err = s.Refs(ctx, selectQuestions, s.Project.Key, n)
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
	return record.PackList(list)
}

// GetRef returns one record's reference without activating it.
//
// Errors: CodeNotFound, CodeInvalid for at.
func (b *Lookup) GetRef(ctx context.Context, a record.GetRefArgs) (r record.Ref, err error) {
	err = b.ReadRecords(ctx, a.Caller, a.At, func(ctx context.Context, s *record.CallTx) error {
		number, err := s.MustExist(ctx, a.ID)
		if err != nil {
			return err
		}
		list, err := s.Ref(ctx, number)
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
func (b *Lookup) Get(ctx context.Context, a record.GetRefArgs) (r record.Record, err error) {
	err = b.ReadRecords(ctx, a.Caller, a.At, func(ctx context.Context, s *record.CallTx) error {
		found, err := s.MustFind(ctx, a.ID)
		r = found.Record
		return err
	})
	return r, err
}

const selectCiting = `SELECT ` + record.RecordColumns + ` FROM records r INDEXED BY records_citing
WHERE r.project_key = ?1 AND r.cited IS NOT NULL
  AND EXISTS (SELECT 1 FROM json_each(r.cited) c WHERE c.value ->> 'path' = ?2) ORDER BY r.key`

// Citing returns the records of the project whose Cited contains a path, in order of
// creation. Without records the list is empty.
//
// Errors: CodeProjectNotFound.
func (b *Lookup) Citing(ctx context.Context, c record.Caller, path string) (list []record.Record, err error) {
	err = b.Read(ctx, c, "", func(ctx context.Context, s *record.CallTx) (err error) {
		list, err = s.Records(ctx, selectCiting, s.Project.Key, path)
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
func (b *Lookup) LastActive(ctx context.Context, c record.Caller, limit int) (list []record.Ref, err error) {
	list = []record.Ref{}
	err = b.Read(ctx, c, "", func(ctx context.Context, s *record.CallTx) error {
		ids, err := lastActive(ctx, s)
		if err != nil {
			return err
		}
		for _, id := range ids {
			number, ok := record.ParseID(id)
			if !ok || len(list) == limit {
				continue
			}
			found, err := s.Ref(ctx, number)
			if err != nil {
				return fmt.Errorf("%s: %w", id, err)
			}
			list = append(list, slices.DeleteFunc(found, func(r record.Ref) bool { return r.State != record.Open })...)
		}
		return nil
	})
	return list, err
}

func lastActive(ctx context.Context, s *record.CallTx) (ids []string, err error) {
	var key int64
	var closed bool
	var id string
	err = s.Tx.Each(ctx, func(rows *sql.Rows) error { return rows.Scan(&key, &closed, &id) }, selectLastSession, s.Project.Key)
	if err != nil || key == 0 {
		return nil, err
	}
	if !closed {
		return ActiveRecords(ctx, s, key)
	}
	err = eachEvent(ctx, s, func(e happened) bool {
		ids = e.event.Records
		return e.event.Type != record.SessionClosed
	}, selectEventsOf, s.Stream, id, s.Until)
	return ids, err
}

func checkStates(field string, list []record.State) error {
	for _, s := range list {
		if err := record.CheckState(field, s); err != nil {
			return err
		}
	}
	return nil
}
