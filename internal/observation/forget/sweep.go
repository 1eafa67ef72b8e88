package forget

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"cairn/internal/observation"
	"cairn/internal/observation/ledger"
	"cairn/internal/store"
)

// cutoffs returns a JSON object from type to the time before which its rows expire. Types that
// never expire are left out.
func cutoffs(r observation.Retention, now int64) (string, error) {
	m := map[string]int64{}
	for t := range r {
		if cutoff := r.Cutoff(t, now); cutoff != 0 {
			m[t] = cutoff
		}
	}
	text, err := json.Marshal(m)
	return string(text), err
}

// ranks returns a JSON object from type to rank. EnforceSizeLimit deletes the rows of low ranks
// first: types with the shortest retention come first, types that never expire last.
func ranks(r observation.Retention) (string, error) {
	m := map[string]int{}
	for _, t := range observation.Types() {
		if m[t] = r[t]; m[t] == 0 {
			m[t] = 1 << 30
		}
	}
	text, err := json.Marshal(m)
	return string(text), err
}

const (
	// This query does one index lookup for each type and project.
	selectExpiring = `SELECT p.key, t.key, t.value FROM json_each(?) t CROSS JOIN projects p
WHERE EXISTS (SELECT 1 FROM observation_rows i
    WHERE i.project_key = p.key AND i.obs_type = t.key AND i.timestamp < t.value AND i.is_pinned = 0)`

	selectExpired = `SELECT id FROM observation_rows
WHERE project_key = ? AND obs_type = ? AND timestamp < ? AND is_pinned = 0 ORDER BY timestamp, id LIMIT +?`

	countExpired = `SELECT t.key, count(*) FROM projects p, json_each(?) t
JOIN observation_rows i ON i.project_key = p.key AND i.obs_type = t.key AND i.timestamp < t.value AND i.is_pinned = 0
GROUP BY t.key`

	selectHasOldLedger = `SELECT EXISTS (SELECT 1 FROM injection_rows WHERE timestamp < ?)`
	countOldLedger     = `SELECT count(*) FROM injection_rows WHERE timestamp < ?`

	selectOldest = `SELECT o.id FROM observation_rows o JOIN json_each(?) t ON t.key = o.obs_type
WHERE o.is_pinned = 0 ORDER BY t.value, o.timestamp, o.id LIMIT +?`

	countRows = `SELECT count(*) FROM observation_rows`
)

// SweepArgs are the options of a sweep.
type SweepArgs struct {
	DryRun bool          // only count
	Limit  int           // maximum number of rows and outputs; 0 for all
	Budget time.Duration // time limit, including waits for the lock; 0 for no limit

	// Progress, if set, is called with the number of rows deleted so far.
	Progress func(rows int)
}

// SweepResult reports what a sweep deleted, or would delete.
type SweepResult struct {
	Rows    int            `json:"rows"`
	ByType  map[string]int `json:"by_type"`
	ForRoom int            `json:"for_room"` // rows that were deleted because the store was too large
	Ledger  int            `json:"ledger"`   // expired ledger entries of injected context
	Outputs int            `json:"outputs"`  // expired outputs of commands and tools; their rows stay
}

// Add adds the counts of another sweep.
func (s *SweepResult) Add(o SweepResult) {
	s.Rows += o.Rows
	s.ForRoom += o.ForRoom
	s.Ledger += o.Ledger
	s.Outputs += o.Outputs
	for t, n := range o.ByType {
		s.ByType[t] += n
	}
}

// Sweep deletes expired rows, oldest first, except pinned rows (observations §11.1). It deletes
// ledger entries after 90 days. It deletes outputs after Config.OutputDays, including those of
// pinned rows. Sessions and digests stay. Rows that another process deletes meanwhile are not
// counted. A sweep appends no change, because each store has its own retention.
//
// If nothing has expired, Sweep only reads, with one index lookup for each type and project.
// Reaching the time limit is not an error. Errors are those of store.Write; committed deletions
// remain.
func Sweep(ctx context.Context, svc *observation.Service, a SweepArgs) (SweepResult, error) {
	done := SweepResult{ByType: map[string]int{}}
	s := sweeping{SweepArgs: a, service: svc, done: &done}
	if a.Budget > 0 {
		s.until = time.Now().Add(a.Budget / 2) // the commit, in which FTS5 merges, takes about as long
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.Budget)
		defer cancel()
	}
	if svc.Store == nil {
		return done, nil
	}
	if a.DryRun {
		return done, s.count(ctx)
	}
	err := s.run(ctx)
	if a.Budget > 0 && ctx.Err() != nil {
		return done, nil
	}
	return done, err
}

