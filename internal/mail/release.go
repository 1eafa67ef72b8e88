package mail

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strings"
)

// Kinds of release (mail §3).
const (
	releasedByOwner = "owner"
	releasedByForce = "force"
	releasedExpired = "expired"
	releasedSession = "session_end"
)

// ReleaseArgs are the arguments of release_file_reservations. Paths and IDs select
// what either names; none of either selects all that are active.
type ReleaseArgs struct {
	ProjectKey string   `arg:"project_key,required" lean:"The repository's path."`
	AgentName  string   `arg:"agent_name,required"`
	Paths      []string `arg:"paths" about:"Patterns as they were reserved." lean:""` // at most 200
	IDs        []int64  `arg:"file_reservation_ids" about:"Ids from granted."`
}

// ReleasedReservations is what release_file_reservations answers.
type ReleasedReservations struct {
	Released int  `json:"released"`
	At       Time `json:"released_at"`
}

// ReleaseFileReservations ends reservations of an agent. What belongs to others,
// has been released, or is not there counts as nothing and is no error; so does
// all of it the second time.
//
// Errors: INVALID_PATH, INVALID_ARGUMENT for more than 200 paths, those of acting
// as the agent.
func (o *Service) ReleaseFileReservations(ctx context.Context, c Caller, a ReleaseArgs) (out ReleasedReservations, err error) {
	t, relative, err := o.aim(ctx, c, a.ProjectKey, a.Paths)
	if err != nil {
		return out, toFault(err)
	}
	err = o.writeTo(ctx, c, t, func(ctx context.Context, s *callTx) error {
		if _, err := s.actor(ctx, a.AgentName); err != nil {
			return err
		}
		own, err := s.selected(ctx, a.Paths, a.IDs, relative)
		if err != nil {
			return err
		}
		out, err = s.release(ctx, own, releasedByOwner)
		return err
	})
	return out, err
}

// release ends some reservations.
func (s *callTx) release(ctx context.Context, all []*Reservation, kind string) (ReleasedReservations, error) {
	for _, r := range all {
		r.Released, r.ReleaseKind = s.now, &kind
		if err := s.put(ctx, r); err != nil {
			return ReleasedReservations{}, err
		}
	}
	return ReleasedReservations{len(all), s.now}, nil
}

// The reservations of an agent that have not been released.
const (
	ownWhere        = `WHERE r.project_id = ?1 AND r.agent_id = ?2 AND r.released_ts IS NULL `
	selectOwnActive = reservationColumns + ownWhere + `AND r.expires_ts > ?3 ORDER BY r.id`
	selectOwnByID   = reservationColumns + ownWhere + `AND r.id IN (SELECT value FROM json_each(?3)) ORDER BY r.id`
	selectOwnHeld   = reservationColumns + ownWhere + `ORDER BY r.id`
)

