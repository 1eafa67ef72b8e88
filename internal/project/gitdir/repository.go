package gitdir

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/text/unicode/norm"

	"cairn/internal/regular"
)

// Limits for reading a place.
const (
	MaxLevels  = 64        // folders climbed (observations §2, rule 1)
	MaxPath    = 32 << 10  // bytes of a path that is accessed on disk
	MaxPointer = 8 << 10   // bytes of a .git or commondir file
	MaxConfig  = 256 << 10 // bytes of a repository's config
)

// Repository is a Git repository as seen from a folder.
type Repository struct {
	Identity string // canonical common git directory
	Root     string // the folder that contains .git; "" inside a bare repository
}

// Enclosing climbs from dir to the nearest repository. A repository in the home folder
// counts only if the climb begins there (rule 5). Missing and broken folders are skipped.
func Enclosing(dir, home string) (Repository, bool) {
	if len(dir) > MaxPath {
		return Repository{}, false
	}
	for level := range MaxLevels {
		if r, ok := At(dir); ok && (level == 0 || !SameFolder(dir, home)) {
			return r, true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			break
		}
		dir = parent
	}
	return Repository{}, false
}

// At returns the repository whose worktree begins at dir, or that is dir
// itself.
func At(dir string) (Repository, bool) {
	if git, ok := Directory(dir); ok {
		if common, ok := commonDirectory(git); ok {
			return Repository{Identity: Canonical(common), Root: dir}, true
		}
	}
	if isBare(dir) {
		return Repository{Identity: Canonical(dir)}, true
	}
	return Repository{}, false
}

// Directory returns the folder that dir's .git is or refers to. Any folder of that
// name counts, whatever its content.
func Directory(dir string) (string, bool) {
	entry := filepath.Join(dir, ".git")
	info, err := os.Stat(entry)
	if err != nil {
		return "", false
	}
	if info.IsDir() {
		return entry, true
	}
	text, ok := ReadPointer(entry)
	if !ok {
		return "", false
	}
	text, ok = strings.CutPrefix(text, "gitdir:")
	target := strings.TrimLeft(text, " \t")
	if !ok || target == "" {
		return "", false
	}
	target = AbsoluteIn(dir, target)
	return target, IsDir(target)
}

// commonDirectory returns the git directory that all worktrees of git's repository share
// (rule 2).
func commonDirectory(git string) (string, bool) {
	file := filepath.Join(git, "commondir")
	if _, err := os.Lstat(file); isGone(err) {
		return git, true
	}
	target, ok := ReadPointer(file)
	if !ok || target == "" {
		return "", false
	}
	target = AbsoluteIn(git, target)
	return target, IsDir(target)
}

// isBare reports whether dir has the files that Git requires in a git directory.
func isBare(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, "HEAD"))
	return err == nil && info.Mode().IsRegular() &&
		IsDir(filepath.Join(dir, "objects")) && IsDir(filepath.Join(dir, "refs"))
}

// ReadPointer reads a small file that contains one path. ok is false for other files.
func ReadPointer(file string) (text string, ok bool) {
	data, err := regular.ReadHead(file, MaxPointer+1)
	if err != nil || len(data) > MaxPointer || bytes.IndexByte(data, 0) >= 0 {
		return "", false
	}
	return strings.TrimRight(string(data), "\r\n"), true
}

// AbsoluteIn returns a path that a file in dir names, absolute and clean.
func AbsoluteIn(dir, path string) string {
	path = filepath.FromSlash(path)
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// IsDir reports whether a path is a folder, or a link to one.
func IsDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// isGone reports whether an error means that a path does not exist, in contrast to one
// that cannot be accessed.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// PathIsGone reports whether a path does not exist. It is false for one that cannot be
// accessed.
func PathIsGone(path string) bool {
	_, err := os.Stat(path)
	return isGone(err)
}

// SameFolder reports whether two paths are the same folder, by name or by identity.
func SameFolder(a, b string) bool {
	if a == b || a == "" || b == "" {
		return a == b && a != ""
	}
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// Canonical returns a path with its symbolic links resolved, in the spelling for
// comparisons, or the path unchanged if that fails.
func Canonical(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if runtime.GOOS == "darwin" { // its file systems accept either form
		path = norm.NFC.String(path)
	}
	return path
}

// Physical returns a path with the symbolic links of its existing part resolved; gone
// reports whether the path does not exist.
func Physical(path string) (real string, gone bool) {
	if len(path) > MaxPath {
		return path, true
	}
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		return real, false
	}
	gone = isGone(err)
	dir := path
	for range MaxLevels {
		parent := filepath.Dir(dir)
		if parent == dir {
			break
		}
		dir = parent
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return real + path[len(dir):], gone
		}
	}
	return path, gone
}
