package workspace

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/regular"
	"cairn/internal/store"
	"cairn/internal/store/encryption"
	"cairn/internal/wholefile"
)

// Key is a store's key with its source.
type Key struct {
	Bytes []byte // store.KeySize of them
	Place string // CAIRN_KEY, or the path of a file
}

// LoadKey finds the key: CAIRN_KEY, else the file of store.key_file, else the file key in
// the data directory. It removes the rights of other users on that file (observations
// §11.4). If CAIRN_KEY or store.key_file is set without a valid key, it returns an error
// and does not try the next place. A relative store.key_file is relative to the data
// directory; ~/ is the home directory.
//
// Errors: store.CodeKey (Unavailable), naming the place, or all three if none has a key.
// An error never contains a part of a key.
func (w *Workspace) LoadKey() (Key, error) {
	if w.Config.Key != "" {
		return keyFrom("CAIRN_KEY", w.Config.Key)
	}
	if w.Settings.KeyFile != "" {
		return readKey(w.keyFile())
	}
	path := w.ownKeyFile()
	k, err := readKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Key{}, fault.New(fault.Unavailable, store.CodeKey, "the store is encrypted, and there is no key").
			WithHint(store.KeyPlaces)
	}
	if err != nil {
		return Key{}, err
	}
	return k, tighten(path)
}

func (w *Workspace) ownKeyFile() string { return filepath.Join(w.Config.Dir, "key") }

