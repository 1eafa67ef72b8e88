// Package wordcheck finds the rows whose words in a full-text index are not those of the
// row. SQLite's own check cannot, because such an index does not contain its texts.
package wordcheck

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"

	"cairn/internal/store"
)

const (
	selectIndexSQL  = `SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?`
	createIndexRead = `CREATE VIRTUAL TABLE temp.checked_words USING fts5vocab('main', '%s', 'instance')`
	createIndexMade = `CREATE VIRTUAL TABLE made_words USING fts5vocab('%s', 'instance')`
	dropIndexRead   = `DROP TABLE temp.checked_words`
	selectIndexRead = `SELECT term, doc, ifnull(col, ''), ifnull(offset, 0) FROM temp.checked_words`
	selectIndexMade = `SELECT term, doc, ifnull(col, ''), ifnull(offset, 0) FROM made_words`
	emptyIndexMade  = `INSERT INTO %[1]s (%[1]s) VALUES ('delete-all')`
)

// Memory limits of Differing: a sum for each bucket of rows, the words of a few rows, and the
// sums of the rows of the first differing buckets.
const (
	wordBucket     = 256 // row numbers
	wordBatchRows  = 500
	wordBatchBytes = 1 << 20
	maxWordBuckets = 4096
	maxWordRows    = 20
)

// Index is a full-text index of a part, with its expected content.
type Index struct {
	Table  string // its name
	Insert string // the statement that adds the words of one row

	// Rows calls add with the arguments of Insert for each row that the index should
	// contain. It is called twice and must give the same rows both times.
	Rows func(ctx context.Context, tx *store.Tx, add func(args ...any) error) error

	// Counts reports whether a row is compared. If it is nil, every row is compared.
	Counts func(row int64) bool

	// Variants returns the valid ways to index a row: first the arguments of Rows, then
	// others. The first argument is the row's number. If it is nil, there is only one way to
	// index a row.
	Variants func(ctx context.Context, tx *store.Tx, row int64) ([][]any, error)
}

// Differing compares the words in a full-text index with those of the rows, and returns
// the numbers of up to 20 rows that differ; none for an intact index. The words of each
// row are indexed again in memory, a few rows at a time. SQLite's own check does not
// detect an altered word, because the index does not contain its texts. Call it only in a
// Read.
func Differing(ctx context.Context, t *store.Tx, x Index) (differing []int64, err error) {
	made, err := newMadeIndex(ctx, t, x)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, made.close()) }()
	err = t.WithTempTable(ctx, fmt.Sprintf(createIndexRead, x.Table), dropIndexRead, func() error {
		differing, err = made.differing(ctx, t)
		return err
	})
	return differing, err
}

// differing compares the index, first by buckets of rows and then by rows.
func (m *madeIndex) differing(ctx context.Context, t *store.Tx) (differing []int64, err error) {
	w := wordSums{seed: maphash.MakeSeed(), sums: map[int64]uint64{}, counts: m.x.Counts, of: func(row int64) (int64, bool) { return row / wordBucket, true }}
	if err := w.compare(ctx, t, m); err != nil {
		return nil, err
	}
	buckets := w.differing()
	if len(buckets) == 0 {
		return nil, nil
	}
	buckets = buckets[:min(len(buckets), maxWordBuckets)]
	w.sums, w.of = map[int64]uint64{}, func(row int64) (int64, bool) {
		_, found := slices.BinarySearch(buckets, row/wordBucket)
		return row, found
	}
	if err := w.compare(ctx, t, m); err != nil {
		return nil, err
	}
	for _, row := range w.differing() {
		if len(differing) == maxWordRows {
			break
		}
		other, err := w.isVariant(ctx, t, m, row)
		if err != nil {
			return nil, err
		}
		if !other {
			differing = append(differing, row)
		}
	}
	return differing, nil
}

// isVariant reports whether the index contains a variant of a row, after a comparison by
// rows.
func (w *wordSums) isVariant(ctx context.Context, t *store.Tx, made *madeIndex, row int64) (bool, error) {
	if made.x.Variants == nil {
		return false, nil
	}
	variants, err := made.x.Variants(ctx, t, row)
	if err != nil || len(variants) == 0 {
		return false, err
	}
	sum := func(args []any) (uint64, error) {
		one := wordSums{seed: w.seed, sums: map[int64]uint64{}, of: func(row int64) (int64, bool) { return row, true }}
		_, err := made.insert.ExecContext(ctx, args...)
		if err == nil {
			err = made.flush(ctx, one.count(1))
		}
		return one.sums[row], err
	}
	expected, err := sum(variants[0])
	if err != nil {
		return false, err
	}
	for _, args := range variants[1:] {
		if got, err := sum(args); err != nil || got == w.sums[row]+expected {
			return err == nil, err
		}
	}
	return false, nil
}

