package httpapi

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"cairn/internal/fault"
	"cairn/internal/mcp"
	"cairn/internal/memory"
	"cairn/internal/memory/rules"
	"cairn/internal/regular"
	"cairn/internal/wholefile"
)

// Token describes a token other than the owner's. The token itself is shown only once, when
// it is created.
type Token struct {
	ID      string    `json:"id"` // the first 12 characters of its SHA-256
	Name    string    `json:"name"`
	UserID  string    `json:"user_id,omitempty"` // the local user of memories; "" for the device's own
	Level   string    `json:"level"`             // read, write, admin
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"`
	Revoked time.Time `json:"revoked,omitzero"`
}

// TokenArgs are the options of a new token.
type TokenArgs struct {
	Name    string        // up to 64 characters, may be empty
	UserID  string        // a local user of memories; "" for the device's own
	Level   string        // read, write or admin; "" for admin
	Expires time.Duration // 0 for never
}

const (
	tokenID      = 12
	maxTokenName = 64
)

func tokensDir(dir string) string { return filepath.Join(dir, "http-tokens") }

// levelNamed returns the level with a name.
func levelNamed(name string) (level memory.Level, ok bool) {
	switch name {
	case "read":
		return memory.Read, true
	case "write":
		return memory.Write, true
	case "admin":
		return memory.Admin, true
	}
	return memory.Read, false
}

// CreateToken creates a token of 256 random bits for the servers of a data directory. It
// stores only the SHA-256, as the name of a file that only the owner can read (memories
// §13). Running servers accept it from their next request. Errors: Invalid, code usage, for
// invalid arguments; Unavailable, code http_token, if it cannot be stored.
func CreateToken(dir string, a TokenArgs, now time.Time) (t Token, secret string, err error) {
	if a.Level == "" {
		a.Level = "admin"
	}
	_, known := levelNamed(a.Level)
	user, isUser := rules.ParseID(a.UserID)
	odd := !utf8.ValidString(a.Name) || strings.ContainsFunc(a.Name, unicode.IsControl)
	why := ""
	switch {
	case !known:
		why = "the level must be read, write or admin"
	case a.Expires < 0:
		why = "the lifetime of a token must not be negative"
	case odd || utf8.RuneCountInString(a.Name) > maxTokenName:
		why = "the name has more than 64 characters, or invalid ones"
	case a.UserID != "" && !isUser:
		why = "the user is not a UUID"
	}
	if why != "" {
		return t, "", fault.New(fault.Invalid, "usage", why)
	}
	var raw [tokenBytes]byte
	_, _ = rand.Read(raw[:]) // never fails
	secret = base64.RawURLEncoding.EncodeToString(raw[:])
	hash := hashOf(secret)
	t = Token{ID: hash[:tokenID], Name: a.Name, UserID: user, Level: a.Level, Created: now.UTC()}
	if a.Expires > 0 {
		t.Expires = now.Add(a.Expires).UTC().Truncate(time.Second)
	}
	return t, secret, keepToken(dir, hash, t)
}

// hashOf returns the file name of a token. An attacker who guesses tokens cannot choose the
// name, so a lookup by it reveals nothing about existing tokens.
func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// keepToken writes the file of a token atomically and flushes it.
func keepToken(dir, hash string, t Token) error {
	data, err := json.Marshal(t)
	if err != nil {
		return err
	}
	if err = wholefile.WritePrivate(filepath.Join(tokensDir(dir), hash), append(data, '\n')); err != nil {
		return tokenFault(err)
	}
	return nil
}

// Tokens lists the tokens of a data directory except the owner's, oldest first, including
// expired and revoked ones.
func Tokens(dir string) ([]Token, error) {
	tokens := []Token{}
	err := eachToken(dir, func(_ string, t Token) { tokens = append(tokens, t) })
	slices.SortFunc(tokens, func(a, b Token) int {
		if n := a.Created.Compare(b.Created); n != 0 {
			return n
		}
		return strings.Compare(a.ID, b.ID)
	})
	return tokens, err
}

func eachToken(dir string, fn func(hash string, t Token)) error {
	files, err := os.ReadDir(tokensDir(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return tokenFault(err)
	}
	for _, f := range files {
		if len(f.Name()) != hex.EncodedLen(sha256.Size) {
			continue // a file that is being written
		}
		t, err := readToken(dir, f.Name())
		if err != nil {
			return tokenFault(err)
		}
		fn(f.Name(), t)
	}
	return nil
}

func readToken(dir, hash string) (t Token, err error) {
	data, err := regular.Read(filepath.Join(tokensDir(dir), hash), regular.MaxSettings)
	if err != nil {
		return t, err
	}
	return t, json.Unmarshal(data, &t)
}

// RevokeToken revokes the token whose id begins with id. Running servers reject it from
// their next request. It is idempotent. Errors: NotFound, code not_found, for an unknown id;
// Invalid, code usage, if several ids begin with it.
func RevokeToken(dir, id string, now time.Time) (t Token, err error) {
	var hash string
	found := 0
	err = eachToken(dir, func(name string, one Token) {
		if id != "" && strings.HasPrefix(one.ID, id) {
			found++
			hash, t = name, one
		}
	})
	switch {
	case err != nil:
		return t, err
	case found == 0:
		return t, fault.New(fault.NotFound, "not_found", "token not found").WithHint("`cairn token list` lists the tokens")
	case found > 1:
		return t, fault.New(fault.Invalid, "usage", "several token ids begin like this").WithHint("give the whole id")
	case !t.Revoked.IsZero():
		return t, nil
	}
	t.Revoked = now.UTC().Truncate(time.Second)
	return t, keepToken(dir, hash, t)
}

// FindToken returns the bearer of a token of a data directory. ok is false if the token is
// unknown, expired or revoked. ok is also false if the token cannot be read; then err is set.
func FindToken(dir, secret string, now time.Time) (who mcp.Bearer, ok bool, err error) {
	t, err := readToken(dir, hashOf(secret))
	if errors.Is(err, fs.ErrNotExist) {
		return who, false, nil
	}
	level, known := levelNamed(t.Level)
	if err != nil || !known || !t.Revoked.IsZero() || !t.Expires.IsZero() && !now.Before(t.Expires) {
		return who, false, err
	}
	return mcp.Bearer{User: t.UserID, Level: level}, true, nil
}
