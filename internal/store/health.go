package store

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// File is one file that belongs to a store.
type File struct {
	Path string
	Mode fs.FileMode
	Size int64
	Role FileRole
}

// FileRole says what a file beside the database is for.
type FileRole string

// The roles of files.
const (
	Database   FileRole = "database"
	Log        FileRole = "log"        // -wal
	Shared     FileRole = "shared"     // -shm
	Lock       FileRole = "lock"       // where writers queue, and the leases of followers
	KeyCheck   FileRole = "key-check"  // -cipher, beside an encrypted store
	Backup     FileRole = "backup"     // a copy that cairn made before it changed much
	Damaged    FileRole = "damaged"    // what a salvage kept
	Abandoned  FileRole = "abandoned"  // left by a salvage that was interrupted
	Encrypting FileRole = "encrypting" // of an Encrypt that runs or was interrupted
	Other      FileRole = "other"      // whatever else begins with the database's name
)

// Files lists the files of the store at path that are there, by name; none if
// there is no store.
func Files(path string) ([]File, error) {
	found, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return nil, err
	}
	var out []File
	for _, e := range found {
		rest, ours := strings.CutPrefix(e.Name(), filepath.Base(path))
		if !ours || e.IsDir() {
			continue
		}
		info, err := os.Stat(filepath.Join(filepath.Dir(path), e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // gone meanwhile
		}
		if err != nil {
			return out, err
		}
		out = append(out, File{filepath.Join(filepath.Dir(path), e.Name()), info.Mode(), info.Size(), roleOf(rest)})
	}
	return out, nil
}

// roleOf tells a file's role by what follows the database's name in its own.
func roleOf(rest string) FileRole {
	switch {
	case rest == "":
		return Database
	case rest == "-wal":
		return Log
	case rest == "-shm":
		return Shared
	case rest == "-lock", strings.HasPrefix(rest, "-follower-"):
		return Lock
	case strings.HasPrefix(rest, damagedSuffix):
		return Damaged
	case strings.HasPrefix(rest, backupSuffix), strings.HasPrefix(rest, asideSuffix):
		return Backup
	case strings.HasPrefix(rest, buildingSuffix), strings.HasPrefix(rest, incomerSuffix):
		return Abandoned
	case rest == cipherSuffix:
		return KeyCheck
	case strings.HasPrefix(rest, buildSuffix), strings.HasPrefix(rest, readySuffix):
		return Encrypting
	}
	return Other
}

// backupSuffix follows the database's name in that of every copy that is to be
// kept. Such copies may also lie in the folder backups beside the database, under
// any name that begins with the database's, or with BackupPrefix.
const backupSuffix = ".bak"

// What the files of `cairn backup` are called, in the folder BackupFolder beside the
// database.
const (
	BackupFolder = "backups"
	BackupPrefix = "cairn-"
	BackupSuffix = ".tar.gz"
)

// Copies lists the files that cairn made of the store by itself and that may hold
// what the store holds or held: backups, what salvages kept, and what
// interrupted ones left, each with the files that SQLite puts next to it. A purge
// and an encryption leave none of them. Links are not followed.
func Copies(path string) (out []File, err error) {
	files, err := Files(path)
	folder := filepath.Join(filepath.Dir(path), BackupFolder)
	backups, berr := Files(filepath.Join(folder, filepath.Base(path)))
	archives, aerr := Files(filepath.Join(folder, BackupPrefix))
	for _, f := range archives {
		if strings.HasSuffix(f.Path, BackupSuffix) {
			backups = append(backups, f)
		}
	}
	for i := range backups {
		backups[i].Role = Backup
	}
	for _, f := range append(files, backups...) {
		switch info, serr := os.Lstat(f.Path); {
		case f.Role != Backup && f.Role != Damaged && f.Role != Abandoned, errors.Is(serr, fs.ErrNotExist):
		case serr != nil:
			err = errors.Join(err, serr)
		case info.Mode().IsRegular():
			out = append(out, f)
		}
	}
	return out, errors.Join(err, berr, aerr)
}

// Volume is what a store lies on.
type Volume struct {
	Free    int64  // bytes that this user may still write
	Network bool   // another machine's, where SQLite's locks cannot be trusted
	Kind    string // the file system's name or number, "" if unknown
}

// Unwritable lists what keeps this user from writing the store at a path by its
// rights, nothing if they suffice: the folder, or the nearest one above that exists,
// and the store's files. Where only trying would tell, as on Windows, it is empty.
func Unwritable(path string) (out []string) {
	dir := filepath.Dir(path)
	for !exists(dir) && filepath.Dir(dir) != dir {
		dir = filepath.Dir(dir)
	}
	for _, p := range []string{dir, path, path + "-wal", path + "-lock"} {
		if exists(p) && !mayWrite(p) {
			out = append(out, p)
		}
	}
	return out
}

// VolumeOf describes the volume of a file or folder that exists. An
// errors.ErrUnsupported says that this system does not tell.
func VolumeOf(path string) (Volume, error) { return volumeOf(path) }

// QuickCheck runs SQLite's quick check, which reads every page once and compares
// no index with its table. A sound store gives no findings. It reads on a connection
// of its own, since one that was used before holds pages as they were.
func (s *Store) QuickCheck(ctx context.Context) (found []string, err error) {
	err = s.readApart(ctx, func(ctx context.Context, tx *Tx) error {
		return tx.Each(ctx, func(r *sql.Rows) error {
			var line string
			err := r.Scan(&line)
			if line != "ok" {
				found = append(found, "sqlite: "+line)
			}
			return err
		}, `PRAGMA quick_check(20)`)
	})
	s.damages.Add(int64(len(found)))
	return found, err
}

// Damages is how often damage was met since the store was opened: by those who read
// or wrote, and as findings of QuickCheck. 0 for a sound store.
func (s *Store) Damages() int64 { return s.damages.Load() }

// Schema reads the number of the store's schema from the open store.
func (s *Store) Schema(ctx context.Context) (version int, err error) {
	err = s.Read(ctx, func(ctx context.Context, tx *Tx) error {
		return tx.Get(ctx, []any{&version}, `PRAGMA user_version`)
	})
	return version, err
}

// IsOlder reports whether the open store has an older schema than the newest one, as
// only a store that was opened for reading can have.
func (s *Store) IsOlder(ctx context.Context) (bool, error) {
	version, err := s.Schema(ctx)
	return version < newest(), err
}
