package origin

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"maps"
	"math"
	"slices"

	"cairn/internal/editlines"
	"cairn/internal/observation"
	"cairn/internal/project"
	"cairn/internal/store"
)

// AuthorArgs are the arguments of FindAuthor.
type AuthorArgs struct {
	Lines []string // current lines of the file: the requested line and the lines near it
	At    int      // index of the requested line in Lines

	Files []string // current and earlier names of the file: absolute, or relative to Cwd or its repository's root
	Cwd   string
	After *int64 // Unix seconds, exclusive: edits between After and Until are more likely; nil if unknown
	Until *int64 // Unix seconds, inclusive: later edits did not write the line; nil for no bound

	Elsewhere bool // also search other files of the project, because the line may have been moved from there
}

// Author is the result of FindAuthor.
type Author struct {
	State  AuthorState
	Origin        // row that wrote the line; zero unless State is AuthorFound
	Path   string // path of the file that the row edited, as in browse.TouchedFile; "" unless State is AuthorFound
	Whole  bool   // the row rewrote the whole file; an edit of another name or file may have written the line earlier
	Beyond bool   // an edit of another file may have written the line, or its text is unknown; see FindAuthor
}

// AuthorState reports whether the author of a line was found, and if not, why.
type AuthorState uint8

// Values of AuthorState.
const (
	AuthorNone    AuthorState = iota // no edit wrote the line, and the text of every edit near the line's time is known
	AuthorFound                      // a recorded edit wrote the line
	AuthorCommon                     // edits wrote such a line, but it is too common to identify one of them
	AuthorUnknown                    // no known edit wrote the line, but the text of some edits is unknown
)

const (
	// maxAuthorRows is the maximum number of edits of a file that are compared, newest first.
	maxAuthorRows = 5000
	// maxProjectRows is the maximum number of edits of other files that are compared, newest
	// first.
	maxProjectRows = 20_000

	selectFileLines = `SELECT o.id, o.timestamp, o.path_key, l.lines
FROM observation_rows o LEFT JOIN observation_lines l ON l.observation_id = o.id
WHERE o.project_key = ?1 AND o.path_key = ?2 AND o.obs_type IN ('file_write', 'file_edit')
  AND o.metadata ->> '$.failed' IS NULL AND o.metadata ->> '$.deleted' IS NULL
ORDER BY o.timestamp DESC, o.id DESC LIMIT +?3`

	// selectProjectEdits reads the newest edits of a project by the index of types alone. A
	// condition on another column would read each row.
	selectProjectEdits = `SELECT e.id, e.timestamp, '', l.lines FROM (
  SELECT * FROM (SELECT id, timestamp FROM observation_rows WHERE project_key = ?1 AND obs_type = 'file_write' AND timestamp <= ?2
    ORDER BY timestamp DESC, id DESC LIMIT +?3)
  UNION ALL
  SELECT * FROM (SELECT id, timestamp FROM observation_rows WHERE project_key = ?1 AND obs_type = 'file_edit' AND timestamp <= ?2
    ORDER BY timestamp DESC, id DESC LIMIT +?3)
  ORDER BY timestamp DESC, id DESC LIMIT +?3) e
LEFT JOIN observation_lines l ON l.observation_id = e.id`

	// selectDone selects those of some edits that changed a file.
	selectDone = `SELECT o.id, o.path_key FROM json_each(?) j CROSS JOIN observation_rows o ON o.id = j.value
WHERE o.path_key IS NOT NULL AND o.metadata ->> '$.failed' IS NULL AND o.metadata ->> '$.deleted' IS NULL`

	selectEditsOf = `SELECT id FROM observation_rows WHERE project_key = ? AND path_key = ? AND obs_type IN ('file_write', 'file_edit')
ORDER BY timestamp, id`

	selectOrigin = `SELECT '', ` + originColumns + ` FROM observation_rows o ` + originJoins + `WHERE o.id = ?1`
)

