package store

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"cairn/internal/fault"
	"cairn/internal/regular"
	"cairn/internal/store/gosqlite"
	"cairn/internal/wholefile"
)

// KeySize is the length of a store's key in bytes.
const KeySize = gosqlite.KeySize

// Suffixes of the files of encryption next to a store.
const (
	// cipherSuffix is the suffix of the key check. That file contains no secret, only a
	// salt and the key's HMAC of it. It exists if the store is encrypted or being
	// encrypted, and it distinguishes a wrong key from damage.
	cipherSuffix = "-cipher"
	// buildSuffix is the suffix of an incomplete encrypted copy.
	buildSuffix = "-encrypting"
	// readySuffix is the suffix of a complete encrypted copy. While it exists, the
	// store's own file is ignored unless it is a plain database.
	readySuffix = "-encrypted"
)

// checkTitle is the first line of a key check.
const checkTitle = "cairn key check 1"

// Encrypted reports whether the store at a path is encrypted. Without any encryption it
// costs one failed open. It first finishes or undoes an interrupted Encrypt, and waits
// for a running one. Afterwards exactly one complete store exists; if that is the plain
// one, the result is false.
//
// Errors: CodeBusy while an Encrypt runs, CodeReadOnly and CodeFull if an interrupted
// Encrypt cannot be finished.
func Encrypted(ctx context.Context, path string, wait time.Duration) (bool, error) {
	if !exists(path + cipherSuffix) {
		return false, nil
	}
	plain, err := isPlain(path)
	if err != nil {
		return false, classify(err)
	}
	if !plain && !exists(path+readySuffix) {
		return true, nil
	}
	if wait == 0 {
		wait = 5 * time.Second
	}
	line := newFairLock(path)
	defer line.leave()
	if err := line.enter(ctx, time.Now().Add(wait)); errors.Is(err, errNotGranted) {
		return false, locked(err)
	} else if err != nil {
		return false, classify(err)
	}
	plain, err = finishEncrypt(path)
	return !plain, classify(err)
}

// LooksEncrypted is Encrypted without changes: the files of an interrupted Encrypt stay,
// and the result is that of finishing it.
func LooksEncrypted(path string) (bool, error) {
	if !exists(path + cipherSuffix) {
		return false, nil
	}
	plain, err := isPlain(path)
	return !plain, classify(err)
}

// finishEncrypt ends an interrupted Encrypt. The caller must hold the writers' lock. It
// undoes the encryption if the plain file is untouched, else it completes it. It reports
// whether the store is plain.
func finishEncrypt(path string) (plain bool, err error) {
	if !exists(path + cipherSuffix) {
		return true, nil // another process was faster
	}
	if plain, err = isPlain(path); err != nil {
		return plain, err
	}
	if plain {
		return true, removeAll(path+buildSuffix, path+readySuffix, path+cipherSuffix)
	}
	if exists(path + readySuffix) {
		if err := takeOver(path); err != nil {
			return false, err
		}
		_, _, err := takenOver(path)
		return false, err
	}
	return false, removeAll(path + buildSuffix)
}

// exists reports whether a path exists. It is true if that cannot be determined.
func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR)
}

// start reads at most n first bytes of a file, none if it is missing or not a file. It
// must not be used for a file that mattn's SQLite has open in this process, because
// closing it would release SQLite's locks.
func start(path string, n int) (text []byte, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // another process has closed the store meanwhile
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	text = make([]byte, n)
	n, err = io.ReadFull(f, text)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return text[:n], err
}

func isPlain(path string) (bool, error) {
	text, err := start(path, 16)
	return gosqlite.IsPlain(text), err
}

