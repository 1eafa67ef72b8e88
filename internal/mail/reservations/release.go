package reservations

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strings"

	"cairn/internal/mail"
)

// Kinds of release (mail §3).
const (
	ReleasedByOwner = "owner"
	releasedByForce = "force"
	releasedExpired = "expired"
	ReleasedSession = "session_end"
)

// ReleaseArgs are the arguments of release_file_reservations. Paths and IDs select the
// reservations that either of them names. If both are empty, all active reservations are selected.
type ReleaseArgs struct {
	ProjectKey string   `arg:"project_key,required" lean:"The repository's path."`
	AgentName  string   `arg:"agent_name,required"`
	Paths      []string `arg:"paths" about:"The patterns, exactly as reserved." lean:""` // at most 200
	IDs        []int64  `arg:"file_reservation_ids" about:"Ids of the reservations, from granted."`
}

// ReleasedReservations is the result of release_file_reservations.
type ReleasedReservations struct {
	Released int       `json:"released"`
	At       mail.Time `json:"released_at"`
}

// ReleaseFileReservations releases reservations of an agent. Reservations of other agents,
// released ones and unknown ids are ignored without an error. It is idempotent.
//
// Errors: INVALID_PATH, INVALID_ARGUMENT for more than 200 paths, those of acting as the agent.
func (o *Reservations) ReleaseFileReservations(ctx context.Context, c mail.Caller, a ReleaseArgs) (out ReleasedReservations, err error) {
	t, relative, err := ResolveTarget(ctx, o.Kernel, c, a.ProjectKey, a.Paths)
	if err != nil {
		return out, mail.Fault(err)
	}
	err = o.WriteTo(ctx, c, t, func(ctx context.Context, s *mail.CallTx) error {
		if _, err := s.ActAs(ctx, a.AgentName); err != nil {
			return err
		}
		own, err := Selected(ctx, s, a.Paths, a.IDs, relative)
		if err != nil {
			return err
		}
		out, err = Release(ctx, s, own, ReleasedByOwner)
		return err
	})
	return out, err
}

// Release releases the given reservations.
func Release(ctx context.Context, s *mail.CallTx, all []*mail.Reservation, kind string) (ReleasedReservations, error) {
	for _, r := range all {
		r.Released, r.ReleaseKind = s.Now, &kind
		if err := s.Put(ctx, r); err != nil {
			return ReleasedReservations{}, err
		}
	}
	return ReleasedReservations{len(all), s.Now}, nil
}

// The reservations of an agent that have not been released.
const (
	ownWhere        = `WHERE r.project_id = ?1 AND r.agent_id = ?2 AND r.released_ts IS NULL `
	SelectOwnActive = mail.ReservationColumns + ownWhere + `AND r.expires_ts > ?3 ORDER BY r.id`
	selectOwnByID   = mail.ReservationColumns + ownWhere + `AND r.id IN (SELECT value FROM json_each(?3)) ORDER BY r.id`
	selectOwnHeld   = mail.ReservationColumns + ownWhere + `ORDER BY r.id`
)

// Selected lists the actor's unreleased reservations that a call names, by id. Without paths and
// ids it lists all active ones.
func Selected(ctx context.Context, s *mail.CallTx, paths []string, ids []int64, relative func(string) (string, bool)) ([]*mail.Reservation, error) {
	if err := AdvanceClock(ctx, s); err != nil {
		return nil, err
	}
	if len(paths) == 0 && len(ids) == 0 {
		return Own(ctx, s, SelectOwnActive, s.Now)
	}
	var out []*mail.Reservation
	if len(paths) > 0 {
		all, err := requestedPaths(s, paths, relative)
		if err != nil {
			return nil, err
		}
		own, err := Own(ctx, s, selectOwnHeld)
		if err != nil {
			return nil, err
		}
		for _, r := range own {
			if slices.ContainsFunc(all, func(w RequestedPath) bool { return equalPaths(s, w.Pattern.String(), r.PathPattern) }) {
				out = append(out, r)
			}
		}
	}
	if len(ids) == 0 {
		return out, nil
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	own, err := Own(ctx, s, selectOwnByID, string(list))
	for _, r := range own {
		if !slices.ContainsFunc(out, func(o *mail.Reservation) bool { return o.ID == r.ID }) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b *mail.Reservation) int { return int(a.ID - b.ID) })
	return out, err
}

func equalPaths(s *mail.CallTx, a, b string) bool {
	return a == b || s.Project.FoldsCase && strings.EqualFold(a, b)
}

// Own lists the actor's reservations that a query selects.
func Own(ctx context.Context, s *mail.CallTx, query string, args ...any) (out []*mail.Reservation, err error) {
	err = s.Tx.Each(ctx, func(rows *sql.Rows) error {
		r := &mail.Reservation{}
		out = append(out, r)
		return rows.Scan(r.Columns()...)
	}, query, append([]any{s.Project.ID, s.Me.ID}, args...)...)
	return out, err
}

