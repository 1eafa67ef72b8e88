package why

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/project"
	"cairn/internal/store"
)

// codeNoLine is the error code for a line number after the end of the file (NotFound).
const codeNoLine = "no_such_line"

// maxBytes is how far Ask reads into a file to find a line.
const maxBytes = 256 << 20

// file is the file of a query.
type file struct {
	abs   string           // with links resolved as far as the file exists
	place project.Location // location of its folder
	rel   string           // path relative to the root of its working tree, with slashes; "" outside a working tree
	there bool
}

// name returns the file's name in results.
func (f file) name() string {
	if f.rel != "" {
		return f.rel
	}
	return filepath.ToSlash(f.abs)
}

// find locates the file of a query.
func (s *Service) find(ctx context.Context, a Args) (file, error) {
	if strings.TrimSpace(a.File) == "" || strings.IndexByte(a.File, 0) >= 0 {
		return file{}, fault.New(fault.Invalid, "invalid_argument", "the name of a file is needed").
			WithHint("give a path, absolute or relative to the working directory")
	}
	dirs := []string{s.Cwd, s.Place.Root}
	p, err := s.projectOf(ctx, a, s.Place)
	if err != nil {
		return file{}, err
	}
	if named := a.ProjectID + a.Project; named != "" && p.Root != "" && (p.Identity == "" || p.Identity != s.Place.Identity) {
		dirs = []string{p.Root}
	}
	if filepath.IsAbs(a.File) {
		return s.locate(a.File)
	}
	if dirs[0] == "" {
		return file{}, fault.New(fault.Invalid, "invalid_argument", "a relative path leads nowhere here").
			WithHint("give the absolute path")
	}
	for _, dir := range dirs {
		if abs := filepath.Join(dir, a.File); dir != "" && exists(abs) {
			return s.locate(abs)
		}
	}
	return s.locate(filepath.Join(dirs[0], a.File))
}

// projectOf returns the project whose records are requested, zero if it has no row.
func (s *Service) projectOf(ctx context.Context, a Args, place project.Location) (project.Project, error) {
	switch {
	case a.ProjectID != "":
		return s.projectNamed(ctx, a.ProjectID)
	case a.Project != "":
		p, err := s.projectNamed(ctx, a.Project)
		if fault.HasCode(err, project.CodeNotFound) {
			return project.Project{}, nil
		}
		return p, err
	case place.Cwd == "":
		return project.Project{}, nil
	}
	return s.projectAt(ctx, place)
}

func (s *Service) locate(abs string) (f file, err error) {
	f.abs = filepath.Clean(abs)
	if real, err := filepath.EvalSymlinks(f.abs); err == nil {
		f.abs = real
	} else if dir, err := filepath.EvalSymlinks(filepath.Dir(f.abs)); err == nil {
		f.abs = filepath.Join(dir, filepath.Base(f.abs))
	}
	info, err := os.Stat(f.abs)
	switch {
	case err == nil && info.IsDir():
		return f, fault.Newf(fault.Invalid, "invalid_argument", "%s is a folder", abs).WithHint("ask about a file")
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return f, fault.Wrap(err, fault.Invalid, "invalid_argument", "the file cannot be looked at")
	}
	f.there = err == nil && info.Mode().IsRegular()
	if f.place, err = project.Locate(filepath.Dir(f.abs), s.Home); err != nil {
		return f, err
	}
	if rel, err := filepath.Rel(f.place.Root, f.abs); f.place.Root != "" && err == nil && filepath.IsLocal(rel) {
		f.rel = filepath.ToSlash(rel)
	}
	return f, nil
}

// projectNamed returns the project with an id or alias. Errors: NotFound.
func (s *Service) projectNamed(ctx context.Context, name string) (p project.Project, err error) {
	if s.Store == nil {
		return p, project.NotFound(name)
	}
	err = s.Store.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		var ok bool
		if p, ok, err = project.Find(ctx, tx, name); err == nil && !ok {
			err = project.NotFound(name)
		}
		return err
	})
	return p, err
}

// projectAt returns the project at a location, zero if it has no row.
func (s *Service) projectAt(ctx context.Context, place project.Location) (p project.Project, err error) {
	if s.Store == nil {
		return p, nil
	}
	err = s.Store.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		p, _, err = project.Current(ctx, tx, place)
		return err
	})
	return p, err
}

// binaryHead is how many bytes Git searches for the zero byte that makes a file binary.
const binaryHead = 8000

// aroundLine is the number of lines above and below a line that are read with it.
const aroundLine = 2000

// fileLine is a line of a file with its neighbouring lines.
type fileLine struct {
	near []string
	at   int // the index of the line in near
}

func (l *fileLine) text() string {
	if l.at >= len(l.near) {
		return ""
	}
	return l.near[l.at]
}

// line reads a line of the file. why is the reason if it cannot be read. A line number
// after the end of the file returns codeNoLine.
func (f file) line(ctx context.Context, n int) (found fileLine, why string, err error) {
	if !f.there {
		return found, "the file is not in the working tree", nil
	}
	root, err := os.OpenRoot(f.place.Root)
	if err != nil {
		return found, "the working tree cannot be read", nil
	}
	defer root.Close()
	name := filepath.FromSlash(f.rel)
	if info, err := root.Stat(name); err != nil || !info.Mode().IsRegular() {
		return found, "the file cannot be read", nil
	}
	file, err := root.Open(name)
	if err != nil {
		return found, "the file cannot be read", nil
	}
	defer file.Close()
	r := bufio.NewReaderSize(io.LimitReader(file, maxBytes), 64<<10)
	if head, _ := r.Peek(binaryHead); bytes.IndexByte(head, 0) >= 0 {
		return found, "the file is binary and has no lines", nil
	}
	read := int64(0)
	for at := 1; at-aroundLine <= n; at++ {
		line, size, err := readLine(r)
		read += size
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return found, "the file cannot be read", nil
		case (read >= maxBytes || size == 0) && at > n:
			return found, "", nil
		case read >= maxBytes:
			return found, "the file is too large to look for the line", nil
		case size == 0:
			return found, "", fault.Newf(fault.NotFound, codeNoLine, "%s has %s", f.name(), lines(at-1)).
				WithHint("name one of them, or ask about the whole file")
		case ctx.Err() != nil:
			return found, "", ctx.Err()
		case at >= n-aroundLine:
			if at == n {
				found.at = len(found.near)
			}
			found.near = append(found.near, line)
		}
	}
	return found, "", nil
}

func lines(n int) string {
	if n == 1 {
		return "1 line"
	}
	return strconv.Itoa(n) + " lines"
}

// readLine reads to the end of a line and returns the beginning of its text. size 0 means
// the end of the file.
func readLine(r *bufio.Reader) (text string, size int64, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if size == 0 {
			text = string(part[:min(len(part), 4096)])
		}
		size += int64(len(part))
		if !errors.Is(err, bufio.ErrBufferFull) {
			return strings.ToValidUTF8(strings.TrimRight(text, "\r\n"), "�"), size, err
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
