package words

import (
	"strconv"
	"strings"
	"time"

	"cairn/internal/fault"
)

// CodeMoment is the code of the error (Invalid) for a text that ParseMoment cannot parse.
const CodeMoment = "invalid_moment"

// MomentForms describes in one line the texts that ParseMoment accepts.
const MomentForms = `a time (2026-11-20T14:00:00Z, "2026-11-20 14:00", yesterday 14:00, 2h ago) or #N, a position in the change log`

// Moment is a moment of the past: a time, or a tick, the seq of a change in the change
// log. If it is a tick, Time is zero.
type Moment struct {
	Time time.Time
	Tick int64
}

// ParseMoment parses a moment. Relative times count from now, in now's time zone:
//
//   - a tick: #123, or 123;
//   - RFC 3339, or the same without a zone, with a space for the T, without seconds;
//   - now; a time of today: 14:00;
//   - a time ago: 2h ago, 90m ago, 3 days ago, an hour ago;
//   - a day with a time: yesterday 14:00, Monday at 9:30, 20 November 14:00;
//   - a day, or what else CutPeriod reads: its end, or now if that is earlier.
//
// Errors: CodeMoment for anything else.
func ParseMoment(text string, now time.Time) (Moment, error) {
	text = strings.TrimSpace(text)
	if tick, err := strconv.ParseUint(strings.TrimPrefix(text, "#"), 10, 63); err == nil {
		return Moment{Tick: int64(tick)}, nil
	}
	for _, read := range []func(string, time.Time) (time.Time, bool){exactMoment, momentAgo, momentOfDay} {
		if at, ok := read(text, now); ok {
			if at.Year() < 1970 || at.Year() >= 2262 { // the range of nanoseconds
				break
			}
			return Moment{Time: at}, nil
		}
	}
	return Moment{}, fault.Newf(fault.Invalid, CodeMoment, "%.64q is not a moment: give %s", text, MomentForms)
}

// exactMoment parses a complete time.
func exactMoment(text string, now time.Time) (time.Time, bool) {
	if strings.EqualFold(text, "now") {
		return now, true
	}
	for _, layout := range [...]string{
		time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00",
		"2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999", "2006-01-02T15:04", "2006-01-02 15:04",
	} {
		if at, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}

// momentAgo parses a duration, or a number and a unit, followed by ago.
func momentAgo(text string, now time.Time) (time.Time, bool) {
	span, ok := strings.CutSuffix(strings.ToLower(text), " ago")
	if !ok {
		return time.Time{}, false
	}
	if d, err := time.ParseDuration(span); err == nil && d >= 0 {
		return now.Add(-d), true
	}
	r := periodReader{text: span}
	r.split()
	n := r.number(0)
	if n < 0 || len(r.words) != 2 {
		return time.Time{}, false
	}
	switch strings.TrimSuffix(r.at(1), "s") {
	case "second", "sec":
		return now.Add(-time.Duration(n) * time.Second), true
	case "minute", "min":
		return now.Add(-time.Duration(n) * time.Minute), true
	case "hour":
		return now.Add(-time.Duration(n) * time.Hour), true
	case "day", "d":
		return now.AddDate(0, 0, -n), true
	case "week", "w":
		return now.AddDate(0, 0, -7*n), true
	}
	return time.Time{}, false
}

// momentOfDay parses a day with a time, a time of today, or a period, whose end it
// returns.
func momentOfDay(text string, now time.Time) (time.Time, bool) {
	day := text
	clock := ""
	if i := strings.LastIndexByte(text, ' ') + 1; strings.Contains(text[i:], ":") {
		clock, day = text[i:], strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text[:i]), "at"))
	}
	p := Period{From: midnight(now), To: midnight(now).AddDate(0, 0, 1)}
	if day != "" {
		rest, found, ok := CutPeriod(day, now)
		if !ok || rest != "" || found.From.IsZero() {
			return time.Time{}, false
		}
		p = found
	}
	if clock == "" {
		end := p.To.Add(-time.Nanosecond)
		if end.After(now) && !p.From.After(now) {
			end = now
		}
		return end, day != ""
	}
	at, err := time.Parse("15:04:05", clock)
	if err != nil {
		at, err = time.Parse("15:04", clock)
	}
	if err != nil || p.To.After(p.From.AddDate(0, 0, 1)) {
		return time.Time{}, false
	}
	return time.Date(p.From.Year(), p.From.Month(), p.From.Day(), at.Hour(), at.Minute(), at.Second(), 0, p.From.Location()), true
}
