package cairn

import (
	"context"
	"math"

	"cairn/internal/fault"
	"cairn/internal/observation/forget"
	"cairn/internal/observation/integrity"
	"cairn/internal/store"
)

// Purge deletes rows permanently; see observation.Service.Purge. Errors: those of
// Service.Purge, and NotFound with store.CodeMissing without a store.
func (c *Cairn) Purge(ctx context.Context, a forget.PurgeArgs) (forget.PurgeResult, error) {
	s, err := c.Opened(ctx, false)
	if err != nil {
		return forget.PurgeResult{}, err
	}
	if s == nil {
		return forget.PurgeResult{}, fault.New(fault.NotFound, store.CodeMissing, "there is no store yet")
	}
	a.Cwd = c.Config.Cwd
	if a.Confirm {
		if _, err := c.finishForgetting(ctx, s); err != nil { // completes an interrupted purge of mail
			return forget.PurgeResult{}, err
		}
	}
	return forget.Purge(ctx, c.ObservationsOver(s), a)
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
	if s, oerr := c.Opened(ctx, false); !a.DryRun && s != nil && oerr == nil {
		_, err = c.finishForgetting(ctx, s)
	}
	return done, err
}

// enforceSizeLimit keeps a server's store within its size limit.
func (c *Cairn) enforceSizeLimit(ctx context.Context, s *store.Store) error {
	_, err := forget.EnforceSizeLimit(ctx, c.ObservationsOver(s), forget.SweepArgs{})
	return err
}

// fillChecksums computes the checksums of some rows that an older cairn wrote.
func (c *Cairn) fillChecksums(ctx context.Context, s *store.Store) error {
	const atOnce = 20_000
	_, err := integrity.FillChecksums(ctx, c.ObservationsOver(s), atOnce)
	return err
}

// indexTurns updates a part of the index of turns.
func (c *Cairn) indexTurns(ctx context.Context, s *store.Store) error {
	_, err := c.ObservationsOver(s).IndexTurns(ctx, turnBatch)
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
	if s, err := c.Opened(ctx, false); err == nil && s != nil {
		_ = c.indexTurns(ctx, s)
	}
}
