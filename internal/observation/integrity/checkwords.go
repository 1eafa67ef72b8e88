package integrity

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"cairn/internal/observation"
	"cairn/internal/store"
	"cairn/internal/store/wordcheck"
	"cairn/internal/words"
)

const (
	selectAllIndexed    = `SELECT id, obs_type, content, ifnull(file_path, ''), ifnull(metadata, '') FROM observation_rows ORDER BY id`
	selectOneIndexed    = `SELECT id, obs_type, content, ifnull(file_path, ''), ifnull(metadata, '') FROM observation_rows WHERE id = ?`
	selectStaleTurns    = `SELECT t.id FROM turns t JOIN stale_turns s ON s.session_key = t.session_key`
	selectFreshSessions = `SELECT DISTINCT session_key FROM observation_rows WHERE session_key NOT IN (SELECT session_key FROM stale_turns)`
	selectFilePath      = `SELECT ifnull(file_path, '') FROM observation_rows WHERE id = ?`
)

// CheckWords reports up to 20 rows whose searchable words do not match their text, none in an
// intact store. It computes the words of every row again, and changes nothing.
func CheckWords(ctx context.Context, tx *store.Tx) (findings []string, err error) {
	rows, err := wordcheck.Differing(ctx, tx, wordcheck.Index{Table: "observations_fts", Insert: observation.InsertWords, Rows: eachIndexed, Variants: indexVariants})
	for _, row := range rows {
		findings = append(findings, fmt.Sprintf("the searchable words of observation %d are not those of its text", row))
	}
	if err != nil {
		return findings, err
	}
	turns, err := checkTurnWords(ctx, tx)
	for _, turn := range turns {
		findings = append(findings, fmt.Sprintf("the searchable words of the turn of observation %d are not those of its rows", turn))
	}
	return findings, err
}

// checkTurnWords compares the index of turns with the rows. It leaves out sessions whose
// turns are not up to date.
func checkTurnWords(ctx context.Context, tx *store.Tx) ([]int64, error) {
	stale := map[int64]bool{}
	err := tx.Each(ctx, func(r *sql.Rows) error {
		var turn int64
		err := r.Scan(&turn)
		stale[turn] = true
		return err
	}, selectStaleTurns)
	if err != nil {
		return nil, err
	}
	return wordcheck.Differing(ctx, tx, wordcheck.Index{
		Table: "turn_words", Insert: observation.InsertTurnWords, Rows: eachTurn, Counts: func(turn int64) bool { return !stale[turn] },
	})
}

// eachTurn calls add with the expected index content of each turn.
func eachTurn(ctx context.Context, tx *store.Tx, add func(args ...any) error) error {
	return tx.Each(ctx, func(r *sql.Rows) error {
		var session int64
		if err := r.Scan(&session); err != nil {
			return err
		}
		var at, id int64
		for more := true; more; {
			one := observation.TurnReader{Session: session, Most: observation.TurnRowsAtOnce}
			if err := one.Read(ctx, tx, at, id); err != nil {
				return err
			}
			for _, t := range one.Turns {
				if err := add(t.Id, t.Words()); err != nil {
					return err
				}
			}
			more, at, id = one.More, one.Next[0], one.Next[1]
		}
		return nil
	}, selectFreshSessions)
}

// eachIndexed calls add with the expected index content of each row.
func eachIndexed(ctx context.Context, tx *store.Tx, add func(args ...any) error) error {
	return tx.Each(ctx, func(r *sql.Rows) error {
		var id int64
		row, err := scanIndexed(r, &id)
		if err != nil {
			return err
		}
		parts, wholes := words.Index(row.text())
		return add(id, parts, wholes)
	}, selectAllIndexed)
}

// indexVariants returns the possible index contents of a row. The index contains the path as the
// call gave it: absolute, or relative to a folder that the row does not store. An older cairn
// indexed the absolute path when it rebuilt the index.
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
		row, err := scanIndexed(r, &id)
		if err != nil {
			return err
		}
		for given, more := row.path, path; ; given = more {
			row.path = given
			parts, wholes := words.Index(row.text())
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
