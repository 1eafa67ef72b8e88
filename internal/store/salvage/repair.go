package salvage

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"cairn/internal/sqlitefile"
	"cairn/internal/store"
)

// readNumbers reads which row numbers the old store had assigned.
func (f *filling) readNumbers() {
	f.image.Rows(f.roots["sqlite_sequence"], func(r sqlitefile.Row) bool {
		if len(r.Values) == 2 {
			name, ok := r.Values[0].(string)
			n, isNumber := r.Values[1].(int64)
			if ok && isNumber {
				f.given[name] = max(f.given[name], n)
			}
		}
		return true
	})
}

// beyond reports whether a row number was never assigned, which is damage too.
func (f *filling) beyond(t *shape, id int64) bool {
	last, known := f.given[t.name]
	return t.rowid && known && id > last
}

const (
	selectNumbered = `SELECT name, seq FROM sqlite_sequence`
	updateNumber   = `UPDATE sqlite_sequence SET seq = max(seq, ?1) WHERE name = ?2`
	insertNumber   = `INSERT INTO sqlite_sequence (name, seq) SELECT ?2, ?1 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = ?2)`
	clampFollowers = `UPDATE followers SET position = min(position, ?)`
	selectHead     = `SELECT ifnull(max(seq), 0) FROM changes`
	selectReached  = `SELECT max(ifnull((SELECT max(position) FROM followers), 0), ifnull((SELECT max(seq) FROM set_aside), 0))`
)

// reserveNumbers ensures that no number is used twice: neither that of a lost row, nor that of
// a lost change of this device, which other devices may have. If the end of the log may be
// lost, the store continues as a new device.
func (f *filling) reserveNumbers(ctx context.Context) error {
	last, known := f.given["changes"]
	if known {
		if _, err := f.conn.ExecContext(ctx, clampFollowers, last); err != nil {
			return err
		}
	}
	var reached, head int64
	if err := f.conn.QueryRowContext(ctx, selectReached).Scan(&reached); err != nil {
		return err
	}
	if err := f.conn.QueryRowContext(ctx, selectHead).Scan(&head); err != nil {
		return err
	}
	f.newest["changes"] = max(f.newest["changes"], reached)
	if !known || last > head {
		if err := store.RenewSalvaged(ctx, f.conn); err != nil {
			return err
		}
	}
	has := map[string]bool{}
	err := f.each(ctx, func(r *sql.Rows) error {
		var name string
		var seq int64
		err := r.Scan(&name, &seq)
		has[name] = true
		return err
	}, selectNumbered)
	if err != nil {
		return err
	}
	for _, t := range f.shapes {
		if _, numbered := f.given[t.name]; !numbered && !has[t.name] {
			continue
		}
		for _, query := range []string{updateNumber, insertNumber} {
			if _, err := f.conn.ExecContext(ctx, query, max(f.newest[t.name], f.given[t.name]), t.name); err != nil {
				return err
			}
		}
	}
	return nil
}

// reference is a foreign key.
type reference struct {
	child, column, parent, key string
}

const listReferences = `SELECT "from", "table", "to" FROM pragma_foreign_key_list(?)`

// addParents inserts placeholder rows for lost rows that other rows refer to, so that those
// can stay. A placeholder may need another placeholder.
func (f *filling) addParents(ctx context.Context) error {
	var refs []reference
	for _, t := range f.shapes {
		err := f.each(ctx, func(r *sql.Rows) error {
			ref := reference{child: t.name}
			err := r.Scan(&ref.column, &ref.parent, &ref.key)
			refs = append(refs, ref)
			return err
		}, listReferences, t.name)
		if err != nil {
			return err
		}
	}
	for made := true; made; {
		made = false
		for _, ref := range refs {
			n, err := f.makeParents(ctx, ref)
			if err != nil {
				return err
			}
			made = made || n > 0
		}
	}
	return nil
}

// makeParents inserts placeholders for the missing parents of a foreign key. Some tables
// accept no placeholders, because only their parts can repair them.
func (f *filling) makeParents(ctx context.Context, ref reference) (made int, err error) {
	var missing []any
	err = f.each(ctx, func(r *sql.Rows) error {
		var v any
		err := r.Scan(&v)
		missing = append(missing, v)
		return err
	}, fmt.Sprintf(`SELECT DISTINCT c.%[2]s FROM %[1]s c WHERE c.%[2]s IS NOT NULL
AND NOT EXISTS (SELECT 1 FROM %[3]s p WHERE p.%[4]s = c.%[2]s)`,
		quoted(ref.child), quoted(ref.column), quoted(ref.parent), quoted(ref.key)))
	if err != nil {
		return 0, err
	}
	for _, v := range missing {
		for _, t := range f.shapes {
			if t.name != ref.parent {
				continue
			}
			row := map[int]any{}
			for i, c := range t.columns {
				if c.name == ref.key {
					row[i] = v
				}
			}
			t.complete(row, v)
			ok, err := f.insert(ctx, t, row, nil)
			if err != nil {
				return made, err
			}
			if ok {
				made++
			}
		}
	}
	return made, nil
}

