package cairn

import (
	"context"
	"os"

	"cairn/internal/observation/browse"
	"cairn/internal/wiring"
)

// InitArgs say what Init does.
type InitArgs struct {
	Place    wiring.Paths
	Options  wiring.Options
	Import   ImportArgs // paths that are not there are left out
	NoImport bool       // wire only

	// Wired, if set, is told what was done with the settings, before the import.
	Wired func(wiring.Result)
}

// InitReport is what a first look at the history shows.
type InitReport struct {
	wiring.Result
	Import   *ImportReport          `json:"import"`   // null if there was nothing to read
	Imported browse.Totals          `json:"imported"` // what the import added
	Held     browse.Totals          `json:"held"`     // what there is now
	Question *browse.SampleQuestion `json:"question"` // null if the history answers none
}

// Init wires the agents, imports their transcripts at once, since hosts delete
// them, and asks the history a first question (observations §12, §15, §16). With
// Options.DryRun it only reports what it would write. Without an agent it imports
// nothing. Repeating it is safe and adds nothing.
func (c *Cairn) Init(ctx context.Context, a InitArgs) (InitReport, error) {
	var w InitReport
	var err error
	if w.Result, err = wiring.Init(a.Place, a.Options); err != nil {
		return w, err
	}
	if a.Wired != nil {
		a.Wired(w.Result)
	}
	if a.NoImport || a.Options.DryRun || len(w.Harnesses) == 0 {
		return w, nil
	}
	a.Import.Paths = existing(a.Import.Paths)
	err = c.welcome(ctx, a.Import, &w)
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

func (c *Cairn) welcome(ctx context.Context, a ImportArgs, w *InitReport) error {
	j, err := c.Observations(ctx)
	if err != nil {
		return err
	}
	before, err := browse.CountStored(ctx, j)
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
	if w.Imported, err = browse.CountAfter(ctx, j, last); err != nil {
		return err
	}
	if w.Held, err = browse.CountAfter(ctx, j, 0); err != nil {
		return err
	}
	w.Question, err = browse.FindSampleQuestion(ctx, j)
	return err
}

// UninstallReport is what Uninstall did.
type UninstallReport struct {
	Files  []wiring.Change `json:"files"`
	Purged bool            `json:"purged"` // the data directory is gone
}

// Uninstall undoes Init's changes to the agents' settings. purge also deletes the
// data directory, unless a file had to be left alone: its original would be lost
// with it. Nothing else of the data is touched (observations §15).
func Uninstall(p wiring.Paths, purge bool) (u UninstallReport, err error) {
	if u.Files, err = wiring.Uninstall(p); err != nil || !purge || wiring.AnyFailed(u.Files) {
		return u, err
	}
	err = wiring.Purge(p)
	u.Purged = err == nil
	return u, err
}
