package web

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"html/template"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/mail/reservations"
	"cairn/internal/mail/service"
	"cairn/internal/observation/browse"
	"cairn/internal/pathpattern"
	"cairn/internal/project"
	"cairn/internal/record"
	"cairn/internal/regular"
	"cairn/internal/why"
)

const (
	maxFileBytes = 4 << 20 // maximum size of a shown file
	shownLines   = 200     // maximum lines on one page
	linesBefore  = 60      // lines shown above the chosen line
	maxLineRunes = 400     // maximum characters shown of a line
	fileWeight   = 110_000 // approximate maximum bytes of all lines on a page
	lineWeight   = 200     // bytes of markup for a line
	blockWeight  = 700     // bytes of markup for a block

	viewHistory = "history"
)

// filePage is a file of a working tree with the origin of each line, or its history.
type filePage struct {
	Project string `json:"project"`
	Path    string `json:"path"`
	View    string `json:"view,omitempty"` // history, or "" for the text
	Root    string `json:"root,omitempty"` // root of the working tree
	Problem string `json:"problem,omitempty"`

	Blocks  []block       `json:"blocks"`
	First   int           `json:"first_line"`
	Last    int           `json:"last_line"`
	Of      int           `json:"lines_in_all"`
	Line    int           `json:"line,omitempty"` // the chosen line, 0 for none
	Why     *why.Answer   `json:"why,omitempty"`  // origin of the chosen line
	Missing []why.Missing `json:"missing,omitempty"`
	Cited   []why.Citing  `json:"cited"` // records that cite any part of the file

	History []fileChange                     `json:"history,omitempty"`
	Held    []reservations.ListedReservation `json:"reservations"`
	Touched []toucher                        `json:"touched"` // the last sessions that touched the file

	Prompts     int    `json:"prompts"` // number of prompts whose edits wrote the shown lines
	Unknown     int    `json:"lines_without_session"`
	Uncommitted int    `json:"lines_not_committed"`
	Earlier     string `json:"-"` // URLs of the neighbouring pages, "" for none
	Later       string `json:"-"`
}

// block is a run of neighbouring lines with the same origin.
type block struct {
	why.Origin
	Agent    string     `json:"agent,omitempty"`
	At       int64      `json:"at,omitempty"` // time of the edit, else of the commit; 0 if unknown
	Age      int        `json:"age"`          // 1 (newest) to 5; 0 if unknown
	Repeated bool       `json:"repeated,omitempty"`
	Lines    []codeLine `json:"lines"`
}

type codeLine struct {
	N      int      `json:"n"`
	Text   string   `json:"text"`
	Chosen bool     `json:"chosen,omitempty"`
	Path   string   `json:"-"`
	Cited  []citing `json:"cited,omitempty"` // records whose citations begin in this block
}

// citing is a record shown next to a line that it cites.
type citing struct {
	ID     string       `json:"id"`
	State  record.State `json:"state"`
	Drifts bool         `json:"drifts,omitempty"`
}

// fileChange is a change of the file and the agent that made it.
type fileChange struct {
	why.FileChange
	Agent string `json:"agent,omitempty"`
}

// toucher is a session that touched the file.
type toucher struct {
	Session string `json:"session_id"`
	Agent   string `json:"agent,omitempty"`
	Did     string `json:"did"` // the action, worded as in the timeline
	At      int64  `json:"at"`
}

func filePath(projectID, path string) string {
	return "/files/" + url.PathEscape(projectID) + "?path=" + url.QueryEscape(path)
}

// Lined returns the URL of the page at a line.
func (p *filePage) Lined(n int) string {
	return filePath(p.Project, p.Path) + "&line=" + strconv.Itoa(n) + "#line-" + strconv.Itoa(n)
}

