package disk

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"cairn/internal/regular"
	"cairn/internal/wholefile"
)

// checkTitle is the first line of a key check.
const checkTitle = "cairn key check 1"

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

// KeyCheckFits reports whether the key check of the store at path was made for the key. It
// is false for a file that is not a key check. Errors are those of reading the file.
func KeyCheckFits(path string, key []byte) (bool, error) {
	text, err := regular.Read(path+CipherSuffix, regular.MaxSettings)
	return err == nil && fits(string(text), key), err
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

// WriteKeyCheck writes the key check of a store atomically.
func WriteKeyCheck(path string, key []byte) error {
	text, err := newCheck(key)
	if err != nil {
		return err
	}
	return wholefile.Write(path+CipherSuffix, []byte(text), 0o600)
}
