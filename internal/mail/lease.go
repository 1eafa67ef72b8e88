package mail

import (
	"context"
	"path"
	"slices"
	"time"

	"cairn/internal/fault"
	"cairn/internal/pathpattern"
	"cairn/internal/project"
)

// LeaseArgs are files that a session of a harness is about to change.
type LeaseArgs struct {
	Session string // its id
	Program string // of an agent that has to be made: what the session runs in
	Model   string // likewise
	Agent   string // the name of CAIRN_AGENT; "" for the agent of the session
	Place   project.Location
	Paths   []string
	TTL     time.Duration
}

// Lease reserves files for the agent of a session, exclusively and each for itself,
// as an edit does where the user has asked for it (mail §8). A file that the agent
// holds already, by a lease or otherwise, is renewed once less than half of TTL is
// left; one that somebody else holds is left alone. A session without an agent gets
// a generated one, which its next notice names. Files outside the working
// directory's project are left alone; all checkouts of it count. It returns how many leases were taken or
// renewed; repeating it soon changes nothing.
//
// Errors: those of RegisterAgent and FileReservationPaths.
func (o *Service) Lease(ctx context.Context, a LeaseArgs) (taken int, err error) {
	root := a.Place.Root
	def(&root, a.Place.Cwd)
	c := Caller{Session: a.Session, Place: a.Place}
	all, err := o.leased(ctx, c, root, a.Paths)
	if err != nil || len(all) == 0 {
		return 0, toFault(err)
	}
	def(&a.Program, "unknown")
	def(&a.Model, "unknown")
	fresh, err := o.profile(c, RegisterArgs{Program: a.Program, Model: a.Model})
	if err != nil {
		return 0, toFault(err)
	}
	err = o.writeIn(ctx, c, root, func(ctx context.Context, s *callTx) error {
		if err := s.settle(ctx); err != nil {
			return err
		}
		if err := s.editor(ctx, a.Agent, fresh); err != nil {
			return err
		}
		taken, err = s.lease(ctx, all, Time(a.TTL))
		return err
	})
	return taken, err
}

// leased returns the patterns of the files that are inside the project of the working
// directory, in any of its checkouts.
func (o *Service) leased(ctx context.Context, c Caller, root string, files []string) (all []string, err error) {
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
	t, err := c.target(root)
	if err != nil {
		return nil, err
	}
	tree, err := o.treeOfTarget(ctx, c, t)
	if err != nil || tree == nil {
		return all, err
	}
	for _, file := range outside {
		rel, _ := tree.relative(file)
		add(rel)
	}
	return all, nil
}

// editor makes the agent of the session the actor: the one of CAIRN_AGENT, else the
// one bound to it, else a new one.
func (s *callTx) editor(ctx context.Context, name string, fresh profile) error {
	if name != "" {
		s.source = SourceEnvironment
		if _, err := s.actor(ctx, name); !fault.HasCode(err, CodeNotFound) {
			return err
		}
	}
	bound, err := bonded(ctx, s.tx, s.session.Key, s.p.ID)
	if err != nil {
		return err
	}
	if len(bound) > 0 {
		s.actAs(bound[0])
		return nil
	}
	s.source = SourceEdit
	_, err = s.register(ctx, fresh, false)
	return err
}

// lease takes or renews what is free.
func (s *callTx) lease(ctx context.Context, files []string, ttl Time) (taken int, err error) {
	var all []wish
	for _, file := range files[:min(len(files), maxPaths)] {
		if p, err := pathpattern.Parse(file, pathpattern.Options{FoldCase: s.p.FoldsCase}); err == nil {
			all = append(all, wish{file, p})
		}
	}
	near, err := s.near(ctx, all)
	if err != nil {
		return 0, err
	}
	var fresh []wish
	for _, w := range all {
		own, lasts := s.held(near, w.pattern)
		holders, _, err := s.conflicts(ctx, near, w.pattern, true)
		if err != nil {
			return taken, err
		}
		switch {
		case len(holders) > 0 || lasts > s.now+ttl/2:
		case own != nil:
			r, err := findReservation(ctx, s.tx, selectReservationByID, own.ID)
			if err != nil {
				return taken, err
			}
			r.Expires = s.now + ttl
			r.Renewals++
			if err := s.put(ctx, r); err != nil {
				return taken, err
			}
			taken++
		default:
			fresh = append(fresh, w)
		}
	}
	if len(fresh) == 0 || s.needRoom() != nil {
		return taken, nil
	}
	out, err := s.grant(ctx, fresh, ReserveArgs{Reason: "editing"}, ReservedByEdit, ttl)
	return taken + len(out.Granted), err
}

// held finds the actor's own lease of a pattern, and until when anything of its own
// that is exclusive holds it.
func (s *callTx) held(near []*held, p pathpattern.Pattern) (lease *held, until Time) {
	for _, h := range near {
		if h.agentID != s.me.ID || !h.Exclusive || h.Advisory || !h.covers(p, s.p.FoldsCase) {
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
func (h *held) covers(p pathpattern.Pattern, foldCase bool) bool {
	file, err := pathpattern.ParsePath(p.String())
	return err == nil && h.overlaps(p, foldCase) && h.pattern.Matches(file)
}
