package cairn

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"cairn/internal/fault"
	"cairn/internal/observation"
	"cairn/internal/observation/forget"
	"cairn/internal/observation/integrity"
	"cairn/internal/store"
)

// retentionSettings say how long what is kept.
type retentionSettings struct {
	Days       map[string]any `toml:"days"`        // type → days, or "never"
	OutputDays any            `toml:"output_days"` // of outputs: days, or "never"
}

// retention merges the settings over the defaults. An unknown type and anything
// but a whole number of days from 1 on or "never" is an error that names them.
func (r retentionSettings) retention() (observation.Retention, error) {
	out := observation.DefaultRetention()
	for _, name := range slices.Sorted(maps.Keys(r.Days)) {
		days, whole := r.Days[name].(int64)
		switch {
		case !observation.IsType(name):
			return nil, keyError{"retention.days." + name, "is no type of rows"}
		case r.Days[name] == "never":
			delete(out, name)
		case !whole || days < 1 || days > maxRetentionDays:
			return nil, keyError{"retention.days." + name, fmt.Sprintf(`must be a number of days from 1 to %d, or "never"`, maxRetentionDays)}
		default:
			out[name] = int(days)
		}
	}
	return out, nil
}

// outputDays returns after how many days outputs expire, 0 for never.
func (r retentionSettings) outputDays() (int, error) {
	switch days, whole := r.OutputDays.(int64); {
	case r.OutputDays == nil:
		return observation.DefaultOutputDays, nil
	case r.OutputDays == "never":
		return 0, nil
	case !whole || days < 1 || days > maxRetentionDays:
		return 0, keyError{"retention.output_days", fmt.Sprintf(`must be a number of days from 1 to %d, or "never"`, maxRetentionDays)}
	default:
		return int(days), nil
	}
}

// maxRetentionDays is a thousand years.
const maxRetentionDays = 365_000

// What a hook may sweep at the start of a session (observations §11.1).
const (
	hookSweepRows = 500
	hookSweepTime = 10 * time.Millisecond
)

// Purge forgets rows permanently; see forget.Purge. Without a store
// there is nothing to purge: NotFound, store.CodeMissing.
func (c *Cairn) Purge(ctx context.Context, a forget.PurgeArgs) (forget.PurgeResult, error) {
	s, err := c.opened(ctx, false)
	if err != nil {
		return forget.PurgeResult{}, err
	}
	if s == nil {
		return forget.PurgeResult{}, fault.New(fault.NotFound, store.CodeMissing, "there is no store yet")
	}
	a.Cwd = c.config.Cwd
	if a.Confirm {
		if _, err := c.finishForgetting(ctx, s); err != nil { // what a purge of mail left when it was killed
			return forget.PurgeResult{}, err
		}
	}
	return forget.Purge(ctx, c.over(s), a)
}

// Swept is what a sweep did, or would do.
type Swept struct {
	forget.SweepResult
	Rescan *forget.Rescanned `json:"rescan,omitempty"` // if it was asked for
}

// SweepArgs say how to sweep.
type SweepArgs struct {
	DryRun bool // only count
	Rescan bool // also apply the present rules of redaction to what is stored

	// Progress, if set, is told how many rows of how many were handled; total is 0
	// where it is not known.
	Progress func(done, total int)
}

// Sweep forgets what has expired and what is too much, and completes what an
// earlier purge or rescan left on the disk. Without a store it does nothing.
// Errors are those of forget.Sweep, EnforceSizeLimit, Rescan and
// Finish; Swept reports what was done until then.
func (c *Cairn) Sweep(ctx context.Context, a SweepArgs) (done Swept, err error) {
	j, err := c.Observations(ctx)
	if err != nil {
		return done, err
	}
	args := forget.SweepArgs{DryRun: a.DryRun, Progress: func(rows int) {
		if a.Progress != nil {
			a.Progress(rows, 0)
		}
	}}
	if done.SweepResult, err = forget.Sweep(ctx, j, args); err != nil {
		return done, err
	}
	if !a.DryRun {
		if _, err := integrity.FillChecksums(ctx, j, math.MaxInt); err != nil {
			return done, err
		}
	}
	room, err := forget.EnforceSizeLimit(ctx, j, args)
	done.Add(room)
	if err != nil {
		return done, err
	}
	if a.Rescan {
		found, err := forget.Rescan(ctx, j, forget.RescanArgs{DryRun: a.DryRun, Progress: a.Progress})
		done.Rescan = &found
		if err != nil {
			return done, err
		}
	}
	if !a.DryRun {
		if _, err := j.IndexTurns(ctx, math.MaxInt); err != nil {
			return done, err
		}
	}
	if s, oerr := c.opened(ctx, false); !a.DryRun && s != nil && oerr == nil {
		_, err = c.finishForgetting(ctx, s)
	}
	return done, err
}

// makeRoom keeps a store that a server has open within its bound.
func (c *Cairn) makeRoom(ctx context.Context, s *store.Store) error {
	_, err := forget.EnforceSizeLimit(ctx, c.over(s), forget.SweepArgs{})
	return err
}

// fillChecksums computes some checksums of rows that an older cairn wrote.
func (c *Cairn) fillChecksums(ctx context.Context, s *store.Store) error {
	const atOnce = 20_000
	_, err := integrity.FillChecksums(ctx, c.over(s), atOnce)
	return err
}

// indexTurns brings some of the index of turns up to date.
func (c *Cairn) indexTurns(ctx context.Context, s *store.Store) error {
	_, err := c.over(s).IndexTurns(ctx, turnsAtOnce)
	return err
}

// turnsAtOnce is how many rows are read at once for the index of turns: two seconds' work.
const turnsAtOnce = 20_000

// IndexTurns indexes up to 20,000 rows that Recall and Find do not find by their turns yet:
// those of an older cairn, since a hook indexes its own session only. Servers and sweeps do
// this by themselves; it is for a command before it searches. A store that cannot be
// written stays as it is: then the search looks at the newest of these rows.
func (c *Cairn) IndexTurns(ctx context.Context) {
	if s, err := c.opened(ctx, false); err == nil && s != nil {
		_ = c.indexTurns(ctx, s)
	}
}