// keyFile returns the path of store.key_file.
func (w *Workspace) keyFile() string {
	path := w.Settings.KeyFile
	switch {
	case strings.HasPrefix(path, "~/") || strings.HasPrefix(path, `~\`):
		return filepath.Join(w.Config.Home, path[2:])
	case !filepath.IsAbs(path):
		return filepath.Join(w.Config.Dir, path)
	}
	return path
}

// longestKey is more than the length of any key's text.
const longestKey = 4096

func readKey(path string) (k Key, err error) {
	f, err := regular.Open(path)
	if err == nil {
		defer func() { err = errors.Join(err, f.Close()) }()
		var text []byte
		if text, err = io.ReadAll(io.LimitReader(f, longestKey)); err == nil {
			return keyFrom(path, string(text))
		}
	}
	return Key{}, fault.Wrap(err, fault.Unavailable, store.CodeKey, "the key file "+path+" cannot be read").
		WithHint("correct it; " + store.KeyPlaces)
}

func keyFrom(place, text string) (Key, error) {
	key, ok := parseKey(text)
	if !ok {
		return Key{}, fault.Newf(fault.Unavailable, store.CodeKey,
			"%s does not contain a valid key: it must be %d hex digits or the base64 of %d bytes", place, 2*store.KeySize, store.KeySize)
	}
	return Key{Bytes: key, Place: place}, nil
}

// parseKey parses a key: hex digits, or base64 in either alphabet, with or without padding.
// It ignores surrounding white space.
func parseKey(text string) (key []byte, ok bool) {
	text = strings.TrimSpace(text)
	if key, err := hex.DecodeString(text); err == nil && len(key) == store.KeySize {
		return key, true
	}
	text = strings.TrimRight(text, "=")
	if strings.ContainsAny(text, "\r\n") { // base64 would skip these
		return nil, false
	}
	for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if key, err := e.Strict().DecodeString(text); err == nil && len(key) == store.KeySize {
			return key, true
		}
	}
	return nil, false
}

// tighten removes all rights on a key file except the owner's. On Windows there are no
// such rights; there the data directory protects the file.
func tighten(path string) error {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" || info.Mode().Perm()&0o077 == 0 {
		return err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return fault.Wrap(err, fault.Unavailable, store.CodeKey, "the key file "+path+" is open to others and cannot be protected").
			WithHint("chmod 600 " + path)
	}
	return nil
}

// openWithKey opens the store with its key, after opening it without a key has failed. A
// store that was copied without its key check looks damaged until a key opens it.
func (w *Workspace) openWithKey(ctx context.Context, config *store.Config, failed error) (*store.Store, error) {
	damaged := fault.HasCode(failed, store.CodeCorrupt)
	if !damaged {
		encrypted, err := encryption.Finish(ctx, config.Path, config.Wait)
		if err != nil {
			return nil, err
		}
		if !encrypted { // the interrupted encryption has been undone
			return w.options.OpenStore(ctx, *config)
		}
	}
	key, err := w.LoadKey()
	if err == nil {
		config.Key = key.Bytes
		var s *store.Store
		if s, err = w.options.OpenStore(ctx, *config); err == nil {
			return s, nil
		}
	}
	if damaged && !fault.HasCode(err, store.CodeDriver) {
		return nil, failed
	}
	return nil, err
}

// The states of a store and its key.
const (
	KeyPlain    = "plain"    // the store is not encrypted, or there is none
	KeyFits     = "fits"     // the store is encrypted and the key opens it
	KeyMissing  = "missing"  // the store is encrypted and there is no key
	KeyUnusable = "unusable" // the first configured place has no valid key or cannot be read
	KeyWrong    = "wrong"    // the key belongs to another store
)

// KeyState is the state of a store and its key, for doctor.
type KeyState struct {
	State string `json:"state"` // one of the Key constants
	Place string `json:"place"` // where the key was found or could not be read; "" if nowhere
	Wide  bool   `json:"wide"`  // other users than the owner can read the key's file
	Why   string `json:"why"`   // one sentence unless the state is plain or fits
}

// KeyState checks the store and its key without opening the store or changing anything. An
// unfinished encryption counts as far as it has come. The store must not be open in this
// process. key is nil unless the state is KeyFits. Errors: those of reading the store's
// files.
func (w *Workspace) KeyState() (k KeyState, key []byte, err error) {
	k = KeyState{State: KeyPlain}
	encrypted, err := store.LooksEncrypted(w.Config.DB)
	if err != nil {
		return k, nil, err
	}
	k.Place, k.Wide = w.keyPlace()
	if k.Place == "" {
		if encrypted {
			k.State, k.Why = KeyMissing, "the store is encrypted, and there is no key"
		}
		return k, nil, nil
	}
	found, err := w.findKey(k.Place)
	if err != nil {
		if encrypted {
			k.State, k.Why = KeyUnusable, fault.As(err).Message
		}
		return k, nil, nil
	}
	fits, err := store.KeyFits(w.Config.DB, found.Bytes)
	switch {
	case err != nil:
		return k, nil, err
	case fits: // also of a copy without its key check
		k.State = KeyFits
		return k, found.Bytes, nil
	case encrypted:
		k.State, k.Why = KeyWrong, "the key does not fit the encrypted store"
	}
	return k, nil, nil
}

// keyPlace returns the configured place of the key without reading it; "" if there is
// none. wide is set if other users can read it.
func (w *Workspace) keyPlace() (place string, wide bool) {
	if w.Config.Key != "" {
		return "CAIRN_KEY", false
	}
	place = w.ownKeyFile()
	if w.Settings.KeyFile != "" {
		place = w.keyFile()
	}
	info, err := os.Stat(place)
	if err != nil && w.Settings.KeyFile == "" {
		return "", false
	}
	return place, err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0
}

// findKey returns the key at a place that KeyState found.
func (w *Workspace) findKey(place string) (Key, error) {
	if place == "CAIRN_KEY" {
		return keyFrom(place, w.Config.Key)
	}
	return readKey(place)
}

// Encryption is the result of Encrypt.
type Encryption struct {
	Store   string `json:"store"`
	Already bool   `json:"already"`  // the store was already encrypted; nothing was done
	Key     string `json:"key"`      // where the key is; "" if the store is encrypted and its key is missing
	KeyMade bool   `json:"key_made"` // Encrypt created it
	encryption.Report
}

// Encrypt encrypts the store (observations §11.4) with the key of LoadKey. Without a key it
// first creates the file key in the data directory. The store must not be open. It is
// idempotent: an encrypted store does not change.
//
// Errors: those of encryption.Encrypt, and store.CodeKey for an invalid key.
func (w *Workspace) Encrypt(ctx context.Context) (e Encryption, err error) {
	e = Encryption{Store: w.Config.DB, Report: encryption.Report{Destroyed: []string{}, Left: []string{}}}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.store != nil {
		return e, fault.New(fault.Internal, "internal", "a bug in cairn: the store is open during its encryption")
	}
	encrypted, err := encryption.Finish(ctx, w.Config.DB, w.Config.Wait)
	if err != nil {
		return e, err
	}
	if encrypted {
		e.Already = true
		if state, _, err := w.KeyState(); err == nil && state.State == KeyFits {
			e.Key = state.Place
		}
		return e, nil
	}
	if info, err := os.Stat(w.Config.DB); errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return e, fault.New(fault.NotFound, store.CodeMissing, "there is no store to encrypt").
			WithHint("the first recorded event or `cairn import` creates it")
	}
	key, made, err := w.encryptionKey()
	if err != nil {
		return e, err
	}
	e.Key, e.KeyMade = key.Place, made
	done, err := encryption.Encrypt(ctx, encryption.Config{Path: w.Config.DB, Key: key.Bytes, Wait: w.Config.Wait})
	if err != nil {
		return e, err
	}
	done.Destroyed, done.Left = append(e.Destroyed, done.Destroyed...), append(e.Left, done.Left...)
	e.Report = done
	return e, nil
}

// encryptionKey returns the existing key, or creates one in the data directory.
func (w *Workspace) encryptionKey() (k Key, made bool, err error) {
	if w.Config.Key != "" || w.Settings.KeyFile != "" {
		k, err = w.LoadKey()
		return k, false, err
	}
	path := w.ownKeyFile()
	if made, err = createKey(path); err != nil {
		return Key{}, false, fault.Wrap(err, fault.Unavailable, store.CodeKey, "the key file "+path+" cannot be created").
			WithHint("check the rights of the data directory")
	}
	k, err = w.LoadKey()
	return k, made, err
}

// createKey creates a key file atomically, unless it exists.
func createKey(path string) (made bool, err error) {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	key := make([]byte, store.KeySize)
	if _, err := rand.Read(key); err != nil {
		return false, err
	}
	return wholefile.MakePrivate(path, fmt.Appendf(nil, "%x\n", key))
}
