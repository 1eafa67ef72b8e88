package record

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// State is the state of a record.
type State string

// The states.
const (
	Open      State = "OPEN"
	Later     State = "LATER"
	Resolved  State = "RESOLVED"
	Discarded State = "DISCARDED"
)

// Time is a moment in Unix nanoseconds; in JSON it is RFC 3339, UTC, with
// milliseconds and Z (records §1).
type Time int64

const timeLayout = "2006-01-02T15:04:05.000Z"

// String returns the time as in JSON, without quotes.
func (t Time) String() string { return time.Unix(0, int64(t)).UTC().Format(timeLayout) }

// MarshalJSON writes the time in milliseconds.
func (t Time) MarshalJSON() ([]byte, error) { return []byte(`"` + t.String() + `"`), nil }

// UnmarshalJSON reads an RFC 3339 time.
func (t *Time) UnmarshalJSON(data []byte) error {
	at, err := time.Parse(`"`+time.RFC3339Nano+`"`, string(data))
	if err == nil {
		*t = Time(at.UnixNano())
	}
	return err
}

// Record is one complete record (records §7, shapes).
type Record struct {
	ID         string          `json:"id"` // R and at least three digits, unique in the project
	Type       string          `json:"type"`
	Title      string          `json:"title"`
	Summary    string          `json:"summary"`
	Body       string          `json:"body"`
	State      State           `json:"state"`
	ParentID   *string         `json:"parent_id"` // nil for a root
	Created    Time            `json:"created"`
	Modified   Time            `json:"modified"`
	ResolvedBy string          `json:"resolved_by,omitempty"`
	Related    []string        `json:"related,omitempty"`
	Metadata   json.RawMessage `json:"metadata,omitempty"` // a JSON object; nil if there is none
	Version    int             `json:"version"`

	// Cited is the code that the body cites, as stored. The caller that shows the record
	// compares it with the working tree and sets the two fields below.
	Cited     []Cited    `json:"-"`
	Drifted   bool       `json:"drifted,omitempty"` // a citation has drifted; omitted if false
	Citations []Citation `json:"citations,omitempty"`
}

// Ref is a record without its body.
type Ref struct {
	ID                string  `json:"id"`
	Type              string  `json:"type"`
	Title             string  `json:"title"`
	Summary           string  `json:"summary"`
	State             State   `json:"state"`
	ParentID          *string `json:"parent_id"`
	ChildrenCount     int     `json:"children_count"`      // direct children
	OpenChildrenCount int     `json:"open_children_count"` // of those, the OPEN ones

	Cited   []Cited `json:"-"`
	Drifted bool    `json:"drifted,omitempty"`
}

// Cited is a piece of code that a body cites, as of the time the body was stored (records
// §4).
type Cited struct {
	Path  string `json:"path"`
	Lines string `json:"lines"` // as in the body: L3-L9
	Hash  string `json:"hash"`  // hash of the cited text, computed by the caller; "" if there was none
}

// Citation is a piece of cited code compared with the working tree (records §7,
// shapes).
type Citation struct {
	Path    string `json:"path"`
	Lines   string `json:"lines"`
	Drifted *bool  `json:"drifted,omitempty"` // nil: not compared, because there was nothing to compare
	NowAt   string `json:"now_at,omitempty"`  // present lines of the cited text if it has moved
}

// FormatID returns the id of a record number.
func FormatID(number int64) string { return fmt.Sprintf("R%03d", number) }

// MaxTreeDepth is the maximum depth of a tree. It is higher than that of the commands,
// because the setting records.max_depth can change theirs.
const MaxTreeDepth = 1000

// maxIDDigits keeps numbers within the four bytes of a path element.
const maxIDDigits = 9

// ParseID returns the number in an id, which may have any case and leading zeros. ok is
// false for an invalid id (records §1, §6).
func ParseID(id string) (number int64, ok bool) {
	if id == "" || id[0] != 'R' && id[0] != 'r' {
		return 0, false
	}
	digits := id[1:]
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	digits = strings.TrimLeft(digits, "0")
	if digits == "" || len(digits) > maxIDDigits {
		return 0, false
	}
	number, err := strconv.ParseInt(digits, 10, 64)
	return number, err == nil
}

// NumberOf returns the number of an id in its usual form.
func NumberOf(id string) (int64, bool) {
	number, ok := ParseID(id)
	return number, ok && FormatID(number) == id
}
