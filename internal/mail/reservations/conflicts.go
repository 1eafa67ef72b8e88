package reservations

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"time"

	"cairn/internal/mail"
	"cairn/internal/store"
)

// CheckArgs are the arguments of check_file_reservation_conflicts.
type CheckArgs struct {
	ProjectKey string   `arg:"project_key,required"`
	Paths      []string `arg:"paths,required" about:"What to look up, at most 200. Paths or globs relative to the repository's root: * and ? stay inside a segment, ** is any depth, a folder covers what is below it."` // 1 to 200
	AgentName  string   `arg:"agent_name" about:"Your own name: your reservations do not count as conflicts."`
	Shared     bool     `arg:"exclusive,not" about:"false: only exclusive reservations count as conflicts."`
}

// Checked is the result of check_file_reservation_conflicts. Its lists are never nil. Each path is
// in exactly one of them, as it was given.
type Checked struct {
	Free      []string      `json:"free"`
	Conflicts []CheckedPath `json:"conflicts"`
}

// CheckedPath is a path that is not free.
type CheckedPath struct {
	Path    string          `json:"path"`
	Holders []CheckedHolder `json:"holders"`
}

// CheckedHolder is a conflicting reservation.
type CheckedHolder struct {
	ID          int64     `json:"id"`
	Agent       string    `json:"agent"`
	PathPattern string    `json:"path_pattern"`
	Exclusive   bool      `json:"exclusive"`
	Advisory    bool      `json:"advisory"`
	Reason      string    `json:"reason"`
	Created     mail.Time `json:"created_ts"`
	Expires     mail.Time `json:"expires_ts"`
	Branch      *string   `json:"branch"`
	Worktree    *string   `json:"worktree"`
	Stale       bool      `json:"stale"`
}

