package observation

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"strings"

	"cairn/internal/redact"
	"cairn/internal/store"
)

// Statements of outputs.
const (
	insertOutput = `INSERT INTO output_rows (observation_id, kept_on, size, digest, deflated, checksum) VALUES (?, ?, ?, ?, ?, ?)`
	insertLines  = `INSERT INTO output_lines (rowid, hashes) VALUES (?, ?)`

	// Ids rise with the day of storing, so the first rows are the oldest. Where a clock was
	// wrong, a row waits for those before it.
	selectOldOutput  = `SELECT EXISTS (SELECT 1 FROM (SELECT kept_on FROM output_rows ORDER BY observation_id LIMIT 1) WHERE kept_on < ?)`
	deleteOldOutputs = `DELETE FROM output_rows WHERE observation_id IN
(SELECT observation_id FROM (SELECT observation_id, kept_on FROM output_rows ORDER BY observation_id LIMIT +?) WHERE kept_on < ?)`
	countOldOutputs = `SELECT count(*) FROM output_rows WHERE kept_on < ?`

	// One batch is read at a time, so that fn may write.
	selectOutputs = `SELECT observation_id, kept_on, size, ifnull(digest, deflated), checksum FROM output_rows WHERE observation_id > ?
ORDER BY observation_id LIMIT +?`
	deleteLostOutputs = `DELETE FROM output_rows WHERE observation_id NOT IN (SELECT id FROM observation_rows)`
	deleteLostEdits   = `DELETE FROM observation_lines WHERE observation_id NOT IN (SELECT id FROM observation_rows)`
	deleteOutput      = `DELETE FROM output_rows WHERE observation_id = ?`
	deleteLines       = `DELETE FROM output_lines WHERE rowid = ?`
	updateDigest      = `UPDATE output_rows SET digest = ?, deflated = ?, checksum = ? WHERE observation_id = ?`
	selectHasLines    = `SELECT EXISTS (SELECT 1 FROM output_lines_docsize WHERE id = ?)`

	selectDigest = `SELECT ifnull(digest, deflated) FROM output_rows WHERE observation_id = ?`
)

// outputRow is a row of output_rows.
type outputRow struct {
	id, keptOn int64
	size       int
	stored     any   // the digest: a string, or []byte if it is deflated
	sum        int64 // the checksum as it is stored
}

// isAltered reports whether the row is not what was written.
func (r *outputRow) isAltered() bool { return r.sum != r.checksum() }

// outputsBatch is how many outputs are read at once.
const outputsBatch = 200

// eachOutput calls fn with all rows of outputs, in the order of their numbers.
func eachOutput(ctx context.Context, tx *store.Tx, fn func(*outputRow) error) error {
	for last := int64(0); ; {
		batch, err := outputsAfter(ctx, tx, last)
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

// outputsAfter returns the next rows of outputs after a number.
func outputsAfter(ctx context.Context, tx *store.Tx, after int64) (batch []outputRow, err error) {
	err = tx.Each(ctx, func(rows *sql.Rows) error {
		var r outputRow
		err := rows.Scan(&r.id, &r.keptOn, &r.size, &r.stored, &r.sum)
		batch = append(batch, r)
		return err
	}, selectOutputs, after, outputsBatch)
	return batch, err
}

// repairOutputs deletes the outputs that a salvage has not kept as they were written, and
// makes missing hashes of lines from the digests. Lines of edits go with their rows.
func repairOutputs(ctx context.Context, tx *store.Tx) error {
	for _, query := range []string{deleteLostOutputs, deleteLostEdits} {
		if _, err := tx.Exec(ctx, query); err != nil {
			return err
		}
	}
	salt, err := lineSalt(ctx, tx)
	if err != nil {
		return err
	}
	return eachOutput(ctx, tx, func(r *outputRow) error {
		digest, err := unpackDigest(r.stored)
		if err != nil || r.isAltered() {
			_, err = tx.Exec(ctx, deleteOutput, r.id)
			return err
		}
		var has bool
		if err := tx.Get(ctx, []any{&has}, selectHasLines, r.id); err != nil || has {
			return err
		}
		_, err = tx.Exec(ctx, insertLines, r.id, salt.words(hashLines(digestedLines(digest))))
		return err
	})
}

// storedOutput makes an output out of a digest from elsewhere, which it redacts. A blank
// digest returns nil.
func storedOutput(digest string, size int, f *redact.Filter) *output {
	digest, _ = f.Text(clean(digest))
	lines := digestedLines(digest)
	if len(digest) > maxDigest {
		digest = outputDigest(lines)
	}
	if strings.TrimSpace(digest) == "" {
		return nil
	}
	return &output{size: max(size, 0), digest: digest, lines: hashLines(lines)}
}

// rewrite stores another digest of a row, and the hashes of its lines instead of those of
// the whole output.
func (r *outputRow) rewrite(ctx context.Context, tx *store.Tx, digest string, f *redact.Filter) error {
	o := storedOutput(digest, r.size, f)
	if o == nil {
		_, err := tx.Exec(ctx, deleteOutput, r.id)
		return err
	}
	r.stored = packDigest(o.digest)
	res, err := tx.Exec(ctx, updateDigest, r.text(), r.deflated(), r.checksum(), r.id)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 { // deleted meanwhile
		return err
	}
	salt, err := lineSalt(ctx, tx)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, deleteLines, r.id); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, insertLines, r.id, salt.words(o.lines))
	return err
}

// text returns the digest for the column of texts, nil if it is deflated.
func (r *outputRow) text() any {
	if _, ok := r.stored.(string); ok {
		return r.stored
	}
	return nil
}

// deflated returns the digest for the column of deflated ones, nil if it is a text.
func (r *outputRow) deflated() any {
	if _, ok := r.stored.([]byte); ok {
		return r.stored
	}
	return nil
}

// checksum returns a CRC-32 of the row without its number, which an import may change. It
// is signed so that it takes four bytes.
func (r *outputRow) checksum() int64 {
	b := binary.AppendVarint(binary.AppendVarint(nil, r.keptOn), int64(r.size))
	switch digest := r.stored.(type) {
	case string:
		b = append(b, digest...)
	case []byte:
		b = append(append(b, 0), digest...)
	}
	return int64(int32(crc32.ChecksumIEEE(b)))
}

// outputOf returns the digest of a row, "" if none is kept or it is damaged.
func outputOf(ctx context.Context, tx *store.Tx, id int64) (string, error) {
	var stored any
	err := tx.Get(ctx, []any{&stored}, selectDigest, id)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	digest, _ := unpackDigest(stored)
	return digest, err
}

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
			digest, err := unpackDigest(o.stored)
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
