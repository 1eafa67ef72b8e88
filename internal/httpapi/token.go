package httpapi

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/regular"
	"cairn/internal/wholefile"
)

// TokenFile is the file with the token in a data directory.
func TokenFile(dir string) string { return filepath.Join(dir, "http-token") }

// LogoutDir is the directory of a data directory in which servers keep the logouts of
// people from their pages.
func LogoutDir(dir string) string { return filepath.Join(dir, "http-logouts") }

// ReadToken returns the token of a data directory, an error that is
// fs.ErrNotExist if there is none, and one of code http_token if the file holds
// none.
func ReadToken(dir string) (string, error) {
	data, err := regular.Read(TokenFile(dir), regular.MaxSettings)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(data))
	if raw, err := base64.RawURLEncoding.DecodeString(token); err != nil || len(raw) != tokenBytes {
		return "", fault.Newf(fault.Unavailable, codeToken, "%s holds no token", TokenFile(dir)).
			WithHint("`cairn http-token --rotate` writes a new one")
	}
	return token, nil
}

const codeToken = "http_token"

// tokenBytes is how much chance is in a token.
const tokenBytes = 32

// EnsureToken returns the token of a data directory, made by whoever is first: of
// several processes all get the same one. The directory and the file are their
// owner's alone.
func EnsureToken(dir string) (string, error) {
	token, err := ReadToken(dir)
	switch {
	case err == nil, fault.HasCode(err, codeToken):
		return token, err
	case !errors.Is(err, fs.ErrNotExist):
		return "", tokenFault(err)
	}
	if _, err = wholefile.MakePrivate(TokenFile(dir), newToken()); err != nil {
		return "", tokenFault(err)
	}
	return ReadToken(dir)
}

// RotateToken replaces the token of a data directory at once: running servers take
// only the new one from their next request on.
func RotateToken(dir string) (string, error) {
	if err := wholefile.WritePrivate(TokenFile(dir), newToken()); err != nil {
		return "", tokenFault(err)
	}
	return ReadToken(dir)
}

// newToken is the text of a file with a new token.
func newToken() []byte {
	var raw [tokenBytes]byte
	_, _ = rand.Read(raw[:]) // never fails
	return []byte(base64.RawURLEncoding.EncodeToString(raw[:]) + "\n")
}

func tokenFault(err error) error {
	return fault.Wrap(err, fault.Unavailable, codeToken, "the token cannot be kept: "+err.Error()).
		WithHint("check the rights of the data directory")
}