// sweeping is the state of one sweep.
type sweeping struct {
	SweepArgs
	service *observation.Service
	until   time.Time // zero for no limit
	done    *SweepResult
}

func (s *sweeping) isOver() bool {
	return s.Limit > 0 && s.done.Rows+s.done.Outputs >= s.Limit || !s.until.IsZero() && !time.Now().Before(s.until)
}

// expiring selects the rows of one project and type that are older than cutoff.
type expiring struct {
	project int64
	obsType string
	cutoff  int64
}

func (s *sweeping) run(ctx context.Context) error {
	var due []expiring
	var ledgerBefore int64
	oldLedger := false
	err := s.service.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		cutoffs, err := cutoffs(s.service.Config.Retention, tx.Now().Unix())
		if err != nil {
			return err
		}
		ledgerBefore = tx.Now().Unix() - ledger.KeptDays*observation.SecondsPerDay
		if err := tx.Get(ctx, []any{&oldLedger}, selectHasOldLedger, ledgerBefore); err != nil {
			return err
		}
		return tx.Each(ctx, func(r *sql.Rows) error {
			var e expiring
			err := r.Scan(&e.project, &e.obsType, &e.cutoff)
			due = append(due, e)
			return err
		}, selectExpiring, cutoffs)
	})
	if err != nil {
		return err
	}
	if len(due) > 0 {
		if err := s.batches(ctx, nextExpired(due)); err != nil {
			return err
		}
	}
	if err := s.outputs(ctx); err != nil {
		return err
	}
	for more := oldLedger; more && !s.isOver(); {
		var n int64
		err := s.service.Store.Write(ctx, store.Normal, func(ctx context.Context, tx *store.Tx) error {
			res, err := tx.Exec(ctx, ledger.DeleteOld, ledgerBefore, maxForgetRows)
			if err == nil {
				n, err = res.RowsAffected()
			}
			return err
		})
		if err != nil {
			return err
		}
		s.done.Ledger += int(n)
		more = n == maxForgetRows
	}
	return nil
}

// nextExpired returns a function that returns the next expired rows, at most n, or none at the
// end.
func nextExpired(due []expiring) func(ctx context.Context, tx *store.Tx, n int) ([]int64, error) {
	return func(ctx context.Context, tx *store.Tx, n int) ([]int64, error) {
		for ; len(due) > 0; due = due[1:] {
			ids, err := tx.Keys(ctx, selectExpired, due[0].project, due[0].obsType, due[0].cutoff, n)
			if err != nil || len(ids) > 0 {
				return ids, err
			}
		}
		return nil, nil
	}
}

// batches deletes the rows that next returns until next returns none or the sweep reaches its
// limits.
func (s *sweeping) batches(ctx context.Context, next func(ctx context.Context, tx *store.Tx, n int) ([]int64, error)) error {
	for more := true; more && !s.isOver(); {
		var gone []observation.RowToDelete
		err := s.service.Store.Write(ctx, store.Normal, func(ctx context.Context, tx *store.Tx) (err error) {
			gone, more, err = s.batch(ctx, tx, next)
			return err
		})
		if err != nil {
			return err
		}
		for _, d := range gone {
			s.done.ByType[d.ObsType]++
		}
		s.done.Rows += len(gone)
		if s.Progress != nil {
			s.Progress(s.done.Rows)
		}
	}
	return nil
}

