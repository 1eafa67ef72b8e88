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

	"cairn/internal/archive/repository"
	"cairn/internal/fault"
	"cairn/internal/mail/documents"
	"cairn/internal/regular"
	"cairn/internal/repair"
	"cairn/internal/store"
	"cairn/internal/store/salvage"
)

// RestoreArgs describes a restore.
type RestoreArgs struct {
	File     string
	DryRun   bool // check only
	Force    bool // replace a store that has changes after the backup
	Progress func(what string)
}

// Restored is the result of a restore or of a dry run.
type Restored struct {
	BackupReport
	DryRun   bool     `json:"dry_run"`
	Later    int64    `json:"changes_left"` // changes of the present store after the backup; they are moved away with it
	Moved    []string `json:"moved"`        // paths of the moved data
	Archives int      `json:"archives"`     // repositories
}

// CodeLater marks a restore over a store that has changed since the backup (Conflict).
const CodeLater = "store_newer"

// Suffixes of archive folders that a restore creates.
const (
	archiveComing = ".restore-"
	archiveAside  = ".backup-"
)

// Restore replaces the present data with a backup (mail §10.6). It first checks the whole
// backup. Then it renames the store and the archive to names that end in .backup-TIME.
// New ids start 100,000 above those of the backup. Restore is atomic: after an
// interruption the store is either the present or the restored one, and it is safe to
// retry. The archive follows its store, immediately or with the next command that uses
// it. Restore works with broken settings, like salvage.
//
// After an error nothing has changed. Errors: CodeBackup; CodeLater (Conflict) without
// Force; store.CodeBusy while a process has the store open; store.CodeKey;
// store.CodeNewer; Conflict if only one of the store and the backup is encrypted.
func (k Keeper) Restore(ctx context.Context, a RestoreArgs) (r Restored, err error) {
	if a.Progress == nil {
		a.Progress = func(string) {}
	}
	dir, err := os.MkdirTemp("", "cairn-restore-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	x := &restorer{RestoreArgs: a, keeper: k, dir: dir, stamp: k.Clock().UTC().Format("20060102T150405.000000000Z")}
	r.File, r.DryRun, r.Moved = a.File, a.DryRun, []string{}
	if info, serr := os.Stat(a.File); serr == nil {
		r.Bytes = info.Size()
	}
	if err := x.check(ctx); err != nil {
		return r, err
	}
	r.Info, r.Later, r.Archives = x.info, x.later, len(x.slugs)
	if a.DryRun {
		return r, nil
	}
	if x.later > 0 && !a.Force {
		return r, fault.Newf(fault.Conflict, CodeLater, "the store has %d changes that the backup does not have", x.later).
			WithHint("--force moves them away with the present store")
	}
	r.Moved, err = x.swap(ctx)
	return r, err
}

// restorer is one running restore.
type restorer struct {
	RestoreArgs
	keeper Keeper
	dir    string // folder of the unpacked backup
	stamp  string
	info   Info
	key    []byte
	slugs  []string // repositories in the backup

	later int64            // changes after the backup in the present store
	above map[string]int64 // highest ids assigned by the present store
	ids   map[string]int64 // highest ids seen by the archives
}

// check reads the backup and the data that it would replace.
func (x *restorer) check(ctx context.Context) (err error) {
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

func (x *restorer) archive() string { return x.keeper.archive() }

// readNumbers reads the highest ids that an archive has seen. It skips an archive that
// cannot be read.
func (x *restorer) readNumbers(file string) {
	text, err := regular.Read(file, regular.MaxForeign)
	var ids map[string]int64
	if err != nil || json.Unmarshal(text, &ids) != nil {
		return
	}
	for name, n := range ids {
		x.ids[name] = max(x.ids[name], n)
	}
}

// present reads the present store. A store that cannot be read is replaced without
// confirmation, because backups exist for that case.
func (x *restorer) present(ctx context.Context) error {
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
			WithHint("move the present store away by hand, with the files next to it, then restore")
	}
	if fits, err := store.KeyFits(db, x.key); encrypted && (err != nil || !fits) {
		return errors.Join(err, fault.New(fault.Conflict, "store_differs", "the present store has another key than the backup").
			WithHint("move the present store away by hand, with the files next to it, then restore"))
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

// swap replaces the present data with the backup.
func (x *restorer) swap(ctx context.Context) (moved []string, err error) {
	config := salvage.ReplaceConfig{Path: x.keeper.DB, Key: x.key, Wait: x.keeper.Wait, Clock: x.keeper.Clock, Progress: x.Progress}
	moved = []string{}
	if err := x.keeper.finishRestore(ctx, x.key); err != nil { // of an earlier restore
		return moved, err
	}
	aside, err := salvage.Replace(ctx, config, x.stamp, x.build)
	if err != nil {
		return moved, errors.Join(err, os.RemoveAll(x.archive()+archiveComing+x.stamp))
	}
	if aside != "" {
		moved = append(moved, aside)
	}
	folder, err := finishArchive(x.archive(), x.stamp)
	if folder != "" {
		moved = append(moved, folder)
	}
	return moved, err
}

// build creates the new store, and the folder of its archive next to the present one.
func (x *restorer) build(ctx context.Context, fresh string) error {
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
		if err := tx.StartAfterRestore(ctx, x.above, x.stamp); err != nil {
			return err
		}
		return documents.RaiseNumbers(ctx, tx, x.ids)
	})
	if err == nil {
		err = x.checkStore(ctx, s)
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
		if err := repository.Unbundle(ctx, filepath.Join(coming, slug), bundle); err != nil {
			return err
		}
	}
	err = copyWhole(filepath.Join(x.dir, filepath.FromSlash(numbersMember)), filepath.Join(coming, "ids.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// checkStore checks the whole store.
func (x *restorer) checkStore(ctx context.Context, s *store.Store) error {
	x.Progress("checking the store")
	found, err := repair.Check(ctx, s)
	if err == nil && len(found) > 0 {
		err = damagedBackup("the store in it: " + repair.Summary(found))
	}
	return err
}

// dropAbandoned deletes data unpacked by killed restores.
func (x *restorer) dropAbandoned() error {
	left, err := x.keeper.RestoresUnderWay()
	for _, dir := range left {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}

// FinishRestore completes a restore that was killed after it replaced the store and
// before it replaced the archive. Every user of the archive must call it first. It costs
// almost nothing if there is nothing to do. Without a store, nil, it does nothing.
func (k Keeper) FinishRestore(ctx context.Context, s *store.Store) error {
	coming, err := k.RestoresUnderWay()
	if err != nil || len(coming) == 0 || s == nil {
		return err
	}
	return finishRestored(ctx, s, k.archive(), coming)
}

// finishRestore is FinishRestore for a store that is closed and may be damaged.
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
	return errors.Join(ignoreDamage(finishRestored(ctx, s, k.archive(), coming)), s.Close())
}

// RestoresUnderWay returns the archive folders that restores have unpacked but not yet
// put in place.
func (k Keeper) RestoresUnderWay() ([]string, error) {
	return filepath.Glob(escapeGlob(k.archive()) + archiveComing + "*")
}

func finishRestored(ctx context.Context, s *store.Store, place string, coming []string) error {
	return s.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		stamp, err := tx.Restored(ctx)
		if err != nil {
			return err
		}
		for _, folder := range coming {
			if strings.HasSuffix(folder, archiveComing+stamp) && stamp != "" {
				_, err = finishArchive(place, stamp)
			}
		}
		return err
	})
}

// finishArchive puts the restored archive in place and returns the new path of the former
// one, or "" if there was none. Each step is one rename, so it is safe to retry.
func finishArchive(place, stamp string) (aside string, err error) {
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
