package observation

import (
	"cmp"
	"context"
	"database/sql"
	"slices"

	"cairn/internal/project"
	"cairn/internal/store"
)

// AuthorArgs are a question for Author.
type AuthorArgs struct {
	Lines []string // of the file today: the line that is meant, with the lines near it
	At    int      // the index in Lines of the line that is meant

	Files []string // names of the file, today's and earlier ones: absolute, or relative to Cwd or its repository's root
	Cwd   string
	After *int64 // Unix seconds, exclusive: edits between After and Until are more likely; nil if it is not known
	Until *int64 // inclusive: later edits did not write the line; nil for no bound

	Session   string // that made the line's commit, "" if it is not known: of a common line its edit wins
	Elsewhere bool   // also look in other files of the project, from which the line may have been moved
}

// Author is the result of Journal.Author.
type Author struct {
	State  AuthorState
	Origin        // the row that wrote the line; zero unless State is AuthorFound
	Path   string // the file that the row edited, as in FileTouch; "" unless State is AuthorFound
	Whole  bool   // the row wrote the whole file, so that an edit of another name or file may have written the line before
}

// AuthorState says whether the author of a line was found, else why not.
type AuthorState uint8

// The states.
const (
	AuthorNone    AuthorState = iota // the text of every edit near the line's time is known, and no edit wrote the line
	AuthorFound                      // a recorded edit wrote the line
	AuthorCommon                     // edits wrote such a line, but it is too common to say which
	AuthorUnknown                    // no edit is known to have written the line, but the text of some edits is not known
)

const (
	// maxAuthorRows is how many edits of a file are compared, the newest.
	maxAuthorRows = 5000
	// maxProjectRows is how many edits of other files are.
	maxProjectRows = 20_000

	selectFileLines = `SELECT o.id, o.timestamp, s.id, o.path_key, l.lines
FROM observation_rows o JOIN sessions s ON s.key = o.session_key
LEFT JOIN observation_lines l ON l.observation_id = o.id
WHERE o.project_key = ?1 AND o.path_key = ?2 AND o.obs_type IN ('file_write', 'file_edit')
  AND (?3 IS NULL OR o.timestamp <= ?3)
  AND o.metadata ->> '$.failed' IS NULL AND o.metadata ->> '$.deleted' IS NULL
ORDER BY o.timestamp DESC, o.id DESC LIMIT +?4`

	selectProjectLines = `SELECT o.id, o.timestamp, s.id, o.path_key, l.lines
FROM observation_rows o JOIN sessions s ON s.key = o.session_key
JOIN observation_lines l ON l.observation_id = o.id
WHERE o.project_key = ?1 AND o.obs_type IN ('file_write', 'file_edit')
  AND (?2 IS NULL OR o.timestamp <= ?2) AND o.path_key IS NOT NULL
ORDER BY o.timestamp DESC, o.id DESC LIMIT +?3`

	selectOrigin = `SELECT '', ` + originColumns + ` FROM observation_rows o ` + originJoins + `WHERE o.id = ?1`
)

// Author finds the recorded edit that wrote a line, by the hashes of the lines that
// edits wrote. White space and other matters of format do not count. Among edits that
// wrote such a line the one wins that has the most of the lines near it, and of equal
// ones the newest.
//
// A blank line belongs to the edit that wrote the lines above and below it. A store
// without the file's project knows no edits. Errors are those of the store.
func (j *Journal) Author(ctx context.Context, a AuthorArgs) (out Author, err error) {
	place, err := project.Locate(a.Cwd, j.config.Home)
	if err != nil || a.At < 0 || a.At >= len(a.Lines) {
		return out, err
	}
	err = j.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		salt, err := lineSalt(ctx, tx, false)
		if err != nil {
			return err
		}
		s := authorSearch{AuthorArgs: a, file: foldLines(a.Lines, salt)}
		if err := s.load(ctx, tx, place, j.config.Home); err != nil {
			return err
		}
		state, row := s.author(a.At)
		if a.Elsewhere && state != AuthorCommon && (state != AuthorFound || row.isRewrite()) {
			if moved, from, err := s.elsewhere(ctx, tx, row.id); err != nil {
				return err
			} else if moved {
				state, row = AuthorFound, from
			}
		}
		if out.State = state; state != AuthorFound {
			return nil
		}
		out.Path, out.Whole = row.path, row.isRewrite()
		return tx.Each(ctx, func(r *sql.Rows) (err error) {
			_, out.Origin, err = scanOrigin(r)
			return err
		}, selectOrigin, row.id)
	})
	return out, err
}

