package project

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"cairn/internal/fault"
)

const (
	maxSlug   = 64
	maxName   = 200 // characters of a display name (records §1)
	maxAlias  = 200 // bytes
	hexDigits = 6   // of a slug's suffix

	homeID    = "home"
	unknownID = "unknown"
	defaultID = "default"
)

// slugOf returns the wanted project id for a folder's name (observations §2, rule 3).
func slugOf(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case isSlugChar(r):
			b.WriteRune(r)
		case !strings.HasSuffix(b.String(), "\x00"):
			b.WriteByte(0) // placeholder for a run of other characters
		}
	}
	slug := strings.ReplaceAll(b.String(), "\x00", "-")
	slug = strings.TrimLeft(slug, "._-")
	if slug == "" {
		return "project"
	}
	return slug[:min(len(slug), maxSlug)]
}

func isSlugChar(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-'
}

func isReserved(slug string) bool {
	return slug == homeID || slug == unknownID || slug == defaultID
}

// suffixed returns a slug made unique by the n-th group of digits of the identity's
// SHA-256; the first group is the usual one, the others resolve collisions.
func suffixed(slug, identity string, n int) string {
	sum := sha256.Sum256([]byte(identity))
	digits := hex.EncodeToString(sum[:])[n*hexDigits : (n+1)*hexDigits]
	return slug[:min(len(slug), maxSlug-hexDigits-1)] + "-" + digits
}

// maxSuffixes is the number of groups of digits for suffixed.
const maxSuffixes = sha256.Size * 2 / hexDigits

// checkID returns an error unless id is a valid project id (records §1).
func checkID(id string) error {
	if id == "" || len(id) > maxSlug || strings.IndexByte("._-", id[0]) >= 0 ||
		strings.ContainsFunc(id, func(r rune) bool { return !isSlugChar(r) }) {
		return fault.New(fault.Invalid, "invalid_argument",
			"a project id has 1 to 64 characters of a-z, 0-9, dot, underscore and hyphen, the first a letter or digit")
	}
	return nil
}

// displayName returns a folder's name for display: valid, one line, bounded.
func displayName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(name, "\uFFFD"))
	n := 0
	for i := range name {
		if n++; n > maxName {
			return name[:i]
		}
	}
	return name
}
