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

// Token is a token besides the owner's, as it is listed; the token itself is shown
// once, when it is made.
type Token struct {
	ID      string    `json:"id"` // the first 12 characters of its SHA-256
	Name    string    `json:"name"`
	UserID  string    `json:"user_id,omitempty"` // the local user of memories; "" for the device's own
	Level   string    `json:"level"`             // read, write, admin
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"`
	Revoked time.Time `json:"revoked,omitzero"`
}

// TokenArgs are what a new token is for.
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

// levelNamed is a level by its name.
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

// CreateToken makes a token of 256 random bits for the listeners of a data directory
// and keeps its SHA-256 alone, as the name of a file that is its owner's (memories
// §13). Running servers take it from their next request on. Wrong arguments are
// Invalid, code usage; what cannot be kept is Unavailable, code http_token.
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
		why = "a token cannot have expired already"
	case odd || utf8.RuneCountInString(a.Name) > maxTokenName:
		why = "the name has more than 64 characters, or strange ones"
	case a.UserID != "" && !isUser:
		why = "the user is no UUID"
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

// hashOf is the name under which a token is kept. Whoever guesses at tokens cannot
// choose it, so that finding a file by it tells nothing of those that are there.
func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// keepToken writes the file of a token, whole and on the disk.
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

// Tokens lists the tokens of a data directory but the owner's, the oldest first,
// expired and revoked ones too; none where none was made.
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
			continue // one that is being written
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

// RevokeToken ends a token, named by the beginning of its id: running servers refuse
// it from their next request on. Repeating it is safe and changes nothing. NotFound,
// code not_found, for an id of none; Invalid, code usage, for the beginning of several.
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
		return t, fault.New(fault.NotFound, "not_found", "there is no such token").WithHint("`cairn token list` lists them")
	case found > 1:
		return t, fault.New(fault.Invalid, "usage", "several tokens begin so").WithHint("give the whole id")
	case !t.Revoked.IsZero():
		return t, nil
	}
	t.Revoked = now.UTC().Truncate(time.Second)
	return t, keepToken(dir, hash, t)
}

// FindToken tells who bears a token of a data directory: nobody if it is unknown, has
// expired, was revoked or cannot be read, which err says.
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
