package observation

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"cairn/internal/store"
	"cairn/internal/words"
)

const (
	selectAllIndexed = `SELECT id, obs_type, content, ifnull(file_path, ''), ifnull(metadata, '') FROM observation_rows ORDER BY id`
	selectOneIndexed = `SELECT id, obs_type, content, ifnull(file_path, ''), ifnull(metadata, '') FROM observation_rows WHERE id = ?`
	selectFilePath   = `SELECT ifnull(file_path, '') FROM observation_rows WHERE id = ?`
)

// CheckWords reports rows whose searchable words are not those of their text, up to 20;
// none in an intact store. It indexes every row again, and changes nothing.
func CheckWords(ctx context.Context, tx *store.Tx) (findings []string, err error) {
	rows, err := tx.CheckWords(ctx, store.WordIndex{Table: "observations_fts", Insert: insertWords, Rows: eachIndexed, Variants: indexVariants})
	for _, row := range rows {
		findings = append(findings, fmt.Sprintf("the searchable words of observation %d are not those of its text", row))
	}
	return findings, err
}

// eachIndexed calls add with what the index should contain of each row.
func eachIndexed(ctx context.Context, tx *store.Tx, add func(args ...any) error) error {
	return tx.Each(ctx, func(r *sql.Rows) error {
		var id int64
		d, err := scanIndexed(r, &id)
		if err != nil {
			return err
		}
		parts, wholes := words.Index(d.searchable())
		return add(id, parts, wholes)
	}, selectAllIndexed)
}

// indexVariants returns how a row may be indexed. The index contains the path as the
// call gave it: relative to a folder that the row does not name, or absolute. An older
// cairn indexed the absolute one when it rebuilt the index.
func indexVariants(ctx context.Context, tx *store.Tx, row int64) (out [][]any, err error) {
	var path string
	if err := tx.Get(ctx, []any{&path}, selectFilePath, row); err != nil {
		if errors.Is(err, sql.ErrNoRows) {
			err = nil
		}
		return nil, err
	}
	err = tx.Each(ctx, func(r *sql.Rows) error {
		var id int64
		d, err := scanIndexed(r, &id)
		if err != nil {
			return err
		}
		for given, more := d.Path, path; ; given = more {
			d.Path = given
			parts, wholes := words.Index(d.searchable())
			if out = append(out, []any{id, parts, wholes}); more == "" {
				return nil
			}
			if len(out) > 1 {
				_, more, _ = strings.Cut(filepath.ToSlash(strings.TrimLeft(more, `/\`)), "/")
			}
		}
	}, selectOneIndexed, row)
	return out, err
}
