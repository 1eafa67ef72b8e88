package why

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"cairn/internal/citation"
	"cairn/internal/fault"
	"cairn/internal/gitread"
	"cairn/internal/observation/origin"
	"cairn/internal/record"
)

// LinesArgs are the arguments of Lines.
type LinesArgs struct {
	File  string   // absolute path
	Text  []string // the lines of the whole file
	First int      // number of the first requested line, from 1
	Count int      // number of requested lines; lines after the end are ignored
}

// Lines is the origin of neighbouring lines of a file. Lists are never nil.
type Lines struct {
	Origins []Origin  `json:"origins"` // without duplicates
	Of      []int     `json:"of"`      // for each requested line the index of its origin; -1 for a blank line
	Cited   []Citing  `json:"cited"`   // records that cite any part of the file
	Missing []Missing `json:"missing"` // links that are not known for any line
}

// Origin is the origin of lines, as far as it is known.
type Origin struct {
	Confidence string   `json:"confidence"` // as Answer.Confidence
	Commit     *Commit  `json:"commit"`     // nil for uncommitted lines, and if git does not return it
	Session    *Session `json:"session"`    // without its summary

	Uncommitted bool `json:"uncommitted,omitempty"` // according to git
}

// Citing is a record that cites a part of the file.
type Citing struct {
	record.Ref
	First   int    `json:"first"`  // the cited lines by their current numbers
	Last    int    `json:"last"`   // the same as First for one line
	Lines   string `json:"lines"`  // as written in the record
	Drifts  bool   `json:"drifts"` // the cited text has changed
	Unknown bool   `json:"unknown,omitempty"`
}

// maxHistory is the maximum number of a file's commits that are used to bound the edits of
// its lines.
const maxHistory = 500

// Lines is Ask for neighbouring lines of a file in a working tree, in one pass over its
// edits and its history. It does not compare edits of other files. For a line moved from
// another file it returns only the commit, while Ask names the edit. Lines writes nothing.
// Errors are those of Ask; all other failures, including git's, are in Missing.
func (s *Service) Lines(ctx context.Context, a LinesArgs) (Lines, error) {
	w := Lines{Origins: []Origin{}, Of: []int{}, Cited: []Citing{}, Missing: []Missing{}}
	first := max(a.First, 1) - 1
	last := min(first+a.Count, len(a.Text))
	f, err := s.find(ctx, Args{File: a.File})
	if err != nil || first >= last {
		return w, err
	}
	q := linesQuestion{question: question{Service: s, file: f, answer: &Answer{}}, args: a, first: first, last: last, out: &w}
	if err := q.blameAll(ctx); err != nil {
		return w, err
	}
	if err := q.authors(ctx); err != nil {
		return w, err
	}
	w.Missing = append(w.Missing, q.answer.Missing...)
	return w, q.cite(ctx)
}

// linesQuestion is the state of one call of Lines.
type linesQuestion struct {
	question
	args        LinesArgs
	first, last int // indices of the requested lines
	out         *Lines
	blames      []gitread.Blame           // one for each line, empty if git fails
	commits     map[string]gitread.Commit // by hash
	committed   bool                      // git reports for each line whether it is committed
}

// blameAll reads the commits of the lines and the history of the file from git.
func (q *linesQuestion) blameAll(ctx context.Context) error {
	repo, ok := q.repository()
	if !ok {
		return nil
	}
	blames, commits, err := repo.BlameLines(ctx, q.file.rel, q.first+1, q.last)
	switch {
	case isUncommitted(err):
		q.committed = true
		return nil
	case err != nil:
		return q.gitFailed(ctx, err)
	}
	q.blames, q.commits, q.committed = blames, commits, true
	if q.history, err = repo.Log(ctx, q.file.rel, "", maxHistory); err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return nil // without the history, edits of any age count
}

// commitOf returns the commit of a line, nil if it is not committed or not known.
func (q *linesQuestion) commitOf(line int) *Commit {
	if line >= len(q.blames) || q.blames[line].Hash == "" {
		return nil
	}
	b := q.blames[line]
	c := madeBy(q.commits[b.Hash])
	c.File, c.Line = b.Path, b.Line
	c.Subject, _ = q.Filter.Head(c.Subject, maxText)
	return &c
}

