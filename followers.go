package cairn

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"cairn/internal/archive"
	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/store"
)

// ReplicationFollower is the name under which the replication of memories is reported.
const ReplicationFollower = "replication"

// FollowerStatus is how a follower of the change log does, or one lane of it: a project of
// the archive, a hub or a memory of the replication.
type FollowerStatus struct {
	Follower string    `json:"follower"`
	Lane     string    `json:"lane,omitempty"`
	Running  bool      `json:"running"`         // a process runs it now; of the replication only if this one does
	Behind   int64     `json:"behind"`          // changes that it has not handled
	Oldest   time.Time `json:"oldest,omitzero"` // when the first of these was made

	Error    string    `json:"error,omitempty"`    // why the last try failed
	Attempts int       `json:"attempts,omitempty"` // failed tries since the last success
	Since    time.Time `json:"since,omitzero"`     // when the first of these failed
	NextTry  time.Time `json:"next_try,omitzero"`
}

// Name is the follower with its lane, for people: "archive of shop".
func (f FollowerStatus) Name() string { return followerName(f.Follower, f.Lane) }

// AsideStatus is a change that a follower could not handle and has set aside; what comes
// after it is handled all the same.
type AsideStatus struct {
	Follower string    `json:"follower"`
	Lane     string    `json:"lane,omitempty"`
	Seq      int64     `json:"seq"` // of the change in the log
	Error    string    `json:"error"`
	Attempts int       `json:"attempts"`
	Since    time.Time `json:"since"`
	NextTry  time.Time `json:"next_try,omitzero"` // zero if it waits for a person
}

// Name is the follower with its lane, for people.
func (a AsideStatus) Name() string { return followerName(a.Follower, a.Lane) }

func followerName(follower, lane string) string {
	switch {
	case lane == "":
		return follower
	case follower == archive.FollowerName:
		return "the archive of " + lane
	}
	return follower + " of " + lane
}

// Followers is the account of all that follows the change log.
type Followers struct {
	Followers []FollowerStatus `json:"followers"` // by name and lane; never nil
	SetAside  []AsideStatus    `json:"set_aside"` // by follower and seq; never nil
}

// Followers tells who follows the change log, how far behind each is, what fails and what
// was set aside. Followers that have never run are not in it. It is empty without a
// store, and of one that cannot be written to and has an older schema.
func (c *Cairn) Followers(ctx context.Context) (Followers, error) {
	s, err := c.opened(ctx, false)
	if err != nil || s == nil {
		return Followers{Followers: []FollowerStatus{}, SetAside: []AsideStatus{}}, err
	}
	return c.followersOf(ctx, s)
}

func (c *Cairn) followersOf(ctx context.Context, s *store.Store) (Followers, error) {
	out := Followers{Followers: []FollowerStatus{}, SetAside: []AsideStatus{}}
	if older, err := s.IsOlder(ctx); older || err != nil {
		return out, err
	}
	err := c.addFollowers(ctx, s, &out)
	if err == nil && !c.isUnarchived(s) {
		err = c.addArchives(ctx, s, &out)
	}
	if err == nil {
		err = c.addReplication(ctx, memory.New(s, memory.Config{}), &out)
	}
	slices.SortStableFunc(out.Followers, func(a, b FollowerStatus) int {
		return cmp.Or(cmp.Compare(a.Follower, b.Follower), cmp.Compare(a.Lane, b.Lane))
	})
	slices.SortStableFunc(out.SetAside, func(a, b AsideStatus) int {
		return cmp.Or(cmp.Compare(a.Follower, b.Follower), cmp.Compare(a.Seq, b.Seq))
	})
	return out, err
}

// addFollowers adds what the store knows.
func (c *Cairn) addFollowers(ctx context.Context, s *store.Store, out *Followers) error {
	all, err := s.Followers(ctx)
	if err != nil {
		return err
	}
	running := map[string]bool{}
	for _, p := range all {
		if _, asked := running[p.Follower]; !asked && !p.Live {
			running[p.Follower] = s.IsFollowed(p.Follower)
		}
		out.Followers = append(out.Followers, FollowerStatus{
			Follower: p.Follower, Lane: p.Lane, Running: p.Live || running[p.Follower], Behind: p.Behind, Oldest: timeOf(p.Oldest),
			Error: p.Error, Attempts: p.Attempts, Since: timeOf(p.Since), NextTry: timeOf(p.NextTry),
		})
	}
	aside, err := s.SetAside(ctx)
	for _, a := range aside {
		out.SetAside = append(out.SetAside, AsideStatus{
			Follower: a.Follower, Lane: a.Lane, Seq: a.Seq, Error: a.Error, Attempts: a.Attempts, Since: a.Since.UTC(), NextTry: a.NextTry.UTC(),
		})
	}
	return err
}

