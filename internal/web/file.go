package web

import (
	"bytes"
	"cmp"
	"errors"
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
	"cairn/internal/observation/browse"
	"cairn/internal/project"
	"cairn/internal/regular"
	"cairn/internal/why"
)

const (
	maxFileBytes = 4 << 20 // of a file that is shown
	shownLines   = 500     // around the chosen line
)

// filePage is a file of a working tree, and where one of its lines comes from.
type filePage struct {
	Project string      `json:"project"`
	Path    string      `json:"path"`
	Root    string      `json:"root,omitempty"` // of the working tree
	Lines   []codeLine  `json:"lines"`
	Of      int         `json:"lines_in_all"`
	Line    int         `json:"line,omitempty"` // that was chosen, 0 for none
	Why     *why.Answer `json:"why,omitempty"`
	Problem string      `json:"problem,omitempty"` // why there is no text
}

type codeLine struct {
	N      int    `json:"n"`
	Text   string `json:"text"`
	Chosen bool   `json:"chosen,omitempty"`
	Path   string `json:"-"`
}

func filePath(projectID, path string) string {
	return "/files/" + url.PathEscape(projectID) + "?path=" + url.QueryEscape(path)
}

// sourceFile shows a file that agents have touched; others are not shown, whatever the address says.
func (s *Site) sourceFile(r *http.Request, v Visitor, at place) (Response, error) {
	ctx, q := r.Context(), r.URL.Query()
	p := &filePage{Project: at.key, Path: q.Get("path"), Lines: []codeLine{}}
	if given := q.Get("line"); given != "" {
		n, err := strconv.Atoi(given)
		if err != nil || n < 1 {
			return Response{}, fault.Newf(fault.Invalid, "invalid_argument", "line is %.20q, but must be the number of a line", given)
		}
		p.Line = n
	}
	j, err := s.cairn.Observations(ctx)
	if err != nil {
		return Response{}, err
	}
	rows, err := browse.Rows(ctx, j, browse.RowsArgs{Project: p.Project, Path: cmp.Or(p.Path, "."), Limit: 1})
	if err != nil {
		return Response{}, err
	}
	if len(rows) == 0 {
		return Response{}, fault.Newf(fault.NotFound, "not_found", "no agent has touched %.200q in %s", p.Path, p.Project).WithHint("the timeline lists what they touched")
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
	p.cut(text)
	answer, err := s.cairn.Why(ctx, why.Args{File: filepath.Join(p.Root, filepath.FromSlash(p.Path)), Line: min(p.Line, p.Of)})
	if err != nil {
		p.Problem = "where it comes from is not known: " + fault.As(err).Message
	} else {
		p.Why = &answer
	}
	return s.show(r, v, "file", p.Path, p)
}

// read reads the file from the first checkout of the project that has it. Links do not lead
// out of the checkout.
func (p *filePage) read(all []project.Summary) ([]byte, error) {
	i := slices.IndexFunc(all, func(q project.Summary) bool { return q.ID == p.Project })
	if i < 0 || filepath.IsAbs(p.Path) {
		return nil, errors.New("the file lies outside of the project's working trees")
	}
	for _, c := range all[i].Checkouts {
		text, err := readBelow(c.Root, p.Path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		p.Root = c.Root
		return text, err
	}
	return nil, errors.New("the file is not in the working tree any more")
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

// cut keeps the lines around the chosen one, or the first ones.
func (p *filePage) cut(text []byte) {
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	p.Of = len(lines)
	from := min(max(p.Line-shownLines/2, 0), max(p.Of-shownLines, 0))
	for i, line := range lines[from:min(from+shownLines, p.Of)] {
		n := from + i + 1
		p.Lines = append(p.Lines, codeLine{n, strings.TrimSuffix(line, "\r"), n == p.Line, filePath(p.Project, p.Path) + "&line=" + strconv.Itoa(n) + "#line-" + strconv.Itoa(n)})
	}
}

// About says in words how sure the first session of an answer is.
func (p *filePage) About() string {
	switch p.Why.Confidence {
	case why.ByCommit:
		return "The session's edit wrote this line, and the session made its commit."
	case why.ByText:
		return "The session's edit wrote the text of this line."
	case why.ByHistory:
		return "The text is not known from an edit. The session made the commit, or edited the file at that time."
	}
	return "No recorded edit wrote this line, or it is too common to tell."
}
