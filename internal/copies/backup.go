package copies

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cairn/internal/archive/repository"
	"cairn/internal/store"
	"cairn/internal/store/disk"
	"cairn/internal/wholefile"
)

// CodeBackup marks a file that is damaged or not a backup (Invalid).
const CodeBackup = "backup_damaged"

// Names of the members of a backup, in order. The bundles of the repositories follow,
// sorted by name.
const (
	metadataMember = "metadata.json"
	databaseMember = "cairn.db"
	keyCheckMember = "cairn.db-cipher"
	numbersMember  = "archive/ids.json"
	bundleFolder   = "archive/"
	bundleSuffix   = ".bundle"
)

const (
	backupFormat  = 1
	maxMetadata   = 16 << 20
	archiveFolder = "archive"
)

// Stamp is the layout of the time in a backup's file name.
const Stamp = "20060102T150405.000Z"

// Info is metadata.json of a backup. It contains only data that follows from the
// backed-up state, so equal states produce equal files.
type Info struct {
	Format    int              `json:"cairn_backup"`
	Cairn     string           `json:"cairn"` // version of the program
	Schema    int              `json:"schema"`
	Encrypted bool             `json:"encrypted"`
	Changes   int64            `json:"changes"` // last position in the change log
	As        *time.Time       `json:"as_of"`   // time of the last change; null if there is none
	Counts    map[string]int64 `json:"counts"`  // rows by table
	Highest   map[string]int64 `json:"highest"` // highest assigned ids, by table
	Members   []Member         `json:"members"` // all other members, in order
}

// Member is a file in a backup.
type Member struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// BackupArgs describes a backup to create.
type BackupArgs struct {
	File     string // "" for a file in the backup folder, named after the time
	Version  string // of this program
	Progress func(what string)
}

// BackupReport describes a backup that was created or read.
type BackupReport struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
	Info
}

// Keeper creates and restores backups of a store with its archive.
type Keeper struct {
	DB    string // the database file
	Dir   string // the data directory, which contains the archive
	Wait  time.Duration
	Clock func() time.Time

	// Key returns the key of the user. Without a key the error is Unavailable,
	// store.CodeKey.
	Key func() ([]byte, error)
}

func (k Keeper) archive() string { return filepath.Join(k.Dir, archiveFolder) }

// Folder returns the folder of backups without a given name: next to the database.
func (k Keeper) Folder() string { return filepath.Join(filepath.Dir(k.DB), disk.BackupFolder) }

// Backup writes a consistent copy of a store and of the archive's repositories into one
// file, a tar file compressed with gzip (mail §10.6). The file is identical byte for byte
// as long as nothing has changed. The store in it is encrypted if the original is, with
// the same key. The key is not in the file, and the repositories are not encrypted. key
// is the key of the store, nil for a plain one. The file appears when it is complete and
// has been read back. It replaces an existing file, and only its owner may read it.
// Backup does not block writers.
//
// Errors: those of git and of the file system; CodeBackup if the written file cannot be
// read back.
func (k Keeper) Backup(ctx context.Context, s *store.Store, key []byte, a BackupArgs) (r BackupReport, err error) {
	if a.Progress == nil {
		a.Progress = func(string) {}
	}
	if err := k.FinishRestore(ctx, s); err != nil {
		return r, err
	}
	if a.File == "" {
		if err := os.MkdirAll(k.Folder(), 0o700); err != nil {
			return r, err
		}
		a.File = filepath.Join(k.Folder(), disk.BackupPrefix+s.Now().UTC().Format(Stamp)+disk.BackupSuffix)
	}
	dir, err := os.MkdirTemp("", "cairn-backup-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := backupJob{keeper: k, key: key, dir: dir, BackupArgs: a}
	if err := b.collect(ctx, s); err != nil {
		return r, err
	}
	if err := b.write(ctx); err != nil {
		return r, err
	}
	return b.report()
}

// backupJob is one running backup.
type backupJob struct {
	BackupArgs
	keeper Keeper
	key    []byte // of the store
	dir    string // temporary folder for the members
	info   Info
}

func (b *backupJob) collect(ctx context.Context, s *store.Store) error {
	b.Progress("copying the store")
	db := filepath.Join(b.dir, databaseMember)
	if err := s.CopyTo(ctx, db); err != nil {
		return err
	}
	b.info = Info{Format: backupFormat, Cairn: b.Version, Encrypted: s.Encrypted(), Members: []Member{}}
	if err := b.describe(ctx, db); err != nil {
		return err
	}
	names := []string{databaseMember}
	if s.Encrypted() { // the copy's own metadata has a new salt each time
		names = append(names, keyCheckMember)
		if err := os.Remove(filepath.Join(b.dir, keyCheckMember)); err != nil {
			return err
		}
		if err := copyWhole(s.Path()+"-cipher", filepath.Join(b.dir, keyCheckMember)); err != nil {
			return err
		}
	}
	more, err := b.repositories(ctx)
	if err != nil {
		return err
	}
	for _, name := range append(names, more...) {
		m, err := measure(filepath.Join(b.dir, filepath.FromSlash(name)), name)
		if err != nil {
			return err
		}
		b.info.Members = append(b.info.Members, m)
	}
	return nil
}

// describe counts the content of the copied store.
func (b *backupJob) describe(ctx context.Context, db string) (err error) {
	if b.info.Schema, _, err = store.Schema(db, b.key); err != nil {
		return err
	}
	s, err := store.Examine(ctx, store.Config{Path: db, Key: b.key, Clock: b.keeper.Clock})
	if err != nil {
		return err
	}
	err = s.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		if b.info.Counts, err = tx.Counts(ctx); err != nil {
			return err
		}
		if b.info.Highest, err = tx.Numbers(ctx); err != nil {
			return err
		}
		if b.info.Changes, err = tx.Head(ctx); err != nil || b.info.Changes == 0 {
			return err
		}
		last, err := tx.Changes(ctx, b.info.Changes-1, 1)
		if err == nil && len(last) > 0 {
			at := time.Unix(0, last[0].At).UTC()
			b.info.As = &at
		}
		return err
	})
	return errors.Join(err, s.Close())
}

