package forget

import (
	"context"

	"cairn/internal/observation"
	"cairn/internal/store"
	"cairn/internal/tooloutput"
)

const (
	// Ids rise with the day of storing, so the first rows are the oldest. If a clock was wrong, an
	// expired row waits for the rows with lower ids.
	selectOldOutput  = `SELECT EXISTS (SELECT 1 FROM (SELECT kept_on FROM output_rows ORDER BY observation_id LIMIT 1) WHERE kept_on < ?)`
	deleteOldOutputs = `DELETE FROM output_rows WHERE observation_id IN
(SELECT observation_id FROM (SELECT observation_id, kept_on FROM output_rows ORDER BY observation_id LIMIT +?) WHERE kept_on < ?)`
	countOldOutputs = `SELECT count(*) FROM output_rows WHERE kept_on < ?`
)

// outputsBefore returns the first day whose outputs have not expired, in days since 1970. It
// returns 0 if outputs never expire.
func outputsBefore(svc *observation.Service, now int64) int64 {
	if svc.Config.OutputDays <= 0 {
		return 0
	}
	return now/observation.SecondsPerDay - int64(svc.Config.OutputDays)
}

// outputs deletes expired outputs, oldest first.
func (s *sweeping) outputs(ctx context.Context) error {
	var before int64
	more := false
	err := s.service.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		before = outputsBefore(s.service, tx.Now().Unix())
		return tx.Get(ctx, []any{&more}, selectOldOutput, before)
	})
	for err == nil && more && !s.isOver() {
		var n int64
		err = s.service.Store.Write(ctx, store.Normal, func(ctx context.Context, tx *store.Tx) error {
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
	rules := observation.Redaction{Filter: r.service.Config.Filter, Rules: r.done.Rules}
	for last := int64(0); ; {
		var batch []observation.OutputRow
		err := r.service.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			batch, err = observation.OutputsAfter(ctx, tx, last)
			return err
		})
		if err != nil || len(batch) == 0 {
			return err
		}
		last = batch[len(batch)-1].Id
		for _, o := range batch {
			digest, err := tooloutput.Unpack(o.Stored)
			if err != nil { // doctor reports it
				continue
			}
			digest, found := rules.Text(digest)
			if !found {
				continue
			}
			r.done.Outputs++
			if r.DryRun {
				continue
			}
			err = r.service.Store.Write(ctx, store.Full, func(ctx context.Context, tx *store.Tx) error {
				if err := o.Rewrite(ctx, tx, digest, r.service.Config.Filter); err != nil {
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
