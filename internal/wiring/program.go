package wiring

import (
	"path/filepath"
	"strings"
)

// Program is the path by which hooks are to call the running program: the entry
// on the PATH that leads to it, with links left as they are, so that it outlives
// an upgrade that moves what they lead to (a Homebrew cellar, a version manager).
// Without one it is the path by which it was called, args0, and at last
// executable, what the system says. It is absolute if executable is.
func Program(args0, executable, path string, windows bool) string {
	name := filepath.Base(args0)
	if windows && !strings.EqualFold(filepath.Ext(name), ".exe") {
		name += ".exe"
	}
	for _, dir := range filepath.SplitList(path) {
		if at := filepath.Join(dir, name); filepath.IsAbs(dir) && sameFile(at, executable) {
			return at
		}
	}
	if strings.ContainsAny(args0, `/\`) {
		if at, err := filepath.Abs(args0); err == nil && sameFile(at, executable) {
			return at
		}
	}
	return executable
}
