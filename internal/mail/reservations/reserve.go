package reservations

import (
	"context"
	"slices"

	"cairn/internal/mail"
	"cairn/internal/pathpattern"
	"cairn/internal/store"
)

// Sources of reservations (mail §3).
const (
	ReservedByTool  = "tool"
	ReservedByEdit  = "edit"
	ReservedByCLI   = "cli"
	ReservedByMacro = "macro"
)

// Grant is a reservation that a call created.
type Grant struct {
	ID          int64     `json:"id"`
	PathPattern string    `json:"path_pattern"`
	Exclusive   bool      `json:"exclusive"`
	Reason      string    `json:"reason"`
	Expires     mail.Time `json:"expires_ts"`
}

// Holder is a reservation that conflicts with a requested path.
type Holder struct {
	Agent       string    `json:"agent"`
	PathPattern string    `json:"path_pattern"`
	Exclusive   bool      `json:"exclusive"`
	Expires     mail.Time `json:"expires_ts"`
}

// Conflict is a requested path and the reservations that conflict with it.
type Conflict struct {
	Path    string   `json:"path"` // as it was given
	Holders []Holder `json:"holders"`
}

// GrantedReservations is the result of file_reservation_paths. Granted and Conflicts are never
// nil.
type GrantedReservations struct {
	Granted   []Grant    `json:"granted"`
	Conflicts []Conflict `json:"conflicts"`
	Warnings  []string   `json:"warnings,omitempty"`
}

// ReserveArgs are the arguments of file_reservation_paths.
type ReserveArgs struct {
	ProjectKey     string   `arg:"project_key,required" lean:"The repository's path."`
	AgentName      string   `arg:"agent_name,required"`
	Paths          []string `arg:"paths,required"`                                                                            // 1 to 200
	TTLSeconds     *int64   `arg:"ttl_seconds,default=3600,min=60,max=604800" about:"Seconds until the reservation expires."` // raised to 60, cut to Config.MaxTTL
	Shared         bool     `arg:"exclusive,not" about:"false: others may also reserve the path, but not exclusively."`
	Advisory       bool     `arg:"advisory" about:"Grant it in spite of conflicts, and report them; no guard refuses edits because of it."`
	Reason         string   `arg:"reason,default=" about:"What you are doing there, for other agents." lean:""` // at most 1,000 characters are kept
	IdempotencyKey string   `arg:"idempotency_key"`
}

const (
	usualTTL = 3600 // seconds
	minTTL   = 60
)

// FileReservationPaths reserves files for an agent (mail §7). It handles the paths in the given
// order. A path that no other agent holds is granted. Any other path is reported with every
// holder. With Advisory, conflicting paths are granted and reported. An agent's own reservations
// never conflict, and shared ones do not conflict with each other. Of two callers with overlapping
// exclusive paths, exactly one gets them. Repeating grants the paths again, with new ids, unless
// an IdempotencyKey is given.
//
// Errors: EMPTY_PATHS; INVALID_PATH for a path that is malformed or outside the project;
// INVALID_ARGUMENT for more than 200 paths; those of acting as the agent; IDEMPOTENCY_CONFLICT;
// DISK_FULL.
func (o *Reservations) FileReservationPaths(ctx context.Context, c mail.Caller, a ReserveArgs) (out GrantedReservations, err error) {
	t, relative, err := ResolveTarget(ctx, o.Kernel, c, a.ProjectKey, a.Paths)
	if err != nil {
		return out, mail.Fault(err)
	}
	err = o.WriteTo(ctx, c, t, func(ctx context.Context, s *mail.CallTx) error {
		if _, err := s.ActAs(ctx, a.AgentName); err != nil {
			return err
		}
		source := ReservedByTool
		if c.Owner {
			source = ReservedByCLI
		}
		out, err = Reserve(ctx, s, a, source, relative)
		return err
	})
	return out, err
}

// ResolveTarget resolves a call's project key and absolute paths. It must run before the call's
// transaction.
func ResolveTarget(ctx context.Context, o *mail.Kernel, c mail.Caller, key string, paths []string) (*mail.Target, func(string) (string, bool), error) {
	t, err := c.Target(key)
	if err != nil {
		return nil, nil, err
	}
	relative, err := relatives(ctx, o, c, t, paths)
	return t, relative, err
}

// Reserve is FileReservationPaths inside a call, for the call's actor.
func Reserve(ctx context.Context, s *mail.CallTx, a ReserveArgs, source string, relative func(string) (string, bool)) (GrantedReservations, error) {
	all, err := requestedPaths(s, a.Paths, relative)
	if err != nil {
		return GrantedReservations{}, err
	}
	if a.Reason, err = s.Line("reason", a.Reason, mail.MaxReason); err != nil {
		return GrantedReservations{}, err
	}
	ttl := ttl(s, a.TTLSeconds, usualTTL)
	counts := []any{texts(all), ttl, a.Shared, a.Advisory, a.Reason}
	return mail.RunOnce(ctx, s, "file_reservation_paths", a.IdempotencyKey, counts, func() (GrantedReservations, error) {
		if err := s.RequireDiskSpace(); err != nil {
			return GrantedReservations{}, err
		}
		return grant(ctx, s, all, a, source, ttl)
	})
}

