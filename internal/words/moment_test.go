package words_test

import (
	"testing"
	"time"

	"cairn/internal/fault"
	"cairn/internal/words"
)

func TestMomentsAreReadInTheZoneOfNow(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("here", 2*3600)
	now := time.Date(2026, 11, 23, 10, 30, 0, 0, zone) // a Monday
	day := func(d, hour, minute, second int) time.Time {
		return time.Date(2026, 11, d, hour, minute, second, 0, zone)
	}
	endOf := func(d int) time.Time { return day(d+1, 0, 0, 0).Add(-time.Nanosecond) }
	for text, want := range map[string]time.Time{
		"2026-11-20T14:00:00Z":              time.Date(2026, 11, 20, 14, 0, 0, 0, time.UTC),
		"2026-11-20T14:00:00.123456789Z":    time.Date(2026, 11, 20, 14, 0, 0, 123456789, time.UTC),
		"2026-11-20 14:00:00+01:00":         time.Date(2026, 11, 20, 13, 0, 0, 0, time.UTC),
		"2026-11-20 14:00":                  day(20, 14, 0, 0),
		"2026-11-20T14:00:09":               day(20, 14, 0, 9),
		" now ":                             now,
		"9:05":                              day(23, 9, 5, 0),
		"at 9:05:07":                        day(23, 9, 5, 7),
		"today 9:05":                        day(23, 9, 5, 0),
		"yesterday 14:00":                   day(22, 14, 0, 0),
		"Yesterday at 14:00":                day(22, 14, 0, 0),
		"friday 9:30":                       day(20, 9, 30, 0),
		"20 November 14:00":                 day(20, 14, 0, 0),
		"yesterday":                         endOf(22),
		"2026-11-20":                        endOf(20),
		"today":                             now,
		"last week":                         endOf(22),
		"2h ago":                            day(23, 8, 30, 0),
		"1h30m ago":                         day(23, 9, 0, 0),
		"90m ago":                           day(23, 9, 0, 0),
		"2d ago":                            day(21, 10, 30, 0),
		"3 days ago":                        day(20, 10, 30, 0),
		"an hour ago":                       day(23, 9, 30, 0),
		"two weeks ago":                     day(9, 10, 30, 0),
		"10 minutes ago":                    day(23, 10, 20, 0),
		"2026-11-20T14:00:00.5+02:00":       day(20, 14, 0, 0).Add(time.Second / 2),
		"the 5th of November 2026 at 23:59": day(5, 23, 59, 0),
	} {
		got, err := words.ParseMoment(text, now)
		if err != nil || !got.Time.Equal(want) {
			t.Errorf("%q: %v %v, want %v", text, got.Time, err, want)
		}
	}
}

func TestTicksAreNumbersWithOrWithoutASign(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"#12": 12, "12": 12, "0": 0, "2026": 2026} {
		got, err := words.ParseMoment(text, time.Now())
		if err != nil || got.Tick != want || !got.Time.IsZero() {
			t.Errorf("%q: %+v %v", text, got, err)
		}
	}
}

func TestWhatNamesNoMomentIsRefused(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 10, 30, 0, 0, time.UTC)
	for _, text := range []string{
		"", "soon", "#", "#x", "-3", "ago", "x ago", "2x ago", "-2h ago", "yesterday 25:00", "last week 14:00", "yesterday or so",
		"2026-13-01", "0001-01-01T00:00:00Z", "3000-01-01T00:00:00Z", "9999999999999999999999", "before May",
	} {
		got, err := words.ParseMoment(text, now)
		if !fault.HasCode(err, words.CodeMoment) {
			t.Errorf("%q: %+v %v", text, got, err)
		}
	}
}

func FuzzParseMoment(f *testing.F) {
	for _, text := range []string{"yesterday 14:00", "2h ago", "#7", "2026-11-20 14:00", "an hour ago", "last week"} {
		f.Add(text)
	}
	now := time.Date(2026, 11, 23, 10, 30, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := words.ParseMoment(text, now)
		if err == nil && (got.Tick < 0 || !got.Time.IsZero() && got.Time.UnixNano() < 0) {
			t.Errorf("%q: %+v", text, got)
		}
	})
}
