package wiring

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"cairn/internal/fault"
	"cairn/internal/regular"
	"cairn/internal/wholefile"
)

// target returns the real path of a settings file. It resolves links, so that a linked settings
// file stays linked.
func target(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		return real, nil
	}
	if _, lerr := os.Lstat(path); lerr == nil {
		return "", errors.New("is a link that leads nowhere")
	}
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil
	}
	return "", err
}

// readFile returns a file's text, nil without an error if the file does not exist.
func readFile(path string) ([]byte, error) {
	text, err := regular.Read(path, regular.MaxForeign)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// writeFile replaces a file atomically and keeps its permissions. Only the user can access a new
// file.
func writeFile(path string, text []byte) error {
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	return cannotWrite(path, wholefile.Write(path, text, mode))
}

// cannotWrite returns the error for a file or folder that could not be written, created or
// removed. It contains the reason, without the name of the temporary file.
func cannotWrite(path string, err error) error {
	if err == nil {
		return nil
	}
	why := err
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		why = p.Err
	} else if l, ok := errors.AsType[*os.LinkError](err); ok {
		why = l.Err
	}
	return fault.Wrap(err, fault.Unavailable, "cannot_write", path+" cannot be written: "+why.Error()).
		WithHint("check the rights of its folder and the room on its disk")
}

// missingFolders returns the missing folders of a file's path, outermost first.
func missingFolders(path string) []string {
	var out []string
	for dir := filepath.Dir(path); filepath.Dir(dir) != dir; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); err == nil {
			break
		}
		out = append(out, dir)
	}
	slices.Reverse(out)
	return out
}

// removeEmpty removes the empty folders, in reverse order.
func removeEmpty(folders []string) {
	for _, dir := range slices.Backward(folders) {
		_ = os.Remove(dir) // it is not empty, or does not exist
	}
}

func isRoot(dir string) bool { return filepath.Dir(filepath.Clean(dir)) == filepath.Clean(dir) }

func holds(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
