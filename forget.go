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

// retentionSettings are the retention times.
type retentionSettings struct {
	Days       map[string]any `toml:"days"`        // type → days, or "never"
	OutputDays any            `toml:"output_days"` // of outputs: days, or "never"
}

// retention applies the settings to the defaults. An unknown type is an error, and so is a
// value other than "never" or a whole number of days, at least 1. The error names the key.
func (r retentionSettings) retention() (observation.Retention, error) {
	out := observation.DefaultRetention()
	for _, name := range slices.Sorted(maps.Keys(r.Days)) {
		days, whole := r.Days[name].(int64)
		switch {
		case !observation.IsType(name):
			return nil, keyError{"retention.days." + name, "is not a type of rows"}
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

// outputDays returns the number of days after which outputs expire, 0 for never.
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

// Limits of a hook's sweep at the start of a session (observations §11.1).
const (
	hookSweepRows = 500
	hookSweepTime = 10 * time.Millisecond
)

// Purge deletes rows permanently; see observation.Service.Purge. Errors: those of
// Service.Purge, and NotFound with store.CodeMissing without a store.
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
		if _, err := c.finishForgetting(ctx, s); err != nil { // completes an interrupted purge of mail
			return forget.PurgeResult{}, err
		}
	}
	return forget.Purge(ctx, c.observationsOver(s), a)
}

// SweepResult is the result of a sweep or of its dry run.
type SweepResult struct {
	forget.SweepResult
	Rescan *forget.Rescanned `json:"rescan,omitempty"` // if it was requested
}

// SweepArgs are the options of a sweep.
type SweepArgs struct {
	DryRun bool // only count
	Rescan bool // also apply the current redaction rules to stored data

	// Progress, if set, is called with the number of processed rows and the total, which is
	// 0 if unknown.
	Progress func(done, total int)
}

// Sweep deletes expired rows and rows beyond the size limit, and completes an interrupted
// purge or rescan. Without a store it does nothing. Errors: those of Sweep,
// EnforceSizeLimit, Rescan and FinishForgetting of observation.Service. After an error the
// result reports what was done until then.
func (c *Cairn) Sweep(ctx context.Context, a SweepArgs) (done SweepResult, err error) {
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

// enforceSizeLimit keeps a server's store within its size limit.
func (c *Cairn) enforceSizeLimit(ctx context.Context, s *store.Store) error {
	_, err := forget.EnforceSizeLimit(ctx, c.observationsOver(s), forget.SweepArgs{})
	return err
}

// fillChecksums computes the checksums of some rows that an older cairn wrote.
func (c *Cairn) fillChecksums(ctx context.Context, s *store.Store) error {
	const atOnce = 20_000
	_, err := integrity.FillChecksums(ctx, c.observationsOver(s), atOnce)
	return err
}

// indexTurns updates a part of the index of turns.
func (c *Cairn) indexTurns(ctx context.Context, s *store.Store) error {
	_, err := c.observationsOver(s).IndexTurns(ctx, turnBatch)
	return err
}

// turnBatch is the number of rows that one update of the index of turns reads. They take about
// two seconds.
const turnBatch = 20_000

// IndexTurns adds up to 20,000 rows to the index of turns, which Recall and Find use. These
// are rows of an older cairn, because a hook indexes only its own session. Servers and
// sweeps do this automatically; commands call it before a search. If the store is not
// writable, nothing changes, and the search scans the newest of these rows.
func (c *Cairn) IndexTurns(ctx context.Context) {
	if s, err := c.opened(ctx, false); err == nil && s != nil {
		_ = c.indexTurns(ctx, s)
	}
}
