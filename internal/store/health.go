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

// FileRole is the purpose of a file next to the database.
type FileRole string

// The roles of files.
const (
	Database   FileRole = "database"
	Log        FileRole = "log"        // -wal
	Shared     FileRole = "shared"     // -shm
	Lock       FileRole = "lock"       // locks of writers and leases of followers
	KeyCheck   FileRole = "key-check"  // -cipher, next to an encrypted store
	Backup     FileRole = "backup"     // a copy that cairn made before a large change
	Damaged    FileRole = "damaged"    // files kept by a salvage
	Abandoned  FileRole = "abandoned"  // left by an interrupted salvage
	Encrypting FileRole = "encrypting" // of an Encrypt that runs or was interrupted
	Other      FileRole = "other"      // any other file whose name begins with the database's
)

// Files returns the existing files of the store at path, by name; none if there is no store.
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
			continue // deleted meanwhile
		}
		if err != nil {
			return out, err
		}
		out = append(out, File{filepath.Join(filepath.Dir(path), e.Name()), info.Mode(), info.Size(), roleOf(rest)})
	}
	return out, nil
}

// roleOf returns a file's role, derived from the suffix after the database's name.
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

// backupSuffix follows the database's name in the names of copies that must be kept.
// Copies may also be in the folder backups next to the database, with names that begin
// with the database's name or with BackupPrefix.
const backupSuffix = ".bak"

// Names of the files of `cairn backup`, in the folder BackupFolder next to the database.
const (
	BackupFolder = "backups"
	BackupPrefix = "cairn-"
	BackupSuffix = ".tar.gz"
)

// Copies returns cairn's copies of the store, which may contain present or former data:
// backups, files kept by salvages and files left by interrupted ones, each with SQLite's
// files next to it. A purge and an encryption delete all of them. Links are not followed.
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

// Volume is the volume of a store.
type Volume struct {
	Free    int64  // free bytes for this user
	Network bool   // on another machine, where SQLite's locks are not reliable
	Kind    string // the file system's name or number, "" if unknown
}

// Unwritable returns the paths whose permissions prevent this user from writing the store at a
// path: the folder, or its nearest existing ancestor, and the store's files. It is empty if
// the permissions suffice. It is also empty on systems such as Windows, where only an attempt
// to write shows it.
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

// VolumeOf describes the volume of a file or folder that exists. errors.ErrUnsupported
// means that the system does not provide this.
func VolumeOf(path string) (Volume, error) { return volumeOf(path) }

// QuickCheck runs SQLite's quick check, which reads every page once and compares no index
// with its table. An intact store has no findings. It uses a new connection, because a
// used one caches pages.
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

// Damages returns how often damage was found since the store was opened: by reads, by
// writes, and by QuickCheck. It is 0 for an intact store.
func (s *Store) Damages() int64 { return s.damages.Load() }

// Schema reads the number of the store's schema from the open store.
func (s *Store) Schema(ctx context.Context) (version int, err error) {
	err = s.Read(ctx, func(ctx context.Context, tx *Tx) error {
		return tx.Get(ctx, []any{&version}, `PRAGMA user_version`)
	})
	return version, err
}

// IsOlder reports whether the open store has an older schema. Only a store opened with
// ReadOnly can have one.
func (s *Store) IsOlder(ctx context.Context) (bool, error) {
	version, err := s.Schema(ctx)
	return version < newest(), err
}
