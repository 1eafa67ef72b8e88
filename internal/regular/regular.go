// Package regular reads files at well-known paths: in a repository, in a home directory
// or in the data directory. Another person may have put a FIFO, a device or an endless
// link there. A read must neither block nor use memory without a limit.
//
// Every function follows symbolic links. It does not open anything that is not a
// regular file, because opening a device can have effects of its own. It opens
// without blocking and checks the open file again.
package regular

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// MaxSettings is the size limit of cairn's settings files in bytes.
const MaxSettings = 64 << 10

// MaxForeign is the size limit in bytes of files that other programs write and that
// are read whole, such as settings of agents.
const MaxForeign = 64 << 20

// Errors of this package. They come as the Err of an *fs.PathError.
var (
	ErrNotRegular = errors.New("is not a regular file")
	ErrTooLarge   = errors.New("is too large")
)

// Open opens a regular file for reading. The caller must close it.
//
// It fails with an *fs.PathError: ErrNotRegular for a folder, FIFO, socket or
// device, else the error of the system.
func Open(path string) (*os.File, error) {
	f, _, err := open(path)
	return f, err
}

// open is Open with the size of the file.
func open(path string) (*os.File, int64, error) {
	notRegular := func(info fs.FileInfo) error {
		if info.Mode().IsRegular() {
			return nil
		}
		return &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	info, err := os.Stat(path)
	if err == nil {
		err = notRegular(info)
	}
	if err != nil {
		return nil, 0, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|OpenFlags, 0)
	if err != nil {
		return nil, 0, err
	}
	if info, err = f.Stat(); err == nil {
		err = notRegular(info) // the path may lead to another file by now
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// Read returns the content of a regular file of at most limit bytes. It reads no
// more than limit+1 bytes. The result is not nil without an error.
//
// Errors are those of Open, and an *fs.PathError with ErrTooLarge for a larger file.
func Read(path string, limit int64) ([]byte, error) {
	text, err := ReadHead(path, limit+1)
	if err == nil && int64(len(text)) > limit {
		return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("%w: the limit is %s", ErrTooLarge, inUnits(limit))}
	}
	return text, err
}

// ReadHead returns the first bytes of a regular file, at most limit. Errors are
// those of Open.
func ReadHead(path string, limit int64) ([]byte, error) {
	f, size, err := open(path)
	if err != nil {
		return nil, err
	}
	text, err := readAll(f, size, limit)
	return text, errors.Join(err, f.Close())
}

// readAll reads at most limit bytes of a file that claims to have a given size.
func readAll(f *os.File, size, limit int64) ([]byte, error) {
	text := make([]byte, 0, min(size+1, limit, 1<<20))
	for {
		if int64(len(text)) == limit {
			return text, nil
		}
		if len(text) == cap(text) {
			text = append(text, 0)[:len(text)]
		}
		n, err := f.Read(text[len(text):min(int64(cap(text)), limit)])
		text = text[:len(text)+n]
		if errors.Is(err, io.EOF) {
			return text, nil
		}
		if err != nil {
			return text, err
		}
	}
}

// inUnits prints a number of bytes in whole KiB or MiB.
func inUnits(n int64) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}
