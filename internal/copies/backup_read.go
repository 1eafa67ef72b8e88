package copies

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

	"cairn/internal/archive"
	"cairn/internal/fault"
	"cairn/internal/repair"
	"cairn/internal/store"
)

// List lists the backups in the folder of backups, the newest first; such as
// cannot be read have Format 0 and no further fields.
func (k Keeper) List(ctx context.Context) ([]BackupReport, error) {
	out := []BackupReport{}
	files, err := filepath.Glob(filepath.Join(escapeGlob(k.Folder()), store.BackupPrefix+"*"+store.BackupSuffix))
	slices.Reverse(files)
	for _, file := range files {
		r := BackupReport{File: file}
		if info, serr := os.Stat(file); serr == nil {
			r.Bytes = info.Size()
		}
		if f, oerr := os.Open(file); oerr == nil {
			if u, uerr := newUnpacking(f); uerr == nil {
				r.Info = u.info
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

// Verify reads a backup to its end: its frame, the hash of each member, the
// pages of the store, every object of the repositories.
//
// Errors: those of the file, when it cannot be opened.
func (k Keeper) Verify(ctx context.Context, file string) (v Verification, err error) {
	v.File = file
	info, err := os.Stat(file)
	if err != nil {
		return v, fault.Wrap(err, fault.NotFound, "file_missing", "there is no backup "+file)
	}
	v.Bytes = info.Size()
	read, err := k.readBack(ctx, file)
	v.Info, v.Content = read.info, read.content
	if f := fault.As(err); err != nil && (f.Code == CodeBackup || f.Kind == fault.Internal || f.Code == archive.CodeGit) && ctx.Err() == nil {
		v.Problem = f.Message
		return v, nil
	}
	v.OK = err == nil
	return v, err
}

type readBackup struct {
	info    Info
	content bool
}

// readBack unpacks a backup into a temporary folder and looks at everything.
func (k Keeper) readBack(ctx context.Context, file string) (r readBackup, err error) {
	dir, err := os.MkdirTemp("", "cairn-backup-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if r.info, err = unpack(ctx, file, dir); err != nil {
		return r, err
	}
	key, err := k.keyOf(dir, r.info)
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
		err = damagedBackup("the store in it: " + repair.Summary(found))
	}
	return err
}

// keyOf is the key that fits an encrypted backup, nil for a plain one.
//
// Errors: Unavailable, store.CodeKey without a key that fits.
func (k Keeper) keyOf(dir string, info Info) ([]byte, error) {
	if !info.Encrypted {
		return nil, nil
	}
	key, err := k.Key()
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, store.CodeKey, "the backup is encrypted, and there is no key that fits").WithHint(store.KeyPlaces)
	}
	fits, err := store.KeyFits(filepath.Join(dir, databaseMember), key)
	if err == nil && !fits {
		err = fault.New(fault.Unavailable, store.CodeKey, "the backup is encrypted, and the key does not fit").WithHint(store.KeyPlaces)
	}
	return key, err
}

func damagedBackup(why string) error {
	return fault.New(fault.Invalid, CodeBackup, "this is not an intact backup: "+why).WithHint("`cairn backup list` shows others")
}

// unpacking reads a backup member by member.
type unpacking struct {
	file *bufio.Reader
	zip  *gzip.Reader
	in   *tar.Reader
	info Info
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
func unpack(ctx context.Context, file, dir string) (Info, error) {
	f, err := os.Open(file)
	if err != nil {
		return Info{}, fault.Wrap(err, fault.NotFound, "file_missing", "there is no backup "+file)
	}
	defer f.Close() //nolint:errcheck // it is only read
	u, err := newUnpacking(f)
	if err != nil {
		return Info{}, err
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

func (u *unpacking) member(m Member, dir string) error {
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
func torn(m Member, err error, sum hash.Hash) error {
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return err
	}
	if err != nil || hex.EncodeToString(sum.Sum(nil)) != m.SHA256 {
		return damagedBackup(fmt.Sprintf("the member %s is not as it was written", m.Name))
	}
	return nil
}