// FindAuthor finds the recorded edit that wrote a line. It compares the hashes of the lines
// that edits wrote, ignoring white space, the kind of quotes, and line breaks within a
// statement. It undoes the edits of the file one by one, newest first; see replay. It compares
// at most 5,000 edits of each name and, with Elsewhere, 20,000 edits of the project.
//
// Beyond can be true if no edit of the file wrote the line, or only one that rewrote the whole
// file. It reports whether a call with more of Files, or with Elsewhere, can change the result.
//
// A blank line belongs to the edit that wrote both neighbouring nonblank lines. If the store
// does not have the file's project, there are no edits. Errors are those of the store.
func FindAuthor(ctx context.Context, svc *observation.Service, a AuthorArgs) (out Author, err error) {
	place, err := project.Locate(a.Cwd, svc.Config.Home)
	if err != nil || a.At < 0 || a.At >= len(a.Lines) {
		return out, err
	}
	err = svc.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		salt, _, err := observation.FindLineSalt(ctx, tx)
		if err != nil {
			return err
		}
		s := authorSearch{AuthorArgs: a, file: foldFile(a.Lines, uint64(salt))}
		if err := s.load(ctx, tx, place, svc.Config.Home); err != nil {
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

// authorSearch searches for the edit that wrote a line.
type authorSearch struct {
	AuthorArgs
	file    foldedFile
	rows    []editRow // oldest first
	unknown bool      // the text of an edit near the line's time is unknown
	own     int64     // key of the project
}

// editRow is an edit and the lines it wrote.
type editRow struct {
	id, at int64
	path   string
	lines  []byte // nil if unknown
}

// load reads the edits of the file under all its names.
func (s *authorSearch) load(ctx context.Context, tx *store.Tx, place project.Location, home string) error {
	var tried []observation.FileKey
	for _, name := range s.Files {
		keys, err := observation.FileKeys(ctx, tx, place, name, home)
		if err != nil {
			return err
		}
		for _, k := range keys {
			if slices.Contains(tried, k) {
				continue
			}
			if s.own == 0 {
				s.own = k.Project // the likeliest project
			}
			tried = append(tried, k)
			if err := s.read(ctx, tx, selectFileLines, k.Project, k.Path, maxAuthorRows); err != nil {
				return err
			}
		}
	}
	slices.SortStableFunc(s.rows, func(a, b editRow) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id)) })
	s.unknown = s.missesText()
	return nil
}

// missesText reports whether the text of an edit near the line's time is unknown.
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

// isUnknown reports whether lines of the edit are missing. Either no lines are stored, or they
// were cut at a limit, or only a part of one line is known.
func (e *editRow) isUnknown() bool {
	return len(e.lines) < 5 || e.lines[0]&editlines.IsCut != 0 || e.lines[0]&editlines.Partial != 0 && len(e.lines) == 5
}

// isRewrite reports whether the edit rewrote a whole file that already existed.
func (e *editRow) isRewrite() bool {
	return len(e.lines) > 0 && e.lines[0]&editlines.Whole != 0 && e.lines[0]&editlines.New == 0
}

// isRecent reports whether a time is after After, or After is unknown.
func (s *authorSearch) isRecent(at int64) bool { return s.After == nil || at > *s.After }

// author finds the edit that wrote a line among the file's edits.
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

// authorAmong determines the author of a line after the replay. adders are the rows that added
// such a line. parts returns the line in other forms.
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

// addersOf returns the rows up to a time that added a line with that hash.
func addersOf(rows []editRow, hash uint32, until *int64) (out []editRow) {
	for _, row := range rows {
		if (until == nil || row.at <= *until) && slices.Contains(editlines.Entries(row.lines), hash|editlines.Added) {
			out = append(out, row)
		}
	}
	return out
}

// authorOf returns the row that added a line; the result is false if there is none. A row that
// rewrote the whole file counts only if the previous content is known and the row is near the
// line's time. Content is known from an earlier row or from git.
func (s *authorSearch) authorOf(r *replay, line int) (editRow, bool) {
	l := r.lines[line]
	if l.author != noAuthor {
		return s.rows[l.author], true
	}
	if l.rewrite == noAuthor {
		return editRow{}, false
	}
	row := s.rows[l.rewrite]
	known := s.After != nil || slices.ContainsFunc(s.rows[:l.rewrite], func(e editRow) bool { return len(e.lines) > 0 && e.lines[0]&editlines.Whole != 0 })
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
	all, err := s.others(ctx, tx)
	if err != nil || all.cut {
		return true, err
	}
	added, parts := s.hash()|editlines.Added, s.file.parts(s.At, nil)
	var likely []editRow
	for _, e := range all.rows {
		if e.isUnknown() || slices.Contains(editlines.Entries(e.lines), added) || parts.match(e.lines) {
			likely = append(likely, e)
		}
	}
	done, err := pathsOf(ctx, tx, likely)
	return len(done) > 0, err
}

