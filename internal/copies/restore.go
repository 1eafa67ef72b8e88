package copies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"cairn/internal/archive"
	"cairn/internal/fault"
	"cairn/internal/mail/documents"
	"cairn/internal/regular"
	"cairn/internal/repair"
	"cairn/internal/store"
)

// RestoreArgs say what to restore.
type RestoreArgs struct {
	File     string
	DryRun   bool // look only
	Force    bool // also over a store with changes that the backup does not have
	Progress func(what string)
}

// Restored is what a restore did, or would do.
type Restored struct {
	BackupReport
	DryRun   bool     `json:"dry_run"`
	Later    int64    `json:"changes_left"` // changes of the present store after the backup, which are moved away with it
	Moved    []string `json:"moved"`        // where the present data lies now
	Archives int      `json:"archives"`     // repositories
}

// CodeLater marks a restore over a store that has gone on since the backup (Conflict).
const CodeLater = "store_newer"

// What follows the archive's folder in the names of those that a restore makes.
const (
	archiveComing = ".restore-"
	archiveAside  = ".backup-"
)

// Restore puts a backup in the place of the present data (mail §10.6): it looks at
// all of it, then moves the store and the archive away, beside themselves, under
// names that end in .backup-TIME. Numbers go on 100,000 above those of the backup.
// Whenever it is interrupted, there is the present store or the restored one;
// repeating it is safe. The archive follows its store, at once or with the next
// command that uses it. It works with broken settings, as a salvage does.
//
// Errors, on which everything is as it was: CodeBackup; CodeLater (Conflict)
// without Force; store.CodeBusy while a process has the store open; store.CodeKey;
// store.CodeNewer; Conflict where one of the two is encrypted and the other is not.
func (k Keeper) Restore(ctx context.Context, a RestoreArgs) (r Restored, err error) {
	if a.Progress == nil {
		a.Progress = func(string) {}
	}
	dir, err := os.MkdirTemp("", "cairn-restore-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	x := &restoring{RestoreArgs: a, keeper: k, dir: dir, stamp: k.Clock().UTC().Format("20060102T150405.000000000Z")}
	r.File, r.DryRun, r.Moved = a.File, a.DryRun, []string{}
	if info, serr := os.Stat(a.File); serr == nil {
		r.Bytes = info.Size()
	}
	if err := x.judge(ctx); err != nil {
		return r, err
	}
	r.Info, r.Later, r.Archives = x.info, x.later, len(x.slugs)
	if a.DryRun {
		return r, nil
	}
	if x.later > 0 && !a.Force {
		return r, fault.Newf(fault.Conflict, CodeLater, "the store has %d changes that the backup does not have", x.later).
			WithHint("with --force they are moved away with the present store")
	}
	r.Moved, err = x.swap(ctx)
	return r, err
}

// restoring is one restore under way.
type restoring struct {
	RestoreArgs
	keeper Keeper
	dir    string // where the backup is unpacked
	stamp  string
	info   Info
	key    []byte
	slugs  []string // of the repositories in it

	later int64            // changes that only the present store has
	above map[string]int64 // numbers that it gave
	ids   map[string]int64 // numbers that the archives saw
}

// judge looks at the backup and at what it would replace.
func (x *restoring) judge(ctx context.Context) (err error) {
	x.Progress("reading the backup")
	if x.info, err = unpack(ctx, x.File, x.dir); err != nil {
		return err
	}
	if x.key, err = x.keeper.keyOf(x.dir, x.info); err != nil {
		return err
	}
	db := filepath.Join(x.dir, databaseMember)
	found, known, err := store.Schema(db, x.key)
	if err != nil {
		return err
	}
	if found > known {
		return fault.Newf(fault.Unavailable, store.CodeNewer, "the backup has schema %d, this cairn knows %d", found, known).WithHint("upgrade cairn")
	}
	if err := checkCopy(ctx, db, x.key); err != nil {
		return err
	}
	x.ids = map[string]int64{}
	x.readNumbers(filepath.Join(x.dir, filepath.FromSlash(numbersMember)))
	x.readNumbers(filepath.Join(x.archive(), "ids.json"))
	for _, m := range x.info.Members {
		if slug, ok := strings.CutSuffix(path.Base(m.Name), bundleSuffix); ok {
			x.slugs = append(x.slugs, slug)
		}
	}
	return x.present(ctx)
}

func (x *restoring) archive() string { return x.keeper.archive() }

// readNumbers takes in the highest numbers that an archive ever saw; one that cannot
// be read tells nothing.
func (x *restoring) readNumbers(file string) {
	text, err := regular.Read(file, regular.MaxForeign)
	var ids map[string]int64
	if err != nil || json.Unmarshal(text, &ids) != nil {
		return
	}
	for name, n := range ids {
		x.ids[name] = max(x.ids[name], n)
	}
}

// present looks at the store that is there. One that cannot be read is replaced
// without further questions: that is what backups are for.
func (x *restoring) present(ctx context.Context) error {
	db := x.keeper.DB
	if info, err := os.Stat(db); err != nil || info.Size() == 0 {
		return nil
	}
	encrypted, err := store.LooksEncrypted(db)
	if err != nil {
		return err
	}
	if encrypted != x.info.Encrypted {
		return fault.New(fault.Conflict, "store_differs", "one of the store and the backup is encrypted, the other is not").
			WithHint("move the present store away by hand, with the files beside it, then restore")
	}
	if fits, err := store.KeyFits(db, x.key); encrypted && (err != nil || !fits) {
		return errors.Join(err, fault.New(fault.Conflict, "store_differs", "the present store has another key than the backup").
			WithHint("move the present store away by hand, with the files beside it, then restore"))
	}
	s, err := store.Examine(ctx, store.Config{Path: db, Key: x.key, Wait: x.keeper.Wait})
	if err != nil {
		return ignoreDamage(err)
	}
	err = s.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		head, err := tx.Head(ctx)
		if err != nil {
			return err
		}
		x.later = max(0, head-x.info.Changes)
		x.above, err = tx.Numbers(ctx)
		return err
	})
	return errors.Join(ignoreDamage(err), s.Close())
}

