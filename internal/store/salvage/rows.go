package salvage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"cairn/internal/sqlitefile"
	"cairn/internal/store"
)

// maxNamed is the maximum number of entries in LostRows and AlteredRows of a table.
const maxNamed = 1000

// inventory contains the rows of the old store, by table, so that a salvage can list the
// rows that the new store lacks.
type inventory struct {
	tables map[string]*tableRows
}

// tableRows contains the rows of one table of the old store.
type tableRows struct {
	shape      *shape
	kept       idSet                 // for a table with rowid: the copied rows
	missing    map[int64]map[int]any // for a table with rowid: rows that only an index has, with their values there
	keys       map[uint64]bool       // for another table: hashes of the copied primary keys
	lost       map[uint64][]any      // for another table: primary keys that only an index has
	altered    []int64
	unreadable int64 // cells that are not a valid row of this table
	incomplete bool  // its tree and all its indexes have unreadable pages
	given      int64 // the highest assigned number, 0 if unknown
	count      int64 // rows that were copied
}

func newTableRows(t *shape) *tableRows {
	return &tableRows{shape: t, kept: idSet{}, keys: map[uint64]bool{}, lost: map[uint64][]any{}}
}

// keep records a copied row.
func (r *tableRows) keep(row sqlitefile.Row) {
	r.count++
	if r.shape.rowid {
		r.kept.add(row.ID)
		return
	}
	r.keys[keyHash(row.Values[:min(len(r.shape.keys), len(row.Values))])] = true
}

func keyHash(values []any) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%q", values) // a hash returns no error
	return h.Sum64()
}

// alter records a kept row with an altered text.
func (v *inventory) alter(table string, id int64) {
	if t := v.tables[table]; t != nil {
		t.altered = append(t.altered, id)
	}
}

// missingKeys finds the rows of a table without rowid that an index has and the table
// lacks.
func (f *filling) missingKeys(t *shape, rows *tableRows) {
	for _, index := range t.indexes {
		f.image.Rows(f.roots[index.name], func(r sqlitefile.Row) bool {
			if len(r.Values) != len(index.all) {
				return true
			}
			key := make([]any, 0, len(t.keys))
			for _, column := range t.keys {
				i := slices.Index(index.all, column)
				if i < 0 || !suits(r.Values[i], t.columns[column]) {
					return true
				}
				key = append(key, r.Values[i])
			}
			if h := keyHash(key); !rows.keys[h] {
				rows.lost[h] = key
			}
			return true
		})
	}
}

// incomplete reports whether a table may have lost unknown rows: its tree and all indexes
// over all of its rows have unreadable pages.
func (f *filling) incomplete(t *shape) bool {
	if f.image.IsWhole(f.roots[t.name]) {
		return false
	}
	for _, i := range t.indexes {
		if !i.partial && f.image.IsWhole(f.roots[i.name]) {
			return false
		}
	}
	return true
}

