package origin

import (
	"context"
	"database/sql"

	"cairn/internal/editlines"
	"cairn/internal/observation"
	"cairn/internal/project"
	"cairn/internal/store"
)

// AuthorsArgs are the arguments of Authors.
type AuthorsArgs struct {
	Lines  []string     // current lines of the file: the requested lines and the lines near them
	From   int          // index of the first requested line in Lines
	Bounds []LineBounds // one for each requested line, in order

	Files []string // as in AuthorArgs
	Cwd   string
}

// LineBounds are After and Until of AuthorArgs for one line.
type LineBounds struct{ After, Until *int64 }

// Authors finds the authors of neighbouring lines like FindAuthor, in one pass over the edits
// of the file. It does not search other files, so Beyond is always false. The result has one
// Author for each requested line; blank lines are AuthorCommon. The result is empty without a
// store, or if requested lines are outside Lines. Errors are those of the store.
func Authors(ctx context.Context, svc *observation.Service, a AuthorsArgs) (out []Author, err error) {
	place, err := project.Locate(a.Cwd, svc.Config.Home)
	if err != nil || a.From < 0 || a.From+len(a.Bounds) > len(a.Lines) {
		return nil, err
	}
	err = svc.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		salt, _, err := observation.FindLineSalt(ctx, tx)
		if err != nil {
			return err
		}
		s := authorSearch{AuthorArgs: AuthorArgs{Files: a.Files, Cwd: a.Cwd}, file: foldFile(a.Lines, uint64(salt))}
		if err := s.load(ctx, tx, place, svc.Config.Home); err != nil {
			return err
		}
		out = s.authors(a.From, a.Bounds)
		return addOrigins(ctx, tx, out)
	})
	return out, err
}

// authors finds the edits that wrote neighbouring lines.
func (s *authorSearch) authors(from int, bounds []LineBounds) []Author {
	r, index := newReplay(s.rows, &s.file)
	wanted := map[uint32]bool{}
	for i, b := range bounds {
		if line := index[from+i]; line >= 0 {
			r.want(line, b.Until)
			wanted[r.lines[line].hash] = true
		}
	}
	r.run()
	known, adders := map[uint32]bool{}, map[uint32][]editRow{}
	for _, row := range s.rows {
		seen := map[uint32]bool{}
		for _, n := range editlines.Entries(row.lines) {
			h := n &^ editlines.Added
			known[h] = true
			if n&editlines.Added != 0 && wanted[h] && !seen[h] {
				seen[h] = true
				adders[h] = append(adders[h], row)
			}
		}
	}
	out := make([]Author, len(bounds))
	for i, b := range bounds {
		line := index[from+i]
		if line < 0 {
			out[i].State = AuthorCommon
			continue
		}
		one := *s
		one.After, one.Until = b.After, b.Until
		one.unknown = one.missesText()
		var early []editRow
		for _, row := range adders[r.lines[line].hash] {
			if !one.isLate(row.at) {
				early = append(early, row)
			}
		}
		state, row := one.authorAmong(r, line, early, func() *lineParts { return s.file.parts(from+i, known) })
		if out[i].State = state; state == AuthorFound {
			out[i].ObservationID, out[i].Path, out[i].Whole = row.id, row.path, row.isRewrite()
		}
	}
	return out
}

// addOrigins reads the rows of authors, each row once.
func addOrigins(ctx context.Context, tx *store.Tx, list []Author) error {
	known := map[int64]Origin{}
	for i := range list {
		id := list[i].ObservationID
		if id == 0 {
			continue
		}
		if _, ok := known[id]; !ok {
			err := tx.Each(ctx, func(r *sql.Rows) (err error) {
				_, known[id], err = scanOrigin(r)
				return err
			}, selectOrigin, id)
			if err != nil {
				return err
			}
		}
		list[i].Origin = known[id]
	}
	return nil
}