// blankAltered deletes the documents that do not match their hashes, so that no part
// repairs its rows with them.
func blankAltered(ctx context.Context, s *store.Store) error {
	return s.Write(ctx, store.Full, func(ctx context.Context, tx *store.Tx) error {
		var altered []int64
		err := store.EachBreak(ctx, tx, func(b store.ChainBreak) {
			if b.Document {
				altered = append(altered, b.Seq)
			}
		})
		for _, seq := range altered {
			if err == nil {
				err = tx.BlankChange(ctx, seq)
			}
		}
		return err
	})
}

// noteSalvage resolves remaining references, notes the gaps and notifies the log's
// followers.
func noteSalvage(ctx context.Context, s *store.Store, rows *inventory, out *Report) error {
	return s.Write(ctx, store.Full, func(ctx context.Context, tx *store.Tx) error {
		if err := resolveReferences(ctx, tx); err != nil {
			return err
		}
		if err := rows.report(ctx, tx, out); err != nil {
			return err
		}
		var breaks []store.ChainBreak
		err := store.EachBreak(ctx, tx, func(b store.ChainBreak) { breaks = append(breaks, b) })
		if err != nil {
			return err
		}
		for _, b := range breaks {
			if b.Document {
				err = tx.BlankChange(ctx, b.Seq)
			} else {
				out.Gaps++
				err = tx.SetMeta(ctx, store.GapName(b.Device, b.DeviceSeq), b.Message)
			}
			if err != nil {
				return err
			}
		}
		doc, err := json.Marshal(map[string]any{"gaps": out.Gaps, "lost": out.Lost, "restored": out.Restored})
		if err != nil {
			return err
		}
		_, err = tx.Append(ctx, store.Change{Stream: "store", Kind: "salvage", ID: store.NewID(), Op: store.OpPut, Doc: doc})
		return err
	})
}

// resolveReferences sets references to missing parent rows to NULL. It deletes rows whose
// reference must not be NULL.
func resolveReferences(ctx context.Context, tx *store.Tx) error {
	type orphan struct {
		table  string
		row    int64
		column string
	}
	var orphans []orphan
	err := tx.Each(ctx, func(r *sql.Rows) error {
		var o orphan
		err := r.Scan(&o.table, &o.row, &o.column)
		orphans = append(orphans, o)
		return err
	}, `SELECT c."table", c.rowid, k."from" FROM pragma_foreign_key_check c
JOIN pragma_foreign_key_list(c."table") k ON k.id = c.fkid WHERE c.rowid IS NOT NULL`)
	if err != nil {
		return err
	}
	for _, o := range orphans {
		_, err := tx.Exec(ctx, fmt.Sprintf(`UPDATE OR IGNORE %s SET %s = NULL WHERE rowid = ?`, quoted(o.table), quoted(o.column)), o.row)
		if err != nil {
			return err
		}
		var left bool
		err = tx.Get(ctx, []any{&left}, fmt.Sprintf(`SELECT %s IS NOT NULL FROM %s WHERE rowid = ?`, quoted(o.column), quoted(o.table)), o.row)
		if errors.Is(err, sql.ErrNoRows) || err == nil && !left {
			continue
		}
		if err == nil {
			_, err = tx.Exec(ctx, fmt.Sprintf(`DELETE FROM %s WHERE rowid = ?`, quoted(o.table)), o.row)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lostDevice is the device of changes that replace lost ones, because their device is
// unknown.
const lostDevice = "lost"

const (
	selectSeqFree = `SELECT NOT EXISTS (SELECT 1 FROM changes WHERE seq = ?)`
	moveChange    = `UPDATE changes SET seq = ? WHERE seq = ?`
)

// AppendLost appends a change without a document that replaces a lost one. It returns its
// seq: the given one if the log has no change there, else a new one. Only a part's repair
// during a salvage may call it.
func AppendLost(ctx context.Context, t *store.Tx, seq int64, c store.Change) (int64, error) {
	c.Device, c.Doc = lostDevice, nil
	made, err := t.Append(ctx, c)
	if err != nil || seq < 1 || seq > made {
		return made, err
	}
	var free bool
	if err := t.Get(ctx, []any{&free}, selectSeqFree, seq); err != nil || !free {
		return made, err
	}
	_, err = t.Exec(ctx, moveChange, seq, made)
	return seq, err
}
