package cairn

import (
	"cmp"
	"context"

	"cairn/internal/memory/memories"
	"cairn/internal/recall"
	"cairn/internal/record/commands"
)

// Recall answers a question about past work; see recall.Service.Ask. Near "" means the
// project of the working directory. It does not create a store.
func (c *Cairn) Recall(ctx context.Context, a recall.Args) (recall.Answer, error) {
	near, err := c.Here(ctx, cmp.Or(a.Project, a.Near))
	if err != nil {
		return recall.Answer{}, err
	}
	s, err := c.Opened(ctx, false)
	if err != nil {
		return recall.Answer{}, err
	}
	a.Near = near
	r := recall.Service{Observations: c.ObservationsOver(s), Place: c.Location}
	if s != nil {
		// Separate memories, which fetch nothing from a hub.
		r.Memories = memories.New(s, memoryConfig(&c.Settings.Work, c.ObservationConfig.Filter))
		defer func() { _ = r.Memories.Stop(ctx) }()
		r.Records, r.Mail = commands.New(s, c.RecordConfig()), c.MailService(s)
	}
	return r.Ask(ctx, a)
}