// batch runs one transaction of a sweep. gone counts only if it is committed.
func (s *sweeping) batch(ctx context.Context, tx *store.Tx,
	next func(ctx context.Context, tx *store.Tx, n int) ([]int64, error),
) (gone []observation.RowToDelete, more bool, err error) {
	began := time.Now()
	for len(gone) < maxForgetRows && time.Since(began) < maxForgetTime {
		n := forgetStep
		if s.Limit > 0 {
			n = min(n, s.Limit-s.done.Rows-s.done.Outputs-len(gone))
		}
		if n == 0 || len(gone) > 0 && s.isOver() {
			return gone, false, nil
		}
		ids, err := next(ctx, tx, n)
		if err != nil || len(ids) == 0 {
			return gone, false, err
		}
		rows, err := readDoomed(ctx, tx, ids, nil) // a sweep adds no tombstones
		if err != nil {
			return gone, false, err
		}
		for i := range rows {
			if err := removeRow(ctx, tx, &rows[i]); err != nil {
				return gone, false, err
			}
		}
		gone = append(gone, rows...)
	}
	return gone, true, nil
}

func (s *sweeping) count(ctx context.Context) error {
	return s.service.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		now := tx.Now().Unix()
		if err := tx.Get(ctx, []any{&s.done.Ledger}, countOldLedger, now-ledger.KeptDays*observation.SecondsPerDay); err != nil {
			return err
		}
		if err := tx.Get(ctx, []any{&s.done.Outputs}, countOldOutputs, outputsBefore(s.service, now)); err != nil {
			return err
		}
		return CountExpired(ctx, tx, s.service.Config.Retention, func(obsType string, n int) {
			s.done.ByType[obsType] = n
			s.done.Rows += n
		})
	})
}

// CountExpired calls fn with each type and its number of expired rows. Types without expired rows
// are left out.
func CountExpired(ctx context.Context, tx *store.Tx, r observation.Retention, fn func(obsType string, n int)) error {
	cutoffs, err := cutoffs(r, tx.Now().Unix())
	if err != nil {
		return err
	}
	return tx.Each(ctx, func(rows *sql.Rows) error {
		var obsType string
		var n int
		err := rows.Scan(&obsType, &n)
		fn(obsType, n)
		return err
	}, countExpired, cutoffs)
}

// EnforceSizeLimit deletes rows if the store is larger than Config.MaxBytes, until it is at 90 %
// of that. It then returns the space to the volume (observations §11.1). It deletes only unpinned
// rows, the types with the shortest retention and the oldest rows first, until none is left. If
// the store is smaller or has no limit, it does nothing. With DryRun it estimates the count from
// the average size of a row. Limit and Budget do not apply. Errors are those of store.Write and
// store.Shrink.
func EnforceSizeLimit(ctx context.Context, svc *observation.Service, a SweepArgs) (SweepResult, error) {
	done := SweepResult{ByType: map[string]int{}}
	bound := svc.Config.MaxBytes
	if svc.Store == nil || bound <= 0 {
		return done, nil
	}
	for {
		excess, ids, err := oldest(ctx, svc, bound)
		if err != nil || excess <= 0 {
			return done, err
		}
		bound = svc.Config.MaxBytes / 10 * 9
		if a.DryRun {
			done.Rows, done.ForRoom = len(ids), len(ids)
			return done, nil
		}
		s := sweeping{SweepArgs: SweepArgs{Progress: a.Progress}, service: svc, done: &done}
		before := done.Rows
		err = s.batches(ctx, func(_ context.Context, _ *store.Tx, n int) ([]int64, error) {
			batch := ids[:min(n, len(ids))]
			ids = ids[len(batch):]
			return batch, nil
		})
		if err == nil {
			err = dropAllStaleWords(ctx, svc)
		}
		if err == nil {
			err = svc.Store.Shrink(ctx)
		}
		done.ForRoom = done.Rows
		if err != nil || done.Rows == before {
			return done, err
		}
	}
}

// oldest returns by how many bytes the store exceeds bound. ids are the rows to delete to reach
// 90 % of Config.MaxBytes, estimated from the average size of a row.
func oldest(ctx context.Context, svc *observation.Service, bound int64) (excess int64, ids []int64, err error) {
	ranks, err := ranks(svc.Config.Retention)
	if err != nil {
		return 0, nil, err
	}
	err = svc.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		used, err := tx.Used(ctx)
		if excess = used - bound; err != nil || excess <= 0 {
			return err
		}
		var rows int64
		if err := tx.Get(ctx, []any{&rows}, countRows); err != nil {
			return err
		}
		tooMuch := used - svc.Config.MaxBytes/10*9
		ids, err = tx.Keys(ctx, selectOldest, ranks, rows*tooMuch/used+1)
		return err
	})
	return excess, ids, err
}
