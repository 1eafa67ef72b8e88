package archive

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"cairn/internal/archive/repository"
	"cairn/internal/fault"
	"cairn/internal/store"
	"cairn/internal/store/locks"
	"cairn/internal/wholefile"
)

// idsFile contains the highest numbers ever archived, by name. It is in the archive's
// folder, outside the repositories. So numbers are not reused even if a store is lost
// before its newest rows were archived (mail §10.6).
const idsFile = "ids.json"

// Numbers reads ids.json. A missing file gives an empty map. Errors: Unavailable with
// CodeFiles if it cannot be read.
func (a *Archiver) Numbers() (map[string]int64, error) {
	ids := map[string]int64{}
	content, err := os.ReadFile(filepath.Join(a.Dir, idsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return ids, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &ids)
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, repository.CodeFiles, "archive "+a.Dir+": "+idsFile+" cannot be read: "+repository.Reason(err)).
			WithHint("delete it if it is damaged: it will be created again")
	}
	return ids, nil
}

// keepNumbers raises the numbers in ids.json. The file is on disk when it returns.
func (a *Archiver) keepNumbers(ctx context.Context, ids map[string]int64) error {
	if len(ids) == 0 {
		return nil
	}
	unlock, err := locks.LockFile(ctx, filepath.Join(a.Dir, ".lock-ids"))
	if err != nil {
		return unlockable(ctx, a.Dir, err)
	}
	defer func() { _ = unlock() }()
	old, err := a.Numbers()
	if err != nil {
		old = map[string]int64{} // damaged: the new numbers cover everything archived now
	}
	all := maps.Clone(old)
	for name, n := range ids {
		all[name] = max(all[name], n)
	}
	if err == nil && maps.Equal(all, old) {
		return nil
	}
	content, err := json.MarshalIndent(all, "", "  ")
	if err == nil {
		err = wholefile.Write(filepath.Join(a.Dir, idsFile), append(content, '\n'), 0o600)
	}
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, repository.CodeFiles, "archive "+a.Dir+": "+idsFile+" cannot be written: "+repository.Reason(err)).
			WithHint("check the free space of the volume and the permissions of the folder; the archive then catches up automatically")
	}
	return nil
}

// raiseNumbers raises the store's next numbers above those that the archive has seen.
func (a *Archiver) raiseNumbers(ctx context.Context) error {
	ids, err := a.Numbers()
	if err != nil || len(ids) == 0 {
		return err
	}
	given := map[string]int64{}
	if err := a.Store.Read(ctx, func(ctx context.Context, tx *store.Tx) error { return a.numbers(ctx, tx, given) }); err != nil {
		return err
	}
	maps.DeleteFunc(ids, func(name string, n int64) bool { return n <= given[name] })
	if len(ids) == 0 {
		return nil
	}
	return a.Store.Write(ctx, store.Full, func(ctx context.Context, tx *store.Tx) error {
		for _, p := range a.Parts {
			if p.Raise == nil {
				continue
			}
			if err := p.Raise(ctx, tx, ids); err != nil {
				return err
			}
		}
		return nil
	})
}

// numbers adds the parts' highest assigned numbers to ids.
func (a *Archiver) numbers(ctx context.Context, tx *store.Tx, ids map[string]int64) error {
	for _, p := range a.Parts {
		if p.Numbers == nil {
			continue
		}
		given, err := p.Numbers(ctx, tx)
		if err != nil {
			return err
		}
		maps.Copy(ids, given)
	}
	return nil
}

func unlockable(ctx context.Context, dir string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fault.Wrap(err, fault.Unavailable, repository.CodeFiles, "archive "+dir+" cannot be locked: "+repository.Reason(err)).
		WithHint("check the free space of the volume and the permissions of the folder; the archive then catches up automatically")
}
