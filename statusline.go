package cairn

import (
	"context"

	"cairn/internal/mail/service"
	"cairn/internal/observation/browse"
	"cairn/internal/project"
	"cairn/internal/store"
)

// StatusLine is the content of the status line of an agent program.
type StatusLine struct {
	Session string           `json:"session"` // "" if no session is known here
	Project string           `json:"project"` // of the session, else of the working directory; "" if unknown
	Rows    int64            `json:"rows"`    // number of the session's observations
	Agents  []service.Acting `json:"agents"`  // the agents that the session acts as; never nil
}

// StatusLine describes a session; "" means the session that runs this process. It writes
// nothing. An unknown session and a missing store are not errors.
func (c *Cairn) StatusLine(ctx context.Context, session string) (line StatusLine, err error) {
	line.Agents = []service.Acting{}
	if line.Session = session; session == "" {
		if line.Session, err = c.CurrentSession(ctx); err != nil {
			return line, err
		}
	}
	s, err := c.Opened(ctx, false)
	if err != nil || s == nil {
		return line, err
	}
	var known bool
	err = s.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		q, ok, err := project.OfSession(ctx, tx, line.Session)
		line.Project, known = q.ID, ok
		return err
	})
	if err != nil {
		return line, err
	}
	if !known {
		line.Project, err = c.Here(ctx, "")
		return line, err
	}
	if line.Rows, err = browse.CountOf(ctx, c.ObservationsOver(s), line.Session); err != nil {
		return line, err
	}
	acting, err := c.MailService(s).Acting(ctx, line.Session)
	line.Agents = append(line.Agents, acting...)
	return line, err
}
