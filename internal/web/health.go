package web

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"cairn"
	"cairn/internal/archive"
	"cairn/internal/copies"
	"cairn/internal/doctor"
	"cairn/internal/fault"
	"cairn/internal/followers"
	"cairn/internal/memory"
)

// maxBackups is the maximum number of backups on the health page.
const maxBackups = 10

// health is the state of the store, its backups and its followers.
type health struct {
	Check       cairn.HealthCheck       `json:"health"`
	Followers   followers.Account       `json:"followers"`
	Replication cairn.ReplicationStatus `json:"replication"`
	Archives    []archive.Status        `json:"archives"`
	Backups     []copies.BackupReport   `json:"backups"` // newest first
	MoreBackups int                     `json:"more_backups,omitempty"`
	Store       measured                `json:"store"`
	Doctor      *diagnosis              `json:"doctor"` // nil before the first run
	Problems    []string                `json:"problems,omitempty"`
	CanCheck    bool                    `json:"-"`
}

// diagnosis is the result of doctor's last run on this server.
type diagnosis struct {
	At     int64          `json:"at"`
	Checks []doctor.Check `json:"checks"`
	Found  int            `json:"findings"` // problems and warnings
}

func (p *health) live() bool { return true }

// health shows the health page. A submitted form runs doctor first.
func (s *Site) health(r *http.Request, v Visitor, _ place) (Response, error) {
	if r.Method == http.MethodPost {
		if err := s.runDoctor(r.Context()); err != nil {
			return Response{}, err
		}
		return Response{To: "/status"}, nil
	}
	p := &health{Archives: []archive.Status{}, Backups: []copies.BackupReport{}, CanCheck: s.doctor != nil, Doctor: s.diagnosed.Load()}
	for _, part := range []struct {
		what string
		read func(context.Context, *health) error
	}{{"the store's state", s.readCheck}, {"followers", s.readFollowers}, {"replication", s.readReplication}, {"archives", s.readArchives}, {"backups", s.readBackups}, {"sizes", s.readSizes}} {
		if err := part.read(r.Context(), p); err != nil {
			p.Problems = append(p.Problems, fmt.Sprintf("%s could not be read: %s", part.what, fault.As(err).Message))
		}
	}
	a, err := s.show(r, v, "health", "Health", p)
	a.Forms = true
	return a, err
}

func (s *Site) readCheck(ctx context.Context, p *health) (err error) {
	p.Check, err = s.cairn.HealthCheck(ctx)
	return err
}

func (s *Site) readFollowers(ctx context.Context, p *health) (err error) {
	p.Followers, err = s.cairn.Followers(ctx)
	return err
}

func (s *Site) readReplication(ctx context.Context, p *health) (err error) {
	p.Replication, err = s.cairn.Replication().Status(ctx, memory.Caller{}, false)
	return err
}

// readArchives lists the archives; the list is empty without a store. The account of the
// followers contains them, unless nothing is archived.
func (s *Site) readArchives(ctx context.Context, p *health) error {
	if p.Followers.Archives != nil {
		p.Archives = p.Followers.Archives
		return nil
	}
	list, err := s.cairn.ArchiveStatus(ctx, cairn.ArchiveArgs{})
	if f := fault.As(err); err != nil && f.Kind == fault.NotFound {
		return nil
	}
	p.Archives = append(p.Archives, list...)
	return err
}

func (s *Site) readBackups(ctx context.Context, p *health) error {
	list, err := s.cairn.Backups().List(ctx)
	p.MoreBackups = max(len(list)-maxBackups, 0)
	p.Backups = append(p.Backups, list[:len(list)-p.MoreBackups]...)
	return err
}

func (s *Site) readSizes(ctx context.Context, p *health) (err error) {
	p.Store, err = s.measures(ctx)
	return err
}

// runDoctor runs all checks of doctor. It keeps the result until the next run or until the
// server stops.
func (s *Site) runDoctor(ctx context.Context) error {
	if s.doctor == nil {
		return fault.New(fault.Invalid, "not_available", "this server cannot run doctor").WithHint("run `cairn doctor`")
	}
	found, err := s.doctor(ctx)
	if err != nil {
		return err
	}
	d := &diagnosis{At: s.now().Unix(), Checks: found.Checks}
	for _, c := range found.Checks {
		if isFinding(c) {
			d.Found++
		}
	}
	s.diagnosed.Store(d)
	return nil
}

// isFinding reports whether a check found something that the user should see.
func isFinding(c doctor.Check) bool { return c.State == doctor.Problem || c.State == doctor.Warning }

// Findings returns the checks of the last run that found something, followed by the checks
// that could not run. Other checks are only counted.
func (d *diagnosis) Findings() (out []doctor.Check) {
	for _, c := range d.Checks {
		if isFinding(c) {
			out = append(out, c)
		}
	}
	for _, c := range d.Checks {
		if c.State == doctor.Unknown {
			out = append(out, c)
		}
	}
	return out
}

// nanoTime converts a time from Unix nanoseconds to Unix seconds.
func nanoTime(at int64) int64 { return time.Unix(0, at).Unix() }
