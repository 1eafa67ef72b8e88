// Package followers reports on everything that follows the change log: the archive, the
// vectors of memories, live views and the replication.
package followers

import (
	"cmp"
	"context"
	"slices"
	"time"

	"cairn/internal/archive"
	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/memories"
	"cairn/internal/store"
	"cairn/internal/store/follow"
)

// Replication is the name under which the sending of memories to the hubs is reported.
const Replication = memory.PushFollower

// Status is the state of a follower of the change log, or of one of its lanes: a project of
// the archive, a hub or a memory of the replication.
type Status struct {
	Follower string    `json:"follower"`
	Lane     string    `json:"lane,omitempty"`
	Running  bool      `json:"running"`         // a process runs it now
	Behind   int64     `json:"behind"`          // changes that it has not handled
	Oldest   time.Time `json:"oldest,omitzero"` // when the first of them was made

	Error    string    `json:"error,omitempty"`    // why the last try failed
	Attempts int       `json:"attempts,omitempty"` // failed tries since the last success
	Since    time.Time `json:"since,omitzero"`     // when the first of them failed
	NextTry  time.Time `json:"next_try,omitzero"`
}

// Name returns the follower with its lane in human-readable form: "the archive of shop".
func (f Status) Name() string { return nameOf(f.Follower, f.Lane) }

// Aside is a change that a follower could not handle and has set aside. Later changes are
// handled.
type Aside struct {
	Follower string    `json:"follower"`
	Lane     string    `json:"lane,omitempty"`
	Seq      int64     `json:"seq"` // of the change in the log
	Error    string    `json:"error"`
	Attempts int       `json:"attempts"`
	Since    time.Time `json:"since"`
	NextTry  time.Time `json:"next_try,omitzero"` // zero if it waits for a person
}

// Name returns the follower with its lane in human-readable form.
func (a Aside) Name() string { return nameOf(a.Follower, a.Lane) }

func nameOf(follower, lane string) string {
	switch {
	case lane == "":
		return follower
	case follower == archive.FollowerName:
		return "the archive of " + lane
	}
	return follower + " of " + lane
}

// Account is the account of all followers of the change log.
type Account struct {
	Followers []Status `json:"followers"` // by name and lane; never nil
	SetAside  []Aside  `json:"set_aside"` // by follower and seq; never nil

	Archives []archive.Status `json:"-"` // of all projects; nil if nothing is archived
}

// Service reads and changes the account.
type Service struct {
	Store    *store.Store
	Archive  *archive.Archiver // nil if nothing is archived
	Memories *memories.Service // over the store
}

// Account returns the state of each follower of the change log, and the changes that were set
// aside. It omits followers that have never run. It is empty for a store with an older
// schema that cannot be written to.
func (s Service) Account(ctx context.Context) (Account, error) {
	out, err := s.account(ctx)
	if err == nil && s.Archive != nil {
		err = s.addArchives(ctx, &out)
	}
	slices.SortStableFunc(out.Followers, func(a, b Status) int {
		return cmp.Or(cmp.Compare(a.Follower, b.Follower), cmp.Compare(a.Lane, b.Lane))
	})
	return out, err
}

// Aside lists the changes that were set aside, by follower and seq; never nil. It is faster
// than Account, because it does not count the backlog of the archives.
func (s Service) Aside(ctx context.Context) ([]Aside, error) {
	out, err := s.account(ctx)
	return out.SetAside, err
}

// account returns the account without the backlog of the archives.
func (s Service) account(ctx context.Context) (Account, error) {
	out := Account{Followers: []Status{}, SetAside: []Aside{}}
	if older, err := s.Store.IsOlder(ctx); older || err != nil {
		return out, err
	}
	err := s.addFollowers(ctx, &out)
	if err == nil {
		err = s.addReplication(ctx, &out)
	}
	slices.SortStableFunc(out.SetAside, func(a, b Aside) int {
		return cmp.Or(cmp.Compare(a.Follower, b.Follower), cmp.Compare(a.Seq, b.Seq))
	})
	return out, err
}

