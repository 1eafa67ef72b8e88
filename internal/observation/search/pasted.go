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
	maxPasted     = 64       // lines of a query, and quoted parts of lines, that are looked up
	maxLineRows   = 200      // rows read per line; a line that more rows printed is too common to help
	maxPastedText = 64 << 10 // bytes of a query
	maskedWeight  = 0.5      // weight of a line that matches only with its numbers masked
)

const selectLineRows = `SELECT o.id, o.session_key FROM output_lines l JOIN observation_rows o ON o.id = l.rowid
WHERE l.output_lines MATCH ? AND (?2 = 0 OR o.project_key = ?2) ORDER BY l.rowid DESC LIMIT +?`

// pastedRow is a row whose output contains lines of a query.
type pastedRow struct {
	id, session int64   // keys of the row and of its session
	weight      float64 // sum over its lines: 1 for a line that no other row printed, less for common lines
	lines       int     // number of lines of the query in its output
}

// pastedLines returns the rows that printed lines of a query, highest weight first, then newest
// first. Each line of the query, and each quoted part of it, is looked up as it is. If no row
// printed it, it is looked up again with its numbers masked. project is the key of a project, 0
// for all. pastedLines returns nil if no row printed any of the lines; lines that are too short
// for the index never match. The query is redacted like the stored output, so lines with secrets
// match too.
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

// values returns an iterator over the rows of a map.
func values(rows map[int64]*pastedRow) iter.Seq[pastedRow] {
	return func(yield func(pastedRow) bool) {
		for _, r := range rows {
			if !yield(*r) {
				return
			}
		}
	}
}

// rowsThatPrinted returns the newest rows that printed a line, at most maxLineRows. It returns nil
// if line is 0.
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

// pastedParts returns the lines of a query and their quoted parts, at most maxPasted.
func pastedParts(text string) (parts []tooloutput.Line) {
	for _, line := range tooloutput.Lines(text) {
		parts = append(parts, line)
		for _, quote := range [...]string{"`", `"`, "'"} {
			pieces := strings.Split(line.Text, quote)
			for i := 1; i < len(pieces)-1; i += 2 {
				parts = append(parts, tooloutput.Lines(pieces[i])...)
			}
			if n := len(pieces); n > 3 { // the quoted text contains quotes itself
				parts = append(parts, tooloutput.Lines(strings.Join(pieces[1:n-1], quote))...)
			}
		}
		if len(parts) >= maxPasted {
			return parts[:maxPasted]
		}
	}
	return parts
}
