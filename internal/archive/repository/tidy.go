package repository

import (
	"cmp"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cairn/internal/wholefile"
)

const (
	staleAfter = time.Minute // minimum age of an abandoned lock of git
	debrisAge  = time.Hour   // minimum age of debris of killed git processes

	manyPacks = 32    // number of packs at which Repack starts work; the limit is 50
	manyLoose = 2_000 // likewise for loose objects; the limit is 10,000
)

// Repack consolidates packs, because each commit creates one. It merges the small packs,
// up to the first that is twice as large as all smaller ones together. It does nothing
// with fewer than 32 packs and fewer than 2,000 loose objects, so it is cheap to call
// often; only one runs at a time. It does not block commits. It keeps unreachable
// objects. Replaced packs stay while another git process works in the folder, as far as
// visible (on Linux), because git fsck reports a pack that disappears while it runs.
//
// It is safe to retry and to kill. A concurrent repack by another process makes it fail
// without damage, so it retries like a commit. Errors: Unavailable with CodeGone,
// CodeNoGit, CodeGit.
func (r *Repository) Repack(ctx context.Context) error {
	r.repacking.Lock()
	defer r.repacking.Unlock()
	return retry(ctx, r.pause, func(int) error {
		r.dropReplaced()
		packs, loose := r.count()
		if packs < manyPacks && loose < manyLoose || len(r.replaced) > 0 {
			return nil
		}
		r.mu.Lock()
		r.endBuild()
		r.mu.Unlock()
		if err := r.locked(ctx, commitLock, func() error { r.clearDebris(); return nil }); err != nil {
			return err
		}
		return r.repack(ctx)
	})
}

func (r *Repository) repack(ctx context.Context) error {
	dir := r.inGit("objects", "pack")
	small := r.smallPacks()
	var names strings.Builder // objects in other packs too are included, because those packs may disappear at any time
	for _, pack := range small {
		names.WriteString(filepath.Base(pack) + "\n")
	}
	cmd := r.git.command(ctx, "pack-objects", "--quiet", "--stdin-packs", "--unpacked", "--non-empty", filepath.Join(dir, "pack"))
	told := &bounded{left: maxTold}
	cmd.Stdin, cmd.Stderr = strings.NewReader(names.String()), told
	out, err := cmd.Output()
	if err != nil {
		return r.git.refused(ctx, "pack-objects", told.String(), err)
	}
	made := strings.Fields(string(out))
	if len(made) == 0 || !r.arePacks(made) {
		return r.git.refused(ctx, "pack-objects", "the new pack is missing", nil)
	}
	if err := wholefile.SyncDir(dir); err != nil {
		return r.git.refused(ctx, "pack-objects", "", err)
	}
	r.replacing = made
	for _, pack := range small {
		if hash := strings.TrimPrefix(strings.TrimSuffix(filepath.Base(pack), ".pack"), "pack-"); !slices.Contains(made, hash) {
			r.replaced = append(r.replaced, pack)
		}
	}
	r.dropReplaced()
	_, err = r.git.run(ctx, "prune-packed", "--quiet")
	return err
}

// arePacks reports whether the repository has these packs.
func (r *Repository) arePacks(hashes []string) bool {
	return !slices.ContainsFunc(hashes, func(hash string) bool {
		stem := r.inGit("objects", "pack", "pack-"+hash)
		return !Exists(stem+".pack") || !Exists(stem+".idx")
	})
}

// smallPacks returns the packs to consolidate, without kept packs.
func (r *Repository) smallPacks() []string {
	sizes := map[string]int64{}
	var packs []string
	for _, pack := range matches(r.inGit("objects", "pack"), "*.pack") {
		stem := strings.TrimSuffix(pack, ".pack")
		info, err := os.Stat(pack)
		if err == nil && Exists(stem+".idx") && !Exists(stem+".keep") {
			packs, sizes[pack] = append(packs, pack), info.Size()
		}
	}
	slices.SortFunc(packs, func(a, b string) int { return cmp.Compare(sizes[a], sizes[b]) })
	var sum int64
	for i, pack := range packs {
		if i > 1 && sizes[pack] >= 2*sum {
			return packs[:i]
		}
		sum += sizes[pack]
	}
	return packs
}