// addFollowers adds the store's account.
func (s Service) addFollowers(ctx context.Context, out *Account) error {
	all, err := follow.Followers(ctx, s.Store)
	if err != nil {
		return err
	}
	running := map[string]bool{}
	for _, p := range all {
		name := p.Follower
		if name == memory.PullFollower { // it has no leases of its own
			name = Replication
		}
		if _, asked := running[name]; !asked && !p.Live {
			running[name] = follow.IsFollowed(ctx, s.Store, name)
		}
		out.Followers = append(out.Followers, Status{
			Follower: p.Follower, Lane: p.Lane, Running: p.Live || running[name], Behind: p.Behind, Oldest: timeOf(p.Oldest),
			Error: p.Error, Attempts: p.Attempts, Since: timeOf(p.Since), NextTry: timeOf(p.NextTry),
		})
	}
	aside, err := follow.FailedChanges(ctx, s.Store)
	for _, a := range aside {
		one := Aside{Follower: a.Follower, Lane: a.Lane, Seq: a.Seq, Error: a.Error, Attempts: a.Attempts, Since: a.Since.UTC()}
		if !a.NextTry.IsZero() {
			one.NextTry = a.NextTry.UTC()
		}
		out.SetAside = append(out.SetAside, one)
	}
	return err
}

// addArchives adds the backlog of the archive of each project.
func (s Service) addArchives(ctx context.Context, out *Account) error {
	var err error
	out.Archives, err = s.Archive.Status(ctx, "")
	for _, a := range out.Archives {
		if a.Lag == 0 {
			continue
		}
		i := slices.IndexFunc(out.Followers, func(f Status) bool { return f.Follower == archive.FollowerName && f.Lane == a.Project })
		if i < 0 {
			i = len(out.Followers)
			out.Followers = append(out.Followers, Status{Follower: archive.FollowerName, Lane: a.Project, Running: follow.IsFollowed(ctx, s.Store, archive.FollowerName)})
		}
		out.Followers[i].Behind, out.Followers[i].Oldest = a.Lag, timeOf(a.Since)
	}
	return err
}

// addReplication adds a row for each hub, with the changes that wait for it, and one for
// each memory that a restored hub must receive again first. Failing memories are in the
// store's account.
func (s Service) addReplication(ctx context.Context, out *Account) error {
	users, err := s.Memories.Users(ctx)
	for _, u := range users {
		if err == nil && u.HubURL != "" {
			err = s.addHub(ctx, u, out)
		}
	}
	return err
}

func (s Service) addHub(ctx context.Context, u memory.User, out *Account) error {
	backlog, err := s.Memories.Backlog(ctx, u.UserID)
	if err != nil {
		return err
	}
	hub := Status{
		Follower: Replication, Lane: u.HubURL, Running: follow.IsFollowed(ctx, s.Store, Replication),
		Behind: int64(backlog.Pending), Oldest: timeOf(int64(backlog.OldestPending)), Error: u.Stop.Why,
	}
	out.Followers = append(out.Followers, hub)
	waiting, err := s.Memories.Waiting(ctx, u.UserID)
	for _, w := range waiting {
		if w.Error == "" {
			out.Followers = append(out.Followers, Status{Follower: Replication, Lane: w.MemoryID, Running: hub.Running})
		}
	}
	return err
}

// timeOf returns a time in UTC; the zero time for 0.
func timeOf(nanoseconds int64) time.Time {
	if nanoseconds == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanoseconds).UTC()
}

// Retried counts what Retry has made due.
type Retried struct {
	Changes int64 `json:"changes"` // set aside
	Lanes   int64 `json:"failing"` // failing followers, or lanes of them
	Running bool  `json:"running"` // a process runs one of these followers now
}

// Retry makes the changes and lanes due immediately that a follower, or any for "", has set
// aside or fails at. A server tries them within seconds; without one, the next server does.
// It is idempotent. Errors: NotFound for a follower that has never run.
func (s Service) Retry(ctx context.Context, follower string) (out Retried, err error) {
	before, err := s.Account(ctx)
	if err != nil {
		return out, err
	}
	concerned := func(name string) bool { return follower == "" || follower == name }
	out.Running = slices.ContainsFunc(before.Followers, func(f Status) bool { return f.Running && concerned(f.Follower) })
	if out.Changes, out.Lanes, err = follow.Retry(ctx, s.Store, follower); err != nil && (follower != Replication || fault.KindOf(err) != fault.NotFound) {
		return out, err
	}
	if err = nil; concerned(Replication) {
		err = s.retryRefused(ctx, &out)
	}
	return out, err
}

// retryRefused has the changes sent again that the hubs have refused. They wait for a person.
func (s Service) retryRefused(ctx context.Context, out *Retried) error {
	users, err := s.Memories.Users(ctx)
	for _, u := range users {
		if err != nil {
			return err
		}
		if u.HubURL != "" {
			var n int
			n, err = s.Memories.Retry(ctx, memory.Caller{User: u.UserID}, nil)
			out.Changes += int64(n)
		}
	}
	return err
}
