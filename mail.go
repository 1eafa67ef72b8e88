package cairn

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/mail/service"
	"cairn/internal/project"
	"cairn/internal/settings"
)

// Mail provides the mail between agents (mail §1) for callers in this process.
type Mail struct{ cairn *Cairn }

// Mail returns the mail of the store.
func (c *Cairn) Mail() Mail { return Mail{c} }

// Cairn returns the cairn of this mail, for the parts of guards outside the store.
func (m Mail) Cairn() *Cairn { return m.cairn }

// Read calls ask once with the service and the completed caller: see Write. Without a
// store the service finds nothing. It does not create a store.
//
// Errors: those of ask; those of mail.Fault for a store that cannot be opened, and
// RESOURCE_BUSY when mail.call_timeout has passed.
func (m Mail) Read(ctx context.Context, c mail.Caller, ask func(context.Context, *service.Mail, mail.Caller) error) error {
	return m.withTimeout(ctx, func(ctx context.Context) error {
		o, _, err := m.mailService(ctx, false)
		if err != nil {
			return err
		}
		return ask(ctx, o, m.completeCaller(c))
	})
}

// Write calls do with the service. If there is no store, do first runs without one, and
// the store is created if that succeeds. So do may be called twice, and a rejected call
// does not create a store.
//
// A Caller needs only the caller's own arguments. Write adds the working directory and the
// ancestors of this process. An empty list of Ancestors means that the caller is a remote
// client: then only the home directory is added.
//
// Errors: those of Read.
func (m Mail) Write(ctx context.Context, c mail.Caller, do func(context.Context, *service.Mail, mail.Caller) error) error {
	return m.withTimeout(ctx, func(ctx context.Context) error {
		c := m.completeCaller(c)
		return tryThenCreate(func(make bool) (*service.Mail, bool, error) { return m.mailService(ctx, make) },
			func(o *service.Mail) error { return do(ctx, o, c) })
	})
}

// mailService opens the mail; its result there is false if there is no store.
func (m Mail) mailService(ctx context.Context, make bool) (o *service.Mail, there bool, err error) {
	s, err := m.cairn.Opened(ctx, make)
	if err != nil {
		return nil, false, mail.Fault(err)
	}
	return m.cairn.MailService(s), s != nil, nil
}

func (m Mail) completeCaller(c mail.Caller) mail.Caller {
	elsewhere := c.Ancestors != nil && len(c.Ancestors) == 0
	if c.Ancestors == nil {
		c.Ancestors = project.Ancestors()
	}
	if c.Place == (project.Location{}) {
		c.Place = m.cairn.Location // zero without a working directory
		if elsewhere || c.Place == (project.Location{}) {
			c.Place = project.Location{Home: m.cairn.Config.Home}
		}
	}
	return c
}

// Profile returns mcp.profile of the settings.
func (c *Cairn) Profile() string {
	return cmp.Or(settings.Value(c.Settings.Work.MCP.Profile), settings.Profiles()[0])
}

// defaultSweep is the interval at which expired reservations are marked (mail §12).
const defaultSweep = time.Minute

// Sweep marks expired reservations at regular intervals, as servers do (mail §7), until ctx
// ends; then it returns nil. After a failure it tries again at the next interval.
func (m Mail) Sweep(ctx context.Context) error {
	tick := time.NewTicker(cmp.Or(settings.Seconds(m.cairn.Settings.Work.Reservations.Sweep), defaultSweep))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		o, there, err := m.mailService(ctx, false)
		if err == nil && there {
			_, err = o.SweepReservations(ctx)
		}
		if err != nil && ctx.Err() == nil {
			slog.Warn("expired reservations could not be marked", "error", err)
		}
	}
}

// errTooLong ends a call that exceeds its time limit.
var errTooLong = errors.New("the call took too long")

// withTimeout runs one call with its time limit.
func (m Mail) withTimeout(ctx context.Context, call func(context.Context) error) error {
	limited, cancel := context.WithTimeoutCause(ctx, m.cairn.Settings.Work.CallTimeoutOrDefault(), errTooLong)
	defer cancel()
	err := call(limited)
	if err == nil || ctx.Err() != nil || !errors.Is(context.Cause(limited), errTooLong) {
		return err
	}
	busy := fault.Wrap(err, fault.Unavailable, mail.CodeBusy, "Resource is temporarily busy.").
		WithHint("retry in a moment; nothing was stored")
	busy.Details = map[string]any{"recoverable": true}
	return busy
}
