package store

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"cairn/internal/sqlitefile"
	"cairn/internal/store/gosqlite"
	"cairn/internal/wholefile"
)

// swap keeps the old files under another name and puts the new store in their
// place. A write-ahead log belongs to one database file alone, so the two cannot
// be replaced one after the other: first the old database takes its log in, which
// changes nothing that it says, then the log goes, then the new store comes. Each
// step is one rename; between any two the path holds the old store or the new.
func swap(old *oldStore, image *sqlitefile.Image, fresh, kept string, tell func(string)) error {
	names := []string{""}
	if old.wal != nil {
		names = append(names, "-wal")
	}
	for _, suffix := range []string{"-shm", cipherSuffix} {
		if exists(old.path + suffix) {
			names = append(names, suffix)
		}
	}
	tell("keeping the damaged files as " + kept)
	for _, suffix := range names {
		if suffix == "" && old.db == nil {
			continue
		}
		if err := old.keep(suffix, kept); err != nil {
			return err
		}
	}
	dir := filepath.Dir(old.path)
	if err := wholefile.SyncDir(dir); err != nil {
		return err
	}
	if old.wal != nil {
		if err := old.takeLogIn(image, fresh+"-merged", tell); err != nil {
			return err
		}
	}
	if err := removeAll(old.path + "-shm"); err != nil {
		return err
	}
	tell("putting the new store in place")
	if err := errors.Join(old.replace(fresh), wholefile.SyncDir(dir)); err != nil {
		return err
	}
	tell("done")
	return nil
}

// takeLogIn replaces the old database by one that needs no log, and removes the
// log.
func (o *oldStore) takeLogIn(image *sqlitefile.Image, merged string, tell func(string)) error {
	info, err := o.wal.Stat()
	if err != nil {
		return err
	}
	if info.Size() > 0 {
		tell("taking the old log in")
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
	tell("removing the old log")
	if err := releaseToReplace(o.wal); err != nil {
		return err
	}
	return removeAll(o.path + "-wal")
}

// write writes a database as the store's files are written.
func (o *oldStore) write(f io.Writer, image *sqlitefile.Image) error {
	if o.key == nil {
		_, err := image.WriteTo(f)
		return err
	}
	w := gosqlite.NewWriter(f, o.key)
	_, err := image.WriteTo(w)
	return errors.Join(err, w.Close())
}

// replace puts a file at the store's path, locked like the one before it, so that
// nobody opens what does not stay.
func (o *oldStore) replace(by string) error {
	f, err := os.OpenFile(by, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	o.locked = append(o.locked, f)
	if _, err := lockAlone(f); err != nil {
		return err
	}
	for _, open := range append([]*os.File{o.db}, o.locked...) {
		if open == nil {
			continue
		}
		if err := releaseToReplace(open); err != nil && !errors.Is(err, os.ErrClosed) {
			return err
		}
	}
	return os.Rename(by, o.path)
}

// keep gives one of the old files a second name; where the file system cannot, a
// copy gets it. The database is not opened again for that: closing it would give
// up the lock.
func (o *oldStore) keep(suffix, kept string) error {
	if os.Link(o.path+suffix, kept+suffix) == nil {
		return nil
	}
	if suffix != "" {
		return copyFile(o.path+suffix, kept+suffix)
	}
	info, err := o.db.Stat()
	if err != nil {
		return err
	}
	return copyTo(io.NewSectionReader(o.db, 0, info.Size()), kept)
}

// copyFile copies a file to one that must not exist yet.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	return errors.Join(copyTo(in, to), in.Close())
}

// copyTo writes a new file, readable by its owner alone. After an error there is
// none.
func copyTo(in io.Reader, to string) error {
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		err = errors.Join(err, os.Remove(to))
	}
	return err
}
