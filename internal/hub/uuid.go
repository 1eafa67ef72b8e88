package hub

import (
	"crypto/rand"
	"encoding/hex"
)

// newUUID makes a UUIDv4, lower case.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	var text [36]byte
	hex.Encode(text[:], b[:4])
	for i, at := range [...]int{9, 14, 19, 24} {
		text[at-1] = '-'
		from, to := 4+2*i, 6+2*i
		if i == 3 {
			to = 16
		}
		hex.Encode(text[at:], b[from:to])
	}
	return string(text[:])
}

// isUUID reports whether id is a UUID as the hub keeps it: lower case, RFC 4122
// text.
func isUUID(id string) bool {
	if len(id) != 36 {
		return false
	}
	for i := range len(id) {
		c := id[i]
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				return false
			}
		}
	}
	return true
}

// isRandomUUID reports whether id is a UUIDv4.
func isRandomUUID(id string) bool {
	return isUUID(id) && id[14] == '4' && (id[19] == '8' || id[19] == '9' || id[19] == 'a' || id[19] == 'b')
}
