package browse

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"cairn/internal/observation/forget"

	"cairn/internal/observation"
	"cairn/internal/redact"
	"cairn/internal/store"
)

// TypeStats counts the rows of one type in the store.
type TypeStats struct {
	Type     string `json:"type"`
	Rows     int64  `json:"rows"`
	Bytes    int64  `json:"bytes"`               // size of their texts, estimated from the newest rows of each project
	Days     int    `json:"kept_days,omitempty"` // days until rows expire, 0 for never
	Expiring int64  `json:"expiring,omitempty"`  // number of rows that the next sweep deletes
}

const (
	// The newest rows of each project and type, found by the index on both.
	selectRowSizes = `SELECT t.value, avg(length(CAST(o.content AS BLOB)) + length(CAST(ifnull(o.metadata, '') AS BLOB)) + length(ifnull(o.file_path, '')))
FROM json_each(?1) t CROSS JOIN projects p JOIN observation_rows o ON o.id IN (
    SELECT i.id FROM observation_rows i WHERE i.project_key = p.key AND i.obs_type = t.value ORDER BY i.timestamp DESC LIMIT 40)
GROUP BY 1`
)

// TypesHeld lists the types of the stored rows, most rows first. counts is ByType of Stats. The
// call takes some milliseconds. The list is empty if there are no rows.
func TypesHeld(ctx context.Context, svc *observation.Service, counts map[string]int64) ([]TypeStats, error) {
	list := []TypeStats{}
	at := map[string]int{}
	names := slices.Sorted(maps.Keys(counts))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(counts[b], counts[a]) })
	for _, name := range names {
		at[name] = len(list)
		list = append(list, TypeStats{Type: name, Rows: counts[name], Days: svc.Config.Retention[name]})
	}
	err := svc.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		asked, err := json.Marshal(names)
		if err != nil {
			return err
		}
		err = tx.Each(ctx, func(r *sql.Rows) error {
			var name string
			var size float64
			err := r.Scan(&name, &size)
			if i, ok := at[name]; ok {
				list[i].Bytes = int64(size * float64(list[i].Rows))
			}
			return err
		}, selectRowSizes, string(asked))
		if err != nil {
			return err
		}
		return forget.CountExpired(ctx, tx, svc.Config.Retention, func(name string, n int) {
			if i, ok := at[name]; ok {
				list[i].Expiring = int64(n)
			}
		})
	})
	return list, err
}

// Redaction is the number of secrets of one form that were removed from rows.
type Redaction struct {
	Form  string `json:"form"` // one of the forms below
	Marks int    `json:"marks"`
}

// Values of Redaction.Form.
const (
	formNamed   = "named value"
	formHeader  = "header"
	formURL     = "URL"
	formOption  = "command's option"
	formPrivate = "private section"
	formOther   = "by its shape"
)

// maxRedacted is the maximum number of rows that Redactions reads, newest first.
const maxRedacted = 2000

const selectRedacted = `SELECT o.content FROM (
    SELECT rowid AS id FROM observations_fts WHERE observations_fts MATCH 'redacted OR private' ORDER BY rowid DESC LIMIT +?3) f
JOIN observation_rows o ON o.id = f.id
WHERE o.timestamp >= ?1 AND (?2 = '' OR o.project_key = (SELECT key FROM projects WHERE id = ?2))
  AND (instr(o.content, '[REDACTED]') > 0 OR instr(o.content, '[PRIVATE]') > 0)`

// Redactions counts the marks of removed secrets, by form, in the rows of a project since a
// time in Unix seconds. "" means all projects. The rule that found a secret is not stored, so
// the form is derived from the text around the mark. Redactions reads only the newest 2,000
// rows that may contain marks. rows is the number of those that do. An unknown project is
// NotFound.
func Redactions(ctx context.Context, svc *observation.Service, projectName string, since int64) (list []Redaction, rows int, err error) {
	count := map[string]int{}
	err = svc.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		id, err := observation.ProjectID(ctx, tx, projectName)
		if err != nil {
			return err
		}
		return tx.Each(ctx, func(r *sql.Rows) error {
			var text string
			err := r.Scan(&text)
			rows++
			countMarks(text, count)
			return err
		}, selectRedacted, since, id, maxRedacted)
	})
	list = []Redaction{}
	for _, form := range []string{formNamed, formHeader, formURL, formOption, formPrivate, formOther} {
		if count[form] > 0 {
			list = append(list, Redaction{form, count[form]})
		}
	}
	slices.SortStableFunc(list, func(a, b Redaction) int { return b.Marks - a.Marks })
	return list, rows, err
}

// countMarks adds the marks of a text to count, by form.
func countMarks(text string, count map[string]int) {
	if n := strings.Count(text, redact.PrivateMark); n > 0 {
		count[formPrivate] += n
	}
	parts := strings.Split(text, redact.Mark)
	for i := range len(parts) - 1 {
		count[formOfMark(parts[i], parts[i+1])]++
	}
}

// formOfMark returns the form of a secret, derived from the text around its mark.
func formOfMark(before, after string) string {
	line := strings.ToLower(before[strings.LastIndexByte(before, '\n')+1:])
	word := line[strings.LastIndexAny(strings.TrimRight(line, " "), " \t")+1:]
	switch {
	case strings.HasPrefix(after, "@") || strings.Contains(word, "://"):
		return formURL
	case strings.HasSuffix(line, "bearer ") || strings.HasSuffix(line, "basic ") || strings.Contains(word, "authorization") || strings.HasPrefix(word, "x-") && strings.Contains(word, ":"):
		return formHeader
	case strings.HasPrefix(word, "-"):
		return formOption
	case strings.ContainsAny(word, "=:"), strings.HasSuffix(strings.TrimRight(line, ` "'`), ":"):
		return formNamed
	}
	return formOther
}