func texts(all []RequestedPath) []string {
	out := make([]string, len(all))
	for i, w := range all {
		out[i] = w.Pattern.String()
	}
	return out
}

// ttl returns a time to live within the limits: at least a minute, at most Config.MaxTTL.
func ttl(s *mail.CallTx, seconds *int64, usual int64) mail.Time {
	if seconds != nil {
		usual = *seconds
	}
	return mail.Time(min(max(usual, minTTL), int64(s.Config.MaxTTL/1e9)) * 1e9)
}

func grant(ctx context.Context, s *mail.CallTx, all []RequestedPath, a ReserveArgs, source string, ttl mail.Time) (GrantedReservations, error) {
	out := GrantedReservations{Granted: []Grant{}, Conflicts: []Conflict{}}
	if err := AdvanceClock(ctx, s); err != nil {
		return out, err
	}
	near, err := OverlapCandidates(ctx, s, all)
	if err != nil {
		return out, err
	}
	var ordinal int64
	if err := s.Tx.Get(ctx, []any{&ordinal}, mail.SelectLastOrdinal, s.Project.ID); err != nil {
		return out, err
	}
	for _, w := range all {
		holders, yielding, err := Conflicts(ctx, s, near, w.Pattern, !a.Shared)
		if err != nil {
			return out, err
		}
		if len(holders) > 0 {
			c := Conflict{Path: w.Given}
			for _, h := range holders {
				c.Holders = append(c.Holders, Holder{h.Agent, h.PathPattern, h.Exclusive, h.Expires})
			}
			out.Conflicts = append(out.Conflicts, c)
			if !a.Advisory {
				continue
			}
		}
		if !a.Advisory {
			if err := releaseYielding(ctx, s, yielding); err != nil {
				return out, err
			}
		}
		ordinal++
		r, err := newReservation(ctx, s, w.Pattern, ordinal)
		if err != nil {
			return out, err
		}
		r.Exclusive, r.Advisory, r.Source, r.Reason, r.Expires = !a.Shared, a.Advisory, source, a.Reason, s.Now+ttl
		if err := s.Put(ctx, r); err != nil {
			return out, err
		}
		out.Granted = append(out.Granted, Grant{r.ID, r.PathPattern, r.Exclusive, r.Reason, r.Expires})
		if text := w.Pattern.Warning(); text != "" {
			out.Warnings = append(out.Warnings, text)
		}
	}
	return out, nil
}

// newReservation returns a reservation of the actor that is not stored yet.
func newReservation(ctx context.Context, s *mail.CallTx, p pathpattern.Pattern, ordinal int64) (*mail.Reservation, error) {
	id, err := mail.NextID(ctx, s.Tx, mail.ReservationTable)
	return &mail.Reservation{
		ID: id, UID: store.NewID(), ProjectUID: s.Project.UID, Agent: s.Me.Name, PathPattern: p.String(), LitPrefix: p.LiteralPrefix(),
		Session: mail.OrNil(s.Session.ID), Created: s.Now, Ordinal: ordinal, ArchivePath: mail.ReservationPath(id, ordinal),
	}, err
}

// conflicting lists the candidates that conflict with a pattern, oldest first. They overlap it,
// belong to an agent other than the actor, and one of the two is exclusive. Without an actor,
// reservations of all agents can conflict.
func conflicting(s *mail.CallTx, near []*activeReservation, p pathpattern.Pattern, exclusive bool) (out []*activeReservation) {
	for _, h := range near {
		own := s.Me != nil && h.AgentID == s.Me.ID
		if !own && (exclusive || h.Exclusive) && h.overlaps(p, s.Project.FoldsCase) {
			out = append(out, h)
		}
	}
	slices.SortFunc(out, func(a, b *activeReservation) int { return int(a.ID - b.ID) })
	return out
}

// Conflicts is conflicting, but returns the reservations that yield to the caller separately.
func Conflicts(ctx context.Context, s *mail.CallTx, near []*activeReservation, p pathpattern.Pattern, exclusive bool) (out, yielding []*activeReservation, err error) {
	for _, h := range conflicting(s, near, p, exclusive) {
		yields, err := yields(ctx, s, h)
		switch {
		case err != nil:
			return nil, nil, err
		case yields:
			yielding = append(yielding, h)
		default:
			out = append(out, h)
		}
	}
	return out, yielding, nil
}

// releaseYielding releases reservations that yield to a new one.
func releaseYielding(ctx context.Context, s *mail.CallTx, yielding []*activeReservation) error {
	for _, h := range yielding {
		r, err := mail.QueryReservation(ctx, s.Tx, mail.SelectReservationByID, h.ID)
		if err != nil {
			return err
		}
		if r == nil || r.Released != 0 { // released for an earlier path of the call
			continue
		}
		if _, err := Release(ctx, s, []*mail.Reservation{r}, ReleasedSession); err != nil {
			return err
		}
	}
	return nil
}
