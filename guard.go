package cairn

import (
	"context"

	"cairn/internal/guard"
	"cairn/internal/mail/service"
	"cairn/internal/settings"
)

// Guard returns the guard of commits and pushes for the working directory.
func (c *Cairn) Guard() *guard.Service {
	return &guard.Service{
		Mail: func(ctx context.Context) (*service.Mail, bool, error) {
			s, err := c.Opened(ctx, false)
			return c.MailService(s), s != nil, err
		},
		Sessions: c.processSessions, Place: c.Location, Cwd: c.Config.Cwd, Home: c.Config.Home,
	}
}

// GuardSettings returns guard.mode, "" if it is not set, and guard.strict.
func (c *Cairn) GuardSettings() (mode string, strict bool) {
	return settings.Value(c.Settings.Work.Guard.Mode), settings.Value(c.Settings.Work.Guard.Strict)
}
