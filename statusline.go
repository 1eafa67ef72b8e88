package cairn

import (
	"context"

	"cairn/internal/mail"
	"cairn/internal/observation/browse"
	"cairn/internal/project"
	"cairn/internal/store"
)

// StatusLine is what one line says about a session while a person works with it.
type StatusLine struct {
	Session string        `json:"session"` // "" if no session is known here
	Project string        `json:"project"` // of the session, else of the working directory; "" if unknown
	Rows    int64         `json:"rows"`    // observations that the session has left
	Agents  []mail.Acting `json:"agents"`  // as which it acts; empty, not nil
}

// StatusLine describes a session, without a name that of the agent which runs this
// process. It writes nothing; an unknown session and a missing store are no errors.
func (c *Cairn) StatusLine(ctx context.Context, session string) (line StatusLine, err error) {
	line.Agents = []mail.Acting{}
	if line.Session = session; session == "" {
		if line.Session, err = c.CurrentSession(ctx); err != nil {
			return line, err
		}
	}
	s, err := c.opened(ctx, false)
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
	if line.Rows, err = browse.CountOf(ctx, c.over(s), line.Session); err != nil {
		return line, err
	}
	acting, err := c.mailService(s).Acting(ctx, line.Session)
	line.Agents = append(line.Agents, acting...)
	return line, err
}
