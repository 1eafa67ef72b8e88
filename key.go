package cairn

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
)

// Key is a store's key and where it came from.
type Key struct {
	Bytes []byte // store.KeySize of them
	Place string // CAIRN_KEY, or the path of a file
}

// LoadKey finds the key: CAIRN_KEY, else the file that store.key_file names, else
// key in the data directory, which is made readable by its owner alone if it is
// not (observations §11.4). A place that is named and holds no key is an error;
// the next is not tried. A relative store.key_file is relative to the data
// directory; ~/ is the home directory.
//
// Errors: store.CodeKey (Unavailable), naming the place, or all three if there is
// no key in any. No error contains anything of a key.
func (c *Cairn) LoadKey() (Key, error) {
	if c.config.Key != "" {
		return keyFrom("CAIRN_KEY", c.config.Key)
	}
	if c.settings.keyFile != "" {
		return readKey(c.keyFile())
	}
	path := c.ownKeyFile()
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

func (c *Cairn) ownKeyFile() string { return filepath.Join(c.config.Dir, "key") }

// keyFile is the path that the settings name.
func (c *Cairn) keyFile() string {
	path := c.settings.keyFile
	switch {
	case strings.HasPrefix(path, "~/") || strings.HasPrefix(path, `~\`):
		return filepath.Join(c.config.Home, path[2:])
	case !filepath.IsAbs(path):
		return filepath.Join(c.config.Dir, path)
	}
	return path
}

// longestKey is more than any text of a key has.
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
			"%s holds no key: it must be %d hex digits or the base64 of %d bytes", place, 2*store.KeySize, store.KeySize)
	}
	return Key{Bytes: key, Place: place}, nil
}

// parseKey reads a key: hex digits, or base64 in either alphabet with or without
// padding, white space around it.
func parseKey(text string) (key []byte, ok bool) {
	text = strings.TrimSpace(text)
	if key, err := hex.DecodeString(text); err == nil && len(key) == store.KeySize {
		return key, true
	}
	text = strings.TrimRight(text, "=")
	if strings.ContainsAny(text, "\r\n") { // which base64 would skip
		return nil, false
	}
	for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if key, err := e.Strict().DecodeString(text); err == nil && len(key) == store.KeySize {
			return key, true
		}
	}
	return nil, false
}

// tighten takes the rights on a key file away from everybody but its owner.
// Windows has none to take: there the data directory protects it.
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

// openWithKey opens the store with its key because opening it without one failed.
// That of a store copied without its key check looks like damage, until a key
// opens it.
func (c *Cairn) openWithKey(ctx context.Context, config *store.Config, failed error) (*store.Store, error) {
	damaged := fault.HasCode(failed, store.CodeCorrupt)
	if !damaged {
		encrypted, err := store.Encrypted(ctx, config.Path, config.Wait)
		if err != nil {
			return nil, err
		}
		if !encrypted { // what was interrupted has been undone
			return c.openStore(ctx, *config)
		}
	}
	key, err := c.LoadKey()
	if err == nil {
		config.Key = key.Bytes
		var s *store.Store
		if s, err = c.openStore(ctx, *config); err == nil {
			return s, nil
		}
	}
	if damaged && !fault.HasCode(err, store.CodeDriver) {
		return nil, failed
	}
	return nil, err
}

// What can be said about a store and its key.
const (
	KeyPlain    = "plain"    // the store is not encrypted, or there is none
	KeyFits     = "fits"     // it is encrypted and the key opens it
	KeyMissing  = "missing"  // it is encrypted and there is no key
	KeyUnusable = "unusable" // the place that comes first holds no key or cannot be read
	KeyWrong    = "wrong"    // the key is another store's
)

// KeyState is what doctor says about a store and its key.
type KeyState struct {
	State string `json:"state"` // one of the Key constants
	Place string `json:"place"` // where the key was found, or where it cannot be read; "" if nowhere
	Wide  bool   `json:"wide"`  // the key's file can be read by others than its owner
	Why   string `json:"why"`   // one sentence unless the state is plain or fits
}

// KeyState looks at the store and its key without opening the store or changing
// anything. An encryption under way counts as its outcome so far. The store must
// not be open in this process.
//
// Errors are those of reading the store's files.
func (c *Cairn) KeyState() (KeyState, error) {
	k, _, err := c.keyState()
	return k, err
}

// keyState is KeyState with the key, which is nil unless the state is KeyFits.
func (c *Cairn) keyState() (k KeyState, key []byte, err error) {
	k = KeyState{State: KeyPlain}
	encrypted, err := store.LooksEncrypted(c.config.DB)
	if err != nil {
		return k, nil, err
	}
	k.Place, k.Wide = c.keyPlace()
	if k.Place == "" {
		if encrypted {
			k.State, k.Why = KeyMissing, "the store is encrypted, and there is no key"
		}
		return k, nil, nil
	}
	found, err := c.findKey(k.Place)
	if err != nil {
		if encrypted {
			k.State, k.Why = KeyUnusable, errorText(err)
		}
		return k, nil, nil
	}
	fits, err := store.KeyFits(c.config.DB, found.Bytes)
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

// keyPlace is where the key is, or is said to be, without looking at it; "" for
// nowhere. wide says that others can read it.
func (c *Cairn) keyPlace() (place string, wide bool) {
	if c.config.Key != "" {
		return "CAIRN_KEY", false
	}
	place = c.ownKeyFile()
	if c.settings.keyFile != "" {
		place = c.keyFile()
	}
	info, err := os.Stat(place)
	if err != nil && c.settings.keyFile == "" {
		return "", false
	}
	return place, err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0
}

// findKey is the key of a place that KeyState found.
func (c *Cairn) findKey(place string) (Key, error) {
	if place == "CAIRN_KEY" {
		return keyFrom(place, c.config.Key)
	}
	return readKey(place)
}

// Encryption is what Encrypt did.
type Encryption struct {
	Store   string `json:"store"`
	Already bool   `json:"already"`  // it was encrypted before; nothing was done
	Key     string `json:"key"`      // where the key is, "" if there is none though the store is encrypted
	KeyMade bool   `json:"key_made"` // Encrypt made it
	store.EncryptReport
}

// Encrypt encrypts the store (observations §11.4) with the key that LoadKey finds;
// without one it makes the file key in the data directory first. c must not have
// opened the store. On an encrypted store it does nothing.
//
// Errors: those of store.Encrypt, and store.CodeKey for a key that cannot be used.
func (c *Cairn) Encrypt(ctx context.Context) (e Encryption, err error) {
	e = Encryption{Store: c.config.DB, EncryptReport: store.EncryptReport{Destroyed: []string{}, Left: []string{}}}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.store != nil {
		return e, fault.New(fault.Internal, "internal", "a defect in cairn: the store is open while it is to be encrypted")
	}
	encrypted, err := store.Encrypted(ctx, c.config.DB, c.config.Wait)
	if err != nil {
		return e, err
	}
	if encrypted {
		e.Already = true
		if state, err := c.KeyState(); err == nil && state.State == KeyFits {
			e.Key = state.Place
		}
		return e, nil
	}
	if info, err := os.Stat(c.config.DB); errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return e, fault.New(fault.NotFound, store.CodeMissing, "there is no store to encrypt").
			WithHint("it is made by the first recorded event, or by `cairn import`")
	}
	key, made, err := c.keyToEncryptWith()
	if err != nil {
		return e, err
	}
	e.Key, e.KeyMade = key.Place, made
	done, err := store.Encrypt(ctx, store.EncryptConfig{Path: c.config.DB, Key: key.Bytes, Wait: c.config.Wait})
	if err != nil {
		return e, err
	}
	done.Destroyed, done.Left = append(e.Destroyed, done.Destroyed...), append(e.Left, done.Left...)
	e.EncryptReport = done
	return e, nil
}

// keyToEncryptWith is the key there is, or a new one in the data directory.
func (c *Cairn) keyToEncryptWith() (k Key, made bool, err error) {
	if c.config.Key != "" || c.settings.keyFile != "" {
		k, err = c.LoadKey()
		return k, false, err
	}
	path := c.ownKeyFile()
	if made, err = makeKey(path); err != nil {
		return Key{}, false, fault.Wrap(err, fault.Unavailable, store.CodeKey, "the key file "+path+" cannot be made").
			WithHint("check the rights of the data directory")
	}
	k, err = c.LoadKey()
	return k, made, err
}

// makeKey makes a key file unless there is one, wholly or not at all.
func makeKey(path string) (made bool, err error) {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	key := make([]byte, store.KeySize)
	if _, err := rand.Read(key); err != nil {
		return false, err
	}
	err = WritePrivate(filepath.Dir(path), "key-*", fmt.Sprintf("%x\n", key), func(written string) error {
		err := os.Link(written, path)
		switch {
		case errors.Is(err, fs.ErrExist): // another process was faster
			return nil
		case err != nil: // no links on this volume
			err = os.Rename(written, path)
		}
		made = err == nil
		return err
	})
	return made, err
}
