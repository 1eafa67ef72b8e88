package continuity

import (
	"context"
	"database/sql"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"cairn/internal/observation"
	"cairn/internal/observation/assist"
	"cairn/internal/observation/browse"
	"cairn/internal/observation/capture"
	"cairn/internal/observation/ledger"
	"cairn/internal/observation/likely"
	"cairn/internal/observation/search"
	"cairn/internal/observation/sessionstart"
	"cairn/internal/project"
	"cairn/internal/store"
)

// answer is the return value of a namer.
type answer struct {
	files  []string // keys, best first; only the first 20 distinct ones count
	tokens int      // size of the injected text, 0 for a namer that only ranks

	text     string // injected text
	sections []section
}

// namer is one way of predicting the files that a session will need. To try a new idea, add a
// line to the table.
type namer struct {
	name    string
	prompts bool // queried only after the first prompt
	all     bool // every file counts, not only the first 20
	ask     func(context.Context, *question) (answer, error)
}

// injectedAtStart is the namer whose result is available to others in question.told.
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
		{name: "likely files", ask: likelyFiles},
		{name: "search of the prompt", ask: searched, prompts: true},
	}
}

// injected returns the files shown to the session. See question.inject.
func injected(_ context.Context, q *question) (answer, error) { return q.shown, nil }

// inject does the work of "cairn record --assist" at this moment. It stores the start of the
// session, or its first prompt, builds the injected text, and enters it in the ledger. Files of
// the prompt's text come before those of the start.
func (q *question) inject(ctx context.Context) (a answer, err error) {
	e := q.event.Event
	e.Imported, e.LineID, e.Harness, e.At = false, "", "claude", time.Time{}
	if q.prompt == "" {
		e.Kind, e.Source, e.Text, e.Role, e.Calls = observation.SessionStart, "SessionStart", "startup", "", nil
		e.PromptID, e.AgentID = "", ""
	}
	e.Branch = q.branch
	done, err := capture.Record(ctx, q.journal, e, q.place, project.Process{})
	if err != nil {
		return a, err
	}
	var c ledger.Injection
	if q.prompt == "" {
		c, err = sessionstart.Build(ctx, q.journal, sessionstart.Args{
			Project: done.Project, Session: q.session, Source: "startup", Branch: q.branch,
		})
	} else {
		c, err = assist.Help(ctx, q.journal, e, q.place, done)
	}
	if err != nil {
		return a, err
	}
	if err := ledger.Inject(ctx, q.journal, e, done.Session, c.Items); err != nil {
		return a, err
	}
	paths, err := q.paths(ctx, done.Project.Key, c.Items)
	a.text, a.tokens = c.Text, q.told.tokens+c.Tokens
	a.files = append(named(c.Text, paths, q.known[q.repo]), q.told.files...)
	for _, s := range splitSections(c.Text) {
		s.files = named(s.text, paths, q.known[q.repo])
		a.sections = append(a.sections, s)
	}
	return a, err
}

const selectPath = `SELECT ifnull(file_path, '') FROM observation_rows
WHERE id = ? AND project_key = ? AND obs_type != 'search'`

// paths returns the files of shown rows of the question's own project, by row.
func (q *question) paths(ctx context.Context, project int64, items []ledger.Item) (map[int64]string, error) {
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
			}, selectPath, item.Observation, project)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return paths, err
}

// named returns the known files that an injected text names, in the order of the text. Lines of
// observations name them by row number, all other lines by words. A path that was cut at its
// beginning counts if only one known file has that ending. A line may name a folder and then
// its files.
func named(text string, paths map[int64]string, known map[string]bool) (files []string) {
	for line := range strings.Lines(text) {
		ids, line := rowNumbers(line)
		for _, id := range ids {
			if file, ok := paths[id]; ok {
				files = append(files, file)
			}
		}
		if len(ids) > 0 && len(files) > 0 && slices.ContainsFunc(ids, func(id int64) bool { return paths[id] != "" }) {
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

// rowNumbers returns the numbers in the first cell of a table line, and the line without that
// cell. For any other line it returns no numbers.
func rowNumbers(line string) (ids []int64, rest string) {
	cell, rest, ok := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
	if !ok || !strings.HasPrefix(line, "| #") {
		return nil, line
	}
	for text := range strings.FieldsSeq(cell) {
		if n, err := strconv.ParseInt(strings.TrimPrefix(text, "#"), 10, 64); err == nil {
			ids = append(ids, n)
		}
	}
	return ids, rest
}

func notInPath(c rune) bool {
	return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("/._-+@…", c)
}

func knownFile(word string, known map[string]bool) string {
	dotted := "." + word // Trim removed the dot of .gitignore
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

// composite uses the order of the tool recent_context: the project's rows that have a file,
// among the best 100.
func composite(ctx context.Context, q *question) (a answer, err error) {
	rows, err := browse.Recent(ctx, q.journal, observation.Scope{Project: q.project.ID}, 100)
	for _, row := range rows {
		if file := q.file(row.FilePath); row.Project == q.project.ID && row.ObsType != "search" && file != "" {
			a.files = append(a.files, file)
		}
	}
	return a, err
}

// Rankings of all files of a project, computed from its rows.
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

// ranked returns a namer for one of these queries. ?1 is the project, ?2 the current time.
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

// likelyFiles uses the order in which cairn ranks files for a session.
func likelyFiles(ctx context.Context, q *question) (a answer, err error) {
	files, err := likely.Files(ctx, q.journal, likely.Args{
		Project: q.project, Session: q.session, Branch: q.branch, Prompt: q.prompt, Limit: Top,
	})
	for _, f := range files {
		a.files = append(a.files, f.Path)
	}
	return a, err
}

// searched returns the files of the project's 100 rows that match the words of the prompt best.
func searched(ctx context.Context, q *question) (a answer, err error) {
	query := anyWord(q.prompt)
	if query == "" {
		return a, nil
	}
	hits, err := search.Search(ctx, q.journal, search.SearchArgs{
		Query: query, Scope: observation.Scope{Project: q.project.ID}, Limit: 100,
	})
	for _, h := range hits {
		if file := q.file(h.FilePath); h.ObsType != "search" && file != "" {
			a.files = append(a.files, file)
		}
	}
	return a, err
}

// anyWord returns a query for the distinct words of a text, joined by OR. It uses the first
// words, up to the limit of a query.
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
