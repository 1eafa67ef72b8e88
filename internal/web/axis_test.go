package web

import (
	"testing"

	"pgregory.net/rapid"

	"cairn/internal/observation/browse"
)

// For any events, later moments are never left of earlier ones, and every position is on
// the axis. Pieces follow each other without gaps, and ticks and folds do not overlap.
func TestAnAxisKeepsTheOrderOfTimeWithinItsWidth(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.Int64Range(1_700_000_000, 1_800_000_000).Draw(t, "from")
		to := from + rapid.Int64Range(0, 40*24*3600).Draw(t, "length")
		busy := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) browse.Span {
			a := rapid.Int64Range(from-7200, to+7200).Draw(t, "a")
			return browse.Span{From: a, To: a + rapid.Int64Range(0, 9000).Draw(t, "d")}
		}), 0, 12).Draw(t, "busy")
		x := newAxis(from, to, busy)
		last := -0.001
		for i := int64(0); i <= 200; i++ {
			at := x.at(from + (max(to, from+60)-from)*i/200)
			if at < last-1e-9 || at < 0 || at > 100.001 {
				t.Fatalf("moment %d lies at %f, the one before at %f", i, at, last)
			}
			last = at
		}
		end := 0.0
		for i, p := range x.pieces {
			if p.x < end-1e-6 || p.x > end+1e-6 || p.width < 0 || i > 0 && p.from != x.pieces[i-1].to {
				t.Fatalf("piece %d is %+v after %f", i, p, end)
			}
			end = p.x + p.width
		}
		if end > 100.001 || end < 99.999 {
			t.Fatalf("the axis is %f wide", end)
		}
		for i := 1; i < len(x.Ticks); i++ {
			if x.Ticks[i].X-x.Ticks[i-1].X < tickRoom/2 {
				t.Fatalf("ticks %+v", x.Ticks)
			}
		}
	})
}

func TestALongPauseIsFoldedAndNamed(t *testing.T) {
	t.Parallel()
	const hour = 3600
	x := newAxis(0, 24*hour, []browse.Span{{From: 0, To: hour}, {From: 20 * hour, To: 21 * hour}})
	if len(x.Folds) != 2 || x.Folds[0].Label != "18 h" || x.Folds[1].Label != "2 h" {
		t.Errorf("folds %+v", x.Folds)
	}
	if x := newAxis(0, 3*hour, []browse.Span{{From: 0, To: hour}, {From: 2 * hour, To: 3 * hour}}); len(x.Folds) != 0 {
		t.Errorf("a pause of an hour is folded: %+v", x.Folds)
	}
}

func TestAgesAndPathsAreShort(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		seconds int64
		want    string
	}{{0, "now"}, {12, "12 s"}, {60, "1 min"}, {3599, "59 min"}, {3600, "1 h"}, {47 * 3600, "47 h"}, {48 * 3600, "2 d"}, {-5, "now"}} {
		if got := ago(1_700_000_000, 1_700_000_000-c.seconds); got != c.want {
			t.Errorf("%d seconds: %q, want %q", c.seconds, got, c.want)
		}
	}
	for path, want := range map[string]string{"a/b.go": "a/b.go", "internal/very/long/path.go": "int…th.go", "äöüäöüäöüäöü": "äöüä…äöüä"} {
		if got := middle(9, path); got != want && len([]rune(got)) > 9 || got == "" {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	for name, want := range map[string]string{"BlueLake": "BL", "Blue": "B", "": "–", "x": "–"} {
		if got := initials(name); got != want {
			t.Errorf("%q: %q", name, got)
		}
	}
}