// authorSearch looks for the edit that wrote a line.
type authorSearch struct {
	AuthorArgs
	file    foldedFile
	rows    []editRow // the oldest first
	unknown bool      // the text of an edit near the line's time is not known
	own     int64     // the key of the project
}

// editRow is an edit with the lines that it wrote.
type editRow struct {
	id, at        int64
	session, path string
	lines         []byte // nil if they are not known
}

// candidate is an edit that may have written a line.
type candidate struct {
	editRow
	lineMatch
	recent bool // it is between After and Until
	prior  int  // the best score of edits before it that had the line in one block with a line that tells something
}

// load reads the edits of all names of the file.
func (s *authorSearch) load(ctx context.Context, tx *store.Tx, place project.Place, home string) error {
	var tried []fileKey
	for _, name := range s.Files {
		keys, err := fileKeys(ctx, tx, place, name, home)
		if err != nil {
			return err
		}
		for _, k := range keys {
			if slices.Contains(tried, k) {
				continue
			}
			if s.own == 0 {
				s.own = k.project // the likeliest
			}
			tried = append(tried, k)
			if err := s.read(ctx, tx, selectFileLines, k.project, k.path, s.Until, maxAuthorRows); err != nil {
				return err
			}
		}
	}
	slices.SortStableFunc(s.rows, func(a, b editRow) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id)) })
	for _, r := range s.rows {
		s.unknown = s.unknown || r.isUnknown() && s.isRecent(r.at)
	}
	return nil
}

func (s *authorSearch) read(ctx context.Context, tx *store.Tx, query string, args ...any) error {
	return tx.Each(ctx, func(r *sql.Rows) error {
		var e editRow
		err := r.Scan(&e.id, &e.at, &e.session, &e.path, &e.lines)
		s.rows = append(s.rows, e)
		return err
	}, query, args...)
}

// isUnknown reports whether lines of the edit are missing: all, those after a limit, or
// what is around a few letters within a line.
func (e *editRow) isUnknown() bool {
	return len(e.lines) < 5 || e.lines[0]&linesCut != 0 || e.lines[0]&linesPartial != 0 && len(e.lines) == 5
}

// isRewrite reports whether the edit wrote a whole file that was there before.
func (e *editRow) isRewrite() bool {
	return len(e.lines) > 0 && e.lines[0]&linesWhole != 0 && e.lines[0]&linesNew == 0
}

// isRecent reports whether a time is between After and Until.
func (s *authorSearch) isRecent(at int64) bool { return s.After == nil || at > *s.After }

// author finds the edit of a line among the file's edits.
func (s *authorSearch) author(at int) (AuthorState, editRow) {
	q := s.file.query(at)
	if q.folded == "" {
		return s.between(at)
	}
	state, row := s.choose(&q, s.candidates(&q, q.match))
	if state == AuthorFound {
		return state, row
	}
	if parted, r := s.choose(&q, s.candidates(&q, s.file.parts(at).match)); parted == AuthorFound {
		return parted, r
	}
	if between, r := s.between(at); between == AuthorFound && r.has(&q) {
		return between, r
	}
	return state, row
}

// has reports whether the edit wrote such a line.
func (e *editRow) has(q *lineQuery) bool { return q.has(e.lines) }

// between finds the edit that wrote both the line above and the line below.
func (s *authorSearch) between(at int) (AuthorState, editRow) {
	var rows [2]editRow
	for i, step := range [...]int{-1, 1} {
		state, n := AuthorCommon, 0
		for k := at + step; k >= 0 && k < len(s.file.folded) && n < nearLines && state == AuthorCommon; k += step {
			q := s.file.query(k)
			if q.folded == "" {
				continue
			}
			n++
			state, rows[i] = s.choose(&q, s.candidates(&q, q.match))
		}
		if state != AuthorFound {
			return AuthorCommon, editRow{}
		}
	}
	if rows[0].id != rows[1].id {
		return AuthorCommon, editRow{}
	}
	return AuthorFound, rows[0]
}

