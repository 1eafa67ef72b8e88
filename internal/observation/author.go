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

	Elsewhere bool // also look in other files of the project, from which the line may have been moved
}

// Author is the result of Service.Author.
type Author struct {
	State  AuthorState
	Origin        // the row that wrote the line; zero unless State is AuthorFound
	Path   string // the file that the row edited, as in FileTouch; "" unless State is AuthorFound
	Whole  bool   // the row wrote the whole file, so that an edit of another name or file may have written the line before
	Beyond bool   // an edit of another file of the project holds such a line, or its text is not known; see Author
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

	selectFileLines = `SELECT o.id, o.timestamp, o.path_key, l.lines
FROM observation_rows o LEFT JOIN observation_lines l ON l.observation_id = o.id
WHERE o.project_key = ?1 AND o.path_key = ?2 AND o.obs_type IN ('file_write', 'file_edit')
  AND o.metadata ->> '$.failed' IS NULL AND o.metadata ->> '$.deleted' IS NULL
ORDER BY o.timestamp DESC, o.id DESC LIMIT +?3`

	selectProjectLines = `SELECT o.id, o.timestamp, o.path_key, l.lines
FROM observation_rows o JOIN observation_lines l ON l.observation_id = o.id
WHERE o.project_key = ?1 AND o.obs_type IN ('file_write', 'file_edit')
  AND (?2 IS NULL OR o.timestamp <= ?2) AND o.path_key IS NOT NULL
ORDER BY o.timestamp DESC, o.id DESC LIMIT +?3`

	selectOtherLines = `SELECT o.id, o.timestamp, o.path_key, l.lines
FROM observation_rows o LEFT JOIN observation_lines l ON l.observation_id = o.id
WHERE o.project_key = ?1 AND o.obs_type IN ('file_write', 'file_edit')
  AND (?2 IS NULL OR o.timestamp <= ?2) AND o.path_key IS NOT NULL
  AND o.metadata ->> '$.failed' IS NULL AND o.metadata ->> '$.deleted' IS NULL
ORDER BY o.timestamp DESC, o.id DESC LIMIT +?3`

	selectOrigin = `SELECT '', ` + originColumns + ` FROM observation_rows o ` + originJoins + `WHERE o.id = ?1`
)

// Author finds the recorded edit that wrote a line, by the hashes of the lines that
// edits wrote. White space, the kind of quotes and line breaks within a statement do not
// count. It takes the edits of the file back one by one, the newest first; see replay. At
// most 5,000 edits of each name and, with Elsewhere, 20,000 of the project are compared.
//
// If no edit of the file wrote the line, or only one that wrote the whole file, Beyond
// says whether to ask again with more of Files or with Elsewhere. It is false when neither
// can change the result.
//
// A blank line belongs to the edit that wrote the lines above and below it. A store
// without the file's project knows no edits. Errors are those of the store.
func (j *Service) Author(ctx context.Context, a AuthorArgs) (out Author, err error) {
	place, err := project.Locate(a.Cwd, j.config.Home)
	if err != nil || a.At < 0 || a.At >= len(a.Lines) {
		return out, err
	}
	err = j.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		salt, _, err := findLineSalt(ctx, tx)
		if err != nil {
			return err
		}
		s := authorSearch{AuthorArgs: a, file: foldFile(a.Lines, uint64(salt))}
		if err := s.load(ctx, tx, place, j.config.Home); err != nil {
			return err
		}
		state, row := s.author(a.At)
		if open := state != AuthorFound || row.isRewrite(); open && !a.Elsewhere {
			if out.Beyond, err = s.beyond(ctx, tx); err != nil {
				return err
			}
		} else if open {
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
	id, at int64
	path   string
	lines  []byte // nil if they are not known
}

// load reads the edits of all names of the file.
func (s *authorSearch) load(ctx context.Context, tx *store.Tx, place project.Location, home string) error {
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
			if err := s.read(ctx, tx, selectFileLines, k.project, k.path, maxAuthorRows); err != nil {
				return err
			}
		}
	}
	slices.SortStableFunc(s.rows, func(a, b editRow) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id)) })
	s.unknown = s.missesText()
	return nil
}

// missesText reports whether the text of an edit near the line's time is not known.
func (s *authorSearch) missesText() bool {
	return slices.ContainsFunc(s.rows, func(r editRow) bool { return r.isUnknown() && s.isRecent(r.at) && !s.isLate(r.at) })
}

