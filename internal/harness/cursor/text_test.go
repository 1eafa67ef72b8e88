package cursor

import (
	"testing"
	"time"
)

func TestCursorTimesAreRead(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"<timestamp>Thursday, May 28, 2026, 8:37 PM (UTC+8)</timestamp>\nx":       "2026-05-28T12:37:00Z",
		"<timestamp>Friday, Sep 18, 2026, 9:02 PM (UTC-7)</timestamp>":            "2026-09-19T04:02:00Z",
		"[Image] <timestamp>Friday, Sep 18, 2026, 9:02 AM (UTC+5:30)</timestamp>": "2026-09-18T03:32:00Z",
		"<timestamp>Friday, Sep 18, 2026, 12:02 AM (UTC)</timestamp>":             "2026-09-18T00:02:00Z",
		"<timestamp>2026-09-18T00:02:03Z</timestamp>":                             "2026-09-18T00:02:03Z",
		"<timestamp>Friday, Sep 18, 2026, 9:02 AM</timestamp>":                    "",
		"<timestamp>Friday, Sep 18, 2026, 9:02 AM (UTC+99)</timestamp>":           "",
		"<timestamp>yesterday (UTC+1)</timestamp>":                                "",
		"<timestamp>":      "",
		"no time in there": "",
	} {
		at, ok := cursorTime(in)
		if got := at.UTC().Format(time.RFC3339); ok != (want != "") || ok && got != want {
			t.Errorf("%s: %s, %t", in, got, ok)
		}
	}
}

func TestCursorPromptsAreUnwrapped(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"<user_query>\nhi\n</user_query>":                               "hi",
		"<a_b>x</a_b>\n<user_query>a </user_query> b</user_query> tail": "a </user_query> b",
		"<user_query>never closed":                                      "never closed",
		"<timestamp>now</timestamp>\nraw words":                         "raw words",
		"<user_info>x</user_info><rules_x>y</rules_x> typed":            "typed",
		"<system_reminder>only this</system_reminder>":                  "",
		"<b>bold</b> words":                                             "<b>bold</b> words",
		"<my_tag> never closed":                                         "<my_tag> never closed",
		"<user_query><system-reminder>x</system-reminder></user_query>": "",
		" ": "",
	} {
		if got := typed(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