// sourceFile shows a file that agents have touched. Other files are not found, whatever
// the URL names.
func (s *Site) sourceFile(r *http.Request, v Visitor, at place) (Response, error) {
	ctx, q := r.Context(), r.URL.Query()
	p := &filePage{Project: at.key, Path: q.Get("path"), View: q.Get("view"), Blocks: []block{}, Cited: []why.Citing{}, Held: []reservations.ListedReservation{}, Touched: []toucher{}}
	var err error
	if p.Line, err = lineNumber(q, "line"); err != nil {
		return Response{}, err
	}
	if p.First, err = lineNumber(q, "from"); err != nil {
		return Response{}, err
	}
	if p.View != "" && p.View != viewHistory {
		return Response{}, fault.Newf(fault.Invalid, "invalid_argument", "view is %.20q, but must be history or left out", p.View)
	}
	if err := s.whoIsIn(ctx, p); err != nil {
		return Response{}, err
	}
	all, err := s.cairn.Projects(ctx)
	if err != nil {
		return Response{}, err
	}
	text, err := p.read(all)
	if err != nil {
		p.Problem = err.Error()
		return s.show(r, v, "file", p.Path, p)
	}
	p.Of = len(text)
	p.Line = min(p.Line, p.Of)
	if p.View == viewHistory {
		err = s.fileHistory(ctx, p)
	} else {
		err = s.explain(ctx, p, text)
	}
	if err != nil {
		return Response{}, err
	}
	return s.show(r, v, "file", p.Path, p)
}

// lineNumber parses a line number from a URL, 0 if the parameter is missing.
func lineNumber(q url.Values, name string) (int, error) {
	given := q.Get(name)
	if given == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(given)
	if err != nil || n < 1 {
		return 0, fault.Newf(fault.Invalid, "invalid_argument", "%s is %.20q, but must be the number of a line", name, given)
	}
	return n, nil
}

// whoIsIn finds the sessions that last touched the file, and the reservations that cover
// it. Errors: NotFound if no agent has touched the file.
func (s *Site) whoIsIn(ctx context.Context, p *filePage) error {
	j, err := s.cairn.Observations(ctx)
	if err != nil {
		return err
	}
	const rowsRead, sessionsShown = 20, 3
	rows, err := browse.Rows(ctx, j, browse.RowsArgs{Project: p.Project, Path: cmp.Or(p.Path, "."), Limit: rowsRead})
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return fault.Newf(fault.NotFound, "not_found", "no agent has touched %.200q in %s", p.Path, p.Project).WithHint("the timeline lists the files that agents touched")
	}
	var ids []string
	for _, row := range rows {
		if !slices.Contains(ids, row.SessionID) && len(ids) < sessionsShown {
			ids = append(ids, row.SessionID)
			p.Touched = append(p.Touched, toucher{Session: row.SessionID, Did: kindOf(row.ObsType), At: row.Timestamp})
		}
	}
	names, err := s.agents(ctx, ids)
	for i := range p.Touched {
		p.Touched[i].Agent = strings.Join(names[p.Touched[i].Session], ", ")
	}
	if err != nil {
		return err
	}
	return s.holders(ctx, p)
}

// holders finds the reservations that cover the file.
func (s *Site) holders(ctx context.Context, p *filePage) error {
	file, err := pathpattern.Parse(p.Path, pathpattern.Options{})
	if err != nil {
		return nil // reservations cover only files inside the working tree
	}
	projects, err := ask(ctx, s, func(ctx context.Context, o *service.Mail, _ mail.Caller) ([]service.ProjectShort, error) {
		return o.Projects(ctx)
	})
	i := slices.IndexFunc(projects, func(q service.ProjectShort) bool { return q.ProductID == p.Project })
	if err != nil || i < 0 {
		return err
	}
	list, _, err := s.listed(ctx, projects[i], &asOf{})
	for _, one := range list {
		pattern, err := pathpattern.Parse(one.PathPattern, pathpattern.Options{})
		if err == nil && pathpattern.Overlap(pattern, file) {
			p.Held = append(p.Held, one)
		}
	}
	return err
}

// fileHistory lists the changes of the file.
func (s *Site) fileHistory(ctx context.Context, p *filePage) error {
	list, missing, err := s.cairn.FileHistory(ctx, p.absolute())
	if err != nil {
		return err
	}
	p.Missing = missing
	var ids []string
	for _, c := range list {
		p.History = append(p.History, fileChange{FileChange: c})
		if c.Session != nil {
			ids = append(ids, c.Session.SessionID)
		}
	}
	names, err := s.agents(ctx, ids)
	for i, c := range p.History {
		if c.Session != nil {
			p.History[i].Agent = strings.Join(names[c.Session.SessionID], ", ")
		}
	}
	return err
}

