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

	"cairn/internal/archive"
	"cairn/internal/store"
	"cairn/internal/wholefile"
)

// CodeBackup marks a file that is no backup, or a damaged one (Invalid).
const CodeBackup = "backup_damaged"

// Names of the members of a backup, in their order. The bundles of the repositories
// follow, by name.
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

// Stamp is the layout of the time in the name of a backup.
const Stamp = "20060102T150405.000Z"

// Info is metadata.json of a backup. It says nothing that does not follow from
// what is backed up, so that equal states make equal files.
type Info struct {
	Format    int              `json:"cairn_backup"`
	Cairn     string           `json:"cairn"` // the version of the program
	Schema    int              `json:"schema"`
	Encrypted bool             `json:"encrypted"`
	Changes   int64            `json:"changes"` // up to which place of the change log
	As        *time.Time       `json:"as_of"`   // when the last of them was made; null without any
	Counts    map[string]int64 `json:"counts"`  // rows by table
	Highest   map[string]int64 `json:"highest"` // the highest numbers that were given, by table
	Members   []Member         `json:"members"` // all other members, in order
}

// Member is a file in a backup.
type Member struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// BackupArgs say how to back up.
type BackupArgs struct {
	File     string // "" for one in the folder of backups, named after the time
	Version  string // of this program
	Progress func(what string)
}

// BackupReport is a backup that was made or looked at.
type BackupReport struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
	Info
}

// Keeper makes backups of a store with its archive, and puts them back.
type Keeper struct {
	DB    string // the database file
	Dir   string // the data directory, in which the archive lies
	Wait  time.Duration
	Clock func() time.Time

	// Key returns the key of the user. Errors: Unavailable, store.CodeKey without one.
	Key func() ([]byte, error)
}

func (k Keeper) archive() string { return filepath.Join(k.Dir, archiveFolder) }

// Folder is where backups lie that got no name: beside the database.
func (k Keeper) Folder() string { return filepath.Join(filepath.Dir(k.DB), store.BackupFolder) }

// Backup writes one file with a consistent copy of a store and of the archive's
// repositories: a tar file, compressed with gzip, that is the same byte for byte as
// long as nothing has changed (mail §10.6). That of an encrypted store is encrypted
// with its key, which is not in it; the repositories are not. key is that of the store,
// nil for a plain one. The file appears when it is complete and has been read back, and
// only its owner may read it. Writers are not held up. What is there at that path is
// replaced.
//
// Errors: those of git, CodeBackup if what was written cannot be read back, and of the
// file system.
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
		a.File = filepath.Join(k.Folder(), store.BackupPrefix+s.Now().UTC().Format(Stamp)+store.BackupSuffix)
	}
	dir, err := os.MkdirTemp("", "cairn-backup-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := backingUp{keeper: k, key: key, dir: dir, BackupArgs: a}
	if err := b.collect(ctx, s); err != nil {
		return r, err
	}
	if err := b.write(ctx); err != nil {
		return r, err
	}
	return b.report()
}

// backingUp is one backup under way.
type backingUp struct {
	BackupArgs
	keeper Keeper
	key    []byte // of the store
	dir    string // where the members are put together
	info   Info
}

func (b *backingUp) collect(ctx context.Context, s *store.Store) error {
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
	if s.Encrypted() { // the copy's own has a salt that is new each time
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

// describe reports what the copy of the store holds.
func (b *backingUp) describe(ctx context.Context, db string) (err error) {
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

// repositories bundles the archive's repositories, after the store was copied: they
// may be further than it, never behind what it says of them.
func (b *backingUp) repositories(ctx context.Context) (names []string, err error) {
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
		if err := errors.Join(archive.Bundle(ctx, filepath.Join(from, e.Name()), f), f.Close()); err != nil {
			return nil, err
		}
		names = append(names, bundleFolder+e.Name()+bundleSuffix)
	}
	return names, nil
}

// isMember reports whether a backup can have a member of a name.
func isMember(name string) bool {
	switch name {
	case databaseMember, keyCheckMember, numbersMember:
		return true
	}
	slug, ok := strings.CutPrefix(name, bundleFolder)
	slug, bundle := strings.CutSuffix(slug, bundleSuffix)
	return ok && bundle && slug != "" && len(slug) <= 200 && strings.Trim(slug, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// write makes the file and reads it back.
func (b *backingUp) write(ctx context.Context) error {
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

func (b *backingUp) pack(ctx context.Context, w io.Writer) error {
	zip := gzip.NewWriter(w) // without name and time
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

func (b *backingUp) report() (BackupReport, error) {
	info, err := os.Stat(b.File)
	if err != nil {
		return BackupReport{}, err
	}
	return BackupReport{File: b.File, Bytes: info.Size(), Info: b.info}, nil
}

// measure is a file as the metadata list it.
func measure(file, name string) (Member, error) {
	f, err := os.Open(file)
	if err != nil {
		return Member{}, err
	}
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	return Member{name, n, hex.EncodeToString(sum.Sum(nil))}, errors.Join(err, f.Close())
}

// copyWhole copies a file to one that must not exist yet.
func copyWhole(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // it is only read
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
