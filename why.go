package cairn

import (
	"context"

	"cairn/internal/record/commands"
	"cairn/internal/why"
)

// Why finds the commit, session, prompt and records behind a line or a file of the working
// tree; see why.Service.Ask.
func (c *Cairn) Why(ctx context.Context, a why.Args) (why.Answer, error) {
	s, err := c.why(ctx)
	if err != nil {
		return why.Answer{}, err
	}
	return s.Ask(ctx, a)
}

// ParseWhy parses an argument such as FILE:LINE; see why.Service.Parse.
func (c *Cairn) ParseWhy(arg string) (file string, line int) {
	s := why.Service{Place: c.Location, Cwd: c.Config.Cwd}
	return s.Parse(arg)
}

// why returns the service for why, with or without a store.
func (c *Cairn) why(ctx context.Context) (*why.Service, error) {
	s, err := c.Opened(ctx, false)
	if err != nil {
		return nil, err
	}
	out := &why.Service{Store: s, Journal: c.ObservationsOver(s), Filter: c.ObservationConfig.Filter, Place: c.Location, Cwd: c.Config.Cwd, Home: c.Config.Home}
	if s != nil {
		out.Records = commands.New(s, c.RecordConfig())
	}
	return out, nil
}

// WhyLines traces neighbouring lines of a file back to the prompts that requested them; see
// why.Service.Lines.
func (c *Cairn) WhyLines(ctx context.Context, a why.LinesArgs) (why.Lines, error) {
	s, err := c.why(ctx)
	if err != nil {
		return why.Lines{}, err
	}
	return s.Lines(ctx, a)
}

// FileHistory lists the edits and commits of a file; see why.Service.History.
func (c *Cairn) FileHistory(ctx context.Context, path string) ([]why.FileChange, []why.Missing, error) {
	s, err := c.why(ctx)
	if err != nil {
		return nil, nil, err
	}
	return s.History(ctx, path)
}
