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
)

// Mail is how agents that work side by side know of each other (mail §1), for
// callers of this process.
type Mail struct{ cairn *Cairn }

// Mail is the mail over the store.
func (c *Cairn) Mail() Mail { return Mail{c} }

// Cairn is the cairn whose mail it is, for what guards do beside the store.
func (m Mail) Cairn() *Cairn { return m.cairn }

// Read calls ask once with the service, which is one over nothing while there is no
// store, and with who calls: see Write. It makes no store.
//
// Errors: those of ask; those of mail.Fault for a store that cannot be opened, and
// RESOURCE_BUSY when mail.call_timeout has passed.
func (m Mail) Read(ctx context.Context, c mail.Caller, ask func(context.Context, *service.Mail, mail.Caller) error) error {
	return m.within(ctx, func(ctx context.Context) error {
		o, _, err := m.mailService(ctx, false)
		if err != nil {
			return err
		}
		return ask(ctx, o, m.completed(c))
	})
}

// Write calls do with the service over the store. While there is no store do is
// first tried over nothing, and the store is made if that succeeds: so do may be
// called twice, and what is refused makes no store.
//
// Of a Caller only what the caller said need be set; the working directory and the
// processes above this one are added here. An empty list of Ancestors says that
// the caller is none of them and elsewhere: of the place then only the home is
// added.
//
// Errors: those of Read.
func (m Mail) Write(ctx context.Context, c mail.Caller, do func(context.Context, *service.Mail, mail.Caller) error) error {
	return m.within(ctx, func(ctx context.Context) error {
		c := m.completed(c)
		return tried(func(make bool) (*service.Mail, bool, error) { return m.mailService(ctx, make) },
			func(o *service.Mail) error { return do(ctx, o, c) })
	})
}

// mailService opens the mail; there is false where it is over nothing.
func (m Mail) mailService(ctx context.Context, make bool) (o *service.Mail, there bool, err error) {
	s, err := m.cairn.opened(ctx, make)
	if err != nil {
		return nil, false, mail.Fault(err)
	}
	return m.cairn.mailService(s), s != nil, nil
}

func (m Mail) completed(c mail.Caller) mail.Caller {
	elsewhere := c.Ancestors != nil && len(c.Ancestors) == 0
	if c.Ancestors == nil {
		c.Ancestors = project.Ancestors()
	}
	if c.Place == (project.Location{}) {
		c.Place = m.cairn.place // the zero one without a working directory
		if elsewhere || c.Place == (project.Location{}) {
			c.Place = project.Location{Home: m.cairn.config.Home}
		}
	}
	return c
}

// Profile is mcp.profile of the settings.
func (c *Cairn) Profile() string { return cmp.Or(value(c.settings.work.MCP.Profile), Profiles()[0]) }

// defaultSweep is how often expired reservations are marked (mail §12).
const defaultSweep = time.Minute

// Sweep marks the reservations that have expired, now and then, as servers do (mail
// §7), until ctx ends; then it returns nil. A failed attempt is repeated at the next
// turn.
func (m Mail) Sweep(ctx context.Context) error {
	tick := time.NewTicker(cmp.Or(lasting(m.cairn.settings.work.Reservations.Sweep), defaultSweep))
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

// errTooLong ends a call that has waited for too long.
var errTooLong = errors.New("the call took too long")

// within runs one call within the time that it may take.
func (m Mail) within(ctx context.Context, call func(context.Context) error) error {
	limited, cancel := context.WithTimeoutCause(ctx, m.cairn.settings.work.callTimeout(), errTooLong)
	defer cancel()
	err := call(limited)
	if err == nil || ctx.Err() != nil || !errors.Is(context.Cause(limited), errTooLong) {
		return err
	}
	busy := fault.Wrap(err, fault.Unavailable, mail.CodeBusy, "Resource is temporarily busy.").
		WithHint("call again in a moment; nothing was stored")
	busy.Details = map[string]any{"recoverable": true}
	return busy
}