// addArchives adds what waits for the archive of each project.
func (c *Cairn) addArchives(ctx context.Context, s *store.Store, out *Followers) error {
	archives, err := c.archivist(s, nil).Status(ctx, "")
	for _, a := range archives {
		if a.Lag == 0 {
			continue
		}
		i := slices.IndexFunc(out.Followers, func(f FollowerStatus) bool { return f.Follower == archive.FollowerName && f.Lane == a.Project })
		if i < 0 {
			i = len(out.Followers)
			out.Followers = append(out.Followers, FollowerStatus{Follower: archive.FollowerName, Lane: a.Project, Running: s.IsFollowed(archive.FollowerName)})
		}
		out.Followers[i].Behind, out.Followers[i].Oldest = a.Lag, timeOf(a.Since)
	}
	return err
}

// addReplication adds what waits for the hubs: a row for each hub, and one for each memory
// whose last try failed.
func (c *Cairn) addReplication(ctx context.Context, b *memory.Book, out *Followers) error {
	users, err := b.Users(ctx)
	for _, u := range users {
		if err == nil && u.HubURL != "" {
			err = c.addHub(ctx, b, u, out)
		}
	}
	return err
}

func (c *Cairn) addHub(ctx context.Context, b *memory.Book, u memory.User, out *Followers) error {
	backlog, err := b.Backlog(ctx, u.UserID)
	if err != nil {
		return err
	}
	hub := FollowerStatus{
		Follower: ReplicationFollower, Lane: u.HubURL, Running: c.Replication().Running()[u.UserID] != nil,
		Behind: int64(backlog.Pending), Oldest: timeOf(int64(backlog.OldestPending)), Error: u.Stop.Why,
	}
	out.Followers = append(out.Followers, hub)
	streams, err := waiting(ctx, b, u.UserID)
	if err != nil {
		return err
	}
	for _, w := range streams {
		out.Followers = append(out.Followers, FollowerStatus{
			Follower: ReplicationFollower, Lane: w.MemoryID, Running: hub.Running, Error: w.Error, Attempts: w.Attempts, NextTry: w.NextAttempt,
		})
	}
	failures, err := b.Failures(ctx, u.UserID)
	for _, f := range failures {
		out.SetAside = append(out.SetAside, AsideStatus{
			Follower: ReplicationFollower, Lane: f.Stream, Seq: f.Seq, Error: fmt.Sprintf("%s: %d %s: %s", f.LocalID, f.Status, f.Code, f.Message),
			Attempts: 1, Since: timeOf(int64(f.At)),
		})
	}
	return err
}

// timeOf is a time in UTC; the zero time for 0.
func timeOf(nanoseconds int64) time.Time {
	if nanoseconds == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanoseconds).UTC()
}

// Retried is what Retry has made due.
type Retried struct {
	Changes int64 `json:"changes"` // that were set aside
	Lanes   int64 `json:"failing"` // that failed: followers, or lanes of them
	Running bool  `json:"running"` // a process runs one of these followers now
}

// Retry has a follower, or all for "", try at once what it has set aside and what it fails
// at. A server does so within seconds; without one it waits for the next. Repeating it is
// safe. Errors: NotFound for a follower that has never run, and without a store.
func (c *Cairn) Retry(ctx context.Context, follower string) (out Retried, err error) {
	s, err := c.opened(ctx, false)
	if err == nil && s == nil {
		err = fault.New(fault.NotFound, store.CodeMissing, "there is no store yet, so nothing follows it")
	}
	if err != nil {
		return out, err
	}
	before, err := c.Followers(ctx)
	if err != nil {
		return out, err
	}
	concerned := func(name string) bool { return follower == "" || follower == name }
	out.Running = slices.ContainsFunc(before.Followers, func(f FollowerStatus) bool { return f.Running && concerned(f.Follower) })
	if follower != ReplicationFollower {
		if out.Changes, out.Lanes, err = s.Retry(ctx, follower); err != nil {
			return out, err
		}
	}
	if concerned(ReplicationFollower) {
		err = c.retryReplication(ctx, &out)
	}
	return out, err
}

// retryReplication sends again what the hubs have refused, and what waits after a failed
// try.
func (c *Cairn) retryReplication(ctx context.Context, out *Retried) error {
	return c.Memories().Read(ctx, memory.Caller{}, func(ctx context.Context, b *memory.Book, caller memory.Caller) error {
		if !b.Exists() {
			return nil
		}
		users, err := b.Users(ctx)
		for _, u := range users {
			if err != nil {
				return err
			}
			if u.HubURL == "" {
				continue
			}
			streams, serr := waiting(ctx, b, u.UserID)
			if serr != nil {
				return serr
			}
			caller.User = u.UserID
			n, rerr := b.Retry(ctx, caller, nil)
			if rerr != nil {
				return rerr
			}
			out.Changes, out.Lanes = out.Changes+int64(n), out.Lanes+int64(len(streams))
			err = b.ClearDelays(ctx, u.Membership())
		}
		return err
	})
}
