package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"cairn/internal/store/gosqlite"
)

// Exists reports whether a path exists. It is true if that cannot be determined.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR)
}

// Start reads at most n first bytes of a file, none if it is missing or not a file. It
// must not be used for a file that mattn's SQLite has open in this process, because
// closing it would release SQLite's locks.
func Start(path string, n int) (text []byte, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // another process has closed the store meanwhile
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	text = make([]byte, n)
	n, err = io.ReadFull(f, text)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return text[:n], err
}

// IsPlain reports whether a file begins like a database that is not encrypted.
func IsPlain(path string) (bool, error) {
	text, err := Start(path, 16)
	return gosqlite.IsPlain(text), err
}

// RemoveAll removes the files that exist, up to the first error.
func RemoveAll(paths ...string) error {
	for _, p := range paths {
		if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// IsEmpty reports whether a file is missing or empty.
func IsEmpty(path string) bool {
	info, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0
}

// Resolve returns the target of a path: SQLite keeps the log next to the file, not next
// to a link to it.
func Resolve(path string) string {
	if at, err := filepath.EvalSymlinks(path); err == nil {
		return at
	}
	return path
}

// Create creates a database file before SQLite does, so that only the owner can read
// it and the files that SQLite derives from it.
func Create(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// Sync writes what the system still keeps of a file to the disk.
func Sync(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Copy copies a file. The target must not exist.
func Copy(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	return errors.Join(CopyFrom(in, to), in.Close())
}

// CopyFrom writes a new file that only its owner can read. After an error there is no file.
func CopyFrom(in io.Reader, to string) error {
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		err = errors.Join(err, os.Remove(to))
	}
	return err
}