// RenewArgs are the arguments of renew_file_reservations. Paths and IDs select as in ReleaseArgs.
type RenewArgs struct {
	ProjectKey     string   `arg:"project_key,required"`
	AgentName      string   `arg:"agent_name,required"`
	Paths          []string `arg:"paths" about:"The patterns, exactly as reserved."`
	IDs            []int64  `arg:"file_reservation_ids" about:"Ids of the reservations, from granted."`
	ExtendSeconds  *int64   `arg:"extend_seconds,default=1800,min=60" about:"Seconds to add."` // raised to 60
	Until          string   `arg:"until_ts" about:"The new end of the reservations (ISO 8601), instead of extend_seconds."`
	IdempotencyKey string   `arg:"idempotency_key"`
}

// Renewed is the result of renew_file_reservations. Its list is never nil.
type Renewed struct {
	Renewed      int       `json:"renewed"`
	Reservations []Renewal `json:"file_reservations"`
}

// Renewal is one renewed reservation with its old and new expiry time.
type Renewal struct {
	ID          int64     `json:"id"`
	PathPattern string    `json:"path_pattern"`
	Old         mail.Time `json:"old_expires_ts"`
	New         mail.Time `json:"new_expires_ts"`
}

const usualExtension = 1800 // seconds

// RenewFileReservations extends reservations of an agent, until Until or by ExtendSeconds. The
// extension starts now, or at the current expiry time if that is later. It never shortens a
// reservation. No new expiry time is more than Config.MaxTTL from now. An expired reservation is
// renewed if no other agent holds a conflicting one. Released reservations, those of other agents
// and unknown ids are skipped. Repeating extends again, unless Until or an IdempotencyKey is
// given.
//
// Errors: INVALID_PATH, INVALID_TIMESTAMP, INVALID_ARGUMENT for more than 200 paths, those of
// acting as the agent, IDEMPOTENCY_CONFLICT.
func (o *Reservations) RenewFileReservations(ctx context.Context, c mail.Caller, a RenewArgs) (out Renewed, err error) {
	var until mail.Time
	if a.Until != "" {
		if until, err = mail.ParseTime("until_ts", a.Until); err != nil {
			return out, mail.Fault(err)
		}
	}
	t, relative, err := ResolveTarget(ctx, o.Kernel, c, a.ProjectKey, a.Paths)
	if err != nil {
		return out, mail.Fault(err)
	}
	err = o.WriteTo(ctx, c, t, func(ctx context.Context, s *mail.CallTx) error {
		if _, err := s.ActAs(ctx, a.AgentName); err != nil {
			return err
		}
		counts := []any{a.Paths, a.IDs, a.ExtendSeconds, until}
		out, err = mail.RunOnce(ctx, s, "renew_file_reservations", a.IdempotencyKey, counts, func() (Renewed, error) {
			own, err := Selected(ctx, s, a.Paths, a.IDs, relative)
			if err != nil {
				return Renewed{}, err
			}
			return renew(ctx, s, own, a.ExtendSeconds, until)
		})
		return err
	})
	return out, err
}

// renew extends the given reservations of the actor.
func renew(ctx context.Context, s *mail.CallTx, all []*mail.Reservation, seconds *int64, until mail.Time) (Renewed, error) {
	out := Renewed{Reservations: []Renewal{}}
	for _, r := range all {
		if r.Expires <= s.Now {
			taken, err := taken(ctx, s, r)
			if err != nil {
				return out, err
			}
			if taken {
				continue
			}
		}
		old, end := r.Expires, until
		if end == 0 {
			end = max(s.Now, old) + ttl(s, seconds, usualExtension)
		}
		end = max(old, min(end, s.Now+mail.Time(s.Config.MaxTTL)))
		if end <= s.Now {
			continue // it has expired, and the new expiry time is past too
		}
		if end > old {
			r.Expires = end
			r.Renewals++
			if err := s.Put(ctx, r); err != nil {
				return out, err
			}
		}
		out.Reservations = append(out.Reservations, Renewal{r.ID, r.PathPattern, old, end})
	}
	out.Renewed = len(out.Reservations)
	return out, nil
}

// taken reports whether another agent holds a reservation that conflicts with the actor's
// reservation.
func taken(ctx context.Context, s *mail.CallTx, r *mail.Reservation) (bool, error) {
	all := []RequestedPath{{r.PathPattern, StoredPattern(r.PathPattern, s.Project.FoldsCase)}}
	near, err := OverlapCandidates(ctx, s, all)
	if err != nil {
		return false, err
	}
	holders, _, err := Conflicts(ctx, s, near, all[0].Pattern, r.Exclusive)
	return len(holders) > 0, err
}
