package observation

import (
	"context"

	"cairn/internal/store"
	"cairn/internal/tooloutput"
)

const (
	// Ids rise with the day of storing, so the first rows are the oldest. Where a clock was
	// wrong, a row waits for those before it.
	selectOldOutput  = `SELECT EXISTS (SELECT 1 FROM (SELECT kept_on FROM output_rows ORDER BY observation_id LIMIT 1) WHERE kept_on < ?)`
	deleteOldOutputs = `DELETE FROM output_rows WHERE observation_id IN
(SELECT observation_id FROM (SELECT observation_id, kept_on FROM output_rows ORDER BY observation_id LIMIT +?) WHERE kept_on < ?)`
	countOldOutputs = `SELECT count(*) FROM output_rows WHERE kept_on < ?`
)

// outputsBefore returns the day before which outputs were stored that have expired, 0 if
// outputs never expire.
func (j *Service) outputsBefore(now int64) int64 {
	if j.config.OutputDays <= 0 {
		return 0
	}
	return now/secondsPerDay - int64(j.config.OutputDays)
}

// outputs deletes the outputs that have expired, oldest first.
func (s *sweeping) outputs(ctx context.Context) error {
	var before int64
	more := false
	err := s.journal.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		before = s.journal.outputsBefore(tx.Now().Unix())
		return tx.Get(ctx, []any{&more}, selectOldOutput, before)
	})
	for err == nil && more && !s.isOver() {
		var n int64
		err = s.journal.store.Write(ctx, store.Normal, func(ctx context.Context, tx *store.Tx) error {
			res, err := tx.Exec(ctx, deleteOldOutputs, forgetStep, before)
			if err == nil {
				n, err = res.RowsAffected()
			}
			return err
		})
		s.done.Outputs += int(n)
		more = n == forgetStep
	}
	return err
}

// outputs redacts the digests of outputs.
func (r *rescanning) outputs(ctx context.Context) error {
	rules := counted{filter: r.journal.config.Filter, rules: r.done.Rules}
	for last := int64(0); ; {
		var batch []outputRow
		err := r.journal.read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			batch, err = outputsAfter(ctx, tx, last)
			return err
		})
		if err != nil || len(batch) == 0 {
			return err
		}
		last = batch[len(batch)-1].id
		for _, o := range batch {
			digest, err := tooloutput.Unpack(o.stored)
			if err != nil { // doctor names it
				continue
			}
			digest, found := rules.text(digest)
			if !found {
				continue
			}
			r.done.Outputs++
			if r.DryRun {
				continue
			}
			err = r.journal.store.Write(ctx, store.Full, func(ctx context.Context, tx *store.Tx) error {
				if err := o.rewrite(ctx, tx, digest, r.journal.config.Filter); err != nil {
					return err
				}
				return setPending(ctx, tx)
			})
			if err != nil {
				return err
			}
		}
	}
}
