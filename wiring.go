package cairn

import (
	"context"
	"os"

	"cairn/internal/observation"
	"cairn/internal/wiring"
)

// InitArgs are the options of Init.
type InitArgs struct {
	Place    wiring.Paths
	Options  wiring.Options
	Import   ImportArgs // missing paths are skipped
	NoImport bool       // only connect agents

	// OnConnected, if set, is called with the changes of the settings, before the import.
	OnConnected func(wiring.Result)
}

// InitReport is the result of Init.
type InitReport struct {
	wiring.Result
	Import   *ImportReport               `json:"import"`   // null if there was nothing to read
	Imported observation.Totals          `json:"imported"` // rows that the import added
	Held     observation.Totals          `json:"held"`     // all rows of the store
	Question *observation.SampleQuestion `json:"question"` // null if the history contains no suitable question
}

// Init connects the agents, imports their transcripts immediately, because agents delete
// them, and finds a sample question in the history (observations §12, §15, §16). With
// Options.DryRun it only reports what it would write. Without an agent it imports nothing.
// It is idempotent.
func (c *Cairn) Init(ctx context.Context, a InitArgs) (InitReport, error) {
	var w InitReport
	var err error
	if w.Result, err = wiring.Init(a.Place, a.Options); err != nil {
		return w, err
	}
	if a.OnConnected != nil {
		a.OnConnected(w.Result)
	}
	if a.NoImport || a.Options.DryRun || len(w.Harnesses) == 0 {
		return w, nil
	}
	a.Import.Paths = existing(a.Import.Paths)
	err = c.firstReport(ctx, a.Import, &w)
	return w, err
}

func existing(paths []string) []string {
	var out []string
	for _, p := range paths {
		if _, err := os.Stat(p); err == nil {
			out = append(out, p)
		}
	}
	return out
}

func (c *Cairn) firstReport(ctx context.Context, a ImportArgs, w *InitReport) error {
	j, err := c.Observations(ctx)
	if err != nil {
		return err
	}
	before, err := j.Stats(ctx)
	if err != nil {
		return err
	}
	if len(a.Paths) > 0 {
		r, err := c.Import(ctx, a)
		if err != nil {
			return err
		}
		w.Import = &r
	}
	if j, err = c.Observations(ctx); err != nil {
		return err
	}
	last := int64(0)
	if before.LastEvent != nil {
		last = before.LastEvent.ID
	}
	if w.Imported, err = j.Haul(ctx, last); err != nil {
		return err
	}
	if w.Held, err = j.Haul(ctx, 0); err != nil {
		return err
	}
	w.Question, err = j.Showcase(ctx)
	return err
}

// UninstallReport is the result of Uninstall.
type UninstallReport struct {
	Files  []wiring.Change `json:"files"`
	Purged bool            `json:"purged"` // the data directory was deleted
}

// Uninstall undoes Init's changes of the agents' settings. purge also deletes the data
// directory, unless a file could not be restored: its original would be lost. Without purge
// all data stays (observations §15).
func Uninstall(p wiring.Paths, purge bool) (u UninstallReport, err error) {
	if u.Files, err = wiring.Uninstall(p); err != nil || !purge || wiring.AnyFailed(u.Files) {
		return u, err
	}
	err = wiring.Purge(p)
	u.Purged = err == nil
	return u, err
}
