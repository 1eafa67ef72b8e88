package salvage

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"cairn/internal/sqlitefile"
	"cairn/internal/store/disk"
	"cairn/internal/store/gosqlite"
	"cairn/internal/store/locks"
	"cairn/internal/wholefile"
)

// swap keeps the old files under another name and puts the new store in their place. A
// write-ahead log belongs to one database file, so the two cannot be replaced one after
// the other. First the log is checkpointed into the old database, then the log is
// removed, then the new store replaces the old one. Each step is one rename, so the path
// always holds the old or the new store.
func swap(old *oldStore, image *sqlitefile.Image, fresh, kept string, report func(string)) error {
	names := []string{""}
	if old.Log != nil {
		names = append(names, "-wal")
	}
	for _, suffix := range []string{"-shm", disk.CipherSuffix} {
		if disk.Exists(old.Path + suffix) {
			names = append(names, suffix)
		}
	}
	report("keeping the damaged files as " + kept)
	for _, suffix := range names {
		if suffix == "" && old.DB == nil {
			continue
		}
		if err := old.keep(suffix, kept); err != nil {
			return err
		}
	}
	dir := filepath.Dir(old.Path)
	if err := wholefile.SyncDir(dir); err != nil {
		return err
	}
	if old.Log != nil {
		if err := old.takeLogIn(image, fresh+"-merged", report); err != nil {
			return err
		}
	}
	if err := disk.RemoveAll(old.Path + "-shm"); err != nil {
		return err
	}
	report("putting the new store in place")
	if err := errors.Join(old.replace(fresh), wholefile.SyncDir(dir)); err != nil {
		return err
	}
	report("done")
	return nil
}

// takeLogIn replaces the old database with one that includes the log, and removes the
// log.
func (o *oldStore) takeLogIn(image *sqlitefile.Image, merged string, report func(string)) error {
	info, err := o.Log.Stat()
	if err != nil {
		return err
	}
	if info.Size() > 0 {
		report("checkpointing the old log")
		f, err := os.OpenFile(merged, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		err = o.write(f, image)
		if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
			return err
		}
		if err := o.replace(merged); err != nil {
			return err
		}
	}
	report("removing the old log")
	if err := locks.ReleaseToReplace(o.Log); err != nil {
		return err
	}
	return disk.RemoveAll(o.Path + "-wal")
}

// write writes a database, encrypted if the store is.
func (o *oldStore) write(f io.Writer, image *sqlitefile.Image) error {
	if o.Key == nil {
		_, err := image.WriteTo(f)
		return err
	}
	w := gosqlite.NewWriter(f, o.Key)
	_, err := image.WriteTo(w)
	return errors.Join(err, w.Close())
}

// replace moves a file to the store's path and locks it like the previous one, so that no
// process opens an intermediate file.
func (o *oldStore) replace(by string) error {
	f, err := os.OpenFile(by, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	o.locked = append(o.locked, f)
	if _, err := locks.Exclusive(f); err != nil {
		return err
	}
	for _, open := range append([]*os.File{o.DB}, o.locked...) {
		if open == nil {
			continue
		}
		if err := locks.ReleaseToReplace(open); err != nil && !errors.Is(err, os.ErrClosed) {
			return err
		}
	}
	return os.Rename(by, o.Path)
}

// keep gives one of the old files a second name, or copies it if the file system does not
// support links. It does not reopen the database, because closing it would release the
// lock.
func (o *oldStore) keep(suffix, kept string) error {
	if os.Link(o.Path+suffix, kept+suffix) == nil {
		return nil
	}
	if suffix != "" {
		return disk.Copy(o.Path+suffix, kept+suffix)
	}
	info, err := o.DB.Stat()
	if err != nil {
		return err
	}
	return disk.CopyFrom(io.NewSectionReader(o.DB, 0, info.Size()), kept)
}