// selected lists those of the actor's reservations that have not been released
// which a call names; with neither paths nor ids all that are active. By number.
func (s *callTx) selected(ctx context.Context, paths []string, ids []int64, relative func(string) (string, bool)) ([]*Reservation, error) {
	if err := s.settle(ctx); err != nil {
		return nil, err
	}
	if len(paths) == 0 && len(ids) == 0 {
		return s.own(ctx, selectOwnActive, s.now)
	}
	var out []*Reservation
	if len(paths) > 0 {
		all, err := s.wishes(paths, relative)
		if err != nil {
			return nil, err
		}
		own, err := s.own(ctx, selectOwnHeld)
		if err != nil {
			return nil, err
		}
		for _, r := range own {
			if slices.ContainsFunc(all, func(w wish) bool { return s.equalPaths(w.pattern.String(), r.PathPattern) }) {
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
	own, err := s.own(ctx, selectOwnByID, string(list))
	for _, r := range own {
		if !slices.ContainsFunc(out, func(o *Reservation) bool { return o.ID == r.ID }) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b *Reservation) int { return int(a.ID - b.ID) })
	return out, err
}

func (s *callTx) equalPaths(a, b string) bool {
	return a == b || s.p.FoldsCase && strings.EqualFold(a, b)
}

// own lists reservations of the actor.
func (s *callTx) own(ctx context.Context, query string, args ...any) (out []*Reservation, err error) {
	err = s.tx.Each(ctx, func(rows *sql.Rows) error {
		r := &Reservation{}
		out = append(out, r)
		return rows.Scan(r.columns()...)
	}, query, append([]any{s.p.ID, s.me.ID}, args...)...)
	return out, err
}

// RenewArgs are the arguments of renew_file_reservations; they select as those of
// a release do.
type RenewArgs struct {
	ProjectKey     string   `arg:"project_key,required"`
	AgentName      string   `arg:"agent_name,required"`
	Paths          []string `arg:"paths" about:"Patterns as they were reserved."`
	IDs            []int64  `arg:"file_reservation_ids" about:"Ids from granted."`
	ExtendSeconds  *int64   `arg:"extend_seconds,default=1800,min=60" about:"Seconds to add."` // raised to 60
	Until          string   `arg:"until_ts" about:"A time (ISO 8601) until which to keep them, instead of extend_seconds."`
	IdempotencyKey string   `arg:"idempotency_key"`
}

// Renewed is what renew_file_reservations answers; the list is never nil.
type Renewed struct {
	Renewed      int       `json:"renewed"`
	Reservations []Renewal `json:"file_reservations"`
}

// Renewal is what has become of one reservation.
type Renewal struct {
	ID          int64  `json:"id"`
	PathPattern string `json:"path_pattern"`
	Old         Time   `json:"old_expires_ts"`
	New         Time   `json:"new_expires_ts"`
}

const usualExtension = 1800 // seconds

// RenewFileReservations lets reservations of an agent last longer: from now, or
// from their end if that is later, by ExtendSeconds, or until a time. Nothing gets
// shorter, and nothing lasts longer than Config.MaxTTL from now. What has expired
// is renewed if nobody holds what conflicts with it; what was released, belongs to
// others or is not there is left out. Repeating extends again, unless Until or an
// IdempotencyKey is given.
//
// Errors: INVALID_PATH, INVALID_TIMESTAMP, INVALID_ARGUMENT for more than 200
// paths, those of acting as the agent, IDEMPOTENCY_CONFLICT.
func (o *Service) RenewFileReservations(ctx context.Context, c Caller, a RenewArgs) (out Renewed, err error) {
	var until Time
	if a.Until != "" {
		if until, err = parseTime("until_ts", a.Until); err != nil {
			return out, toFault(err)
		}
	}
	t, relative, err := o.aim(ctx, c, a.ProjectKey, a.Paths)
	if err != nil {
		return out, toFault(err)
	}
	err = o.writeTo(ctx, c, t, func(ctx context.Context, s *callTx) error {
		if _, err := s.actor(ctx, a.AgentName); err != nil {
			return err
		}
		counts := []any{a.Paths, a.IDs, a.ExtendSeconds, until}
		out, err = once(ctx, s, "renew_file_reservations", a.IdempotencyKey, counts, func() (Renewed, error) {
			own, err := s.selected(ctx, a.Paths, a.IDs, relative)
			if err != nil {
				return Renewed{}, err
			}
			return s.renew(ctx, own, a.ExtendSeconds, until)
		})
		return err
	})
	return out, err
}

// renew extends some reservations of the actor.
func (s *callTx) renew(ctx context.Context, all []*Reservation, seconds *int64, until Time) (Renewed, error) {
	out := Renewed{Reservations: []Renewal{}}
	for _, r := range all {
		if r.Expires <= s.now {
			taken, err := s.taken(ctx, r)
			if err != nil {
				return out, err
			}
			if taken {
				continue
			}
		}
		old, end := r.Expires, until
		if end == 0 {
			end = max(s.now, old) + s.ttl(seconds, usualExtension)
		}
		end = max(old, min(end, s.now+Time(s.config.MaxTTL)))
		if end <= s.now {
			continue // it has expired, and is not to last beyond now
		}
		if end > old {
			r.Expires = end
			r.Renewals++
			if err := s.put(ctx, r); err != nil {
				return out, err
			}
		}
		out.Reservations = append(out.Reservations, Renewal{r.ID, r.PathPattern, old, end})
	}
	out.Renewed = len(out.Reservations)
	return out, nil
}

// taken reports whether somebody else holds what a reservation of the actor would
// conflict with.
func (s *callTx) taken(ctx context.Context, r *Reservation) (bool, error) {
	all := []wish{{r.PathPattern, storedPattern(r.PathPattern, s.p.FoldsCase)}}
	near, err := s.near(ctx, all)
	if err != nil {
		return false, err
	}
	holders, _, err := s.conflicts(ctx, near, all[0].pattern, r.Exclusive)
	return len(holders) > 0, err
}
