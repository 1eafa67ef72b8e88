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

// target is where a settings file really is: links are followed, so that a
// settings file kept elsewhere stays linked.
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

// readFile reads a file; nil without an error if there is none.
func readFile(path string) ([]byte, error) {
	text, err := regular.Read(path, regular.MaxForeign)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// writeFile replaces a file as a whole and keeps its permissions; a new one is
// the user's alone.
func writeFile(path string, text []byte) error {
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	return cannotWrite(path, wholefile.Write(path, text, mode))
}

// cannotWrite says which file or folder could not be written, made or removed, and
// why, without the name of the temporary file that stood for it.
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

// missingFolders returns the ones that a file needs and that do not exist, the
// outermost first.
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

// removeEmpty removes folders that hold nothing, the last ones first.
func removeEmpty(folders []string) {
	for _, dir := range slices.Backward(folders) {
		_ = os.Remove(dir) // it holds something, or is gone
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
