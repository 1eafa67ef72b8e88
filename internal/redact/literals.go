package redact

import "cairn/internal/redact/shape"

// action is the scanner for a literal found in a text.
type action uint8

const (
	actShape         action = iota // row of shapes
	actVendor                      // row of vendors
	actMiddle                      // row of middles
	actNamed                       // password, token, …: a named value
	actKeyWord                     // access, auth, …: a named value if it looks random
	actAPIKey                      // sk-
	actJWT                         // eyJ, .ey
	actURL                         // ://
	actQuery                       // sig=, key=
	actWebhook                     // row of webhooks
	actAuthorization               // Authorization:
	actBearer                      // Bearer v
	actCookie                      // Cookie:
	actCommand                     // row of programs
)

// anchor is a literal that is not in one of the tables.
type anchor struct {
	literal string // lower case: found in any case
	act     action
}

var anchors = [...]anchor{
	{"password", actNamed}, {"passwd", actNamed}, {"passphrase", actNamed}, {"pwd", actNamed},
	{"secret", actNamed}, {"token", actNamed}, {"key", actNamed}, {"pass", actNamed},
	{"psk", actNamed}, {"credential", actNamed}, {"creds", actNamed}, {"_auth", actNamed},
	{"access", actKeyWord}, {"auth", actKeyWord}, {"api", actKeyWord},
	{"sk-", actAPIKey}, {"eyj", actJWT}, {".ey", actJWT},
	{"://", actURL}, {"sig=", actQuery}, {"signature=", actQuery}, {"key=", actQuery},
	{"token=", actQuery}, {"authorization", actAuthorization}, {"bearer", actBearer}, {"cookie", actCookie},
}

// literalIndex finds the literals of all rules by a hash of their first three bytes,
// ignoring case.
type literalIndex struct {
	heads   [1 << indexBits]uint16 // 1 + entry, 0 for none
	entries []entry
}

const indexBits = 12

type entry struct {
	key     uint32 // the first three bytes
	literal string
	act     action
	fold    bool // literal is in lower case and matches any case
	row     uint16
	next    uint16 // 1 + entry, 0 for none
}

// newLiteralIndex takes about ten microseconds.
func newLiteralIndex() *literalIndex {
	x := &literalIndex{entries: make([]entry, 0, len(shape.Shapes)+len(shape.Vendors)+len(shape.Middles)+len(webhooks)+len(programs)+len(anchors))}
	for i := range shape.Shapes {
		x.insert(entry{literal: shape.Shapes[i].Literal, act: actShape, fold: shape.Shapes[i].Flags&shape.AnyCase != 0, row: uint16(i)})
	}
	for i := range shape.Vendors {
		x.insert(entry{literal: shape.Vendors[i].Keyword, act: actVendor, fold: true, row: uint16(i)})
	}
	for i := range shape.Middles {
		x.insert(entry{literal: shape.Middles[i].Literal, act: actMiddle, row: uint16(i)})
	}
	for i := range webhooks {
		x.insert(entry{literal: webhooks[i], act: actWebhook, fold: true, row: uint16(i)})
	}
	for i := range programs {
		x.insert(entry{literal: programs[i].name, act: actCommand, row: uint16(i)})
	}
	for i := range anchors {
		x.insert(entry{literal: anchors[i].literal, act: anchors[i].act, fold: true})
	}
	return x
}

func (x *literalIndex) insert(e entry) {
	e.key = key3(e.literal[0], e.literal[1], e.literal[2])
	h := hash(e.key)
	e.next = x.heads[h]
	x.entries = append(x.entries, e)
	x.heads[h] = uint16(len(x.entries))
}

// key3 returns the same key for upper and lower case letters.
func key3(a, b, c byte) uint32 {
	return uint32(a|0x20) | uint32(b|0x20)<<8 | uint32(c|0x20)<<16
}

func hash(key uint32) uint32 {
	return key * 0x9E3779B1 >> (32 - indexBits)
}

// matches reports whether s begins with the literal. key is the key of the first three
// bytes of s.
func (e *entry) matches(key uint32, s string) bool {
	if e.key != key {
		return false
	}
	if e.fold {
		return shape.HasFold(s, e.literal)
	}
	return len(s) >= len(e.literal) && s[:len(e.literal)] == e.literal
}

// literals scans the text once and calls the scanner of each literal that it finds.
func (s *scan) literals() {
	t, x := s.text, s.f.index
	if len(t) < 3 {
		return
	}
	key := key3(0, t[0], t[1])
	for i := 0; i+2 < len(t); i++ {
		key = key>>8 | uint32(t[i+2]|0x20)<<16
		for e := x.heads[hash(key)]; e != 0; {
			entry := &x.entries[e-1]
			if entry.matches(key, t[i:]) {
				s.scanAt(entry, i, i+len(entry.literal))
			}
			e = entry.next
		}
	}
}

// hasLiteral reports whether s contains a literal.
func (x *literalIndex) hasLiteral(s string) bool {
	for i := 0; i+2 < len(s); i++ {
		key := key3(s[i], s[i+1], s[i+2])
		for e := x.heads[hash(key)]; e != 0; e = x.entries[e-1].next {
			if x.entries[e-1].matches(key, s[i:]) {
				return true
			}
		}
	}
	return false
}

// scanAt calls the scanner of the entry's rule for the literal text[start:end].
func (s *scan) scanAt(e *entry, start, end int) {
	switch e.act {
	case actShape:
		s.shape(&shape.Shapes[e.row], start, end)
	case actVendor:
		s.vendor(&shape.Vendors[e.row], end)
	case actMiddle:
		s.middle(&shape.Middles[e.row], start, end)
	case actNamed:
		s.named(start, end)
	case actKeyWord:
		s.keyWord(start, end)
	case actAPIKey:
		s.apiKey(start, end)
	case actJWT:
		s.jwt(start, end)
	case actURL:
		s.urlPassword(start, end)
	case actQuery:
		s.query(start, end)
	case actWebhook:
		s.webhook(start, end)
	case actAuthorization:
		s.authorization(start, end)
	case actBearer:
		s.bearer(start, end)
	case actCookie:
		s.cookie(start, end)
	case actCommand:
		s.command(int(e.row), start, end)
	}
}
