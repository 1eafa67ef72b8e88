package continuity

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/internal/observation"
	"cairn/internal/store"
)

// answer is what a namer says.
type answer struct {
	files  []string // keys, best first; only the first 20 distinct ones count
	tokens int      // of the text that is injected, 0 for a namer that only ranks
}

// namer is one way of telling a session which files it will need. Whoever has a
// new idea adds a line to the table.
type namer struct {
	name    string
	prompts bool // asked only after the first prompt
	all     bool // every file counts, not only the first 20
	ask     func(context.Context, *question) (answer, error)
}

// injectedAtStart is the namer whose answer others find in question.told.
const injectedAtStart = "injected at start"

func namers() []namer {
	return []namer{
		{name: injectedAtStart, ask: injected},
		{name: "injected, every file", ask: injected, all: true},
		{name: "composite top 20", ask: composite},
		{name: "composite, files only", ask: ranked(rankComposite)},
		{name: "recent edits", ask: ranked(rankEdits)},
		{name: "recent touches", ask: ranked(rankTouches)},
		{name: "frequency", ask: ranked(rankFrequency)},
		{name: "likely files", ask: likely},
		{name: "search of the prompt", ask: searched, prompts: true},
	}
}

// injected is what a session is really told: Journal.Context at its start, and
// upon its first prompt the likely files that this adds. Rows that the prompt brings
// to mind are not counted, since they seldom name a file.
func injected(ctx context.Context, q *question) (answer, error) {
	if q.prompt == "" {
		c, err := q.journal.Context(ctx, q.project, "startup", q.branch)
		if err != nil {
			return answer{}, err
		}
		paths, err := q.paths(ctx, c.Items)
		return answer{named(c.Text, paths, q.known[q.repo]), c.Tokens}, err
	}
	files, err := q.journal.Likely(ctx, observation.LikelyArgs{
		Project: q.project, Session: q.session, Branch: q.branch, Prompt: q.prompt, Limit: Top,
	})
	told := answer{tokens: q.told.tokens}
	for _, f := range files {
		if f.Asked && !slices.Contains(q.told.files, f.Path) {
			told.files = append(told.files, f.Path)
			told.tokens += (len(f.Path) + 3) / 4
		}
	}
	told.files = append(told.files, q.told.files...)
	return told, err
}

const selectPath = `SELECT ifnull(file_path, '') FROM observation_rows
WHERE id = ? AND project_key = ? AND obs_type != 'search'`