func removeAll(paths ...string) error {
	for _, p := range paths {
		if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// newCheck returns the text of a key check for a key.
func newCheck(key []byte) (string, error) {
	salt := make([]byte, 16)
	if _, err := rand.Read(salt); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s\n%x\n%x\n", checkTitle, salt, checkSum(key, salt)), nil
}

func checkSum(key, salt []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(checkTitle))
	h.Write(salt)
	return h.Sum(nil)
}

// fits reports whether a key check was made for the key. It is false for a text that is
// not a key check.
func fits(check string, key []byte) bool {
	lines := strings.Split(check, "\n")
	if len(lines) != 4 || lines[0] != checkTitle || lines[3] != "" {
		return false
	}
	salt, err := hex.DecodeString(lines[1])
	if err != nil {
		return false
	}
	sum, err := hex.DecodeString(lines[2])
	return err == nil && hmac.Equal(sum, checkSum(key, salt))
}

// writeCheck writes the key check of a store atomically.
func writeCheck(path string, key []byte) error {
	text, err := newCheck(key)
	if err != nil {
		return err
	}
	return wholefile.Write(path+cipherSuffix, []byte(text), 0o600)
}

// repairCheck writes the key check of an encrypted store again unless it fits the key.
func (o *oldStore) repairCheck() error {
	if o.key == nil {
		return nil
	}
	check, err := regular.Read(o.path+cipherSuffix, regular.MaxSettings)
	if err == nil && fits(string(check), o.key) {
		return nil
	}
	return writeCheck(o.path, o.key)
}

func checkKey(key []byte) error {
	if key == nil || len(key) == KeySize {
		return nil
	}
	return fault.Newf(fault.Invalid, CodeKey, "a key has %d bytes, not %d", KeySize, len(key))
}

// admit checks whether the store may be opened with the given key, before SQLite accesses
// its files: with a wrong or missing key, SQLite would treat the write-ahead log as
// invalid and delete it. If the key opens the file, it replaces a missing or wrong key
// check.
func (s *Store) admit() error {
	if s.key == nil {
		return s.admitPlain()
	}
	check, err := regular.Read(s.path+cipherSuffix, regular.MaxSettings)
	if err == nil && fits(string(check), s.key) {
		return nil
	}
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return err
	}
	block, err := start(s.path, blockSize)
	switch {
	case err != nil:
		return err
	case gosqlite.IsPlain(block):
		return fault.New(fault.Conflict, CodeKey, "the store is not encrypted, but a key was given for it")
	case gosqlite.Opens(block, s.key):
		if s.reading {
			return nil
		}
		return writeCheck(s.path, s.key)
	case missing && len(block) == 0:
		return nil // to be created
	case missing:
		return fault.New(fault.Internal, CodeCorrupt, "the store is damaged: the file is not a database, and the key does not decrypt it").
			WithHint("if it is a copy of an encrypted store, use its key; else run `cairn doctor --salvage`")
	}
	return wrongKey()
}

// admitPlain returns an error for an encrypted store, and for a write-ahead log that no
// plain store has: that of an encrypted store copied without its key check.
func (s *Store) admitPlain() error {
	if exists(s.path + cipherSuffix) {
		return becameEncrypted()
	}
	log, err := start(s.path+"-wal", 4)
	if err != nil || len(log) < 4 || log[0]|log[1]|log[2]|log[3] == 0 {
		return err
	}
	if log[0] == 0x37 && log[1] == 0x7f && log[2] == 0x06 && log[3]&^1 == 0x82 {
		return nil
	}
	return fault.New(fault.Internal, CodeCorrupt, "the store is damaged: its write-ahead log is not valid").
		WithHint("run `cairn doctor --salvage`")
}

// KeyFits reports whether a key is that of the encrypted store at a path, which may be
// damaged or lack its key check. It changes nothing. It is false for a key of another
// length than KeySize and for a plain store.
func KeyFits(path string, key []byte) (bool, error) {
	block, err := start(path, blockSize)
	if err != nil || len(key) != KeySize || gosqlite.IsPlain(block) {
		return false, classify(err)
	}
	check, err := regular.Read(path+cipherSuffix, regular.MaxSettings)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return false, classify(err)
	case err == nil && fits(string(check), key), gosqlite.Opens(block, key):
		return true, nil
	}
	return makesSense(path, key)
}

// makesSense reports whether a key decrypts files to a database whose beginning and key
// check are damaged.
func makesSense(path string, key []byte) (ok bool, err error) {
	o := oldStore{path: path, key: key}
	defer func() { err = classify(errors.Join(err, o.close())) }()
	if o.db, err = openIfThere(path, os.O_RDONLY); err != nil {
		return false, err
	}
	if o.wal, err = openIfThere(path+"-wal", os.O_RDONLY); err != nil {
		return false, err
	}
	image, err := o.read()
	return err == nil && (image.Head.Found || len(image.Roots()) > 0), err
}

// keyFor returns the key for reading the store at a path, or nil for a plain or missing
// store, whatever key is given. It changes nothing.
//
// Errors: CodeEncrypted for an encrypted store without a key, CodeKey for a key that does
// not fit.
func keyFor(path string, key []byte) ([]byte, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	encrypted, err := LooksEncrypted(path)
	if err != nil {
		return nil, err
	}
	if key == nil {
		if encrypted {
			return nil, fault.New(fault.Unavailable, CodeEncrypted, "the store is encrypted, and no key was given").WithHint(KeyPlaces)
		}
		return nil, nil
	}
	switch ok, err := KeyFits(path, key); {
	case err != nil:
		return nil, err
	case ok:
		return key, nil
	case encrypted:
		return nil, wrongKey()
	}
	return nil, nil
}

func wrongKey() error {
	return fault.New(fault.Unavailable, CodeKey, "the key does not fit the encrypted store").WithHint(KeyPlaces)
}

func becameEncrypted() error {
	return fault.New(fault.Unavailable, CodeEncrypted, "the store is encrypted, and was opened without a key").
		WithHint("start this command again")
}

// KeyPlaces is a hint with the places of the key, in order (observations §11.4).
const KeyPlaces = "the key is taken from CAIRN_KEY, then from store.key_file in config.toml, then from the file key in the data directory"
