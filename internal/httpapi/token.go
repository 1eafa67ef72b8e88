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

// TokenFile returns the path of the token's file in a data directory.
func TokenFile(dir string) string { return filepath.Join(dir, "http-token") }

// LogoutDir returns the directory of a data directory in which servers store logouts.
func LogoutDir(dir string) string { return filepath.Join(dir, "http-logouts") }

// ReadToken returns the token of a data directory. Errors: fs.ErrNotExist if there is no
// file; code http_token if the file contains no token.
func ReadToken(dir string) (string, error) {
	data, err := regular.Read(TokenFile(dir), regular.MaxSettings)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(data))
	if raw, err := base64.RawURLEncoding.DecodeString(token); err != nil || len(raw) != tokenBytes {
		return "", fault.Newf(fault.Unavailable, codeToken, "%s contains no token", TokenFile(dir)).
			WithHint("`cairn http-token --rotate` writes a new one")
	}
	return token, nil
}

const codeToken = "http_token"

// tokenBytes is the number of random bytes of a token.
const tokenBytes = 32

// EnsureToken returns the token of a data directory and creates it if it is missing.
// Concurrent processes get the same token. Only the owner can read the directory and the
// file.
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

// RotateToken replaces the token of a data directory. Running servers accept only the new
// one from their next request.
func RotateToken(dir string) (string, error) {
	if err := wholefile.WritePrivate(TokenFile(dir), newToken()); err != nil {
		return "", tokenFault(err)
	}
	return ReadToken(dir)
}

// newToken returns the content of a file with a new token.
func newToken() []byte {
	var raw [tokenBytes]byte
	_, _ = rand.Read(raw[:]) // never fails
	return []byte(base64.RawURLEncoding.EncodeToString(raw[:]) + "\n")
}

func tokenFault(err error) error {
	return fault.Wrap(err, fault.Unavailable, codeToken, "the token cannot be stored: "+err.Error()).
		WithHint("check the rights of the data directory")
}
