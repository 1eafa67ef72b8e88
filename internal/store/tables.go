package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	selectNumbered = `SELECT name, seq FROM sqlite_sequence`
	updateNumber   = `UPDATE sqlite_sequence SET seq = max(seq, ?1) WHERE name = ?2`
	insertNumber   = `INSERT INTO sqlite_sequence (name, seq) SELECT ?2, ?1 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = ?2)`

	listCounted  = `SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`
	listNumbered = `SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%AUTOINCREMENT%' ORDER BY name`
)

// Counts returns the number of rows of each table.
func (t *Tx) Counts(ctx context.Context) (map[string]int64, error) {
	names, err := t.Texts(ctx, listCounted)
	out := map[string]int64{}
	for _, name := range names {
		var n int64
		if err := t.Get(ctx, []any{&n}, `SELECT count(*) FROM `+quoted(name)); err != nil {
			return nil, err
		}
		out[name] = n
	}
	return out, err
}

// Numbers returns, for each table with unique row numbers (AUTOINCREMENT), the highest
// one ever assigned, or 0.
func (t *Tx) Numbers(ctx context.Context) (map[string]int64, error) {
	names, err := t.Texts(ctx, listNumbered)
	out := map[string]int64{}
	for _, name := range names {
		out[name] = 0
	}
	if err != nil {
		return nil, err
	}
	return out, t.Each(ctx, func(r *sql.Rows) error {
		var name string
		var n int64
		err := r.Scan(&name, &n)
		out[name] = n
		return err
	}, selectNumbered)
}

// RestoreIDOffset is the offset between the highest ids of a backup and the next ids of the
// restored store. So the store does not reuse ids that it assigned after the backup (mail
// §10.6).
const RestoreIDOffset = 100_000

// StartAfterRestore prepares an older copy of a store to replace the original. Its next ids
// are RestoreIDOffset above those that it assigned and above the given ones. Its changes get a
// new device, because other devices may have received later changes of the former one. A
// change of kind "restore" in the stream "store" notifies followers. note is stored under
// "restored".
func (t *Tx) StartAfterRestore(ctx context.Context, above map[string]int64, note string) error {
	numbers, err := t.Numbers(ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		n := max(numbers[name]+RestoreIDOffset, above[name]+1)
		for _, query := range []string{updateNumber, insertNumber} {
			if _, err := t.Exec(ctx, query, n, name); err != nil {
				return err
			}
		}
	}
	if _, err := t.device(ctx); err != nil {
		return err
	}
	if _, err := t.renew(ctx, Incarnation{Reason: ReasonRestored}, 0); err != nil {
		return err
	}
	if _, err := t.Exec(ctx, deletePlaces); err != nil { // the backup may be from another machine
		return err
	}
	if err := t.SetMeta(ctx, "restored", note); err != nil {
		return err
	}
	doc, err := json.Marshal(map[string]any{"above": RestoreIDOffset})
	if err != nil {
		return err
	}
	_, err = t.Append(ctx, Change{Stream: "store", Kind: "restore", ID: NewID(), Op: OpPut, Doc: doc})
	return err
}

// Restored returns the note of the last StartAfterRestore, "" if there was none.
func (t *Tx) Restored(ctx context.Context) (note string, err error) {
	note, _, err = t.Meta(ctx, "restored")
	return note, err
}

// listReferrers lists the foreign keys that refer to a table.
const listReferrers = `SELECT m.name, k."from", k."to" FROM sqlite_schema m JOIN pragma_foreign_key_list(m.name) k
WHERE m.type = 'table' AND k."table" = ? ORDER BY m.name`

// Unreferred returns those of the given rows of a table that no row of any table refers to.
// key is the column that identifies them. It reads every row that can refer to one of them.
func (t *Tx) Unreferred(ctx context.Context, table, key string, rows []int64) (free []int64, err error) {
	type reference struct{ child, column, key string }
	var refs []reference
	err = t.Each(ctx, func(r *sql.Rows) error {
		var ref reference
		err := r.Scan(&ref.child, &ref.column, &ref.key)
		refs = append(refs, ref)
		return err
	}, listReferrers, table)
	for _, row := range rows {
		referred := false
		for _, ref := range refs {
			if err == nil && !referred {
				err = t.Get(ctx, []any{&referred}, fmt.Sprintf(`SELECT EXISTS (SELECT 1 FROM %s WHERE %s = (SELECT %s FROM %s WHERE %s = ?))`,
					quoted(ref.child), quoted(ref.column), quoted(ref.key), quoted(table), quoted(key)), row)
			}
		}
		if err != nil {
			return nil, err
		}
		if !referred {
			free = append(free, row)
		}
	}
	return free, nil
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
