package project

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
	maxLevels  = 64        // folders climbed (observations §2, rule 1)
	maxPath    = 32 << 10  // bytes of a path that is accessed on disk
	maxPointer = 8 << 10   // bytes of a .git or commondir file
	maxConfig  = 256 << 10 // bytes of a repository's config
)

// repository is a Git repository as seen from a folder.
type repository struct {
	identity string // canonical common git directory
	root     string // the folder that contains .git; "" inside a bare repository
}

// enclosing climbs from dir to the nearest repository. A repository in the home folder
// counts only if the climb begins there (rule 5). Missing and broken folders are skipped.
func enclosing(dir, home string) (repository, bool) {
	if len(dir) > maxPath {
		return repository{}, false
	}
	for level := range maxLevels {
		if r, ok := repositoryAt(dir); ok && (level == 0 || !sameFolder(dir, home)) {
			return r, true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			break
		}
		dir = parent
	}
	return repository{}, false
}

// repositoryAt returns the repository whose worktree begins at dir, or that is dir
// itself.
func repositoryAt(dir string) (repository, bool) {
	if git, ok := gitDirectory(dir); ok {
		if common, ok := commonDirectory(git); ok {
			return repository{identity: canonical(common), root: dir}, true
		}
	}
	if isBare(dir) {
		return repository{identity: canonical(dir)}, true
	}
	return repository{}, false
}

// gitDirectory returns the folder that dir's .git is or refers to. Any folder of that
// name counts, whatever its content.
func gitDirectory(dir string) (string, bool) {
	entry := filepath.Join(dir, ".git")
	info, err := os.Stat(entry)
	if err != nil {
		return "", false
	}
	if info.IsDir() {
		return entry, true
	}
	text, ok := readPointer(entry)
	if !ok {
		return "", false
	}
	text, ok = strings.CutPrefix(text, "gitdir:")
	target := strings.TrimLeft(text, " \t")
	if !ok || target == "" {
		return "", false
	}
	target = absoluteIn(dir, target)
	return target, isDir(target)
}

// commonDirectory returns the git directory that all worktrees of git's repository share
// (rule 2).
func commonDirectory(git string) (string, bool) {
	file := filepath.Join(git, "commondir")
	if _, err := os.Lstat(file); isGone(err) {
		return git, true
	}
	target, ok := readPointer(file)
	if !ok || target == "" {
		return "", false
	}
	target = absoluteIn(git, target)
	return target, isDir(target)
}

// isBare reports whether dir has the files that Git requires in a git directory.
func isBare(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, "HEAD"))
	return err == nil && info.Mode().IsRegular() &&
		isDir(filepath.Join(dir, "objects")) && isDir(filepath.Join(dir, "refs"))
}

// readPointer reads a small file that contains one path. ok is false for other files.
func readPointer(file string) (text string, ok bool) {
	data, err := regular.ReadHead(file, maxPointer+1)
	if err != nil || len(data) > maxPointer || bytes.IndexByte(data, 0) >= 0 {
		return "", false
	}
	return strings.TrimRight(string(data), "\r\n"), true
}

func absoluteIn(dir, path string) string {
	path = filepath.FromSlash(path)
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// isGone reports whether an error means that a path does not exist, in contrast to one
// that cannot be accessed.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

func pathIsGone(path string) bool {
	_, err := os.Stat(path)
	return isGone(err)
}

// sameFolder reports whether two paths are the same folder, by name or by identity.
func sameFolder(a, b string) bool {
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

// canonical returns a path with its symbolic links resolved, in the spelling for
// comparisons, or the path unchanged if that fails.
func canonical(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if runtime.GOOS == "darwin" { // its file systems accept either form
		path = norm.NFC.String(path)
	}
	return path
}

// physical returns a path with the symbolic links of its existing part resolved; gone
// reports whether the path does not exist.
func physical(path string) (real string, gone bool) {
	if len(path) > maxPath {
		return path, true
	}
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		return real, false
	}
	gone = isGone(err)
	dir := path
	for range maxLevels {
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