func (s *authorSearch) read(ctx context.Context, tx *store.Tx, query string, args ...any) error {
	return tx.Each(ctx, func(r *sql.Rows) error {
		var e editRow
		err := r.Scan(&e.id, &e.at, &e.path, &e.lines)
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
	r, index := newReplay(s.rows, &s.file)
	if index[at] < 0 {
		return s.blank(r, index, at)
	}
	adders := addersOf(s.rows, r.lines[index[at]].hash, s.Until)
	if len(adders) > 0 {
		r.want(index[at], s.Until)
		r.run()
	}
	return s.authorAmong(r, index[at], adders, func() *lineParts { return s.file.parts(at, nil) })
}

// authorAmong decides who wrote a line after the replay: adders are the rows that added such a
// line, parts makes the line in other forms.
func (s *authorSearch) authorAmong(r *replay, line int, adders []editRow, parts func() *lineParts) (AuthorState, editRow) {
	if len(adders) > 0 {
		if row, ok := s.authorOf(r, line); ok {
			return AuthorFound, row
		}
	}
	forms := parts()
	for _, row := range slices.Backward(s.rows) {
		if !s.isLate(row.at) && !row.isRewrite() && forms.match(row.lines) {
			return AuthorFound, row
		}
	}
	switch {
	case len(adders) == 1 && r.lines[line].anchor && !adders[0].isRewrite() && s.After != nil && s.isRecent(adders[0].at):
		return AuthorFound, adders[0]
	case len(adders) > 0:
		return AuthorCommon, editRow{}
	case s.unknown:
		return AuthorUnknown, editRow{}
	}
	return AuthorNone, editRow{}
}

// addersOf are the rows up to a time that added a line of that hash.
func addersOf(rows []editRow, hash uint32, until *int64) (out []editRow) {
	for _, row := range rows {
		if (until == nil || row.at <= *until) && slices.Contains(entries(row.lines), hash|lineAdded) {
			out = append(out, row)
		}
	}
	return out
}

// authorOf returns the row that added a line. A row that wrote the whole file counts only
// if the file before it is known, from an earlier row or from git, and if the row is near
// the line's time.
func (s *authorSearch) authorOf(r *replay, line int) (editRow, bool) {
	l := r.lines[line]
	if l.author != noAuthor {
		return s.rows[l.author], true
	}
	if l.rewrite == noAuthor {
		return editRow{}, false
	}
	row := s.rows[l.rewrite]
	known := s.After != nil || slices.ContainsFunc(s.rows[:l.rewrite], func(e editRow) bool { return len(e.lines) > 0 && e.lines[0]&linesWhole != 0 })
	return row, known && s.isRecent(row.at) && !s.isLate(row.at)
}

// isLate reports whether a time is after Until.
func (s *authorSearch) isLate(at int64) bool { return s.Until != nil && at > *s.Until }

// blank finds the edit that wrote both the line above and the line below a blank line.
func (s *authorSearch) blank(r *replay, index []int, at int) (AuthorState, editRow) {
	above, below := at, at
	for above >= 0 && index[above] < 0 {
		above--
	}
	for below < len(index) && index[below] < 0 {
		below++
	}
	if above < 0 || below == len(index) {
		return AuthorCommon, editRow{}
	}
	r.want(index[above], s.Until)
	r.want(index[below], s.Until)
	r.run()
	a, ok := s.authorOf(r, index[above])
	if b, both := s.authorOf(r, index[below]); ok && both && a.id == b.id {
		return AuthorFound, a
	}
	return AuthorCommon, editRow{}
}

// beyond reports whether an edit of another file of the project may have written the line.
func (s *authorSearch) beyond(ctx context.Context, tx *store.Tx) (bool, error) {
	if s.own == 0 || s.file.folded[s.At] == "" {
		return s.own != 0, nil
	}
	all := authorSearch{AuthorArgs: s.AuthorArgs, file: s.file}
	if err := all.read(ctx, tx, selectOtherLines, s.own, s.Until, maxProjectRows); err != nil || len(all.rows) == maxProjectRows {
		return true, err
	}
	known := s.known()
	added := saltLine(foldedHash(s.file.folded[s.At]), s.file.salt) | lineAdded
	parts := s.file.parts(s.At, nil)
	return slices.ContainsFunc(all.rows, func(e editRow) bool {
		return !known[e.id] && (e.isUnknown() || slices.Contains(entries(e.lines), added) || parts.match(e.lines))
	}), nil
}

// known are the ids of the edits that were read.
func (s *authorSearch) known() map[int64]bool {
	known := make(map[int64]bool, len(s.rows))
	for _, r := range s.rows {
		known[r.id] = true
	}
	return known
}

// elsewhere finds the edit of another file of the project that wrote the line and the
// lines near it, before the row of that id if it is not 0.
func (s *authorSearch) elsewhere(ctx context.Context, tx *store.Tx, before int64) (bool, editRow, error) {
	if s.own == 0 || s.file.folded[s.At] == "" {
		return false, editRow{}, nil
	}
	known := s.known()
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
	found, best := false, editRow{}
	hash := saltLine(foldedHash(s.file.folded[s.At]), s.file.salt)
	for _, rows := range files {
		if len(addersOf(rows, hash, s.Until)) == 0 {
			continue
		}
		r, index := newReplay(rows, &s.file)
		r.want(index[s.At], s.Until)
		r.run()
		if l := r.lines[index[s.At]]; l.author != noAuthor && rows[l.author].id > best.id && l.support >= leastLines {
			found, best = true, rows[l.author]
		}
	}
	if !found {
		found, best = s.elsewhereInParts(files)
	}
	return found, best, nil
}

// elsewhereInParts finds the only edit of other files that wrote the line in another form,
// as before a formatter broke it: a moved line that was broken, too.
func (s *authorSearch) elsewhereInParts(files map[string][]editRow) (found bool, row editRow) {
	parts := s.file.parts(s.At, nil)
	for _, rows := range files {
		for _, r := range rows {
			if r.isRewrite() || s.isLate(r.at) || !parts.match(r.lines) {
				continue
			}
			if found {
				return false, editRow{}
			}
			found, row = true, r
		}
	}
	return found, row
}
