package archive

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"
)

// indexedName is a file in .git that names the commit to which the index was
// refreshed last.
const indexedName = "cairn-index"

// RefreshIndex brings git's index to main, which commits do not touch, so that
// `git status` compares with what is archived. What somebody has staged by hand
// stays staged; if it stands in the way, or HEAD is not on main, the index is left
// alone until that has changed. It also archives again what a commit by hand took
// back (see Commit). It is meant for when no commit has come for IdleAfter and
// for a clean stop. Repeating it is safe. Errors: as for Commit.
func (r *Repository) RefreshIndex(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.locked(ctx, commitLock, func() error {
		r.clear()
		main, err := r.main(ctx)
		if err != nil {
			return err
		}
		if main.hash != r.last && r.last != "" {
			if _, err := r.advance(ctx, nil, "chore: archive again what a commit by hand took back", time.Now()); err != nil && !errors.Is(err, errMoved) {
				return err
			}
		}
		return r.refreshIndex(ctx)
	})
}

func (r *Repository) refreshIndex(ctx context.Context) error {
	head, err := r.git.run(ctx, "symbolic-ref", "--quiet", "HEAD")
	if exitCode(err) == 1 || err == nil && strings.TrimSpace(string(head)) != mainRef {
		return nil
	} else if err != nil {
		return err
	}
	main, err := r.main(ctx)
	if err != nil || main.hash == "" {
		return err
	}
	base := r.indexed()
	if _, err := os.Stat(r.inGit("index")); errors.Is(err, fs.ErrNotExist) {
		base = ""
	} else if base == main.hash {
		return nil
	}
	if ok, err := r.readTree(ctx, base, main.hash); !ok || err != nil {
		return err
	}
	if _, err := r.git.run(ctx, "update-index", "-q", "--refresh"); err != nil && exitCode(err) != 1 {
		return err
	}
	if err := os.WriteFile(r.inGit(indexedName), []byte(main.hash+"\n"), 0o600); err != nil {
		return r.git.refused(ctx, "update-index", "", err)
	}
	return nil
}

// readTree moves the index from one commit to another, or to the other whatever
// it holds if the first is not known. ok is false if something staged forbids it.
func (r *Repository) readTree(ctx context.Context, from, to string) (ok bool, err error) {
	if from != "" {
		_, found, err := r.commitTree(ctx, from)
		if err != nil {
			return false, err
		}
		if found {
			_, err := r.git.run(ctx, "read-tree", "-i", "-m", from, to)
			if err != nil && r.stagedAgainst(ctx, from, to) {
				return false, nil
			}
			return err == nil, err
		}
	}
	_, err = r.git.run(ctx, "read-tree", to)
	return err == nil, err
}

// stagedAgainst reports whether the index differs from both commits in a path
// in which they differ from each other.
func (r *Repository) stagedAgainst(ctx context.Context, from, to string) bool {
	paths := func(args ...string) map[string]bool {
		out, _ := r.git.run(ctx, append(args, "--name-only", "--no-renames", "-z")...)
		set := map[string]bool{}
		for p := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
			set[p] = true
		}
		delete(set, "")
		return set
	}
	old, now := paths("diff-index", "--cached", from), paths("diff-index", "--cached", to)
	for p := range paths("diff-tree", "-r", from, to) {
		if old[p] && now[p] {
			return true
		}
	}
	return false
}

// indexed is the commit to which the index was refreshed last, "" if that is not known.
func (r *Repository) indexed() string {
	b, err := os.ReadFile(r.inGit(indexedName))
	hash := strings.TrimSpace(string(b))
	if err != nil || len(hash) != len(unborn) || strings.Trim(hash, "0123456789abcdef") != "" {
		return ""
	}
	return hash
}