// of returns the query for one line, with the part of the history up to its commit.
func (q *linesQuestion) of(c *Commit) question {
	one := question{Service: q.Service, file: q.file, answer: &Answer{Commit: c}}
	if c != nil {
		if i := slices.IndexFunc(q.history, func(h gitread.Commit) bool { return h.Hash == c.Hash }); i >= 0 {
			one.history = q.history[i:min(i+2, len(q.history))]
		}
	}
	return one
}

// originKey identifies lines with the same origin.
type originKey struct {
	hash  string
	row   int64
	state origin.AuthorState
}

// authors finds the sessions of the lines.
func (q *linesQuestion) authors(ctx context.Context) error {
	if !q.Journal.Exists() {
		q.missing("session", "there is no store yet: `cairn import` fills one")
		return nil
	}
	from := max(q.first-aroundLine, 0)
	a := origin.AuthorsArgs{
		Lines: q.args.Text[from:min(q.last+aroundLine, len(q.args.Text))], From: q.first - from,
		Files: q.namesThen(), Cwd: q.file.place.Cwd,
	}
	commits, times := make([]*Commit, q.last-q.first), make([]lineTimes, q.last-q.first)
	for i := range commits {
		commits[i] = q.commitOf(i)
		one := q.of(commits[i])
		times[i] = one.times()
		a.Bounds = append(a.Bounds, origin.LineBounds{After: times[i].after, Until: times[i].until})
	}
	if strings.EqualFold(filepath.Ext(q.file.rel), ".ipynb") {
		a.Lines = notebookLines(a.Lines)
	}
	found, err := origin.Authors(ctx, q.Journal, a)
	if err != nil {
		return err
	}
	hashes := []string{}
	for hash := range q.commits {
		hashes = append(hashes, hash)
	}
	makers, err := origin.CommitOrigins(ctx, q.Journal, q.file.place.Cwd, hashes)
	if err != nil {
		return err
	}
	known := map[originKey]int{}
	for i, author := range found {
		if strings.TrimSpace(q.args.Text[q.first+i]) == "" {
			q.out.Of = append(q.out.Of, -1)
			continue
		}
		key := originKey{row: author.ObservationID, state: author.State}
		if commits[i] != nil {
			key.hash = commits[i].Hash
		}
		at, ok := known[key]
		if !ok {
			at = len(q.out.Origins)
			known[key] = at
			one := q.of(commits[i])
			origin, err := one.origin(ctx, author, times[i], makers)
			if err != nil {
				return err
			}
			origin.Uncommitted = q.committed && commits[i] == nil
			q.out.Origins = append(q.out.Origins, origin)
		}
		q.out.Of = append(q.out.Of, at)
	}
	return nil
}

// namesThen returns the file's current name and its names in the commits of the lines.
func (q *linesQuestion) namesThen() []string {
	names := q.names("")
	for _, b := range q.blames {
		if name := filepath.Join(q.file.place.Root, filepath.FromSlash(b.Path)); b.Path != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// origin returns the origin of a line whose edit has already been searched.
func (q *question) origin(ctx context.Context, found origin.Author, times lineTimes, makers map[string]origin.Origin) (Origin, error) {
	maker, made, err := q.maker(ctx, makers)
	if err != nil {
		return Origin{}, err
	}
	if err := q.credit(ctx, found, times, maker, made); err != nil {
		return Origin{}, err
	}
	o := Origin{Confidence: q.answer.Confidence, Commit: q.answer.Commit}
	if len(q.answer.Sessions) > 0 {
		o.Session = &q.answer.Sessions[0]
		o.Session.Summary = nil
	}
	return o, nil
}

// cite finds the records that cite the file.
func (q *linesQuestion) cite(ctx context.Context) error {
	if q.Records == nil || q.file.rel == "" {
		return nil
	}
	tree, known := citation.Open(q.file.place.Root)
	records, err := q.citingRecords(ctx, record.Caller{Place: q.file.place}, tree, known)
	if fault.HasCode(err, record.CodeProjectNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, r := range records {
		for _, c := range r.Citations {
			if c.Path != q.file.rel {
				continue
			}
			one := Citing{
				Ref:     record.Ref{ID: r.ID, Type: r.Type, Title: r.Title, Summary: r.Summary, State: r.State, ParentID: r.ParentID},
				Lines:   c.Lines,
				Drifts:  c.Drifted != nil && *c.Drifted,
				Unknown: c.Drifted == nil,
			}
			lines := c.Lines
			if c.NowAt != "" {
				lines = c.NowAt
			}
			one.First, one.Last, _ = citation.ParseLines(lines)
			q.out.Cited = append(q.out.Cited, one)
		}
	}
	return nil
}
