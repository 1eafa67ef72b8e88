package reservations

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cairn/internal/mail"
	"cairn/internal/pathpattern"
)

// The budget for file scans, shared by all reservations of a call (mail §7).
const (
	maxStats = 200
	maxLook  = 50 * time.Millisecond
)

// look scans the files that patterns cover, until its budget is spent.
type look struct {
	since    mail.Time // files changed since then are active
	foldCase bool
	stats    int // file system calls left
	end      time.Time
}

func newLook(since mail.Time, foldCase bool) *look {
	return &look{since, foldCase, maxStats, time.Now().Add(maxLook)}
}

// spent counts one file system call and reports whether the budget is exceeded.
func (l *look) spent() bool {
	l.stats--
	return l.stats < 0 || !time.Now().Before(l.end)
}

// at scans worktrees for files that a reservation covers. It stops at the first active file and
// stores the latest modification time in files. A reservation counts as active if the budget runs
// out.
func (l *look) at(w *watched, roots []string) {
	v := visit{look: l, watched: w}
	for _, root := range roots {
		v.root = root
		v.enter(literal(w.pattern.String()))
		if v.out || w.filesBusy {
			break
		}
	}
	w.unmatched = !v.found && !v.out
	w.filesBusy = w.filesBusy || v.out
}

// literal returns the leading segments of a pattern that contain no wildcard, or "".
func literal(text string) string {
	end := 0
	for segment := range strings.SplitSeq(text, "/") {
		if strings.ContainsAny(segment, "*?[") || text == "." {
			break
		}
		end += len(segment) + 1
	}
	return text[:max(end-1, 0)]
}

// visit is one walk through a worktree. It does not follow links or enter .git.
type visit struct {
	*look
	*watched
	root  string
	found bool
	out   bool // the budget is spent, or the files cannot be read
}

// enter scans a path and everything below it. An empty path is the root.
func (v *visit) enter(path string) {
	if v.out = v.spent(); v.out {
		return
	}
	info, err := os.Lstat(filepath.Join(v.root, filepath.FromSlash(path)))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return
	}
	if err != nil {
		v.out = true // unreadable files count as active
		return
	}
	v.see(path, info.ModTime())
	if info.IsDir() && v.mayCoverBelow(path) {
		v.list(path)
	}
}

func (v *visit) see(path string, at time.Time) {
	p, err := pathpattern.ParsePath(path)
	if err != nil || !v.pattern.Matches(p) { // the root is not a valid path
		return
	}
	v.found = true
	v.files = max(v.files, mail.TimeOf(at))
	v.filesBusy = v.files >= v.since
}

// mayCoverBelow reports whether the pattern may match anything in a folder.
func (v *visit) mayCoverBelow(folder string) bool {
	if folder == "" {
		return true
	}
	below, err := pathpattern.Parse(folder+"/**", pathpattern.Options{FoldCase: v.foldCase})
	return err != nil || pathpattern.Overlap(below, v.pattern)
}

func (v *visit) list(folder string) {
	if v.out = v.spent(); v.out || v.filesBusy {
		return
	}
	dir, err := os.Open(filepath.Join(v.root, filepath.FromSlash(folder)))
	if err != nil {
		v.out = !errors.Is(err, fs.ErrNotExist)
		return
	}
	defer func() { _ = dir.Close() }() // opened for reading only
	for !v.out && !v.filesBusy {
		entries, err := dir.ReadDir(64)
		for _, e := range entries {
			if e.Name() == ".git" {
				continue
			}
			path := e.Name()
			if folder != "" {
				path = folder + "/" + path
			}
			if v.enter(path); v.out || v.filesBusy {
				return
			}
		}
		if err != nil { // end of the folder, or unreadable
			return
		}
	}
}
