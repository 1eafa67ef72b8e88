package reservations

import (
	"context"
	"path"
	"slices"
	"time"

	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/pathpattern"
	"cairn/internal/project"
)

// LeaseArgs are the files that a session of a harness is about to change.
type LeaseArgs struct {
	Session string // the session's id
	Program string // program of a new agent: the harness of the session
	Model   string // model of a new agent
	Agent   string // name in CAIRN_AGENT; "" for the session's agent
	Place   project.Location
	Paths   []string
	TTL     time.Duration
}

// Lease reserves each file exclusively for the agent of a session. It runs on edits if the user
// has enabled it (mail §8). A lease that the agent already holds is renewed once less than half of
// TTL is left. Files that another reservation of the agent covers for longer are skipped, and so
// are files that other agents hold. A session without an agent gets a generated one, which its
// next notice names. Files outside the working directory's project are skipped. All checkouts of
// the project count. Lease returns the number of leases taken or renewed. Repeating it soon
// changes nothing.
//
// Errors: those of RegisterAgent and FileReservationPaths.
func (o *Reservations) Lease(ctx context.Context, a LeaseArgs) (taken int, err error) {
	root := a.Place.Root
	mail.Default(&root, a.Place.Cwd)
	c := mail.Caller{Session: a.Session, Place: a.Place}
	all, err := leased(ctx, o.Kernel, c, root, a.Paths)
	if err != nil || len(all) == 0 {
		return 0, mail.Fault(err)
	}
	mail.Default(&a.Program, "unknown")
	mail.Default(&a.Model, "unknown")
	fresh, err := agents.NewRegistration(o.Kernel, c, agents.RegisterArgs{Program: a.Program, Model: a.Model})
	if err != nil {
		return 0, mail.Fault(err)
	}
	err = o.WriteIn(ctx, c, root, func(ctx context.Context, s *mail.CallTx) error {
		if err := AdvanceClock(ctx, s); err != nil {
			return err
		}
		if err := editor(ctx, s, a.Agent, fresh); err != nil {
			return err
		}
		taken, err = lease(ctx, s, all, mail.Time(a.TTL))
		return err
	})
	return taken, err
}

// leased returns the relative paths of the files that are inside the project of the working
// directory, in any of its checkouts.
func leased(ctx context.Context, o *mail.Kernel, c mail.Caller, root string, files []string) (all []string, err error) {
	var outside []string
	add := func(rel string) {
		if rel != "" && rel != "." && !project.IsAbsolute(rel) && !slices.Contains(all, path.Clean(rel)) {
			all = append(all, path.Clean(rel))
		}
	}
	for _, file := range files {
		rel := c.Place.PathKey(file)
		if project.IsAbsolute(rel) && c.Place.Identity == "" {
			rel, _ = beneath(c.Place.Cwd, rel)
		}
		if project.IsAbsolute(rel) {
			outside = append(outside, rel)
		}
		add(rel)
	}
	if len(outside) == 0 {
		return all, nil
	}
	t, err := c.Target(root)
	if err != nil {
		return nil, err
	}
	tree, err := treeOfTarget(ctx, o, c, t)
	if err != nil || tree == nil {
		return all, err
	}
	for _, file := range outside {
		rel, _ := tree.relative(file)
		add(rel)
	}
	return all, nil
}

// editor sets the actor: the agent in CAIRN_AGENT, else the agent bound to the session, else a new
// one.
func editor(ctx context.Context, s *mail.CallTx, name string, fresh agents.Registration) error {
	if name != "" {
		s.SessionSource = mail.SourceEnvironment
		if _, err := s.ActAs(ctx, name); !fault.HasCode(err, mail.CodeNotFound) {
			return err
		}
	}
	bound, err := mail.BoundAgents(ctx, s.Tx, s.Session.Key, s.Project.ID)
	if err != nil {
		return err
	}
	if len(bound) > 0 {
		s.SetActor(bound[0])
		return nil
	}
	s.SessionSource = mail.SourceEdit
	_, err = agents.Register(ctx, s, fresh, false)
	return err
}

// lease takes or renews a lease for each file that no other agent holds.
func lease(ctx context.Context, s *mail.CallTx, files []string, ttl mail.Time) (taken int, err error) {
	var all []RequestedPath
	for _, file := range files[:min(len(files), maxPaths)] {
		if p, err := pathpattern.Parse(file, pathpattern.Options{FoldCase: s.Project.FoldsCase}); err == nil {
			all = append(all, RequestedPath{file, p})
		}
	}
	near, err := OverlapCandidates(ctx, s, all)
	if err != nil {
		return 0, err
	}
	var fresh []RequestedPath
	for _, w := range all {
		own, lasts := covering(s, near, w.Pattern)
		holders, _, err := Conflicts(ctx, s, near, w.Pattern, true)
		if err != nil {
			return taken, err
		}
		switch {
		case len(holders) > 0 || lasts > s.Now+ttl/2:
		case own != nil:
			r, err := mail.QueryReservation(ctx, s.Tx, mail.SelectReservationByID, own.ID)
			if err != nil {
				return taken, err
			}
			r.Expires = s.Now + ttl
			r.Renewals++
			if err := s.Put(ctx, r); err != nil {
				return taken, err
			}
			taken++
		default:
			fresh = append(fresh, w)
		}
	}
	if len(fresh) == 0 || s.RequireDiskSpace() != nil {
		return taken, nil
	}
	out, err := grant(ctx, s, fresh, ReserveArgs{Reason: "editing"}, ReservedByEdit, ttl)
	return taken + len(out.Granted), err
}

// covering returns the actor's lease of a pattern, and the latest expiry time of the actor's
// exclusive reservations that cover it.
func covering(s *mail.CallTx, near []*activeReservation, p pathpattern.Pattern) (lease *activeReservation, until mail.Time) {
	for _, h := range near {
		if h.AgentID != s.Me.ID || !h.Exclusive || h.Advisory || !h.covers(p, s.Project.FoldsCase) {
			continue
		}
		if h.Source == ReservedByEdit && h.PathPattern == p.String() {
			lease = h
		}
		until = max(until, h.Expires)
	}
	return lease, until
}

// covers reports whether a reservation covers the file that a pattern names.
func (h *activeReservation) covers(p pathpattern.Pattern, foldCase bool) bool {
	file, err := pathpattern.ParsePath(p.String())
	return err == nil && h.overlaps(p, foldCase) && h.pattern.Matches(file)
}
