package store

import (
	"errors"
	"io/fs"
	"os"

	"cairn/internal/fault"
	"cairn/internal/store/disk"
	"cairn/internal/store/gosqlite"
)

// KeySize is the length of a store's key in bytes.
const KeySize = gosqlite.KeySize

// LooksEncrypted reports whether the store at a path is encrypted. It changes nothing: the
// files of an interrupted encryption stay, and the result is that of finishing it.
func LooksEncrypted(path string) (bool, error) {
	if !disk.Exists(path + disk.CipherSuffix) {
		return false, nil
	}
	plain, err := disk.IsPlain(path)
	return !plain, classify(err)
}

// CheckKey returns an error for a key of a wrong length. nil is the key of a plain store.
func CheckKey(key []byte) error {
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
	ok, err := disk.KeyCheckFits(s.path, s.key)
	if ok {
		return nil
	}
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return err
	}
	block, err := disk.Start(s.path, gosqlite.BlockSize)
	switch {
	case err != nil:
		return err
	case gosqlite.IsPlain(block):
		return fault.New(fault.Conflict, CodeKey, "the store is not encrypted, but a key was given for it")
	case gosqlite.Opens(block, s.key):
		if s.reading {
			return nil
		}
		return disk.WriteKeyCheck(s.path, s.key)
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
	if disk.Exists(s.path + disk.CipherSuffix) {
		return becameEncrypted()
	}
	log, err := disk.Start(s.path+"-wal", 4)
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
	block, err := disk.Start(path, gosqlite.BlockSize)
	if err != nil || len(key) != KeySize || gosqlite.IsPlain(block) {
		return false, classify(err)
	}
	ok, err := disk.KeyCheckFits(path, key)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return false, classify(err)
	case ok, gosqlite.Opens(block, key):
		return true, nil
	}
	return makesSense(path, key)
}

// makesSense reports whether a key decrypts files to a database whose beginning and key
// check are damaged.
func makesSense(path string, key []byte) (ok bool, err error) {
	raw, err := disk.OpenRaw(path, key, os.O_RDONLY)
	if err != nil {
		return false, classify(err)
	}
	defer func() { err = classify(errors.Join(err, raw.Close())) }()
	image, err := raw.Image()
	return err == nil && (image.Head.Found || len(image.Roots()) > 0), err
}

// KeyFor returns the key for reading the store at a path, or nil for a plain or missing
// store, whatever key is given. It changes nothing.
//
// Errors: CodeEncrypted for an encrypted store without a key, CodeKey for a key that does
// not fit.
func KeyFor(path string, key []byte) ([]byte, error) {
	if err := CheckKey(key); err != nil {
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
