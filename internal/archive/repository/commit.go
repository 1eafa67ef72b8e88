package repository

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"cairn/internal/fault"
	"cairn/internal/wholefile"
)

// File is the wanted state of a file in an archive.
type File struct {
	Path    string // with slashes, relative to the folder
	Content []byte
	Deleted bool // the file must not exist
}

// Commit writes files as one commit on main. When it returns, the commit is on disk and
// survives a kill or a power cut. It does not change the work tree or the index. If main
// already contains the files, it makes no commit and returns main's hash. If a path
// occurs twice, the last one counts.
//
// If another process moved main meanwhile, the commit is built on the new main. A manual
// commit uses an index that may lag behind main, so it can revert cairn's latest files by
// accident. Commit restores such files (see lost). It first restores a missing main.
//
// Control characters in the message become spaces, and its first line is cut to 200
// characters. when is stored in whole seconds, in UTC.
//
// It tries seven times, which takes about 3 s (contract mail §10.4). From the third
// attempt on, it removes locks of git that are older than a minute and that no process
// holds. It is idempotent. Errors: Invalid with CodePath, immediately; else Unavailable
// as for Open, CodeGone if the folder is no longer a repository, CodeBusy if another
// process moved main each time. The next call starts again.
func (r *Repository) Commit(ctx context.Context, files []File, message string, when time.Time) (hash string, err error) {
	for _, f := range files {
		if err := CheckPath(f.Path); err != nil {
			return "", err
		}
	}
	changes := make([]change, len(files))
	for i, f := range files {
		changes[i] = change{path: f.Path, content: f.Content, deleted: f.Deleted}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	err = retry(ctx, r.pause, func(attempt int) error {
		hash, err = r.attempt(ctx, attempt, changes, message, when)
		return err
	})
	return hash, err
}

// change is the effect of a commit on one path.
type change struct {
	path    string
	content []byte
	blob    string // object with the content, "" if content is set
	deleted bool
}

// errMoved means that main was not moved because another process had moved it.
var errMoved = errors.New("another process moved main")

// turns is how often one attempt starts again because another process moved main.
const turns = 10

func (r *Repository) attempt(ctx context.Context, attempt int, changes []change, message string, when time.Time) (hash string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errSlow)
	defer cancel()
	err = r.locked(ctx, commitLock, func() error {
		switch {
		case attempt == 2:
			r.endAll()
			r.clearDebris()
		case attempt > 2:
			r.endAll()
			r.clear()
		}
		for range turns {
			if hash, err = r.advance(ctx, changes, message, when); !errors.Is(err, errMoved) {
				return err
			}
		}
		return fault.Wrap(err, fault.Unavailable, CodeBusy, "archive "+r.git.dir+": another process moved main each time").
			WithHint("stop what keeps committing there; the archive then catches up automatically")
	})
	if errors.Is(context.Cause(ctx), errSlow) {
		return "", fault.Newf(fault.Unavailable, CodeGit, "archive %s: git took longer than %s", r.git.dir, patience)
	}
	return hash, err
}

var errSlow = errors.New("time limit exceeded")

// advance makes one commit on top of main and moves main to it. It returns errMoved if
// main has moved meanwhile.
func (r *Repository) advance(ctx context.Context, changes []change, message string, when time.Time) (string, error) {
	main, err := r.main(ctx)
	if err != nil {
		return "", err
	}
	parent, before := main, main.hash
	if main.hash == "" {
		before = unborn
		if r.last != "" {
			if parent, err = r.lastTip(ctx); err != nil {
				return "", err
			}
		} else {
			changes = append([]change{{path: AttributesFile, content: []byte(attributes)}}, changes...)
		}
	} else if main.hash != r.last && r.last != "" {
		again, err := r.lost(ctx, main.hash)
		if err != nil {
			return "", err
		}
		changes = append(again, changes...)
	}
	made, err := r.make(ctx, parent.hash, changes, message, when)
	if err != nil {
		return "", err
	}
	if made.tree == parent.tree {
		if main.hash != "" {
			r.last = main.hash
			return main.hash, nil
		}
		made = parent
	}
	if err := r.moveMain(ctx, before, made.hash); err != nil {
		return "", err
	}
	return made.hash, nil
}

// lastTip returns the last known commit of a deleted main.
func (r *Repository) lastTip(ctx context.Context) (tip, error) {
	tree, ok, err := r.commitTree(ctx, r.last)
	if err == nil && !ok {
		err = r.git.refused(ctx, "cat-file", "main is missing, and so is the commit it was at, "+r.last, nil)
	}
	return tip{r.last, tree}, err
}

// make builds a commit and all its objects, which are on disk when it returns. No
// reference points to it yet: the import's own branch is dropped before it is written.
func (r *Repository) make(ctx context.Context, parent string, changes []change, message string, when time.Time) (tip, error) {
	var made tip
	err := r.within(ctx, &r.build, []string{"fast-import", "--quiet", "--done", "--date-format=raw"}, func(t *gitProcess) error {
		writeCommit(t.in, parent, changes, message, when)
		if err := t.in.Flush(); err != nil {
			return err
		}
		for range 2 {
			line, err := t.line()
			if err != nil {
				return err
			}
			if line == "progress stored" {
				return nil
			}
			made.hash = line
		}
		return errors.New("fast-import did not acknowledge the commit")
	})
	if err != nil {
		return tip{}, err
	}
	if err := wholefile.SyncDir(r.inGit("objects", "pack")); err != nil {
		return tip{}, r.git.refused(ctx, "fast-import", "", err)
	}
	tree, ok, err := r.commitTree(ctx, made.hash)
	if err == nil && !ok {
		err = r.git.refused(ctx, "fast-import", "commit "+made.hash+" was stored and is missing", nil)
	}
	made.tree = tree
	return made, err
}

