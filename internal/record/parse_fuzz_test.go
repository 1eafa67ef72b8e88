package record

import (
	"strings"
	"testing"
)

func FuzzIDs(f *testing.F) {
	for _, id := range []string{"R001", "r7", "R", "R-1", "R1.5", "../R1", "R" + strings.Repeat("9", 400), "R000000000042", "R0"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		number, ok := ParseID(id)
		if !ok {
			return
		}
		again, ok := ParseID(FormatID(number))
		if !ok || again != number || number < 1 || number > 999_999_999 || !strings.EqualFold(id[:1], "r") {
			t.Errorf("%q is %d, whose id %s is %d", id, number, FormatID(number), again)
		}
	})
}

func FuzzMoments(f *testing.F) {
	for _, text := range []string{"last_save", "v1", "v0", "tick:0", "tick:-1", "2026-01-02T03:04:05.678Z", "1969-12-31T23:59:59Z", "9999-12-31T23:59:59.999999999+23:59", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePoint("from", text)
		if err != nil {
			return
		}
		set := 0
		for _, is := range []bool{p.lastSave, p.isTick, p.version > 0, p.at > 0} {
			if is {
				set++
			}
		}
		if set != 1 || p.tick < 0 || p.now {
			t.Errorf("%q is %+v", text, p)
		}
		if p.at > 0 && Time(p.at).String() != Time(p.at-millisecond+1).String() {
			t.Errorf("%q does not cover one millisecond: %d", text, p.at)
		}
	})
}
