package observation

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"cairn/internal/redact"
	"cairn/internal/store"
)

// TypeStats is what the store holds of one type of rows.
type TypeStats struct {
	Type     string `json:"type"`
	Rows     int64  `json:"rows"`
	Bytes    int64  `json:"bytes"`               // of their texts, estimated from the newest rows of each project
	Days     int    `json:"kept_days,omitempty"` // after which rows expire, 0 for never
	Expiring int64  `json:"expiring,omitempty"`  // rows that the next sweep deletes
}

const (
	// The newest rows of each project and type, by the index on both.
	selectRowSizes = `SELECT t.value, avg(length(CAST(o.content AS BLOB)) + length(CAST(ifnull(o.metadata, '') AS BLOB)) + length(ifnull(o.file_path, '')))
FROM json_each(?1) t CROSS JOIN projects p JOIN observation_rows o ON o.id IN (
    SELECT i.id FROM observation_rows i WHERE i.project_key = p.key AND i.obs_type = t.value ORDER BY i.timestamp DESC LIMIT 40)
GROUP BY 1`
)

// TypesHeld lists the types that the store holds rows of, those with most rows first. counts
// are ByType of Stats. It takes some milliseconds. Without rows the list is empty.
func (j *Service) TypesHeld(ctx context.Context, counts map[string]int64) ([]TypeStats, error) {
	list := []TypeStats{}
	at := map[string]int{}
	names := slices.Sorted(maps.Keys(counts))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(counts[b], counts[a]) })
	for _, name := range names {
		at[name] = len(list)
		list = append(list, TypeStats{Type: name, Rows: counts[name], Days: j.config.Retention[name]})
	}
	err := j.read(ctx, func(ctx context.Context, tx *store.Tx) error {
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
		cutoffs, err := j.config.Retention.cutoffs(tx.Now().Unix())
		if err != nil {
			return err
		}
		return tx.Each(ctx, func(r *sql.Rows) error {
			var name string
			var n int64
			err := r.Scan(&name, &n)
			if i, ok := at[name]; ok {
				list[i].Expiring = n
			}
			return err
		}, countExpired, cutoffs)
	})
	return list, err
}

// Redaction is how many secrets of one form were removed from rows.
type Redaction struct {
	Form  string `json:"form"` // named value, header, URL, option, private section, other
	Marks int    `json:"marks"`
}

// The forms of Redaction.
const (
	formNamed   = "named value"
	formHeader  = "header"
	formURL     = "URL"
	formOption  = "command's option"
	formPrivate = "private section"
	formOther   = "by its shape"
)

// maxRedacted is how many rows Redactions reads, the newest.
const maxRedacted = 2000

const selectRedacted = `SELECT o.content FROM (
    SELECT rowid AS id FROM observations_fts WHERE observations_fts MATCH 'redacted OR private' ORDER BY rowid DESC LIMIT +?3) f
JOIN observation_rows o ON o.id = f.id
WHERE o.timestamp >= ?1 AND (?2 = '' OR o.project_key = (SELECT key FROM projects WHERE id = ?2))
  AND (instr(o.content, '[REDACTED]') > 0 OR instr(o.content, '[PRIVATE]') > 0)`

// Redactions counts the marks that stand for removed secrets in the rows of a project, or of
// all (""), since a time in Unix seconds, by what stands before them: the rule that found a
// secret is not stored. Of the rows that may hold marks the newest 2,000 are read. rows is how
// many do. An unknown project is NotFound.
func (j *Service) Redactions(ctx context.Context, projectName string, since int64) (list []Redaction, rows int, err error) {
	count := map[string]int{}
	err = j.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		id, err := projectID(ctx, tx, projectName)
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

// countMarks counts the marks of a text by form.
func countMarks(text string, count map[string]int) {
	if n := strings.Count(text, redact.PrivateMark); n > 0 {
		count[formPrivate] += n
	}
	parts := strings.Split(text, redact.Mark)
	for i := range len(parts) - 1 {
		count[formOfMark(parts[i], parts[i+1])]++
	}
}

// formOfMark is the form of a secret by the text around its mark.
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

// OutputDays is after how many days what commands printed is deleted, 0 for never.
func (j *Service) OutputDays() int { return j.config.OutputDays }
