package repository

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"cairn/internal/fault"
	"cairn/internal/store/locks"
)

const (
	mainRef    = "refs/heads/main"
	filesLock  = ".archive.lock" // held while files of the work tree are written
	commitLock = ".commit.lock"  // held while the repository is changed
	unborn     = "0000000000000000000000000000000000000000"

	AttributesFile = ".gitattributes"
	attributes     = "* -text\n"
	// cairn's own files in the work tree, which git must ignore.
	excluded = "/" + filesLock + "\n/" + commitLock + "\n" + tempName + "\n"

	// patience is the time limit of one attempt, after which a hanging git is killed.
	patience = time.Minute
)

// IdleAfter is the time without a commit after which RefreshIndex and Repack are due.
const IdleAfter = 5 * time.Second

// Repository is the archive of one project. Any number of goroutines may use it, and any
// number of processes with a separate Repository; commits are serialised. Between calls
// there are at most three git processes that wait for input. Close ends them.
type Repository struct {
	git   git
	pause func(context.Context, time.Duration) error // between attempts

	mu    sync.Mutex  // commits, and the fields below
	last  string      // the last value of main set or read here; "" before the first
	look  *gitProcess // git cat-file --batch, which also reads main
	build *gitProcess // git fast-import
	swap  *gitProcess // git update-ref --stdin

	repacking sync.Mutex // and the fields below
	replaced  []string   // packs whose objects are all in other packs too
	replacing []string   // hashes of those other packs
}

// Open opens the repository in a folder. It first creates missing parts: the folder
// (0700), the repository with its branch main, the first commit with .gitattributes. It
// leaves existing files alone. It removes debris of killed processes: abandoned locks of
// git and temporary files. It is idempotent and safe to retry after a kill.
//
// last is the caller's last acknowledged commit, "" if there is none or it is unknown. If
// main is missing and last exists, main is restored to it. last also separates later
// commits of others from cairn's (see Commit). Contains reports whether the repository
// still contains it.
//
// stale is the minimum age of an abandoned lock of git, 0 for a minute.
//
// Errors: Unavailable, with CodeNoGit, CodeGone if something else is at the folder's
// path, CodeGit for other failures of git.
func Open(ctx context.Context, dir, last string, stale time.Duration) (*Repository, error) {
	r, err := At(dir)
	if err != nil {
		return nil, err
	}
	r.git.stale = stale
	if err := r.open(ctx, last); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Repository) open(ctx context.Context, last string) error {
	if err := MakeDir(r.git.dir); err != nil {
		return err
	}
	err := r.locked(ctx, commitLock, func() error { return r.prepare(ctx, last) })
	if err != nil {
		_ = r.Close()
	}
	return err
}

// At returns the repository in a folder, to read it. It creates nothing and does not
// check whether there is one.
func At(dir string) (*Repository, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	return &Repository{git: git{program: "git", dir: abs}, pause: sleep}, nil
}

// prepare creates the missing parts of a repository.
func (r *Repository) prepare(ctx context.Context, last string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.init(ctx); err != nil {
		return err
	}
	if err := r.exclude(); err != nil {
		return r.git.refused(ctx, "init", "", err)
	}
	r.clear()
	if err := r.initMain(ctx, last); err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(r.git.dir, AttributesFile)); err != nil {
		if err := os.WriteFile(filepath.Join(r.git.dir, AttributesFile), []byte(attributes), 0o600); err != nil {
			return r.unwritten(AttributesFile, err)
		}
	}
	if _, err := os.Stat(r.inGit("index")); err != nil {
		return r.refreshIndex(ctx)
	}
	return nil
}

// init creates the repository if a part of it is missing.
func (r *Repository) init(ctx context.Context) error {
	for _, name := range []string{"HEAD", "objects", "refs", "config"} {
		if _, err := os.Stat(r.inGit(name)); err != nil {
			_, err := r.git.run(ctx, "init", "--quiet", "--template=", "--object-format=sha1", "--initial-branch=main")
			return err
		}
	}
	return nil
}

// initMain reads main. If it is missing, it restores main to the last known commit or
// creates the first commit.
func (r *Repository) initMain(ctx context.Context, last string) error {
	if last != "" {
		if _, ok, err := r.commitTree(ctx, last); err != nil {
			return err
		} else if ok {
			r.last = last
		}
	}
	main, err := r.main(ctx)
	switch {
	case err != nil:
		return err
	case main.hash == "" && r.last != "":
		return r.moveMain(ctx, unborn, r.last)
	case main.hash == "":
		_, err = r.advance(ctx, nil, "chore: initialize archive", time.Now())
		return err
	case r.last == "":
		r.last = main.hash
	}
	return nil
}

// IsLast reports whether a commit is the last one that this repository made or that the
// caller passed.
func (r *Repository) IsLast(hash string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last == hash
}

