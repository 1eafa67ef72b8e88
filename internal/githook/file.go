package githook

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"cairn/internal/regular"
	"cairn/internal/wholefile"
)

// file is a file or symbolic link at a path.
type file struct {
	there bool
	path  string
	link  string // target of a symbolic link
	text  []byte // content of the file or of the link's target, if readable
	mode  fs.FileMode
}

// read reads a path. Anything except a file or a link is an error.
func read(path string) (f file, err error) {
	f.path = path
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, err
	}
	f.there, f.mode = true, info.Mode()
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		f.text, _ = regular.Read(path, regular.MaxForeign) // its target may not exist
		f.link, err = os.Readlink(path)
	case info.Mode().IsRegular():
		f.text, err = regular.Read(path, regular.MaxForeign)
	default:
		err = &fs.PathError{Op: "read", Path: path, Err: errors.New(filepath.Base(path) + " is not a file")}
	}
	return f, err
}

// same reports whether two files are equal except for their names.
func (f file) same(g file) bool {
	return f.there && g.there && f.mode == g.mode && f.link == g.link && string(f.text) == string(g.text)
}

// copyTo gives a file a second name. If the file system does not support that, it creates
// a copy. An existing file at path is fs.ErrExist.
func (f file) copyTo(path string) error {
	if f.link != "" {
		return os.Symlink(f.link, path)
	}
	err := os.Link(f.path, path)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, f.mode.Perm())
	if err != nil {
		return err
	}
	_, err = to.Write(f.text)
	if err == nil {
		err = to.Chmod(f.mode)
	}
	if closed := to.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_ = os.Remove(path) // it is incomplete
	}
	return err
}

// put atomically creates a program, unless the file exists.
func put(path, text string) error {
	const mode = 0o755
	is, err := read(path)
	if err == nil && is.link == "" && string(is.text) == text && is.mode.Perm()&0o111 != 0 {
		return nil
	}
	return wholefile.Write(path, []byte(text), mode)
}