// writeCommit writes the commands of one commit; a failure shows when they are flushed.
func writeCommit(w *bufio.Writer, parent string, changes []change, message string, when time.Time) {
	const scratch = "refs/cairn/next"
	message = cleanMessage(message)
	at := max(when.Unix(), 0)
	fmt.Fprintf(w, "commit %s\nmark :1\nauthor cairn <cairn@localhost> %d +0000\ncommitter cairn <cairn@localhost> %d +0000\ndata %d\n%s\n",
		scratch, at, at, len(message), message)
	if parent != "" {
		fmt.Fprintf(w, "from %s\n", parent)
	}
	for _, c := range changes {
		switch {
		case c.deleted:
			fmt.Fprintf(w, "D %s\n", quotePath(c.path))
		case c.blob != "":
			fmt.Fprintf(w, "M 100644 %s %s\n", c.blob, quotePath(c.path))
		default:
			fmt.Fprintf(w, "M 100644 inline %s\ndata %d\n", quotePath(c.path), len(c.content))
			_, _ = w.Write(c.content)
			_, _ = w.WriteString("\n")
		}
	}
	_, _ = w.WriteString("\nget-mark :1\nreset " + scratch + "\n\ncheckpoint\n\nprogress stored\n\n")
}

var pathQuoter = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func quotePath(path string) string { return `"` + pathQuoter.Replace(path) + `"` }

// cleanMessage returns a commit message without characters that break programs.
func cleanMessage(message string) string {
	message = strings.Map(func(c rune) rune {
		if c != '\n' && (unicode.IsControl(c) || c == utf8.RuneError) {
			return ' '
		}
		return c
	}, strings.TrimSpace(message))
	subject, body, more := strings.Cut(message, "\n")
	if r := []rune(subject); len(r) > 200 {
		subject = string(r[:199]) + "…"
	}
	if subject == "" {
		subject = "update"
	}
	if more {
		return subject + "\n" + body + "\n"
	}
	return subject + "\n"
}

// moveMain atomically moves main from one commit to another. It returns errMoved if main
// is elsewhere, so it never overwrites other commits.
func (r *Repository) moveMain(ctx context.Context, from, to string) error {
	err := r.within(ctx, &r.swap, []string{"update-ref", "--stdin"}, func(t *gitProcess) error {
		fmt.Fprintf(t.in, "start\nupdate %s %s %s\ncommit\n", mainRef, to, from)
		if err := t.in.Flush(); err != nil {
			return err
		}
		for _, want := range [...]string{"start: ok", "commit: ok"} {
			if line, err := t.line(); err != nil {
				return err
			} else if line != want {
				return fmt.Errorf("it answered %q", line)
			}
		}
		return nil
	})
	if err != nil {
		main, unread := r.main(ctx)
		switch {
		case unread != nil || main.hash == from || main.hash == "" && from == unborn:
			return err
		case main.hash != to:
			return errMoved
		}
	}
	if err := wholefile.SyncDir(filepath.Dir(r.inGit(mainRef))); err != nil {
		return r.git.refused(ctx, "update-ref", "", err)
	}
	r.last = to
	return nil
}

// lost returns the changes that manual commits since r.last reverted by accident. A
// manual commit uses the index, which may be older than main. If cairn changed a path
// after the index was refreshed, and main has the index's version again, then the person
// did not touch that path.
func (r *Repository) lost(ctx context.Context, main string) ([]change, error) {
	var again []change
	for _, base := range r.indexed() {
		more, err := r.lostSince(ctx, base, main)
		if err != nil {
			return nil, err
		}
		again = append(again, more...)
	}
	return again, nil
}

func (r *Repository) lostSince(ctx context.Context, base, main string) ([]change, error) {
	if base == r.last {
		return nil, nil
	}
	for _, hash := range [...]string{base, r.last} {
		if _, ok, err := r.commitTree(ctx, hash); err != nil || !ok {
			return nil, err
		}
	}
	ours, err := r.git.run(ctx, "diff-tree", "-r", "-z", "--no-renames", "--no-abbrev", base, r.last)
	if err != nil {
		return nil, err
	}
	theirs, err := r.git.run(ctx, "diff-tree", "-r", "-z", "--no-renames", "--name-only", base, main)
	if err != nil {
		return nil, err
	}
	touched := map[string]bool{}
	for path := range bytes.SplitSeq(theirs, []byte{0}) {
		touched[string(path)] = true
	}
	var again []change
	for fields := bytes.Split(ours, []byte{0}); len(fields) >= 2; fields = fields[2:] {
		path, what := string(fields[1]), bytes.Fields(fields[0]) // modes, blobs, letter
		if touched[path] || len(what) != 5 || string(what[1]) != "100644" && string(what[1]) != "000000" {
			continue
		}
		again = append(again, change{path: path, blob: string(what[3]), deleted: string(what[4]) == "D"})
	}
	return again, nil
}
