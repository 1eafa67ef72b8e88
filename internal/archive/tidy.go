package archive

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	staleAfter = time.Minute // how old a lock of git is that nobody can hold any more
	debrisAge  = time.Hour   // how old what killed gits left must be before it goes

	manyPacks = 32    // packs from which on Repack has something to do; ≤ 50 are wanted
	manyLoose = 2_000 // loose objects likewise; ≤ 10,000 are wanted
)

// Repack consolidates the packs that commits leave, one each: afterwards there
// are few, of which each is at least twice as large as the next. It does nothing
// while there are fewer than 32 and fewer than 2,000 loose objects, so it may be
// called as often as one likes; only one runs at a time. It holds no lock that a
// commit wants. What nothing refers to is kept. Repeating it is safe, and so is
// killing it. Errors: Unavailable with CodeGone, CodeNoGit, CodeGit.
func (r *Repository) Repack(ctx context.Context) error {
	r.repacking.Lock()
	defer r.repacking.Unlock()
	packs, loose := r.count()
	if packs < manyPacks && loose < manyLoose {
		return nil
	}
	r.mu.Lock()
	r.endBuild()
	r.mu.Unlock()
	if err := r.locked(ctx, commitLock, func() error { r.clear(); return nil }); err != nil {
		return err
	}
	_, err := r.git.run(ctx, "repack", "-d", "-n", "--quiet", "--geometric=2", "--no-write-bitmap-index")
	return err
}

// count counts the packs and the loose objects.
func (r *Repository) count() (packs, loose int) {
	for _, dir := range matches(r.inGit("objects"), "[0-9a-f][0-9a-f]") {
		loose += len(matches(dir, "*"))
	}
	return len(matches(r.inGit("objects", "pack"), "*.pack")), loose
}

// clear removes what killed processes left in the repository: git's own locks
// that are old and belong to nobody, and debris. The commit lock is held. It does
// what it can: whatever still stands in the way makes git say so.
func (r *Repository) clear() {
	for _, lock := range r.gitLocks() {
		if olderThan(staleAfter, lock) && !r.owned(lock) {
			_ = os.Remove(lock)
		}
	}
	r.clearDebris()
}

// clearDebris removes marks by which an import keeps its packs from being
// consolidated, if they are old or their pack was never completed (which would
// keep an equal pack from being made), packs without index, temporary packs and
// reports of crashes. The commit lock is held, so no import of cairn is at work.
func (r *Repository) clearDebris() {
	packs := r.inGit("objects", "pack")
	for _, keep := range matches(packs, "*.keep") {
		b, err := os.ReadFile(keep)
		ours := err == nil && (len(b) == 0 || string(b) == "fast-import")
		if ours && (olderThan(staleAfter, keep) || !exists(strings.TrimSuffix(keep, ".keep")+".idx")) {
			_ = os.Remove(keep)
		}
	}
	debris := append(matches(packs, "tmp_*"), matches(r.inGit(), "fast_import_crash_*")...)
	for _, pack := range matches(packs, "*.pack") {
		if !exists(strings.TrimSuffix(pack, ".pack") + ".idx") {
			debris = append(debris, pack)
		}
	}
	for _, path := range debris {
		if olderThan(debrisAge, path) {
			_ = os.Remove(path)
		}
	}
}

// matches are the files of a folder whose names match a pattern.
func matches(dir, pattern string) (paths []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if ok, _ := filepath.Match(pattern, e.Name()); ok {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func olderThan(age time.Duration, path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) >= age
}

// gitLocks are the lock files of git that stand in the way of cairn.
func (r *Repository) gitLocks() []string {
	locks := []string{r.inGit("index.lock"), r.inGit("HEAD.lock"), r.inGit("packed-refs.lock"), r.inGit("config.lock")}
	_ = filepath.WalkDir(r.inGit("refs"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".lock") {
			locks = append(locks, path)
		}
		return nil
	})
	return locks
}

// owned reports whether a process may still hold a lock file of git: one that has
// it open, or a git that works in the folder (it closes the file before it is
// done; an editor may be open meanwhile). Cairn's own gits work elsewhere. Where
// processes cannot be looked at, and for those of other users, age must do.
func (r *Repository) owned(lock string) bool {
	for _, p := range matches("/proc", "[0-9]*") {
		name, _ := os.ReadFile(filepath.Join(p, "comm"))
		cwd, _ := os.Readlink(filepath.Join(p, "cwd"))
		if strings.HasPrefix(string(name), "git") && (cwd == r.git.dir || strings.HasPrefix(cwd, r.git.dir+"/")) {
			return true
		}
		for _, f := range matches(filepath.Join(p, "fd"), "*") {
			if to, err := os.Readlink(f); err == nil && to == lock {
				return true
			}
		}
	}
	return false
}
