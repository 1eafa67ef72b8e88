package disk

import (
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
	Role Role
}

// Role is the purpose of a file next to the database.
type Role string

// The roles of files.
const (
	Database   Role = "database"
	Log        Role = "log"        // -wal
	Shared     Role = "shared"     // -shm
	Lock       Role = "lock"       // locks of writers and leases of followers
	KeyCheck   Role = "key-check"  // -cipher, next to an encrypted store
	Backup     Role = "backup"     // a copy that cairn made before a large change
	Damaged    Role = "damaged"    // files kept by a salvage
	Abandoned  Role = "abandoned"  // left by an interrupted salvage
	Encrypting Role = "encrypting" // of an Encrypt that runs or was interrupted
	Other      Role = "other"      // any other file whose name begins with the database's
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
func roleOf(rest string) Role {
	switch {
	case rest == "":
		return Database
	case rest == "-wal":
		return Log
	case rest == "-shm":
		return Shared
	case rest == "-lock", strings.HasPrefix(rest, "-follower-"):
		return Lock
	case strings.HasPrefix(rest, DamagedSuffix):
		return Damaged
	case strings.HasPrefix(rest, backupSuffix), strings.HasPrefix(rest, AsideSuffix):
		return Backup
	case strings.HasPrefix(rest, SalvageSuffix), strings.HasPrefix(rest, RestoreSuffix):
		return Abandoned
	case rest == CipherSuffix:
		return KeyCheck
	case strings.HasPrefix(rest, EncryptingSuffix), strings.HasPrefix(rest, EncryptedSuffix):
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

// Suffixes of the files of encryption next to a store.
const (
	// CipherSuffix is the suffix of the key check. That file contains no secret, only a
	// salt and the key's HMAC of it. It exists if the store is encrypted or being
	// encrypted, and it distinguishes a wrong key from damage.
	CipherSuffix = "-cipher"
	// EncryptingSuffix is the suffix of an incomplete encrypted copy.
	EncryptingSuffix = "-encrypting"
	// EncryptedSuffix is the suffix of a complete encrypted copy. While it exists, the
	// store's own file is ignored unless it is a plain database.
	EncryptedSuffix = "-encrypted"
)

// Suffixes of the files of a salvage, after the database's name.
const (
	DamagedSuffix = backupSuffix + "-damaged-" // the damaged files
	SalvageSuffix = "-salvage-"                // the new store, until it is complete
)

// Suffixes of the files of a Replace, after the database's name.
const (
	AsideSuffix   = ".backup-"  // the old files
	RestoreSuffix = "-restore-" // the new store, until it is complete
)