// report completes the tables of a salvage with the old store's rows that the new store
// has, after every part has repaired its rows. Tables that the newest schema lacks are
// omitted, because the migrations have moved their rows.
func (v *inventory) report(ctx context.Context, tx *store.Tx, out *Report) error {
	tables, err := tx.Texts(ctx, `SELECT name FROM sqlite_schema WHERE type = 'table'`)
	if err != nil {
		return err
	}
	out.Tables = slices.DeleteFunc(out.Tables, func(t Table) bool { return !slices.Contains(tables, t.Name) })
	out.Restored, out.Lost = 0, 0
	for i := range out.Tables {
		t := &out.Tables[i]
		rows := v.tables[t.Name]
		var err error
		if rows.shape.rowid {
			err = rows.reportNumbered(ctx, tx, t)
		} else {
			err = rows.reportKeyed(ctx, tx, t)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
		t.AlteredRows = ranges(rows.altered)
		out.Restored += t.Restored
		out.Lost += t.Lost
	}
	return nil
}

func (r *tableRows) reportNumbered(ctx context.Context, tx *store.Tx, t *Table) error {
	there := idSet{}
	err := tx.Each(ctx, func(rows *sql.Rows) error {
		var id int64
		err := rows.Scan(&id)
		there.add(id)
		return err
	}, `SELECT rowid FROM `+quoted(t.Name))
	if err != nil {
		return err
	}
	var lost []int64
	for id := range r.kept.all {
		if there.has(id) {
			t.Kept++
		} else {
			lost = append(lost, id)
		}
	}
	for id, values := range r.missing {
		back := there.has(id)
		if !back {
			if back, err = r.isThere(ctx, tx, values); err != nil {
				return err
			}
		}
		if back {
			t.Restored++
		} else {
			lost = append(lost, id)
		}
	}
	t.Lost = int64(len(lost))
	if len(r.shape.indexes) == 0 {
		t.Lost += r.unreadable
	}
	t.LostRows = ranges(lost)
	if t.Incomplete = r.incomplete; !r.incomplete {
		return nil
	}
	var unknown []int64
	for id := int64(1); id <= r.given; id++ {
		if _, named := r.missing[id]; !named && !there.has(id) && !r.kept.has(id) {
			unknown = append(unknown, id)
		}
	}
	t.UnknownRows = ranges(unknown)
	return nil
}

// isThere reports whether the new store has a row with the values of a unique index of the old
// store, under another number.
func (r *tableRows) isThere(ctx context.Context, tx *store.Tx, values map[int]any) (there bool, err error) {
	for _, index := range r.shape.indexes {
		var terms []string
		var args []any
		for _, c := range index.columns {
			v, ok := values[c]
			if !ok || v == nil {
				break
			}
			terms, args = append(terms, quoted(r.shape.columns[c].name)+" = ?"), append(args, v)
		}
		if !index.unique || len(terms) < len(index.columns) {
			continue
		}
		err := tx.Get(ctx, []any{&there}, `SELECT 1 FROM `+quoted(r.shape.name)+` WHERE `+strings.Join(terms, " AND "), args...)
		if err == nil || !errors.Is(err, sql.ErrNoRows) {
			return there, err
		}
	}
	return false, nil
}

func (r *tableRows) reportKeyed(ctx context.Context, tx *store.Tx, t *Table) error {
	var now int64
	if err := tx.Get(ctx, []any{&now}, `SELECT count(*) FROM `+quoted(t.Name)); err != nil {
		return err
	}
	var terms []string
	for _, c := range r.shape.keys {
		terms = append(terms, quoted(r.shape.columns[c].name)+" = ?")
	}
	for _, h := range slices.Sorted(maps.Keys(r.lost)) {
		var there bool
		err := tx.Get(ctx, []any{&there}, `SELECT 1 FROM `+quoted(t.Name)+` WHERE `+strings.Join(terms, " AND "), r.lost[h]...)
		switch {
		case err == nil:
			t.Restored++
		case !errors.Is(err, sql.ErrNoRows):
			return err
		default:
			t.Lost++
			if len(t.LostRows) < maxNamed {
				t.LostRows = append(t.LostRows, strings.Trim(strings.ReplaceAll(fmt.Sprintln(r.lost[h]...), " ", "/"), "\n"))
			}
		}
	}
	slices.Sort(t.LostRows)
	t.Kept = min(r.count, now)
	t.Incomplete = r.incomplete
	t.Lost = max(t.Lost, r.count+r.unreadable-now)
	return nil
}

// ranges returns sorted numbers as text, with runs as FIRST-LAST.
func ranges(ids []int64) (out []string) {
	slices.Sort(ids)
	ids = slices.Compact(ids)
	for i := 0; i < len(ids) && len(out) < maxNamed; {
		j := i
		for j+1 < len(ids) && ids[j+1] == ids[j]+1 {
			j++
		}
		if i == j {
			out = append(out, fmt.Sprint(ids[i]))
		} else {
			out = append(out, fmt.Sprintf("%d-%d", ids[i], ids[j]))
		}
		i = j + 1
	}
	return out
}

// idSet is a set of row numbers. Dense numbers need little memory.
type idSet map[int64]uint64

func (s idSet) add(id int64)      { s[id>>6] |= 1 << (id & 63) }
func (s idSet) has(id int64) bool { return s[id>>6]&(1<<(id&63)) != 0 }

// all yields the numbers in any order.
func (s idSet) all(yield func(int64) bool) {
	for high, bits := range s {
		for low := int64(0); bits != 0; low, bits = low+1, bits>>1 {
			if bits&1 != 0 && !yield(high<<6|low) {
				return
			}
		}
	}
}