// candidates are the edits that added a line, the oldest first. A write of the whole file
// without the line ends what was before. One with the line did not add what the file had
// before, which is unknown if it is the first that is known of a file that it did not
// create.
func (s *authorSearch) candidates(q *lineQuery, match func([]byte) lineMatch) []candidate {
	var found, gone []candidate
	before, prior, complete := -1, 0, false
	for _, row := range s.rows {
		if row.lines == nil {
			continue
		}
		m := match(row.lines)
		flags := row.lines[0]
		added := m.added
		if flags&linesWhole != 0 {
			sure := flags&linesNew != 0 || complete && s.isRecent(row.at)
			added = added && sure && (before < 0 || !q.isRare() && before < m.score-2)
			complete = flags&linesCut == 0
		}
		if m.found && added {
			found = append(found, candidate{row, m, s.isRecent(row.at), prior})
		}
		switch {
		case m.found:
			if before = max(before, m.score); m.strong && !m.conflict {
				prior = max(prior, m.score)
			}
		case flags&linesWhole != 0 && flags&linesCut == 0 && !q.has(row.lines):
			gone, found = append(gone, found...), nil
			before, prior = -1, 0
		}
	}
	if len(found) == 0 {
		return gone // brought back by something that is not recorded
	}
	return found
}

// recentWeight is what an edit near the line's time counts, as lines near it do.
const recentWeight = 6

func (c *candidate) weight() int {
	if c.recent {
		return c.score + recentWeight
	}
	return c.score
}

// choose returns the edit that fits best, or that the line is too common.
func (s *authorSearch) choose(q *lineQuery, found []candidate) (AuthorState, editRow) {
	if len(found) == 0 {
		if s.unknown {
			return AuthorUnknown, editRow{}
		}
		return AuthorNone, editRow{}
	}
	best := found[0]
	for _, c := range found[1:] {
		if c.weight() >= best.weight() && (best.conflict || !c.conflict) || best.conflict && !c.conflict {
			best = c
		}
	}
	recent := best.recent && s.After != nil
	for _, c := range found {
		if c.session == best.session {
			continue
		}
		if q.twin && c.weight() == best.weight() {
			return AuthorCommon, editRow{}
		}
		recent = recent && !c.recent
	}
	clear := false
	switch {
	case best.part:
		clear = best.strong || recent
	case best.conflict && !q.isRare():
	case q.count > 1 && best.score < best.prior: // it added another line of this text
	case q.letters < plainLetter:
		clear = best.strong && best.score > 2
	case q.count > 1:
		clear = best.strong || recent && best.score > 1
	case q.letters < rareLetter:
		clear = best.score > 0 || recent
	default:
		clear = true
	}
	if clear {
		return AuthorFound, best.editRow
	}
	for _, c := range slices.Backward(found) {
		if c.session == s.Session && c.recent && c.score > 2 && c.score >= c.prior && !c.conflict {
			return AuthorFound, c.editRow
		}
	}
	return AuthorCommon, editRow{}
}

// elsewhere finds the edit of another file of the project that wrote the line and the
// lines near it, before the row of that id if it is not 0.
func (s *authorSearch) elsewhere(ctx context.Context, tx *store.Tx, before int64) (bool, editRow, error) {
	q := s.file.query(s.At)
	if s.own == 0 || q.folded == "" || q.letters < plainLetter {
		return false, editRow{}, nil
	}
	known := map[int64]bool{}
	for _, r := range s.rows {
		known[r.id] = true
	}
	all := authorSearch{AuthorArgs: s.AuthorArgs, file: s.file}
	if err := all.read(ctx, tx, selectProjectLines, s.own, s.Until, maxProjectRows); err != nil {
		return false, editRow{}, err
	}
	files := map[string][]editRow{}
	for _, row := range slices.Backward(all.rows) {
		if !known[row.id] && (before == 0 || row.id < before) {
			files[row.path] = append(files[row.path], row)
		}
	}
	var best candidate
	for _, rows := range files {
		all.rows = rows
		for _, c := range all.candidates(&q, q.match) {
			if c.strong && !c.conflict && c.score > 2 && (c.score > best.score || c.score == best.score && c.id > best.id) {
				best = c
			}
		}
	}
	return best.found, best.editRow, nil
}
