package mail

import (
	"errors"
	"strings"
	"time"

	"cairn/internal/store"
)

// Time is a moment in Unix nanoseconds, truncated to microseconds. In JSON it is ISO-8601 with
// six decimals and +00:00 (mail §2). The zero Time is null in JSON.
type Time int64

const timeLayout = "2006-01-02T15:04:05.000000-07:00"

// String returns the time as in JSON, without quotes; "" for the zero Time.
func (t Time) String() string {
	if t == 0 {
		return ""
	}
	return t.UTC().Format(timeLayout)
}

// UTC returns the time as a time.Time.
func (t Time) UTC() time.Time { return time.Unix(0, int64(t)).UTC() }

// MarshalJSON writes the time, or null.
func (t Time) MarshalJSON() ([]byte, error) {
	if t == 0 {
		return []byte("null"), nil
	}
	return []byte(`"` + t.String() + `"`), nil
}

// UnmarshalJSON parses the output of MarshalJSON, and RFC 3339 in general.
func (t *Time) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*t = 0
		return nil
	}
	at, err := time.Parse(`"`+time.RFC3339Nano+`"`, string(data))
	if err == nil && (at.Year() < 1678 || at.Year() >= 2262) {
		err = errors.New("a time is out of range")
	}
	if err == nil {
		*t = TimeOf(at)
	}
	return err
}

func TimeOf(at time.Time) Time { return Time(at.UnixMicro() * int64(time.Microsecond)) }

// Now returns the time of a transaction.
func Now(tx *store.Tx) Time { return TimeOf(tx.Now()) }

// ParseTime parses a time that a caller gave: RFC 3339, a time without a zone, which is UTC,
// or a date. field is the name of the parameter (mail §2, §2.1).
//
// Errors: INVALID_TIMESTAMP.
func ParseTime(field, text string) (Time, error) {
	for _, layout := range [...]string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999", "2006-01-02T15:04", time.DateOnly} {
		if at, err := time.Parse(layout, strings.TrimSpace(text)); err == nil && at.Year() >= 1678 && at.Year() < 2262 {
			return TimeOf(at), nil
		}
	}
	return 0, Errorf(CodeTimestamp, "Invalid %s format: '%.64s'.", field, Printable(text)).
		With("provided", Clip(text, 64)).With("expected_format", "2026-03-01T09:30:00+00:00").
		Hint("give an ISO-8601 time such as 2026-03-01T09:30:00+00:00, or a date")
}
