package exchange

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"cairn/internal/fault"
)

// File is a file that is being written beside the one that it will replace. Only
// its owner may read it.
type File struct {
	*os.File
	path string
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
	f, err := os.CreateTemp(filepath.Dir(path), ".cairn-export-*") // 0600
	if err != nil {
		return nil, unwritable(err)
	}
	return &File{f, path}, nil
}

// Commit puts the file, safely on the disk, in its place; without success there is
// no file. Errors: CodeWrite.
func (f *File) Commit() error {
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return unwritable(errors.Join(err, os.Remove(f.Name())))
	}
	if err := os.Rename(f.Name(), f.path); err != nil {
		return unwritable(errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

// Discard removes the file; what stood at its path stays.
func (f *File) Discard() error {
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
