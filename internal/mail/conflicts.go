package mail

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"time"

	"cairn/internal/store"
)

// CheckArgs are the arguments of check_file_reservation_conflicts.
type CheckArgs struct {
	ProjectKey string   `arg:"project_key,required"`
	Paths      []string `arg:"paths,required" about:"What to look up, at most 200. Paths or globs relative to the repository's root: * and ? stay inside a segment, ** is any depth, a folder covers what is below it."` // 1 to 200
	AgentName  string   `arg:"agent_name" about:"Your own name: your reservations do not count as conflicts."`
	Shared     bool     `arg:"exclusive,not" about:"false: only exclusive reservations count as conflicts."`
}

// Checked is what check_file_reservation_conflicts answers; the lists are never
// nil. A path is in one of them, as it was given.
type Checked struct {
	Free      []string      `json:"free"`
	Conflicts []CheckedPath `json:"conflicts"`
}

// CheckedPath is a path that is not free.
type CheckedPath struct {
	Path    string          `json:"path"`
	Holders []CheckedHolder `json:"holders"`
}

// CheckedHolder is a reservation that stands in the way.
type CheckedHolder struct {
	ID          int64   `json:"id"`
	Agent       string  `json:"agent"`
	PathPattern string  `json:"path_pattern"`
	Exclusive   bool    `json:"exclusive"`
	Advisory    bool    `json:"advisory"`
	Reason      string  `json:"reason"`
	Created     Time    `json:"created_ts"`
	Expires     Time    `json:"expires_ts"`
	Branch      *string `json:"branch"`
	Worktree    *string `json:"worktree"`
	Stale       bool    `json:"stale"`
}