// CheckFileReservationConflicts reports which paths an agent could reserve now, and who holds the
// others. It changes nothing.
//
// Errors: EMPTY_PATHS, INVALID_PATH, INVALID_ARGUMENT for more than 200 paths, NOT_FOUND for the
// project and the agent.
func (o *Reservations) CheckFileReservationConflicts(ctx context.Context, c mail.Caller, a CheckArgs) (Checked, error) {
	out := Checked{Free: []string{}, Conflicts: []CheckedPath{}}
	t, relative, err := ResolveTarget(ctx, o.Kernel, c, a.ProjectKey, a.Paths)
	if err != nil {
		return out, mail.Fault(err)
	}
	watch := &watch{found: map[int64]*watched{}}
	var found [][]*activeReservation
	err = o.ReadFrom(ctx, c, t, func(ctx context.Context, s *mail.CallTx) error {
		all, err := requestedPaths(s, a.Paths, relative)
		if err != nil {
			return err
		}
		if a.AgentName != "" {
			if s.Me, err = s.Agent(ctx, a.AgentName); err != nil {
				return err
			}
		}
		if err := AdvanceClock(ctx, s); err != nil {
			return err
		}
		near, err := OverlapCandidates(ctx, s, all)
		if err != nil {
			return err
		}
		watch.of(s)
		for _, w := range all {
			holders, _, err := Conflicts(ctx, s, near, w.Pattern, !a.Shared)
			if err != nil {
				return err
			}
			if len(holders) == 0 {
				out.Free = append(out.Free, w.Given)
				continue
			}
			out.Conflicts = append(out.Conflicts, CheckedPath{Path: w.Given})
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
	return out, mail.Fault(err)
}

// watch collects the activity of the holders of reservations of one project.
type watch struct {
	*mail.Kernel
	tx    *store.Tx
	p     *mail.Project
	now   mail.Time
	found map[int64]*watched  // by reservation id
	mail  map[int64]mail.Time // by agent id
}

// of sets the call's project, time and transaction.
func (w *watch) of(s *mail.CallTx) {
	w.Kernel, w.tx, w.p, w.now, w.mail = s.Kernel, s.Tx, s.Project, s.Now, map[int64]mail.Time{}
}

// add registers a reservation, with the activity of its holder that the database contains.
func (w *watch) add(ctx context.Context, r *mail.Reservation, lastActive mail.Time, worktree *string) (err error) {
	if w.found[r.ID] != nil {
		return nil
	}
	mail, ok := w.mail[r.AgentID]
	if !ok && r.Released == 0 {
		if mail, err = mailActivity(ctx, w.tx, r.AgentID); err != nil {
			return err
		}
		w.mail[r.AgentID] = mail
	}
	w.found[r.ID] = &watched{
		pattern: StoredPattern(r.PathPattern, w.p.FoldsCase), worktree: worktree, agent: lastActive, mail: mail, ended: r.Released != 0,
	}
	return nil
}

// look adds the activity on files and in commits. It must run after the transaction.
func (w *watch) look(ctx context.Context, c mail.Caller) error {
	all := make([]*watched, 0, len(w.found))
	for _, id := range slices.Sorted(maps.Keys(w.found)) {
		all = append(all, w.found[id])
	}
	return observe(ctx, w.Kernel, c, w.p, w.now, all)
}

func (w *watch) signs(id int64) (bool, HolderActivity) { return signs(w.Kernel, w.found[id], w.now) }

// ListedReservation is a reservation as the resource file_reservations returns it.
type ListedReservation struct {
	ID          int64     `json:"id"`
	Agent       string    `json:"agent"`
	PathPattern string    `json:"path_pattern"`
	Exclusive   bool      `json:"exclusive"`
	Reason      string    `json:"reason"`
	Created     mail.Time `json:"created_ts"`
	Expires     mail.Time `json:"expires_ts"`
	Released    mail.Time `json:"released_ts"`
	Stale       bool      `json:"stale"`
	HolderActivity

	Ended bool `json:"-"` // it was released because its session had ended
}

func listed(r *mail.Reservation) ListedReservation {
	return ListedReservation{
		ID: r.ID, Agent: r.Agent, PathPattern: r.PathPattern, Exclusive: r.Exclusive, Reason: r.Reason, Created: r.Created, Expires: r.Expires,
		Released: r.Released, Ended: r.ReleaseKind != nil && *r.ReleaseKind == ReleasedSession,
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

// EndedReservations lists reservations of a project that were released or expired since a time,
// the last to end first. It returns at most 50, among the 500 that were created last. It does not
// report whether they were stale. It changes nothing.
//
// Errors: NOT_FOUND for the project.
func (o *Reservations) EndedReservations(ctx context.Context, c mail.Caller, projectKey string, since time.Time) ([]ListedReservation, error) {
	out := []ListedReservation{}
	err := o.ReadIn(ctx, c, projectKey, func(ctx context.Context, s *mail.CallTx) error {
		return s.Tx.Each(ctx, func(rows *sql.Rows) error {
			h, err := scanHeld(s, rows)
			if err == nil {
				out = append(out, listed(h.Reservation))
			}
			return err
		}, selectJustEnded, s.Project.ID, since.UnixNano(), s.Now)
	})
	return out, mail.Fault(err)
}

// FileReservations lists the reservations of a project by id: the active ones, or, if ended is
// set, all that were ever created. Released reservations are listed without activity. It changes
// nothing.
//
// Errors: NOT_FOUND for the project.
func (o *Reservations) FileReservations(ctx context.Context, c mail.Caller, projectKey string, ended bool) ([]ListedReservation, error) {
	out := []ListedReservation{}
	watch := &watch{found: map[int64]*watched{}}
	err := o.ReadIn(ctx, c, projectKey, func(ctx context.Context, s *mail.CallTx) error {
		if err := AdvanceClock(ctx, s); err != nil {
			return err
		}
		watch.of(s)
		query, args := selectListing, []any{s.Project.ID, s.Now}
		if ended {
			query, args = selectEveryOne, args[:1]
		}
		return s.Tx.Each(ctx, func(rows *sql.Rows) error {
			h, err := scanHeld(s, rows)
			if err != nil {
				return err
			}
			out = append(out, listed(h.Reservation))
			return watch.add(ctx, h.Reservation, h.lastActive, h.worktree)
		}, query, args...)
	})
	if err == nil {
		err = watch.look(ctx, c)
	}
	if err != nil {
		return nil, mail.Fault(err)
	}
	for i := range out {
		out[i].Stale, out[i].HolderActivity = watch.signs(out[i].ID)
	}
	return out, nil
}
