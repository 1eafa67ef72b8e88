// Package wholefile writes files atomically: after an interruption or a power loss, the
// path holds either the old file or the complete new one. It writes under a temporary
// name in the same folder, flushes the file, renames it, and flushes the folder.
//
// The library renameio does not flush the folder and has nothing for Windows, so it is not
// used.
package wholefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// File is a temporary file that will take the place of another file. The caller must end
// it with Commit, CommitNew or Discard.
type File struct {
	*os.File
	path string
}

// Create creates a temporary file for path. Readers of path do not see it until it is
// committed. All functions of this package return the errors of the system.
func Create(path string, mode fs.FileMode) (*File, error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".cairn-new-*") // 0600
	if err != nil {
		return nil, err
	}
	w := &File{f, path}
	if mode != 0o600 {
		if err := f.Chmod(mode); err != nil {
			return nil, errors.Join(err, w.Discard())
		}
	}
	return w, nil
}

// Commit moves the file to its path and replaces an older file there. After an error the
// old file is unchanged, unless only the flush of the folder failed.
func (f *File) Commit() error {
	err := errors.Join(f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), f.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return SyncDir(filepath.Dir(f.path))
}

// CommitNew moves the file to its path unless a file exists there. made reports whether
// the path was free. Of several concurrent calls, exactly one creates the file.
func (f *File) CommitNew() (made bool, err error) {
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return false, errors.Join(err, os.Remove(f.Name()))
	}
	err = os.Link(f.Name(), f.path)
	switch {
	case errors.Is(err, fs.ErrExist):
		return false, os.Remove(f.Name())
	case err != nil: // no links on this volume
		err = os.Rename(f.Name(), f.path)
	}
	if gone := os.Remove(f.Name()); !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	if err != nil {
		return false, err
	}
	return true, SyncDir(filepath.Dir(f.path))
}

// Discard deletes the temporary file. The file at the path is unchanged.
func (f *File) Discard() error { return errors.Join(f.Close(), os.Remove(f.Name())) }

// Write atomically creates or replaces the file at path with the given text and mode.
func Write(path string, text []byte, mode fs.FileMode) error {
	f, err := written(path, text, mode)
	if err != nil {
		return err
	}
	return f.Commit()
}

// WritePrivate is Write for a file that only its owner can access (0600). It creates
// missing folders (0700).
func WritePrivate(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return Write(path, text, 0o600)
}

// MakePrivate is WritePrivate, but does not replace an existing file; see
// [File.CommitNew].
func MakePrivate(path string, text []byte) (made bool, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return false, err
	}
	f, err := written(path, text, 0o600)
	if err != nil {
		return false, err
	}
	return f.CommitNew()
}

func written(path string, text []byte, mode fs.FileMode) (*File, error) {
	f, err := Create(path, mode)
	if err != nil {
		return nil, err
	}
	if _, err := f.Write(text); err != nil {
		return nil, errors.Join(err, f.Discard())
	}
	return f, nil
}

// SyncDir makes the names in a folder survive a power loss. Windows does this
// automatically, and some network file systems do not support it.
func SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, d.Close())
}