// CheckFileReservationConflicts reports which paths an agent could reserve now, and
// who holds the others. It changes nothing.
//
// Errors: EMPTY_PATHS, INVALID_PATH, INVALID_ARGUMENT for more than 200 paths,
// NOT_FOUND for the project and the agent.
func (o *Service) CheckFileReservationConflicts(ctx context.Context, c Caller, a CheckArgs) (Checked, error) {
	out := Checked{Free: []string{}, Conflicts: []CheckedPath{}}
	t, relative, err := o.aim(ctx, c, a.ProjectKey, a.Paths)
	if err != nil {
		return out, toFault(err)
	}
	watch := &watch{found: map[int64]*watched{}}
	var found [][]*held
	err = o.readFrom(ctx, c, t, func(ctx context.Context, s *callTx) error {
		all, err := s.wishes(a.Paths, relative)
		if err != nil {
			return err
		}
		if a.AgentName != "" {
			if s.me, err = s.agent(ctx, a.AgentName); err != nil {
				return err
			}
		}
		if err := s.settle(ctx); err != nil {
			return err
		}
		near, err := s.near(ctx, all)
		if err != nil {
			return err
		}
		watch.of(s)
		for _, w := range all {
			holders, _, err := s.conflicts(ctx, near, w.pattern, !a.Shared)
			if err != nil {
				return err
			}
			if len(holders) == 0 {
				out.Free = append(out.Free, w.given)
				continue
			}
			out.Conflicts = append(out.Conflicts, CheckedPath{Path: w.given})
			found = append(found, holders)
			for _, h := range holders {
				if err := watch.add(ctx, h.Reservation, h.lastActive, h.worktree); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err == nil {
		err = watch.look(ctx, c)
	}
	for i, holders := range found {
		for _, h := range holders {
			stale, _ := watch.signs(h.ID)
			out.Conflicts[i].Holders = append(out.Conflicts[i].Holders, CheckedHolder{
				h.ID, h.Agent, h.PathPattern, h.Exclusive, h.Advisory, h.Reason, h.Created, h.Expires, h.branch, h.worktree, stale,
			})
		}
	}
	return out, toFault(err)
}

// watch is what is to be found out about some reservations of one project.
type watch struct {
	*Service
	tx    *store.Tx
	p     *Project
	now   Time
	found map[int64]*watched // by the reservation's number
	mail  map[int64]Time     // by the agent's
}

// of says in which scope the reservations are.
func (w *watch) of(s *callTx) {
	w.Service, w.tx, w.p, w.now, w.mail = s.Service, s.tx, s.p, s.now, map[int64]Time{}
}

// add notes a reservation, with what rows tell about its holder.
func (w *watch) add(ctx context.Context, r *Reservation, lastActive Time, worktree *string) (err error) {
	if w.found[r.ID] != nil {
		return nil
	}
	mail, ok := w.mail[r.agentID]
	if !ok && r.Released == 0 {
		if mail, err = mailActivity(ctx, w.tx, r.agentID); err != nil {
			return err
		}
		w.mail[r.agentID] = mail
	}
	w.found[r.ID] = &watched{
		pattern: storedPattern(r.PathPattern, w.p.FoldsCase), worktree: worktree, agent: lastActive, mail: mail, ended: r.Released != 0,
	}
	return nil
}

// look finds out the rest, after the transaction.
func (w *watch) look(ctx context.Context, c Caller) error {
	all := make([]*watched, 0, len(w.found))
	for _, id := range slices.Sorted(maps.Keys(w.found)) {
		all = append(all, w.found[id])
	}
	return w.observe(ctx, c, w.p, w.now, all)
}

func (w *watch) signs(id int64) (bool, HolderActivity) { return w.Service.signs(w.found[id], w.now) }

// ListedReservation is a reservation as the resource file_reservations shows it.
type ListedReservation struct {
	ID          int64  `json:"id"`
	Agent       string `json:"agent"`
	PathPattern string `json:"path_pattern"`
	Exclusive   bool   `json:"exclusive"`
	Reason      string `json:"reason"`
	Created     Time   `json:"created_ts"`
	Expires     Time   `json:"expires_ts"`
	Released    Time   `json:"released_ts"`
	Stale       bool   `json:"stale"`
	HolderActivity

	Ended bool `json:"-"` // it was released because its session had ended
}

func (r *Reservation) listed() ListedReservation {
	return ListedReservation{
		ID: r.ID, Agent: r.Agent, PathPattern: r.PathPattern, Exclusive: r.Exclusive, Reason: r.Reason, Created: r.Created, Expires: r.Expires,
		Released: r.Released, Ended: r.ReleaseKind != nil && *r.ReleaseKind == releasedSession,
	}
}

const (
	listedColumns  = `SELECT ` + heldColumns + `FROM mail_reservations r JOIN mail_agents a ON a.id = r.agent_id `
	selectListing  = listedColumns + `WHERE r.project_id = ? AND r.released_ts IS NULL AND r.expires_ts > ? ORDER BY r.id`
	selectEveryOne = listedColumns + `WHERE r.project_id = ? ORDER BY r.id`

	selectJustEnded = `SELECT ` + heldColumns + `FROM (SELECT id FROM mail_reservations WHERE project_id = ?1 ORDER BY ordinal DESC LIMIT 500) n
JOIN mail_reservations r ON r.id = n.id JOIN mail_agents a ON a.id = r.agent_id
WHERE ifnull(r.released_ts, r.expires_ts) BETWEEN ?2 AND ?3 ORDER BY ifnull(r.released_ts, r.expires_ts) DESC, r.id DESC LIMIT 50`
)

// EndedReservations lists the reservations of a project that were released or expired since a
// time, the last to end first: at most 50, of the 500 that were made last. Whether they were
// stale is not said. It changes nothing.
//
// Errors: NOT_FOUND for the project.
func (o *Service) EndedReservations(ctx context.Context, c Caller, projectKey string, since time.Time) ([]ListedReservation, error) {
	out := []ListedReservation{}
	err := o.readIn(ctx, c, projectKey, func(ctx context.Context, s *callTx) error {
		return s.tx.Each(ctx, func(rows *sql.Rows) error {
			h, err := s.scanHeld(rows)
			if err == nil {
				out = append(out, h.listed())
			}
			return err
		}, selectJustEnded, s.p.ID, since.UnixNano(), s.now)
	})
	return out, toFault(err)
}

// FileReservations lists the reservations of a project by number: those that are
// active, or with ended all that there ever were, of which those that were released
// show no signs. It changes nothing.
//
// Errors: NOT_FOUND for the project.
func (o *Service) FileReservations(ctx context.Context, c Caller, projectKey string, ended bool) ([]ListedReservation, error) {
	out := []ListedReservation{}
	watch := &watch{found: map[int64]*watched{}}
	err := o.readIn(ctx, c, projectKey, func(ctx context.Context, s *callTx) error {
		if err := s.settle(ctx); err != nil {
			return err
		}
		watch.of(s)
		query, args := selectListing, []any{s.p.ID, s.now}
		if ended {
			query, args = selectEveryOne, args[:1]
		}
		return s.tx.Each(ctx, func(rows *sql.Rows) error {
			h, err := s.scanHeld(rows)
			if err != nil {
				return err
			}
			out = append(out, h.listed())
			return watch.add(ctx, h.Reservation, h.lastActive, h.worktree)
		}, query, args...)
	})
	if err == nil {
		err = watch.look(ctx, c)
	}
	if err != nil {
		return nil, toFault(err)
	}
	for i := range out {
		out[i].Stale, out[i].HolderActivity = watch.signs(out[i].ID)
	}
	return out, nil
}