// paths are the files of shown rows of the question's own project, by row.
func (q *question) paths(ctx context.Context, items []observation.Item) (map[int64]string, error) {
	paths := map[int64]string{}
	err := q.store.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		for _, item := range items {
			err := tx.Each(ctx, func(r *sql.Rows) error {
				var path string
				err := r.Scan(&path)
				if key := q.file(&path); path != "" && key != "" {
					paths[item.Observation] = key
				}
				return err
			}, selectPath, item.Observation, q.project.Key)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return paths, err
}

// named are the known files that an injected text names, in its order: rows by
// their number, anything else by its words. A path that was cut at its beginning
// counts if only one known file ends like it. A line may name a folder and then its files.
func named(text string, paths map[int64]string, known map[string]bool) (files []string) {
	for line := range strings.Lines(text) {
		if file, ok := paths[rowNumber(line)]; ok {
			files = append(files, file)
			continue
		}
		folder, rest, _ := strings.Cut(strings.TrimPrefix(line, "- "), "/: ")
		if rest == "" {
			folder, rest = "", line
		} else {
			folder += "/"
		}
		for _, word := range strings.FieldsFunc(rest, notInPath) {
			if file := knownFile(folder+strings.Trim(word, "."), known); file != "" {
				files = append(files, file)
			}
		}
	}
	return files
}

// rowNumber is the number in a table line, 0 for any other line.
func rowNumber(line string) (n int64) {
	rest, ok := strings.CutPrefix(line, "| #")
	if !ok {
		return 0
	}
	for _, c := range rest {
		if c < '0' || c > '9' {
			break
		}
		n = n*10 + int64(c-'0')
	}
	return n
}

func notInPath(c rune) bool {
	return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("/._-+@…", c)
}

func knownFile(word string, known map[string]bool) string {
	dotted := "." + word // Trim took the dot of .gitignore
	switch {
	case known[word]:
		return word
	case known[dotted]:
		return dotted
	}
	end, cut := strings.CutPrefix(word, "…")
	if !cut || utf8.RuneCountInString(end) < 8 {
		return ""
	}
	found := ""
	for file := range known {
		if strings.HasSuffix(file, end) {
			if found != "" {
				return ""
			}
			found = file
		}
	}
	return found
}

// composite is the order of the tool recent_context: the rows of the project that
// have a file, of the best 100.
func composite(ctx context.Context, q *question) (a answer, err error) {
	rows, err := q.journal.Recent(ctx, observation.Scope{Project: q.project.ID}, 100)
	for _, row := range rows {
		if file := q.file(row.FilePath); row.Project == q.project.ID && row.ObsType != "search" && file != "" {
			a.files = append(a.files, file)
		}
	}
	return a, err
}

// The rankings of all files of a project, read from its rows.
const (
	rankComposite = `SELECT file_path FROM observation_rows
WHERE project_key = ?1 AND path_key NOT LIKE '/%' AND obs_type IN ('file_edit', 'file_write', 'file_read')
GROUP BY path_key
ORDER BY max(0.5 * pow(0.5, (?2 - timestamp) / 604800.0) + 0.3 * iif(obs_type = 'file_edit', 1, 0.17)) DESC, max(timestamp) DESC LIMIT 20`

	rankEdits = `SELECT file_path FROM observation_rows
WHERE project_key = ?1 AND path_key NOT LIKE '/%' AND obs_type IN ('file_edit', 'file_write')
  AND ifnull(metadata, '{}') ->> '$.failed' IS NULL AND ?2
GROUP BY path_key ORDER BY max(timestamp) DESC, max(id) DESC LIMIT 20`

	rankTouches = `SELECT file_path FROM observation_rows
WHERE project_key = ?1 AND path_key NOT LIKE '/%' AND obs_type IN ('file_edit', 'file_write', 'file_read')
  AND ifnull(metadata, '{}') ->> '$.failed' IS NULL AND ?2
GROUP BY path_key ORDER BY max(timestamp) DESC, max(id) DESC LIMIT 20`

	rankFrequency = `SELECT file_path FROM observation_rows
WHERE project_key = ?1 AND path_key NOT LIKE '/%' AND obs_type IN ('file_edit', 'file_write', 'file_read')
  AND ifnull(metadata, '{}') ->> '$.failed' IS NULL AND ?2
GROUP BY path_key ORDER BY count(*) DESC, max(timestamp) DESC, max(id) DESC LIMIT 20`
)

// ranked asks one of these; ?1 is the project, ?2 the present.
func ranked(query string) func(context.Context, *question) (answer, error) {
	return func(ctx context.Context, q *question) (a answer, err error) {
		err = q.store.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
			return tx.Each(ctx, func(r *sql.Rows) error {
				var path string
				err := r.Scan(&path)
				if file := q.file(&path); file != "" {
					a.files = append(a.files, file)
				}
				return err
			}, query, q.project.Key, tx.Now().Unix())
		})
		return a, err
	}
}

// likely is the order in which cairn ranks files for a session.
func likely(ctx context.Context, q *question) (a answer, err error) {
	files, err := q.journal.Likely(ctx, observation.LikelyArgs{
		Project: q.project, Session: q.session, Branch: q.branch, Prompt: q.prompt, Limit: Top,
	})
	for _, f := range files {
		a.files = append(a.files, f.Path)
	}
	return a, err
}

// searched are the files of the 100 rows of the project that fit the words of the
// prompt best, whichever of them they hold.
func searched(ctx context.Context, q *question) (a answer, err error) {
	query := anyWord(q.prompt)
	if query == "" {
		return a, nil
	}
	hits, err := q.journal.Search(ctx, observation.SearchArgs{
		Query: query, Scope: observation.Scope{Project: q.project.ID}, Limit: 100,
	})
	for _, h := range hits {
		if file := q.file(h.FilePath); h.ObsType != "search" && file != "" {
			a.files = append(a.files, file)
		}
	}
	return a, err
}

// anyWord is a query for the distinct words of a text, joined by OR, as many of
// the first as a query may have.
func anyWord(text string) string {
	const maxWords, maxChars = 64, 1000
	seen := map[string]bool{}
	query, chars := "", 0
	for _, word := range strings.FieldsFunc(text, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) && c != '_' }) {
		word = strings.ToLower(strings.Trim(word, "_"))
		if word == "" || seen[word] {
			continue
		}
		seen[word] = true
		term := `"` + word + `"`
		if query != "" {
			term = " OR " + term
		}
		if chars += utf8.RuneCountInString(term); chars > maxChars || len(seen) > maxWords {
			break
		}
		query += term
	}
	return query
}