func ignoreDamage(err error) error {
	if err == nil || fault.KindOf(err) == fault.Internal || fault.HasCode(err, store.CodeForeign) {
		return nil
	}
	return err
}

// swap puts the backup in place of the present data.
func (x *restoring) swap(ctx context.Context) (moved []string, err error) {
	config := store.ReplaceConfig{Path: x.keeper.DB, Key: x.key, Wait: x.keeper.Wait, Clock: x.keeper.Clock, Progress: x.Progress}
	moved = []string{}
	if err := x.keeper.finishRestore(ctx, x.key); err != nil { // an earlier one's
		return moved, err
	}
	aside, err := store.Replace(ctx, config, x.stamp, x.build)
	if err != nil {
		return moved, errors.Join(err, os.RemoveAll(x.archive()+archiveComing+x.stamp))
	}
	if aside != "" {
		moved = append(moved, aside)
	}
	folder, err := settleArchive(x.archive(), x.stamp)
	if folder != "" {
		moved = append(moved, folder)
	}
	return moved, err
}

// build makes the new store, and the folder of its archive beside the present one.
func (x *restoring) build(ctx context.Context, fresh string) error {
	if err := x.dropAbandoned(); err != nil {
		return err
	}
	x.Progress("building the store")
	if err := copyWhole(filepath.Join(x.dir, databaseMember), fresh); err != nil {
		return err
	}
	if x.info.Encrypted {
		if err := copyWhole(filepath.Join(x.dir, filepath.FromSlash(keyCheckMember)), fresh+"-cipher"); err != nil {
			return err
		}
	}
	s, err := store.Open(ctx, store.Config{Path: fresh, Key: x.key, Clock: x.keeper.Clock, Temporary: true})
	if err != nil {
		return err
	}
	err = s.Write(ctx, store.Full, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.GoOnAnew(ctx, x.above, x.stamp); err != nil {
			return err
		}
		return documents.RaiseNumbers(ctx, tx, x.ids)
	})
	if err == nil {
		err = x.sound(ctx, s)
	}
	if err := errors.Join(err, s.Close()); err != nil {
		return err
	}
	coming := x.archive() + archiveComing + x.stamp
	if err := os.MkdirAll(coming, 0o700); err != nil {
		return err
	}
	for _, slug := range x.slugs {
		x.Progress("unpacking the repository of " + slug)
		bundle := filepath.Join(x.dir, archiveFolder, slug+bundleSuffix)
		if err := archive.Unbundle(ctx, filepath.Join(coming, slug), bundle); err != nil {
			return err
		}
	}
	err = copyWhole(filepath.Join(x.dir, filepath.FromSlash(numbersMember)), filepath.Join(coming, "ids.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// sound looks through the whole store.
func (x *restoring) sound(ctx context.Context, s *store.Store) error {
	x.Progress("checking the store")
	found, err := repair.Check(ctx, s)
	if err == nil && len(found) > 0 {
		err = damagedBackup("the store in it: " + repair.Summary(found))
	}
	return err
}

// dropAbandoned removes what killed restores have unpacked.
func (x *restoring) dropAbandoned() error {
	left, err := x.keeper.RestoresUnderWay()
	for _, dir := range left {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}

// FinishRestore completes a restore that was killed after it had replaced the store
// and before it had replaced the archive. Whoever uses the archive calls it first;
// it costs next to nothing where there is nothing to do. Without a store, nil, it does
// nothing.
func (k Keeper) FinishRestore(ctx context.Context, s *store.Store) error {
	coming, err := k.RestoresUnderWay()
	if err != nil || len(coming) == 0 || s == nil {
		return err
	}
	return settleRestored(ctx, s, k.archive(), coming)
}

// finishRestore is FinishRestore for a store that is not open, and may be damaged.
func (k Keeper) finishRestore(ctx context.Context, key []byte) error {
	coming, err := k.RestoresUnderWay()
	if err != nil || len(coming) == 0 {
		return err
	}
	s, err := store.Examine(ctx, store.Config{Path: k.DB, Key: key, Wait: k.Wait})
	if err != nil {
		if fault.HasCode(err, store.CodeMissing) {
			return nil
		}
		return ignoreDamage(err)
	}
	return errors.Join(ignoreDamage(settleRestored(ctx, s, k.archive(), coming)), s.Close())
}

// RestoresUnderWay are the folders of archives that restores have unpacked and not put in
// place yet.
func (k Keeper) RestoresUnderWay() ([]string, error) {
	return filepath.Glob(escapeGlob(k.archive()) + archiveComing + "*")
}

func settleRestored(ctx context.Context, s *store.Store, place string, coming []string) error {
	return s.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		stamp, err := tx.Restored(ctx)
		if err != nil {
			return err
		}
		for _, folder := range coming {
			if strings.HasSuffix(folder, archiveComing+stamp) && stamp != "" {
				_, err = settleArchive(place, stamp)
			}
		}
		return err
	})
}

// settleArchive puts the archive that belongs to the restored store in place and
// tells where the former one lies, "" if there was none. Each step is one rename;
// repeating it goes on where it stopped.
func settleArchive(place, stamp string) (aside string, err error) {
	coming := place + archiveComing + stamp
	if !isThere(coming) {
		return "", nil
	}
	if isThere(place) {
		aside = place + archiveAside + stamp
		if isThere(aside) {
			return "", fault.New(fault.Conflict, "archive_in_place", fmt.Sprintf("%s exists already", aside)).WithHint("move it away")
		}
		if err := os.Rename(place, aside); err != nil {
			return "", err
		}
	}
	return aside, os.Rename(coming, place)
}