// exclude makes git ignore cairn's own files.
func (r *Repository) exclude() error {
	path := r.inGit("info", "exclude")
	old, _ := os.ReadFile(path)
	if bytes.Contains(old, []byte(excluded)) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, append(old, excluded...), 0o600)
}

// Dir returns the folder: the work tree.
func (r *Repository) Dir() string { return r.git.dir }

func (r *Repository) inGit(names ...string) string {
	return filepath.Join(append([]string{r.git.dir, ".git"}, names...)...)
}

// Close ends the git processes. Acknowledged commits do not need it; call RefreshIndex
// before it at a clean stop. The Repository can still be used.
func (r *Repository) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endAll()
	return nil
}

func (r *Repository) endAll() {
	r.endBuild()
	for _, t := range []**gitProcess{&r.look, &r.swap} {
		if *t != nil {
			(*t).end("")
			*t = nil
		}
	}
}

// endBuild ends the import, which frees its packs for consolidation.
func (r *Repository) endBuild() {
	if r.build != nil {
		r.build.end("done\n")
		r.build = nil
	}
}

// within runs an exchange with one of the processes. It starts the process if necessary
// and forgets it if it fails.
func (r *Repository) within(ctx context.Context, t **gitProcess, args []string, conversation func(*gitProcess) error) error {
	if *t == nil {
		started, err := r.git.start(args...)
		if err != nil {
			return err
		}
		*t = started
	}
	err := (*t).within(ctx, func() error { return conversation(*t) })
	if err != nil {
		*t = nil
	}
	return err
}

// locked runs f while it holds one of the project's kernel locks.
func (r *Repository) locked(ctx context.Context, name string, f func() error) error {
	unlock, err := locks.LockFile(ctx, filepath.Join(r.git.dir, name))
	if err != nil {
		return r.git.refused(ctx, "cannot be reached", "", fmt.Errorf("%s: %s", name, Reason(err)))
	}
	return errors.Join(f(), unlock())
}

// tip is the commit of a branch.
type tip struct{ hash, tree string } // both "" if the branch does not exist

// main reads the tip of main.
func (r *Repository) main(ctx context.Context) (tip, error) {
	var hash, tree string
	var found bool
	err := r.lookUp(ctx, mainRef, func(h, kind string, content []byte) error {
		hash, tree, found = h, treeOf(content), true
		if kind != "commit" || tree == "" {
			return fmt.Errorf("main is not a commit but %s %s", kind, h)
		}
		return nil
	})
	if err != nil || found {
		return tip{hash, tree}, err
	}
	// git reports the same for a missing branch and for a branch whose commit is missing.
	out, err := r.git.run(ctx, "rev-parse", "--quiet", "--verify", mainRef)
	if exitCode(err) == 1 {
		return tip{}, nil
	} else if err != nil {
		return tip{}, err
	}
	return tip{}, r.git.refused(ctx, "cat-file", "commit "+strings.TrimSpace(string(out))+" of main is missing", nil)
}

// commitTree returns the tree of a commit; ok is false if the repository lacks it.
func (r *Repository) commitTree(ctx context.Context, hash string) (tree string, ok bool, err error) {
	err = r.lookUp(ctx, hash, func(_, kind string, content []byte) error {
		tree, ok = treeOf(content), kind == "commit"
		return nil
	})
	return tree, ok && tree != "", err
}

// treeOf reads the first line of a commit.
func treeOf(commit []byte) string {
	line, _, _ := bytes.Cut(commit, []byte("\n"))
	tree, _ := strings.CutPrefix(string(line), "tree ")
	return tree
}

// lookUp calls found with the object of a name. It does nothing if there is none.
func (r *Repository) lookUp(ctx context.Context, name string, found func(hash, kind string, content []byte) error) error {
	return r.within(ctx, &r.look, []string{"cat-file", "--batch"}, func(t *gitProcess) error { return t.object(name, found) })
}

// object reads one object from git cat-file.
func (t *gitProcess) object(name string, found func(hash, kind string, content []byte) error) error {
	_, _ = t.in.WriteString(name + "\n")
	if err := t.in.Flush(); err != nil {
		return err
	}
	line, err := t.line()
	if err != nil {
		return err
	}
	f := strings.Fields(line)
	if len(f) != 3 {
		if strings.HasSuffix(line, " missing") {
			return nil
		}
		return fmt.Errorf("it answered %q", line)
	}
	size, err := strconv.Atoi(f[2])
	if err != nil {
		return err
	}
	content := make([]byte, size+1)
	if _, err := io.ReadFull(t.out, content); err != nil {
		return err
	}
	return found(f[0], f[1], content[:size])
}

// MakeDir creates a folder that only its owner may read. Errors: Unavailable with CodeGone.
func MakeDir(dir string) error {
	err := os.MkdirAll(dir, 0o700)
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, CodeGone, "archive "+dir+" cannot be created: "+Reason(err)).
			WithHint("check what is at that path, and the permissions of the data directory")
	}
	return nil
}
