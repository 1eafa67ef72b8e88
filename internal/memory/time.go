package memory

import (
	"encoding/json"
	"math"
	"time"
)

// Time is a time in Unix nanoseconds. Its JSON form is RFC3339Nano in UTC. Compare the numbers: the
// texts do not sort (memories P8).
type Time int64

// String returns the time in its JSON form, without quotes.
func (t Time) String() string { return time.Unix(0, int64(t)).UTC().Format(time.RFC3339Nano) }

// MarshalJSON writes the time.
func (t Time) MarshalJSON() ([]byte, error) { return json.Marshal(t.String()) }

// UnmarshalJSON reads RFC 3339 text.
func (t *Time) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	*t = Clamped(at)
	return err
}

// Clamped converts a time to nanoseconds. Times out of the range of int64 become the nearest one.
func Clamped(at time.Time) Time {
	switch year := at.UTC().Year(); {
	case year < 1678:
		return math.MinInt64
	case year > 2261:
		return math.MaxInt64
	}
	return Time(at.UnixNano())
}
