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

	"cairn/internal/archive/repository"
	"cairn/internal/fault"
	"cairn/internal/repair"
	"cairn/internal/store"
	"cairn/internal/store/disk"
)

// List returns the backups in the backup folder, newest first. A backup that cannot be
// read has Format 0 and no other fields.
func (k Keeper) List(ctx context.Context) ([]BackupReport, error) {
	out := []BackupReport{}
	files, err := filepath.Glob(filepath.Join(escapeGlob(k.Folder()), disk.BackupPrefix+"*"+disk.BackupSuffix))
	slices.Reverse(files)
	for _, file := range files {
		r := BackupReport{File: file}
		if info, serr := os.Stat(file); serr == nil {
			r.Bytes = info.Size()
		}
		if f, oerr := os.Open(file); oerr == nil {
			if u, uerr := newUnpacker(f); uerr == nil {
				r.Info = u.info
			}
			err = errors.Join(err, f.Close())
		}
		out = append(out, r)
	}
	return out, errors.Join(err, ctx.Err())
}

// escapeGlob returns a glob pattern that matches only the path itself.
func escapeGlob(path string) string {
	if os.PathSeparator == '\\' {
		return path
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// Verification is the result of verifying a backup.
type Verification struct {
	BackupReport
	OK      bool   `json:"ok"`
	Problem string `json:"problem"` // "" for an intact backup
	Content bool   `json:"content"` // the store in it was checked too; an encrypted one only with its key
}

// Verify reads a complete backup: its frame, the hash of each member, the pages of the
// store, and every object of the repositories.
//
// It returns an error only if the file cannot be opened.
func (k Keeper) Verify(ctx context.Context, file string) (v Verification, err error) {
	v.File = file
	info, err := os.Stat(file)
	if err != nil {
		return v, fault.Wrap(err, fault.NotFound, "file_missing", "there is no backup "+file)
	}
	v.Bytes = info.Size()
	read, err := k.readBack(ctx, file)
	v.Info, v.Content = read.info, read.content
	if f := fault.As(err); err != nil && (f.Code == CodeBackup || f.Kind == fault.Internal || f.Code == repository.CodeGit) && ctx.Err() == nil {
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

// readBack unpacks a backup into a temporary folder and checks everything.
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
			if err := repository.Unbundle(ctx, filepath.Join(dir, "read", slug), filepath.Join(dir, filepath.FromSlash(m.Name))); err != nil {
				return r, err
			}
		}
	}
	return r, nil
}

// checkCopy returns an error if the store is damaged.
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

// keyOf returns the key of an encrypted backup, nil for a plain one.
//
// The error is Unavailable, store.CodeKey if no key fits.
func (k Keeper) keyOf(dir string, info Info) ([]byte, error) {
	if !info.Encrypted {
		return nil, nil
	}
	key, err := k.Key()
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, store.CodeKey, "the backup is encrypted, and no key fits").WithHint(store.KeyPlaces)
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

// unpacker reads a backup member by member.
type unpacker struct {
	file *bufio.Reader
	zip  *gzip.Reader
	in   *tar.Reader
	info Info
}

// newUnpacker reads the metadata. Errors: CodeBackup; store.CodeNewer for a backup of a
// newer cairn.
func newUnpacker(r io.Reader) (*unpacker, error) {
	file := bufio.NewReader(r)
	zip, err := gzip.NewReader(file)
	if err != nil {
		return nil, damagedBackup("it is not compressed with gzip")
	}
	zip.Multistream(false)
	u := &unpacker{file: file, zip: zip, in: tar.NewReader(zip)}
	h, err := u.in.Next()
	if err != nil || h.Name != metadataMember || h.Size > maxMetadata {
		return nil, damagedBackup("it does not start with " + metadataMember)
	}
	text, err := io.ReadAll(u.in)
	if err != nil {
		return nil, damagedBackup("it is truncated")
	}
	if err := json.Unmarshal(text, &u.info); err != nil || u.info.Format < 1 {
		return nil, damagedBackup("its metadata are not readable")
	}
	if u.info.Format > backupFormat {
		return nil, fault.Newf(fault.Unavailable, store.CodeNewer, "the backup has format %d, this cairn reads %d", u.info.Format, backupFormat).WithHint("upgrade cairn")
	}
	seen := map[string]bool{}
	for _, m := range u.info.Members {
		if !isMember(m.Name) || seen[m.Name] {
			return nil, damagedBackup("its metadata contain an invalid member name")
		}
		seen[m.Name] = true
	}
	if !seen[databaseMember] || seen[keyCheckMember] != u.info.Encrypted {
		return nil, damagedBackup("its metadata contain no store")
	}
	return u, nil
}

// unpack extracts the members of a backup into a folder. They must match the metadata.
func unpack(ctx context.Context, file, dir string) (Info, error) {
	f, err := os.Open(file)
	if err != nil {
		return Info{}, fault.Wrap(err, fault.NotFound, "file_missing", "there is no backup "+file)
	}
	defer f.Close() //nolint:errcheck // read-only
	u, err := newUnpacker(f)
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

// end checks that nothing follows the last member except the checksum of the compression.
func (u *unpacker) end() error {
	if _, err := u.in.Next(); err != io.EOF {
		return damagedBackup("it is truncated, or there is data after its last member")
	}
	if n, err := io.Copy(io.Discard, u.zip); err != nil || n > 0 {
		return damagedBackup("its end is missing")
	}
	if _, err := u.file.ReadByte(); err != io.EOF {
		return damagedBackup("there is data after its end")
	}
	return nil
}

func (u *unpacker) member(m Member, dir string) error {
	h, err := u.in.Next()
	if err != nil || h.Name != m.Name || h.Size != m.Bytes || h.Typeflag != tar.TypeReg {
		return damagedBackup("the member " + m.Name + " is not where it belongs, or the file is truncated")
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

// torn returns CodeBackup for a backup that cannot be read. Other errors, such as a full
// disk, are returned unchanged.
func torn(m Member, err error, sum hash.Hash) error {
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return err
	}
	if err != nil || hex.EncodeToString(sum.Sum(nil)) != m.SHA256 {
		return damagedBackup(fmt.Sprintf("the member %s has changed since it was written", m.Name))
	}
	return nil
}
