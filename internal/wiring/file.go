package wiring

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/renameio/v2/maybe"
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
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && text == nil {
		text = []byte{}
	}
	return text, err
}

// writeFile replaces a file as a whole and keeps its permissions; a new one is
// the user's alone.
func writeFile(path string, text []byte) error { return maybe.WriteFile(path, text, 0o600) }

// missingFolders are those that a file needs and that are not there, the
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

// removeEmpty removes folders that init made and that nobody uses.
func removeEmpty(folders []string) {
	for _, dir := range slices.Backward(folders) {
		if os.Remove(dir) != nil { // it holds something, or is gone
			return
		}
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
