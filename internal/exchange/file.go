package exchange

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"cairn/internal/fault"
	"cairn/internal/wholefile"
)

// File is a temporary file that will replace the file at its path. Only its owner may
// read it.
type File struct {
	*wholefile.File
}

// Create creates a temporary file for path. Readers of path do not see it before Commit.
// Errors: Invalid if something other than a file exists at path; CodeWrite.
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

// Commit flushes the file to disk and moves it to its path. After an error there is no
// new file. Errors: CodeWrite.
func (f *File) Commit() error {
	if err := f.File.Commit(); err != nil {
		return unwritable(err)
	}
	return nil
}