func (p *filePage) absolute() string { return filepath.Join(p.Root, filepath.FromSlash(p.Path)) }

// explain shows a part of the text with the origin of each line, and all details of the
// chosen line.
func (s *Site) explain(ctx context.Context, p *filePage, text []string) error {
	if p.First = min(p.First, p.Of); p.First == 0 {
		p.First = p.begin(text)
	}
	w, err := s.cairn.WhyLines(ctx, why.LinesArgs{File: p.absolute(), Text: text, First: p.First, Count: shownLines})
	if err != nil {
		return err
	}
	p.Cited, p.Missing = w.Cited, w.Missing
	names, err := s.agents(ctx, sessionsBehind(w.Origins))
	if err != nil {
		return err
	}
	p.group(text, w, names, s.now().Unix())
	p.fit()
	p.count(text)
	if p.Line == 0 {
		return nil
	}
	answer, err := s.cairn.Why(ctx, why.Args{File: p.absolute(), Line: p.Line})
	if err != nil {
		p.Missing = append(p.Missing, why.Missing{Link: "line", Why: fault.As(err).Message})
		return nil
	}
	p.Why = &answer
	return nil
}

// begin returns the first line of a page that contains the chosen line.
func (p *filePage) begin(text []string) int {
	if p.Line <= shownLines-linesBefore {
		return 1
	}
	first, weight := p.Line, 0
	for first > max(p.Line-linesBefore, 1) && weight < fileWeight/4 {
		first--
		weight += len(template.HTMLEscapeString(shownLine(text[first-1])))
	}
	return first
}

// sessionsBehind returns the session ids of origins.
func sessionsBehind(list []why.Origin) (ids []string) {
	for _, o := range list {
		if o.Session != nil && !slices.Contains(ids, o.Session.SessionID) {
			ids = append(ids, o.Session.SessionID)
		}
	}
	return ids
}

// group joins neighbouring lines with the same origin into blocks. A blank line belongs to
// the block above it.
func (p *filePage) group(text []string, w why.Lines, names map[string][]string, now int64) {
	last, seen := -2, map[int]bool{}
	for i := range min(shownLines, p.Of-p.First+1) {
		of := -1 // no origin
		if i < len(w.Of) {
			of = w.Of[i]
		}
		n := len(p.Blocks)
		if n == 0 || of != last && strings.TrimSpace(text[p.First-1+i]) != "" && !p.Blocks[n-1].isBlank() {
			p.Blocks = append(p.Blocks, block{})
			n++
		}
		b := &p.Blocks[n-1]
		if of >= 0 && b.Age == 0 && b.Confidence == "" {
			*b = newBlock(w.Origins[of], names, now, b.Lines)
			b.Repeated, seen[of] = seen[of], true
		}
		if strings.TrimSpace(text[p.First-1+i]) != "" {
			last = of
		}
		b.Lines = append(b.Lines, p.code(text, p.First+i))
	}
}

// isBlank reports whether all lines of a block are blank.
func (b *block) isBlank() bool {
	return !slices.ContainsFunc(b.Lines, func(l codeLine) bool { return strings.TrimSpace(l.Text) != "" })
}

func newBlock(o why.Origin, names map[string][]string, now int64, lines []codeLine) block {
	b := block{Origin: o, Lines: lines}
	if c := o.Commit; c != nil {
		b.At = nanoTime(int64(c.Authored))
	}
	if o.Session != nil {
		b.Agent = strings.Join(names[o.Session.SessionID], ", ")
		if o.Session.Edit != nil {
			b.At = nanoTime(int64(o.Session.Edit.Timestamp))
		}
	}
	const day = 24 * 3600
	for i, limit := range []int64{day, 7 * day, 30 * day, 180 * day} {
		if b.At > 0 && b.Age == 0 && now-b.At < limit {
			b.Age = i + 1
		}
	}
	if b.At > 0 && b.Age == 0 {
		b.Age = 5
	}
	return b
}

