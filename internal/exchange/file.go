package exchange

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"cairn/internal/fault"
	"cairn/internal/wholefile"
)

// File is a file that is being written beside the one that it will replace. Only
// its owner may read it.
type File struct {
	*wholefile.File
}

// Create begins a file for path, which nobody sees before Commit. Errors: Invalid
// for a path at which something else than a file stands, CodeWrite.
func Create(path string) (*File, error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return nil, fault.Newf(fault.Invalid, "invalid_argument", "%s is not a file", path).
			WithHint("--out - writes to standard output")
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, unwritable(err)
	}
	f, err := wholefile.Create(path, 0o600)
	if err != nil {
		return nil, unwritable(err)
	}
	return &File{f}, nil
}

// Commit puts the file, safely on the disk, in its place; without success there is
// no file. Errors: CodeWrite.
func (f *File) Commit() error {
	if err := f.File.Commit(); err != nil {
		return unwritable(err)
	}
	return nil
}
