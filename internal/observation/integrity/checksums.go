package integrity

import (
	"context"
	"database/sql"
	"strconv"

	"cairn/internal/observation"
	"cairn/internal/store"
)

const (
	selectSaid = `SELECT id, checksum, timestamp, obs_type, source_event, ifnull(tool_name, ''), content, ifnull(file_path, ''), ifnull(metadata, '')
FROM observation_rows `
	selectSaidAfter  = selectSaid + `WHERE id > ? ORDER BY id LIMIT +?`
	selectSaidBefore = selectSaid + `WHERE id <= ? ORDER BY id DESC LIMIT +?`
	updateChecksum   = `UPDATE observation_rows SET checksum = ? WHERE id = ?`
	markDamaged      = `UPDATE observation_rows SET metadata = json_set(ifnull(metadata, '{}'), '$.damaged', json('true')) WHERE id = ?`
	selectOneSaid    = selectSaid + `WHERE id = ?`
	selectHighest    = `SELECT ifnull(max(id), 0) FROM observation_rows`
)

// metaUnsummed is the name of the meta value with the id up to which rows may still lack a
// checksum. It is 0 when every row has one.
const metaUnsummed = "unsummed"

// readUnsummed returns the value of metaUnsummed, or the highest row id if it is not set.
func readUnsummed(ctx context.Context, tx *store.Tx) (last int64, err error) {
	text, noted, err := tx.Meta(ctx, metaUnsummed)
	switch {
	case err != nil:
	case noted:
		last, _ = strconv.ParseInt(text, 10, 64)
	default:
		err = tx.Get(ctx, []any{&last}, selectHighest)
	}
	return last, err
}

func setUnsummed(ctx context.Context, tx *store.Tx, last int64) error {
	return tx.SetMeta(ctx, metaUnsummed, strconv.FormatInt(last, 10))
}

// summed is a row with its stored checksum.
type summed struct {
	observation.Text
	id     int64
	stored sql.NullInt64 // NULL in a row of an older schema
}

// isAltered reports whether the row differs from its stored checksum. It is false without a
// checksum.
func (r *summed) isAltered() bool { return r.stored.Valid && r.stored.Int64 != r.Checksum() }

// summedRows reads rows with one of the queries of this file.
func summedRows(ctx context.Context, tx *store.Tx, query string, args ...any) (batch []summed, err error) {
	err = tx.Each(ctx, func(rows *sql.Rows) error {
		var r summed
		err := rows.Scan(&r.id, &r.stored, &r.At, &r.ObsType, &r.Source, &r.Tool, &r.Content, &r.Path, &r.Meta)
		batch = append(batch, r)
		return err
	}, query, args...)
	return batch, err
}

// checksumBatch is how many rows are read in one query, or updated in one transaction.
const checksumBatch = 1000

// eachSummed calls fn with all rows, in the order of their ids.
func eachSummed(ctx context.Context, tx *store.Tx, fn func(*summed) error) error {
	for last := int64(0); ; {
		batch, err := summedRows(ctx, tx, selectSaidAfter, last, checksumBatch)
		if err != nil || len(batch) == 0 {
			return err
		}
		for i := range batch {
			if err := fn(&batch[i]); err != nil {
				return err
			}
		}
		last = batch[len(batch)-1].id
	}
}

// FillChecksums computes the checksums of rows that an older cairn wrote, newest first. It works
// in batches until it has checked at least limit rows. It returns how many rows it checked; 0 when
// none is left. Hooks do not call it. It is safe to retry and to run in several processes. Errors
// are those of store.Write.
func FillChecksums(ctx context.Context, svc *observation.Service, limit int) (filled int, err error) {
	for filled < limit {
		n := 0
		var unsummed int64
		err := svc.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			unsummed, err = readUnsummed(ctx, tx)
			return err
		})
		if err == nil && unsummed == 0 {
			return filled, nil
		}
		if err == nil {
			err = svc.Store.Write(ctx, store.Normal, func(ctx context.Context, tx *store.Tx) (err error) {
				n, err = fillChecksums(ctx, tx)
				return err
			})
		}
		if err != nil || n == 0 {
			return filled, err
		}
		filled += n
	}
	return filled, nil
}

func fillChecksums(ctx context.Context, tx *store.Tx) (int, error) {
	last, err := readUnsummed(ctx, tx)
	if err != nil || last == 0 { // another process did it first
		return 0, err
	}
	batch, err := summedRows(ctx, tx, selectSaidBefore, last, checksumBatch)
	if err != nil {
		return 0, err
	}
	for i := range batch {
		r := &batch[i]
		if r.stored.Valid {
			continue
		}
		if _, err := tx.Exec(ctx, updateChecksum, r.Checksum(), r.id); err != nil {
			return 0, err
		}
	}
	if len(batch) < checksumBatch {
		err = setUnsummed(ctx, tx, 0)
	} else {
		err = setUnsummed(ctx, tx, batch[len(batch)-1].id-1)
	}
	return len(batch), err
}

// repairChecksums stores the current checksum of every row. A row that differs from its stored
// checksum is kept, and its metadata gets "damaged": true.
func repairChecksums(ctx context.Context, tx *store.Tx, altered func(id int64)) error {
	var all []summed
	err := eachSummed(ctx, tx, func(r *summed) error {
		if !r.stored.Valid || r.isAltered() {
			all = append(all, summed{id: r.id, stored: sql.NullInt64{Int64: r.Checksum(), Valid: r.stored.Valid}})
		}
		return nil
	})
	for _, r := range all {
		if err != nil {
			return err
		}
		sum := r.stored.Int64
		if r.stored.Valid {
			altered(r.id)
			if _, err := tx.Exec(ctx, markDamaged, r.id); err != nil {
				return err
			}
			marked, err := summedRows(ctx, tx, selectOneSaid, r.id)
			if err != nil || len(marked) != 1 {
				return err
			}
			sum = marked[0].Checksum()
		}
		_, err = tx.Exec(ctx, updateChecksum, sum, r.id)
	}
	if err == nil {
		err = setUnsummed(ctx, tx, 0)
	}
	return err
}