// hash returns the hash of the line.
func (s *authorSearch) hash() uint32 {
	return editlines.Salt(editlines.Hash(s.file.folded[s.At]), s.file.salt)
}

// otherEdits are the newest edits of the project that are not in authorSearch.rows, newest
// first. Their paths are not set.
type otherEdits struct {
	rows []editRow
	cut  bool // there are more edits
}

func (s *authorSearch) others(ctx context.Context, tx *store.Tx) (out otherEdits, err error) {
	until := int64(math.MaxInt64)
	if s.Until != nil {
		until = *s.Until
	}
	all := authorSearch{}
	if err := all.read(ctx, tx, selectProjectEdits, s.own, until, maxProjectRows); err != nil {
		return out, err
	}
	known := make(map[int64]bool, len(s.rows))
	for _, r := range s.rows {
		known[r.id] = true
	}
	out.cut = len(all.rows) == maxProjectRows
	out.rows = slices.DeleteFunc(all.rows, func(e editRow) bool { return known[e.id] })
	return out, nil
}

// pathsOf returns the paths of edits by id. Edits that failed or changed no file are missing.
func pathsOf(ctx context.Context, tx *store.Tx, rows []editRow) (map[int64]string, error) {
	ids := make([]int64, len(rows))
	for i, e := range rows {
		ids[i] = e.id
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	paths := map[int64]string{}
	return paths, tx.Each(ctx, func(r *sql.Rows) error {
		var id int64
		var path string
		err := r.Scan(&id, &path)
		paths[id] = path
		return err
	}, selectDone, string(list))
}

// elsewhere finds the edit of another file of the project that wrote the line and lines near
// it. If before is not 0, only rows with a lower id count.
func (s *authorSearch) elsewhere(ctx context.Context, tx *store.Tx, before int64) (found bool, best editRow, err error) {
	if s.own == 0 || s.file.folded[s.At] == "" {
		return false, editRow{}, nil
	}
	all, err := s.others(ctx, tx)
	if err != nil {
		return false, editRow{}, err
	}
	rows := slices.DeleteFunc(all.rows, func(e editRow) bool { return len(e.lines) == 0 || before != 0 && e.id >= before })
	adders := addersOf(rows, s.hash(), s.Until)
	paths, err := pathsOf(ctx, tx, adders)
	if err != nil {
		return false, editRow{}, err
	}
	byID := map[int64]editRow{}
	if len(paths) > 0 {
		for _, e := range rows {
			byID[e.id] = e
		}
	}
	for _, path := range slices.Compact(slices.Sorted(maps.Values(paths))) {
		edits, err := s.editsOf(ctx, tx, path, byID)
		if err != nil {
			return false, editRow{}, err
		}
		r, index := newReplay(edits, &s.file)
		r.want(index[s.At], s.Until)
		r.run()
		if l := r.lines[index[s.At]]; l.author != noAuthor && edits[l.author].id > best.id && l.support >= leastLines {
			found, best = true, edits[l.author]
		}
	}
	if found {
		return true, best, nil
	}
	return s.elsewhereInParts(ctx, tx, rows)
}

// editsOf returns those of some edits that changed a file, oldest first, with their path.
func (s *authorSearch) editsOf(ctx context.Context, tx *store.Tx, path string, among map[int64]editRow) (edits []editRow, err error) {
	err = tx.Each(ctx, func(r *sql.Rows) error {
		var id int64
		err := r.Scan(&id)
		if e, ok := among[id]; ok {
			e.path = path
			edits = append(edits, e)
		}
		return err
	}, selectEditsOf, s.own, path)
	return edits, err
}

// elsewhereInParts finds the edit of another file that wrote the line in another form, for
// example before a formatter broke the moved line. It finds none if several edits match.
func (s *authorSearch) elsewhereInParts(ctx context.Context, tx *store.Tx, rows []editRow) (bool, editRow, error) {
	parts := s.file.parts(s.At, nil)
	matches := slices.DeleteFunc(rows, func(e editRow) bool { return e.isRewrite() || s.isLate(e.at) || !parts.match(e.lines) })
	paths, err := pathsOf(ctx, tx, matches)
	if err != nil || len(paths) != 1 {
		return false, editRow{}, err
	}
	for _, e := range matches {
		if path, ok := paths[e.id]; ok {
			e.path = path
			return true, e, nil
		}
	}
	return false, editRow{}, nil
}
