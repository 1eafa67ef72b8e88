package cairn

import (
	"errors"
	"io/fs"
	"os"
)

// WritePrivate writes a file that is its owner's alone (0600) and gives its path to put,
// whole and on the disk: put moves or links it to its place. What put leaves behind is
// removed. The directory is made if it is missing (0700); pattern is that of
// os.CreateTemp. Errors are the system's, and put's. Repeating it writes another file.
func WritePrivate(dir, pattern, text string, put func(written string) error) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, pattern) // 0600
	if err != nil {
		return err
	}
	defer func() {
		if gone := os.Remove(f.Name()); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}()
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return put(f.Name())
}
