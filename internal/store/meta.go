package store

import (
	"context"
	"database/sql"
	"errors"
)

// Meta is a value that a package stores under a name, such as a salt or the progress of a
// job. Names begin with a prefix of the package.
type Meta struct{ Name, Value string }

const (
	selectMeta      = `SELECT value FROM store_meta WHERE name = ?`
	selectMetaUnder = `SELECT name, value FROM store_meta WHERE name >= ?1 AND name < ?1 || char(0x10ffff) ORDER BY name`
	deleteMeta      = `DELETE FROM store_meta WHERE name = ?`

	selectLastWrite = `SELECT at FROM changes WHERE device = (SELECT id FROM symbols
WHERE text = (SELECT value FROM store_meta WHERE name = 'device')) ORDER BY device_seq DESC LIMIT 1`
)

// Meta returns the value under a name; ok is false if there is none.
func (t *Tx) Meta(ctx context.Context, name string) (value string, ok bool, err error) {
	err = t.Get(ctx, []any{&value}, selectMeta, name)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	return value, err == nil, err
}

// MetaUnder returns the values whose names begin with prefix, ordered by name.
func (t *Tx) MetaUnder(ctx context.Context, prefix string) (list []Meta, err error) {
	err = t.Each(ctx, func(r *sql.Rows) error {
		var m Meta
		err := r.Scan(&m.Name, &m.Value)
		list = append(list, m)
		return err
	}, selectMetaUnder, prefix)
	return list, err
}

// SetMeta stores a value under a name and replaces an older one. It is idempotent.
func (t *Tx) SetMeta(ctx context.Context, name, value string) error {
	_, err := t.Exec(ctx, upsertMeta, name, value)
	return err
}

// DeleteMeta deletes the value under a name. It is idempotent.
func (t *Tx) DeleteMeta(ctx context.Context, name string) error {
	_, err := t.Exec(ctx, deleteMeta, name)
	return err
}

// LastWrite returns the time of this device's newest change in Unix nanoseconds, 0 if
// it has none.
func (t *Tx) LastWrite(ctx context.Context) (at int64, err error) {
	err = t.Get(ctx, []any{&at}, selectLastWrite)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return at, err
}
