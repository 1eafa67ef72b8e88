package archive

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
	"cairn/internal/store"
)

const (
	mainRef    = "refs/heads/main"
	filesLock  = ".archive.lock" // held while files of the work tree are written
	commitLock = ".commit.lock"  // held while the repository is changed
	unborn     = "0000000000000000000000000000000000000000"

	attributesFile = ".gitattributes"
	attributes     = "* -text\n"
	// What cairn itself puts beside the files; people's git must not offer it.
	excluded = "/" + filesLock + "\n/" + commitLock + "\n" + tempName + "\n"

	// patience is how long one attempt may take; a git that hangs is killed then.
	patience = time.Minute
)

// IdleAfter is how long no commit has come when RefreshIndex and Repack are due.
const IdleAfter = 5 * time.Second

// Repository is the archive of one project. Any number of goroutines, and of
// processes with a Repository each, may use it; commits take turns. It starts
// nothing by itself: between the calls there are at most three git processes
// that wait for input. Close ends them.
type Repository struct {
	git   git
	pause func(context.Context, time.Duration) error // between attempts

	mu    sync.Mutex // commits, and the fields below
	last  string     // the last value of main that was made or seen here; "" before the first
	look  *talk      // git cat-file --batch, which also tells where main stands
	build *talk      // git fast-import
	swap  *talk      // git update-ref --stdin

	repacking sync.Mutex // and the fields below
	replaced  []string   // packs whose objects are all in others as well
	replacing []string   // the hashes of those others
}

// Open opens the repository in a folder, and first makes whatever of it is
// missing: the folder (0700), the repository with its branch main, the first
// commit with .gitattributes. Files that are there are left alone. It clears away
// what killed processes left: locks of git that nobody holds any more, and
// temporary files. Repeating it is safe, also after a kill in the middle.
//
// last is the commit that the caller saw acknowledged last, "" if there is none
// or it does not know. When main is missing and last is there, main is put back
// to it; and it tells a commit that somebody else made since from those of
// cairn (see Commit). Contains reports whether the repository still holds it.
//
// Errors: Unavailable, with CodeNoGit, CodeGone when something else stands in the
// folder's place, CodeGit for all that git refuses.
func Open(ctx context.Context, dir, last string) (*Repository, error) {
	return open(ctx, git{program: "git", dir: dir}, last)
}

func open(ctx context.Context, g git, last string) (*Repository, error) {
	abs, err := filepath.Abs(g.dir)
	if err != nil {
		return nil, err
	}
	g.dir = abs
	if err := os.MkdirAll(g.dir, 0o700); err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, CodeGone, "archive "+g.dir+" cannot be made: "+reason(err)).
			WithHint("check what is at that path, and the permissions of the data directory")
	}
	r := &Repository{git: g, pause: sleep}
	if err := r.locked(ctx, commitLock, func() error { return r.prepare(ctx, last) }); err != nil {
		_ = r.Close()
		return nil, err
	}
	return r, nil
}

// prepare makes what is missing of a repository.
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
	if err := r.stand(ctx, last); err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(r.git.dir, attributesFile)); err != nil {
		if err := os.WriteFile(filepath.Join(r.git.dir, attributesFile), []byte(attributes), 0o600); err != nil {
			return r.unwritten(attributesFile, err)
		}
	}
	if _, err := os.Stat(r.inGit("index")); err != nil {
		return r.refreshIndex(ctx)
	}
	return nil
}

// init makes the repository if a part of it is missing.
func (r *Repository) init(ctx context.Context) error {
	for _, name := range []string{"HEAD", "objects", "refs", "config"} {
		if _, err := os.Stat(r.inGit(name)); err != nil {
			_, err := r.git.run(ctx, "init", "--quiet", "--template=", "--object-format=sha1", "--initial-branch=main")
			return err
		}
	}
	return nil
}

// stand finds out where main stands, puts it back to the commit that was seen last if
// it is missing, and else begins it.
func (r *Repository) stand(ctx context.Context, last string) error {
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

// stands reports whether a commit is the last one that this repository made or was
// told of.
func (r *Repository) stands(hash string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last == hash
}

// exclude keeps cairn's own files out of what people's git shows.
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

// Dir is the folder: the work tree.
func (r *Repository) Dir() string { return r.git.dir }

func (r *Repository) inGit(names ...string) string {
	return filepath.Join(append([]string{r.git.dir, ".git"}, names...)...)
}

// Close ends the git processes. What was acknowledged needs no closing; a clean
// stop calls RefreshIndex before it. The Repository can still be used.
func (r *Repository) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endAll()
	return nil
}

func (r *Repository) endAll() {
	r.endBuild()
	for _, t := range []**talk{&r.look, &r.swap} {
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

// within has a conversation with one of the processes, which is started if it
// is not there and forgotten if it fails.
func (r *Repository) within(ctx context.Context, t **talk, args []string, conversation func(*talk) error) error {
	if *t == nil {
		started, err := r.git.talk(args...)
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
	unlock, err := store.LockFile(ctx, filepath.Join(r.git.dir, name))
	if err != nil {
		return r.git.refused(ctx, "is not reached", "", fmt.Errorf("%s: %s", name, reason(err)))
	}
	return errors.Join(f(), unlock())
}

// tip is where a branch stands.
type tip struct{ hash, tree string } // both "" when there is no such branch

// main reads where main stands now.
func (r *Repository) main(ctx context.Context) (tip, error) {
	var hash, tree string
	var found bool
	err := r.lookUp(ctx, mainRef, func(h, kind string, content []byte) error {
		hash, tree, found = h, treeOf(content), true
		if kind != "commit" || tree == "" {
			return fmt.Errorf("main is no commit but %s %s", kind, h)
		}
		return nil
	})
	if err != nil || found {
		return tip{hash, tree}, err
	}
	// git says the same of a branch that is not there and of one whose commit is not.
	out, err := r.git.run(ctx, "rev-parse", "--quiet", "--verify", mainRef)
	if exitCode(err) == 1 {
		return tip{}, nil
	} else if err != nil {
		return tip{}, err
	}
	return tip{}, r.git.refused(ctx, "cat-file", "commit "+strings.TrimSpace(string(out))+" of main is missing", nil)
}

// commitTree is the tree of a commit; ok is false if the repository does not hold it.
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

// lookUp gives the object of a name to found, or does nothing if there is none.
func (r *Repository) lookUp(ctx context.Context, name string, found func(hash, kind string, content []byte) error) error {
	return r.within(ctx, &r.look, []string{"cat-file", "--batch"}, func(t *talk) error { return t.object(name, found) })
}

// object asks a git cat-file for one object.
func (t *talk) object(name string, found func(hash, kind string, content []byte) error) error {
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
