package rules

import (
	"crypto/rand"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"strings"
)

// uuid holds the 16 bytes of a UUID.
type uuid [16]byte

// String returns the UUID in lower case.
func (u uuid) String() string {
	var b [36]byte
	hex.Encode(b[:8], u[:4])
	hex.Encode(b[9:13], u[4:6])
	hex.Encode(b[14:18], u[6:8])
	hex.Encode(b[19:23], u[8:10])
	hex.Encode(b[24:], u[10:])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}

// NewID returns a new UUIDv4.
func NewID() string {
	var u uuid
	_, _ = rand.Read(u[:]) // never fails (crypto/rand)
	return u.marked(4).String()
}

// marked returns the UUID with its version and variant set.
func (u uuid) marked(version byte) uuid {
	u[6] = u[6]&0x0f | version<<4
	u[8] = u[8]&0x3f | 0x80
	return u
}

// DerivedID returns the UUIDv5 of a name in the namespace of another UUID.
func DerivedID(space, name string) string {
	u, _ := parseUUID(space)
	sum := sha1.Sum(append(u[:], name...))
	return uuid(sum[:16]).marked(5).String()
}

// parseUUID parses RFC 4122 text: 36 characters in any case, no braces, no urn.
func parseUUID(text string) (u uuid, ok bool) {
	if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return u, false
	}
	plain := strings.ReplaceAll(text, "-", "")
	if len(plain) != 32 {
		return u, false
	}
	_, err := hex.Decode(u[:], []byte(plain))
	return u, err == nil
}

// ParseID parses a UUID in any case and returns it in lower case. ok is false for any other
// text.
func ParseID(text string) (id string, ok bool) {
	u, ok := parseUUID(text)
	if !ok {
		return "", false
	}
	return u.String(), true
}

// sessionID returns the UUID of a session_id: of a UUID itself, and of a product session (S-
// and a ULID) the UUID with the same 128 bits (memories §7).
func sessionID(text string) (string, bool) {
	if rest, ok := strings.CutPrefix(text, "S-"); ok {
		u, ok := parseULID(rest)
		return u.String(), ok
	}
	return ParseID(text)
}

// parseULID parses the 26 characters of a ULID, in any case, into its 128 bits.
func parseULID(text string) (u uuid, ok bool) {
	const signs = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	if len(text) != 26 || text[0] > '7' {
		return u, false
	}
	var hi, lo uint64
	for _, c := range []byte(strings.ToUpper(text)) {
		v := strings.IndexByte(signs, c)
		if v < 0 {
			return u, false
		}
		hi, lo = hi<<5|lo>>59, lo<<5|uint64(v)
	}
	binary.BigEndian.PutUint64(u[:8], hi)
	binary.BigEndian.PutUint64(u[8:], lo)
	return u, true
}