// code returns a line as it is shown.
func (p *filePage) code(text []string, n int) codeLine {
	l := codeLine{N: n, Text: shownLine(text[n-1]), Chosen: n == p.Line, Path: p.Lined(n)}
	for _, c := range p.Cited {
		if max(c.First, 1) == n {
			l.Cited = append(l.Cited, citing{c.ID, c.State, c.Drifts})
		}
	}
	return l
}

// shownLine truncates a line to maxLineRunes characters.
func shownLine(text string) string {
	text = strings.TrimSuffix(text, "\r")
	if runes := []rune(text); len(runes) > maxLineRunes {
		return string(runes[:maxLineRunes-1]) + "…"
	}
	return text
}

// fit cuts the blocks to the size limit of a page, and stores which lines precede and
// follow it.
func (p *filePage) fit() {
	weight := 0
	p.Last = p.First - 1
	for i := range p.Blocks {
		b := &p.Blocks[i]
		weight += blockWeight
		for k, l := range b.Lines {
			weight += lineWeight + 2*len(p.Path) + len(template.HTMLEscapeString(l.Text)) + 150*len(l.Cited)
			if weight > fileWeight && p.Last >= p.First {
				if b.Lines = b.Lines[:k]; k == 0 {
					i--
				}
				p.Blocks = p.Blocks[:i+1]
				p.link()
				return
			}
			p.Last = l.N
		}
	}
	p.link()
}

// link sets the URLs of the neighbouring pages.
func (p *filePage) link() {
	address := filePath(p.Project, p.Path) + "&from="
	if p.First > 1 {
		p.Earlier = address + strconv.Itoa(max(p.First-shownLines, 1))
	}
	if p.Last < p.Of {
		p.Later = address + strconv.Itoa(p.Last+1)
	}
}

// count counts the lines of each author.
func (p *filePage) count(text []string) {
	prompts := map[int64]bool{}
	for _, b := range p.Blocks {
		lines := 0
		for _, l := range b.Lines {
			if strings.TrimSpace(text[l.N-1]) != "" {
				lines++
			}
		}
		if b.Uncommitted {
			p.Uncommitted += lines
		}
		switch {
		case b.Session == nil:
			p.Unknown += lines
		case b.Session.Prompt != nil:
			prompts[b.Session.Prompt.ID] = true
		}
	}
	p.Prompts = len(prompts)
}

// read reads the lines of the file from the first checkout of the project that contains
// it. Links that lead out of the checkout are not followed.
func (p *filePage) read(all []project.Summary) ([]string, error) {
	i := slices.IndexFunc(all, func(q project.Summary) bool { return q.ID == p.Project })
	if i < 0 || filepath.IsAbs(p.Path) {
		return nil, errors.New("the file is outside the project's working trees")
	}
	for _, c := range all[i].Checkouts {
		text, err := readBelow(c.Root, p.Path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		p.Root = c.Root
		return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"), err
	}
	return nil, errors.New("the file is no longer in the working tree")
}

func readBelow(dir, path string) (text []byte, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	info, err := root.Stat(filepath.FromSlash(path))
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	case info.Size() > maxFileBytes:
		return nil, errors.New("the file is larger than 4 MiB")
	}
	f, err := root.OpenFile(filepath.FromSlash(path), os.O_RDONLY|regular.OpenFlags, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	text, err = io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err == nil && (bytes.IndexByte(text, 0) >= 0 || !utf8.Valid(text)) {
		err = errors.New("the file is not text")
	}
	return text, err
}

// About describes how certain the first session of an answer is.
func (p *filePage) About() string {
	switch p.Why.Confidence {
	case why.ByCommit:
		return "The session's edit wrote this line, and the session made its commit."
	case why.ByText:
		return "The session's edit wrote the text of this line."
	case why.ByHistory:
		return "The text is not known from an edit. The session made the commit, or edited the file at that time."
	}
	return "No recorded edit wrote this line, or the line is too common to find its origin."
}