// repositories bundles the archive's repositories. It runs after the store was copied, so
// that the repositories may be ahead of the store's copy but never behind it.
func (b *backupJob) repositories(ctx context.Context) (names []string, err error) {
	from := b.keeper.archive()
	to := filepath.Join(b.dir, archiveFolder)
	entries, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return nil, err
	}
	err = copyWhole(filepath.Join(from, "ids.json"), filepath.Join(to, "ids.json"))
	switch {
	case err == nil:
		names = append(names, numbersMember)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	for _, e := range entries {
		if !e.IsDir() || !isThere(filepath.Join(from, e.Name(), ".git")) || !isMember(bundleFolder+e.Name()+bundleSuffix) {
			continue
		}
		b.Progress("bundling the repository of " + e.Name())
		f, err := os.OpenFile(filepath.Join(to, e.Name()+bundleSuffix), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(repository.Bundle(ctx, filepath.Join(from, e.Name()), f), f.Close()); err != nil {
			return nil, err
		}
		names = append(names, bundleFolder+e.Name()+bundleSuffix)
	}
	return names, nil
}

// isMember reports whether a backup can have a member with that name.
func isMember(name string) bool {
	switch name {
	case databaseMember, keyCheckMember, numbersMember:
		return true
	}
	slug, ok := strings.CutPrefix(name, bundleFolder)
	slug, bundle := strings.CutSuffix(slug, bundleSuffix)
	return ok && bundle && slug != "" && len(slug) <= 200 && strings.Trim(slug, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// write creates the file and reads it back.
func (b *backupJob) write(ctx context.Context) error {
	b.Progress("writing " + b.File)
	f, err := wholefile.Create(b.File, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(b.pack(ctx, f), f.Sync())
	if err == nil {
		b.Progress("reading it back")
		_, err = b.keeper.readBack(ctx, f.Name())
	}
	if err != nil {
		return errors.Join(err, f.Discard())
	}
	return f.Commit()
}

func (b *backupJob) pack(ctx context.Context, w io.Writer) error {
	zip := gzip.NewWriter(w) // no file name or time in its header
	out := tar.NewWriter(zip)
	head, err := json.MarshalIndent(b.info, "", "  ")
	if err != nil {
		return err
	}
	head = append(head, '\n')
	if err := member(out, metadataMember, int64(len(head)), strings.NewReader(string(head))); err != nil {
		return err
	}
	for _, m := range b.info.Members {
		if err := ctx.Err(); err != nil {
			return err
		}
		f, err := os.Open(filepath.Join(b.dir, filepath.FromSlash(m.Name)))
		if err != nil {
			return err
		}
		if err := errors.Join(member(out, m.Name, m.Bytes, f), f.Close()); err != nil {
			return err
		}
	}
	return errors.Join(out.Close(), zip.Close())
}

func member(out *tar.Writer, name string, size int64, from io.Reader) error {
	err := out.WriteHeader(&tar.Header{Name: name, Size: size, Mode: 0o600, ModTime: time.Unix(0, 0), Format: tar.FormatPAX})
	if err == nil {
		_, err = io.Copy(out, from)
	}
	return err
}

func (b *backupJob) report() (BackupReport, error) {
	info, err := os.Stat(b.File)
	if err != nil {
		return BackupReport{}, err
	}
	return BackupReport{File: b.File, Bytes: info.Size(), Info: b.info}, nil
}

// measure returns a file's entry for the metadata.
func measure(file, name string) (Member, error) {
	f, err := os.Open(file)
	if err != nil {
		return Member{}, err
	}
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	return Member{name, n, hex.EncodeToString(sum.Sum(nil))}, errors.Join(err, f.Close())
}

// copyWhole copies a file. The target must not exist.
func copyWhole(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // read-only
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