// dropReplaced removes packs whose objects are in another pack, unless another process
// may be reading them. If that other pack has disappeared, another process repacks; then
// they stay until the next time.
func (r *Repository) dropReplaced() {
	if len(r.replaced) == 0 || r.visited() {
		return
	}
	var stems []string
	for _, pack := range r.replaced {
		if stem := strings.TrimSuffix(pack, ".pack"); !Exists(stem+".keep") && r.arePacks(r.replacing) {
			_ = os.Remove(stem + ".idx") // first: without its index no process uses the pack
			stems = append(stems, stem)
		}
	}
	for _, stem := range stems {
		for _, suffix := range []string{".rev", ".bitmap", ".pack"} {
			_ = os.Remove(stem + suffix)
		}
	}
	r.replaced = nil
}

// count counts the packs and the loose objects.
func (r *Repository) count() (packs, loose int) {
	for _, dir := range matches(r.inGit("objects"), "[0-9a-f][0-9a-f]") {
		loose += len(matches(dir, "*"))
	}
	return len(matches(r.inGit("objects", "pack"), "*.pack")), loose
}

// clear removes debris of killed processes from the repository: old abandoned locks of
// git, and temporary files. The caller must hold the commit lock. It ignores errors,
// because git reports remaining obstacles.
func (r *Repository) clear() {
	for _, lock := range r.gitLocks() {
		if olderThan(cmp.Or(r.git.stale, staleAfter), lock) && !r.owned(lock) {
			_ = os.Remove(lock)
		}
	}
	r.clearDebris()
}

// clearDebris removes packs without an index, temporary packs and crash reports. It also
// removes an import's .keep files if they are old, or if their pack was never completed,
// because they would prevent an equal pack. The caller must hold the commit lock, so no
// import of cairn is running.
func (r *Repository) clearDebris() {
	packs := r.inGit("objects", "pack")
	for _, keep := range matches(packs, "*.keep") {
		b, err := os.ReadFile(keep)
		ours := err == nil && (len(b) == 0 || string(b) == "fast-import")
		if ours && (olderThan(staleAfter, keep) || !Exists(strings.TrimSuffix(keep, ".keep")+".idx")) {
			_ = os.Remove(keep)
		}
	}
	debris := append(matches(packs, "tmp_*"), matches(r.inGit(), "fast_import_crash_*")...)
	for _, pack := range matches(packs, "*.pack") {
		if !Exists(strings.TrimSuffix(pack, ".pack") + ".idx") {
			debris = append(debris, pack)
		}
	}
	for _, path := range debris {
		if olderThan(debrisAge, path) {
			_ = os.Remove(path)
		}
	}
}

// matches returns the files of a folder whose names match a pattern.
func matches(dir, pattern string) (paths []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if ok, _ := filepath.Match(pattern, e.Name()); ok {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths
}

// Exists reports whether there is something at a path, also a broken link.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func olderThan(age time.Duration, path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) >= age
}

// gitLocks returns the lock files of git that block cairn.
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

// owned reports whether a process may still hold a lock file of git: a process that has
// it open, or a git that works in the folder. git closes the file before it is done, for
// example while an editor is open. If processes cannot be inspected, or belong to other
// users, only the age decides.
func (r *Repository) owned(lock string) bool {
	if r.visited() {
		return true
	}
	for _, p := range matches("/proc", "[0-9]*") {
		for _, f := range matches(filepath.Join(p, "fd"), "*") {
			if to, err := os.Readlink(f); err == nil && to == lock {
				return true
			}
		}
	}
	return false
}

// visited reports whether another git process works in the folder. cairn's own are
// started in another folder, see command. The scan takes a while, so it repeats for
// processes that started meanwhile, until there are none.
func (r *Repository) visited() bool {
	seen := map[string]bool{}
	for {
		fresh := slices.DeleteFunc(matches("/proc", "[0-9]*"), func(p string) bool { return seen[p] })
		if len(fresh) == 0 {
			return false
		}
		for _, p := range fresh {
			if seen[p] = true; r.visits(p) {
				return true
			}
		}
	}
}

func (r *Repository) visits(process string) bool {
	name, err := os.ReadFile(filepath.Join(process, "comm"))
	if err != nil || !strings.HasPrefix(string(name), "git") {
		return false
	}
	cwd, err := os.Readlink(filepath.Join(process, "cwd"))
	if err == nil && (cwd == r.git.dir || strings.HasPrefix(cwd, r.git.dir+"/")) {
		return true
	}
	args, err := os.ReadFile(filepath.Join(process, "cmdline"))
	return err == nil && strings.Contains(string(args), r.git.dir)
}
