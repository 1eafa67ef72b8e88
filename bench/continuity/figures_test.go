package continuity

import (
	"math"
	"testing"
	"time"
)

// result returns a session with one moment, at which one namer has the given number of hits.
func result(day int, first bool, truth, cold, named, hits int) Session {
	files := func(n int) []string { return make([]string, n) }
	truths := Truth{Files: files(truth), Cold: files(cold)}
	return Session{Start: noon(day), First: first, Moments: []Moment{{
		When: atStart, Edited: truths, Touched: truths,
		Answers: []Answer{{Namer: "recent edits", Named: files(named), Tokens: 100 * day, Edited: files(hits), Touched: files(hits)}},
	}}}
}

func figure(t *testing.T, list []Figure, period string, withoutFirst bool, namer string) Figure {
	t.Helper()
	for _, f := range list {
		if f.Period == period && f.When == atStart && f.WithoutFirst == withoutFirst && f.Namer == namer {
			return f
		}
	}
	t.Fatalf("no figure of %s in %s", namer, period)
	return Figure{}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9 {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func TestFiguresAreTheMeanOfSessionsThatHaveATruth(t *testing.T) {
	t.Parallel()
	sessions := []Session{
		result(1, true, 4, 4, 0, 0), // the project's first session: nothing is named
		result(2, false, 2, 0, 20, 2),
		result(3, false, 8, 2, 10, 2),
		result(4, false, 0, 0, 20, 0),   // touches nothing: not counted
		result(9, false, 30, 3, 20, 20), // more known files than may be named
	}
	list := figures(sessions, periods(sessions, time.Time{}, time.Time{}))
	const half = "first half of January (tuning)"
	f := figure(t, list, half, false, "recent edits").Edited
	if f.Sessions != 4 {
		t.Errorf("%d sessions, want 4", f.Sessions)
	}
	near(t, "hit", f.Hit, 3./4)
	near(t, "recall", f.Recall, (0+1+2./8+20./30)/4)
	near(t, "precision", f.Precision, (0+2./20+2./10+1)/4)
	near(t, "micro recall", f.MicroRecall, 24./44)
	near(t, "micro precision", f.MicroPrecision, 24./50)
	all := figure(t, list, half, false, "recent edits")
	near(t, "mean of tokens", all.TokensMean, (100.+200+300+400+900)/5)
	if all.TokensMax != 900 {
		t.Errorf("most tokens %d", all.TokensMax)
	}
	known := figure(t, list, half, false, Ceiling).Edited
	near(t, "ceiling", known.Recall, (0+1+6./8+20./30)/4)

	without := figure(t, list, half, true, "recent edits").Edited
	if without.Sessions != 3 {
		t.Errorf("without the first %d sessions, want 3", without.Sessions)
	}
	near(t, "recall without the first", without.Recall, (1+2./8+20./30)/3)

	late := figure(t, list, fromThe8th, false, "recent edits")
	near(t, "recall from the 8th", late.Edited.Recall, 20./30)
	if !late.Baseline() || all.Baseline() {
		t.Error("the baseline is of the sessions from the 8th on")
	}
	empty := figure(t, list, "from 16 January (reporting)", false, "recent edits")
	if empty.Edited != (Score{}) {
		t.Errorf("a period without sessions has figures: %+v", empty)
	}
}

func TestOnlyTheFirstTwentyDistinctFilesCount(t *testing.T) {
	t.Parallel()
	m := Moment{Edited: Truth{Files: []string{"b", "y"}}, Touched: Truth{Files: []string{"a", "b", "y"}}}
	files := []string{"a", "b", "a", "b"}
	for c := 'c'; c <= 'z'; c++ {
		files = append(files, string(c))
	}
	m.add(namer{name: "test"}, answer{files: files, tokens: 7})
	a := m.Answers[0]
	if len(a.Named) != Top || a.Named[2] != "c" || a.Tokens != 7 {
		t.Errorf("named %q", a.Named)
	}
	equal(t, "edited", a.Edited, "b")
	equal(t, "touched", a.Touched, "a", "b")
}
