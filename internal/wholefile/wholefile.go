// Package wholefile writes files that are in their place either as a whole or not at
// all, also after a power loss: under another name in the same folder, flushed to the
// disk, then renamed, and the folder flushed.
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

// File is a file that is being written beside its place. Commit, CommitNew or Discard
// must end it.
type File struct {
	*os.File
	path string
}

// Create begins a file for path, which nobody sees before it is committed. Errors are the
// system's, here and everywhere in the package.
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

// Commit replaces what is at the path. After an error the path is as it was, unless only
// the folder could not be flushed.
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

// CommitNew is Commit that keeps a file which is already at the path. made reports whether the
// path was free. If several processes do this at once, only one of them makes the file.
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

// Discard removes the file; what is at its path stays.
func (f *File) Discard() error { return errors.Join(f.Close(), os.Remove(f.Name())) }

// Write replaces the file at path by one with a text and a mode.
func Write(path string, text []byte, mode fs.FileMode) error {
	f, err := written(path, text, mode)
	if err != nil {
		return err
	}
	return f.Commit()
}

// WritePrivate is Write for a file of its owner alone (0600), whose folder is made if it
// is missing (0700).
func WritePrivate(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return Write(path, text, 0o600)
}

// MakePrivate is WritePrivate that leaves a file which is already there; see [File.CommitNew].
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

// SyncDir makes the names in a folder survive a power loss. Windows does that by itself,
// and some network file systems cannot be asked for it.
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
