package cairn

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cairn/internal/archive"
	"cairn/internal/fault"
	"cairn/internal/store"
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
	backupStamp   = "20060102T150405.000Z"
	archiveFolder = "archive"
)

// BackupInfo is metadata.json of a backup. It says nothing that does not follow from
// what is backed up, so that equal states make equal files.
type BackupInfo struct {
	Format    int              `json:"cairn_backup"`
	Cairn     string           `json:"cairn"` // the version of the program
	Schema    int              `json:"schema"`
	Encrypted bool             `json:"encrypted"`
	Changes   int64            `json:"changes"` // up to which place of the change log
	As        *time.Time       `json:"as_of"`   // when the last of them was made; null without any
	Counts    map[string]int64 `json:"counts"`  // rows by table
	Highest   map[string]int64 `json:"highest"` // the highest numbers that were given, by table
	Members   []BackupMember   `json:"members"` // all other members, in order
}

// BackupMember is a file in a backup.
type BackupMember struct {
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
	BackupInfo
}

// BackupFolder is where backups lie that got no name: beside the database.
func (c *Cairn) BackupFolder() string {
	return filepath.Join(filepath.Dir(c.config.DB), store.BackupFolder)
}

// Backup writes one file with a consistent copy of the store and of the archive's
// repositories: a tar file, compressed with gzip, that is the same byte for byte as
// long as nothing has changed (mail §10.6). That of an encrypted store is encrypted
// with its key, which is not in it; the repositories are not. The file appears when
// it is complete and has been read back, and only its owner may read it. Writers are
// not held up. What is there at that path is replaced.
//
// Errors: NotFound, store.CodeMissing without a store; those of git, CodeBackup if
// what was written cannot be read back, and of the file system.
func (c *Cairn) Backup(ctx context.Context, a BackupArgs) (r BackupReport, err error) {
	if a.Progress == nil {
		a.Progress = func(string) {}
	}
	s, err := c.opened(ctx, false)
	if err != nil {
		return r, err
	}
	if s == nil {
		return r, fault.New(fault.NotFound, store.CodeMissing, "there is no store yet")
	}
	if err := c.FinishRestore(ctx); err != nil {
		return r, err
	}
	if a.File == "" {
		if err := os.MkdirAll(c.BackupFolder(), 0o700); err != nil {
			return r, err
		}
		a.File = filepath.Join(c.BackupFolder(), store.BackupPrefix+s.Now().UTC().Format(backupStamp)+store.BackupSuffix)
	}
	dir, err := os.MkdirTemp("", "cairn-backup-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := backingUp{cairn: c, dir: dir, BackupArgs: a}
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
	cairn *Cairn
	dir   string // where the members are put together
	info  BackupInfo
}

func (b *backingUp) collect(ctx context.Context, s *store.Store) error {
	b.Progress("copying the store")
	db := filepath.Join(b.dir, databaseMember)
	if err := s.CopyTo(ctx, db); err != nil {
		return err
	}
	b.info = BackupInfo{Format: backupFormat, Cairn: b.Version, Encrypted: s.Encrypted(), Members: []BackupMember{}}
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

// describe tells what the copy of the store holds.
func (b *backingUp) describe(ctx context.Context, db string) (err error) {
	if b.info.Schema, _, err = store.Schema(db, b.cairn.key); err != nil {
		return err
	}
	s, err := store.Examine(ctx, store.Config{Path: db, Key: b.cairn.key, Clock: b.cairn.config.Clock})
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
	from := b.cairn.ArchiveDir()
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
		if !e.IsDir() || !exists(filepath.Join(from, e.Name(), ".git")) || !isMember(bundleFolder+e.Name()+bundleSuffix) {
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
	f, err := os.CreateTemp(filepath.Dir(b.File), ".cairn-backup-*") // 0600
	if err != nil {
		return err
	}
	err = errors.Join(b.pack(ctx, f), f.Sync(), f.Close())
	if err == nil {
		b.Progress("reading it back")
		_, err = b.cairn.readBack(ctx, f.Name())
	}
	if err == nil {
		err = os.Rename(f.Name(), b.File)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
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
	return BackupReport{File: b.File, Bytes: info.Size(), BackupInfo: b.info}, nil
}

// measure is a file as the metadata list it.
func measure(file, name string) (BackupMember, error) {
	f, err := os.Open(file)
	if err != nil {
		return BackupMember{}, err
	}
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	return BackupMember{name, n, hex.EncodeToString(sum.Sum(nil))}, errors.Join(err, f.Close())
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

// Backups lists the backups in the folder of backups, the newest first; such as
// cannot be read have Format 0 and no further fields.
func (c *Cairn) Backups(ctx context.Context) ([]BackupReport, error) {
	out := []BackupReport{}
	files, err := filepath.Glob(filepath.Join(escapeGlob(c.BackupFolder()), store.BackupPrefix+"*"+store.BackupSuffix))
	slices.Reverse(files)
	for _, file := range files {
		r := BackupReport{File: file}
		if info, serr := os.Stat(file); serr == nil {
			r.Bytes = info.Size()
		}
		if f, oerr := os.Open(file); oerr == nil {
			if u, uerr := newUnpacking(f); uerr == nil {
				r.BackupInfo = u.info
			}
			err = errors.Join(err, f.Close())
		}
		out = append(out, r)
	}
	return out, errors.Join(err, ctx.Err())
}

// escapeGlob makes a path a pattern for itself.
func escapeGlob(path string) string {
	if os.PathSeparator == '\\' {
		return path
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// Verification is what was found out about a backup.
type Verification struct {
	BackupReport
	OK      bool   `json:"ok"`
	Problem string `json:"problem"` // "" for a sound one
	Content bool   `json:"content"` // the store in it was read, too; not without the key of an encrypted one
}

// VerifyBackup reads a backup to its end: its frame, the hash of each member, the
// pages of the store, every object of the repositories.
//
// Errors: those of the file, when it cannot be opened.
func (c *Cairn) VerifyBackup(ctx context.Context, file string) (v Verification, err error) {
	v.File = file
	info, err := os.Stat(file)
	if err != nil {
		return v, fault.Wrap(err, fault.NotFound, "file_missing", "there is no backup "+file)
	}
	v.Bytes = info.Size()
	read, err := c.readBack(ctx, file)
	v.BackupInfo, v.Content = read.info, read.content
	if f := fault.As(err); err != nil && (f.Code == CodeBackup || f.Kind == fault.Internal || f.Code == archive.CodeGit) && ctx.Err() == nil {
		v.Problem = f.Message
		return v, nil
	}
	v.OK = err == nil
	return v, err
}

type readBackup struct {
	info    BackupInfo
	content bool
}

// readBack unpacks a backup into a temporary folder and looks at everything.
func (c *Cairn) readBack(ctx context.Context, file string) (r readBackup, err error) {
	dir, err := os.MkdirTemp("", "cairn-backup-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if r.info, err = unpack(ctx, file, dir); err != nil {
		return r, err
	}
	key, err := c.keyOfBackup(dir, r.info)
	if err != nil && !fault.HasCode(err, store.CodeKey) {
		return r, err
	}
	if err == nil {
		r.content = true
		if err := checkCopy(ctx, filepath.Join(dir, databaseMember), key); err != nil {
			return r, err
		}
	}
	for _, m := range r.info.Members {
		if slug, ok := strings.CutSuffix(path.Base(m.Name), bundleSuffix); ok {
			if err := archive.Unbundle(ctx, filepath.Join(dir, "read", slug), filepath.Join(dir, filepath.FromSlash(m.Name))); err != nil {
				return r, err
			}
		}
	}
	return r, nil
}

// checkCopy refuses a store that is damaged.
func checkCopy(ctx context.Context, db string, key []byte) error {
	s, err := store.Examine(ctx, store.Config{Path: db, Key: key})
	if err != nil {
		return err
	}
	found, err := s.QuickCheck(ctx)
	if err = errors.Join(err, s.Close()); err == nil && len(found) > 0 {
		err = damagedBackup("the store in it: " + summary(found))
	}
	return err
}

// keyOfBackup is the key that fits an encrypted backup, nil for a plain one.
//
// Errors: Unavailable, store.CodeKey without a key that fits.
func (c *Cairn) keyOfBackup(dir string, info BackupInfo) ([]byte, error) {
	if !info.Encrypted {
		return nil, nil
	}
	k, err := c.LoadKey()
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, store.CodeKey, "the backup is encrypted, and there is no key that fits").WithHint(store.KeyPlaces)
	}
	fits, err := store.KeyFits(filepath.Join(dir, databaseMember), k.Bytes)
	if err == nil && !fits {
		err = fault.New(fault.Unavailable, store.CodeKey, "the backup is encrypted, and the key does not fit").WithHint(store.KeyPlaces)
	}
	return k.Bytes, err
}

func damagedBackup(why string) error {
	return fault.New(fault.Invalid, CodeBackup, "this is no sound backup: "+why).WithHint("`cairn backup list` shows others")
}

// unpacking reads a backup member by member.
type unpacking struct {
	file *bufio.Reader
	zip  *gzip.Reader
	in   *tar.Reader
	info BackupInfo
}

// newUnpacking reads the metadata. Errors: CodeBackup; store.CodeNewer for a backup
// that a newer cairn made.
func newUnpacking(r io.Reader) (*unpacking, error) {
	file := bufio.NewReader(r)
	zip, err := gzip.NewReader(file)
	if err != nil {
		return nil, damagedBackup("it is not compressed with gzip")
	}
	zip.Multistream(false)
	u := &unpacking{file: file, zip: zip, in: tar.NewReader(zip)}
	h, err := u.in.Next()
	if err != nil || h.Name != metadataMember || h.Size > maxMetadata {
		return nil, damagedBackup("it does not begin with " + metadataMember)
	}
	text, err := io.ReadAll(u.in)
	if err != nil {
		return nil, damagedBackup("it is torn")
	}
	if err := json.Unmarshal(text, &u.info); err != nil || u.info.Format < 1 {
		return nil, damagedBackup("its metadata cannot be read")
	}
	if u.info.Format > backupFormat {
		return nil, fault.Newf(fault.Unavailable, store.CodeNewer, "the backup has format %d, this cairn reads %d", u.info.Format, backupFormat).WithHint("upgrade cairn")
	}
	seen := map[string]bool{}
	for _, m := range u.info.Members {
		if !isMember(m.Name) || seen[m.Name] {
			return nil, damagedBackup("its metadata name a member that cannot be one")
		}
		seen[m.Name] = true
	}
	if !seen[databaseMember] || seen[keyCheckMember] != u.info.Encrypted {
		return nil, damagedBackup("its metadata name no store")
	}
	return u, nil
}

// unpack writes the members of a backup, which must be as its metadata say, below a
// folder.
func unpack(ctx context.Context, file, dir string) (BackupInfo, error) {
	f, err := os.Open(file)
	if err != nil {
		return BackupInfo{}, fault.Wrap(err, fault.NotFound, "file_missing", "there is no backup "+file)
	}
	defer f.Close() //nolint:errcheck // it is only read
	u, err := newUnpacking(f)
	if err != nil {
		return BackupInfo{}, err
	}
	for _, m := range u.info.Members {
		if err := ctx.Err(); err != nil {
			return u.info, err
		}
		if err := u.member(m, dir); err != nil {
			return u.info, err
		}
	}
	if err := u.end(); err != nil {
		return u.info, err
	}
	return u.info, nil
}

// end judges what follows the last member: nothing, up to the sum of the compression.
func (u *unpacking) end() error {
	if _, err := u.in.Next(); err != io.EOF {
		return damagedBackup("something follows its last member, or it is torn")
	}
	if n, err := io.Copy(io.Discard, u.zip); err != nil || n > 0 {
		return damagedBackup("it is torn at its end")
	}
	if _, err := u.file.ReadByte(); err != io.EOF {
		return damagedBackup("something follows its end")
	}
	return nil
}

func (u *unpacking) member(m BackupMember, dir string) error {
	h, err := u.in.Next()
	if err != nil || h.Name != m.Name || h.Size != m.Bytes || h.Typeflag != tar.TypeReg {
		return damagedBackup("the member " + m.Name + " is not where it belongs, or it is torn")
	}
	to := filepath.Join(dir, filepath.FromSlash(m.Name))
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, sum), u.in)
	return errors.Join(torn(m, err, sum), out.Close())
}

// torn tells a backup that cannot be read from a disk that cannot be written.
func torn(m BackupMember, err error, sum hash.Hash) error {
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return err
	}
	if err != nil || hex.EncodeToString(sum.Sum(nil)) != m.SHA256 {
		return damagedBackup(fmt.Sprintf("the member %s is not as it was written", m.Name))
	}
	return nil
}
