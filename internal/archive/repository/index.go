package repository

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"
)

// indexedName is a file in .git with the commit to which the index was last refreshed.
// After an interrupted refresh it also contains the target commit.
const indexedName = "cairn-index"

// RefreshIndex updates git's index to main, so that `git status` compares with the
// archived files; commits do not touch the index. Manually staged changes stay staged. If
// they conflict, or HEAD is not on main, the index stays unchanged. It also restores
// files that a manual commit reverted by accident (see Commit). Call it after IdleAfter
// without a commit, and at a clean stop. It is idempotent. Errors: as for Commit.
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
	bases := r.indexed()
	if !Exists(r.inGit("index")) {
		bases = nil
	} else if len(bases) == 1 && bases[0] == main.hash {
		return nil
	}
	if err := r.setIndexed(ctx, append(bases[:min(len(bases), maxBases)], main.hash)...); err != nil {
		return err
	}
	if ok, err := r.readTree(ctx, bases, main.hash); !ok || err != nil {
		return errors.Join(err, r.setIndexed(ctx, bases...))
	}
	if _, err := r.git.run(ctx, "update-index", "-q", "--refresh"); err != nil && exitCode(err) != 1 {
		return err
	}
	return r.setIndexed(ctx, main.hash)
}

// readTree updates the index from one of the commits in from to the commit to. If none of
// them exists, it overwrites the index. ok is false if staged changes prevent it.
func (r *Repository) readTree(ctx context.Context, from []string, to string) (ok bool, err error) {
	staged := false
	for _, base := range from {
		if _, found, err := r.commitTree(ctx, base); err != nil {
			return false, err
		} else if !found {
			continue
		}
		_, err := r.git.run(ctx, "read-tree", "-i", "-m", base, to)
		if err == nil {
			return true, nil
		}
		if !r.stagedAgainst(ctx, base, to) {
			return false, err
		}
		staged = true
	}
	if staged {
		return false, nil
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

// maxBases is the maximum number of commits stored after repeated kills.
const maxBases = 8

// indexed returns the possible commits of the index, none if unknown.
func (r *Repository) indexed() (hashes []string) {
	b, err := os.ReadFile(r.inGit(indexedName))
	if err != nil {
		return nil
	}
	for _, hash := range strings.Fields(string(b)) {
		if len(hash) == len(unborn) && strings.Trim(hash, "0123456789abcdef") == "" && !slices.Contains(hashes, hash) {
			hashes = append(hashes, hash)
		}
	}
	return hashes
}

func (r *Repository) setIndexed(ctx context.Context, hashes ...string) error {
	path := r.inGit(indexedName)
	err := os.WriteFile(path+".new", []byte(strings.Join(hashes, "\n")+"\n"), 0o600)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return r.git.refused(ctx, "update-index", "", err)
	}
	return nil
}