// wordSums sums the hashes of all words with their positions, by rows or by buckets of rows.
// The sum does not depend on their order. Words of the index count positive, expected words
// negative. So the sum is 0 if they are equal.
type wordSums struct {
	seed maphash.Seed
	sums map[int64]uint64
	of   func(row int64) (sum int64, counts bool)

	counts func(row int64) bool // nil: every row
}

func (w *wordSums) differing() (out []int64) {
	for n, sum := range w.sums {
		if sum != 0 {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

func (w *wordSums) compare(ctx context.Context, t *store.Tx, made *madeIndex) error {
	if err := t.Each(ctx, w.count(1), selectIndexRead); err != nil {
		return err
	}
	return made.each(ctx, t, w.count(^uint64(0)))
}

// count returns a function that adds one word of a result, multiplied by factor.
func (w *wordSums) count(factor uint64) func(*sql.Rows) error {
	var term, column sql.RawBytes
	var row, offset int64
	dest := []any{&term, &row, &column, &offset}
	return func(r *sql.Rows) error {
		if err := r.Scan(dest...); err != nil {
			return err
		}
		n, counts := w.of(row)
		if !counts || w.counts != nil && !w.counts(row) {
			return nil
		}
		h := maphash.Bytes(w.seed, term)
		for _, v := range [...]uint64{uint64(row), uint64(offset), maphash.Bytes(w.seed, column)} {
			h = (h ^ v) * 0x9e3779b97f4a7c15
			h ^= h >> 29
		}
		w.sums[n] += factor * h
		return nil
	}
}

// madeIndex rebuilds the index entries of rows in memory.
type madeIndex struct {
	x     Index
	db    *sql.DB // of one connection
	empty string

	insert, words *sql.Stmt
}

func newMadeIndex(ctx context.Context, t *store.Tx, x Index) (_ *madeIndex, err error) {
	var create string
	if err := t.Get(ctx, []any{&create}, selectIndexSQL, x.Table); err != nil {
		return nil, err
	}
	m := &madeIndex{x: x, db: store.OpenMemory(), empty: fmt.Sprintf(emptyIndexMade, x.Table)}
	for _, query := range []string{create, fmt.Sprintf(createIndexMade, x.Table)} {
		if err == nil {
			err = m.exec(ctx, query)
		}
	}
	if err == nil {
		m.insert, err = m.db.PrepareContext(ctx, x.Insert)
	}
	if err == nil {
		m.words, err = m.db.PrepareContext(ctx, selectIndexMade)
	}
	if err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

func (m *madeIndex) close() error { return m.db.Close() }

func (m *madeIndex) exec(ctx context.Context, query string) error {
	_, err := m.db.ExecContext(ctx, query)
	return err
}

// each calls count for every expected word.
func (m *madeIndex) each(ctx context.Context, t *store.Tx, count func(*sql.Rows) error) error {
	rows, size := 0, 0
	flush := func() error {
		if rows == 0 {
			return nil
		}
		rows, size = 0, 0
		if err := m.exec(ctx, "COMMIT"); err != nil {
			return err
		}
		return m.flush(ctx, count)
	}
	err := m.x.Rows(ctx, t, func(args ...any) error {
		if rows == 0 {
			if err := m.exec(ctx, "BEGIN"); err != nil {
				return err
			}
		}
		if _, err := m.insert.ExecContext(ctx, args...); err != nil {
			return err
		}
		rows++
		for _, a := range args {
			if text, ok := a.(string); ok {
				size += len(text)
			}
		}
		if rows >= wordBatchRows || size >= wordBatchBytes {
			return flush()
		}
		return nil
	})
	if err != nil {
		return err
	}
	return flush()
}

// flush counts the words of the rows that were indexed, and empties the index.
func (m *madeIndex) flush(ctx context.Context, count func(*sql.Rows) error) (err error) {
	found, err := m.words.QueryContext(ctx)
	if err != nil {
		return err
	}
	for err == nil && found.Next() {
		err = count(found)
	}
	if err = errors.Join(err, found.Close(), found.Err()); err != nil {
		return err
	}
	return m.exec(ctx, m.empty)
}
