package search

import (
	"cmp"
	"context"
	"database/sql"
	"iter"
	"slices"
	"strings"

	"cairn/internal/observation"
	"cairn/internal/store"
	"cairn/internal/tooloutput"
)

const (
	maxPasted     = 64       // lines of a question, and parts of them, that are looked up
	maxLineRows   = 200      // rows that are read of one line; more make it too common to tell
	maxPastedText = 64 << 10 // bytes of a question
	maskedWeight  = 0.5      // of a line that matches with other numbers only
)

const selectLineRows = `SELECT o.id, o.session_key FROM output_lines l JOIN observation_rows o ON o.id = l.rowid
WHERE l.output_lines MATCH ? AND (?2 = 0 OR o.project_key = ?2) ORDER BY l.rowid DESC LIMIT +?`

// pastedRow is a row whose output holds lines of a question.
type pastedRow struct {
	id, session int64   // keys of the row and of its session
	weight      float64 // the sum over its lines: 1 for one that no other row printed, less for common ones
	lines       int     // how many lines of the question it holds
}

// pastedLines returns the rows that printed lines of a query, highest weight first, then
// newest first. A line of the query, and what is in quotes in it, is looked up as it is
// and, if no row printed that, with its numbers masked. project is the key of a project,
// 0 for all. A query without a line of minLine characters that was printed returns nil.
// The query may hold what the output's redaction replaced: it is redacted the same way.
func pastedLines(ctx context.Context, svc *observation.Service, tx *store.Tx, query string, project int64) ([]pastedRow, error) {
	salt, ok, err := observation.FindLineSalt(ctx, tx)
	if err != nil || !ok {
		return nil, err
	}
	if len(query) > maxPastedText {
		query = query[:maxPastedText]
	}
	text, _ := svc.Config.Filter.Text(tooloutput.StripEscapes(observation.Clean(query)))
	found := map[int64]*pastedRow{}
	for _, line := range pastedParts(text) {
		hits, err := rowsThatPrinted(ctx, tx, salt, line.Plain, project)
		weight := 1.0
		if err == nil && len(hits) == 0 {
			weight = maskedWeight
			hits, err = rowsThatPrinted(ctx, tx, salt, line.Masked, project)
		}
		if err != nil {
			return nil, err
		}
		for _, hit := range hits {
			row := found[hit.id]
			if row == nil {
				row = &hit
				found[hit.id] = row
			}
			row.weight += weight / float64(len(hits))
			row.lines++
		}
	}
	return slices.SortedFunc(values(found), func(a, b pastedRow) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(b.id, a.id))
	}), nil
}

// values returns the rows of a map.
func values(rows map[int64]*pastedRow) iter.Seq[pastedRow] {
	return func(yield func(pastedRow) bool) {
		for _, r := range rows {
			if !yield(*r) {
				return
			}
		}
	}
}

// rowsThatPrinted returns the newest rows that printed a line.
func rowsThatPrinted(ctx context.Context, tx *store.Tx, s tooloutput.Salt, line tooloutput.LineHash, project int64) (rows []pastedRow, err error) {
	if line == 0 {
		return nil, nil
	}
	err = tx.Each(ctx, func(r *sql.Rows) error {
		var row pastedRow
		err := r.Scan(&row.id, &row.session)
		rows = append(rows, row)
		return err
	}, selectLineRows, string(s.AppendWord(nil, line)), project, maxLineRows)
	return rows, err
}

// pastedParts returns the lines of a question and what is in quotes in them, at most
// maxPasted.
func pastedParts(text string) (parts []tooloutput.Line) {
	for _, line := range tooloutput.Lines(text) {
		parts = append(parts, line)
		for _, quote := range [...]string{"`", `"`, "'"} {
			pieces := strings.Split(line.Text, quote)
			for i := 1; i < len(pieces)-1; i += 2 {
				parts = append(parts, tooloutput.Lines(pieces[i])...)
			}
			if n := len(pieces); n > 3 { // the quoted line holds quotes itself
				parts = append(parts, tooloutput.Lines(strings.Join(pieces[1:n-1], quote))...)
			}
		}
		if len(parts) >= maxPasted {
			return parts[:maxPasted]
		}
	}
	return parts
}
