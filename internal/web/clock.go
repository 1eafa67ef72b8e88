package web

import (
	"fmt"
	"time"
)

// ago formats the time since a moment, for lists: "now", "12 s", "4 min", "2 h", "3 d".
func ago(now, at int64) string {
	switch d := now - at; {
	case d < 5:
		return "now"
	case d < 60:
		return fmt.Sprintf("%d s", d)
	default:
		return long(d)
	}
}

// back formats ago for use in a sentence: "just now", "12 s ago".
func back(now, at int64) string {
	if said := ago(now, at); said != "now" {
		return said + " ago"
	}
	return "just now"
}

// long formats a duration in its largest unit, rounded down.
func long(seconds int64) string {
	switch {
	case seconds < 3600:
		return fmt.Sprintf("%d min", seconds/60)
	case seconds < 48*3600:
		return fmt.Sprintf("%d h", seconds/3600)
	}
	return fmt.Sprintf("%d d", seconds/(24*3600))
}

// moment formats a time with its day. It omits the current year.
func moment(now, at int64) string {
	t := time.Unix(at, 0)
	if t.Year() != time.Unix(now, 0).Year() {
		return t.Format("2 Jan 2006, 15:04")
	}
	return t.Format("Mon 2 Jan, 15:04")
}

// period formats a range of time.
func period(now, from, to int64) string {
	a, b := time.Unix(from, 0), time.Unix(to, 0)
	if a.YearDay() == b.YearDay() && a.Year() == b.Year() {
		return moment(now, from) + " to " + b.Format("15:04")
	}
	return moment(now, from) + " to " + moment(now, to)
}

// zone formats the UTC offset of the server's time zone.
func zone(now time.Time) string {
	_, offset := now.Zone()
	if offset == 0 {
		return "UTC"
	}
	if offset%3600 != 0 {
		return now.Format("UTC-07:00")
	}
	return fmt.Sprintf("UTC%+d", offset/3600)
}
