package continuity

import (
	"slices"
	"time"
)

// Figure is one namer's result in one period, at one moment.
type Figure struct {
	Period       string  `json:"period"`
	When         string  `json:"when"`
	WithoutFirst bool    `json:"without_first"` // without sessions for which no file of the project was known
	Namer        string  `json:"namer"`
	Edited       Score   `json:"edited"`
	Touched      Score   `json:"touched"`
	TokensMean   float64 `json:"tokens_mean"` // over all measured sessions
	TokensMedian int     `json:"tokens_median"`
	TokensP90    int     `json:"tokens_p90"`
	TokensMax    int     `json:"tokens_max"`
}

// SameTable reports whether two figures differ only in their namer.
func (f Figure) SameTable(g Figure) bool {
	return f.Period == g.Period && f.When == g.When && f.WithoutFirst == g.WithoutFirst
}

// Baseline reports whether the contract of observations has a figure for this period and
// moment: session starts from the 8th on.
func (f Figure) Baseline() bool {
	return f.Period == fromThe8th && f.When == atStart && !f.WithoutFirst
}

// Score contains shares between 0 and 1: means over the sessions that have a truth, and shares
// of all their files together.
type Score struct {
	Sessions       int     `json:"sessions"`
	Hit            float64 `json:"hit"`             // share of the sessions with at least one hit
	Recall         float64 `json:"recall"`          // share of the truth's files that were hit
	Precision      float64 `json:"precision"`       // share of the named files that were hits, 0 if none is named
	MicroRecall    float64 `json:"micro_recall"`    // over all files
	MicroPrecision float64 `json:"micro_precision"` // over all named files
	KnownRecall    float64 `json:"known_recall"`    // like recall, of the truth's files that the store knows
}

// Ceiling is a namer that names only files of the truth, as far as the store knows them.
const Ceiling = "ceiling: all that is known"

// tally accumulates a score.
type tally struct {
	sessions, truth, named, hits int
	hit, recall, precision       float64

	knowing int     // sessions that touch a file known to the store
	known   float64 // sum of their recall of such files
}

// add counts one session by its numbers of true, cold and named files and of hits.
func (t *tally) add(truth, cold, named, hits int) {
	if truth == 0 {
		return
	}
	if truth > cold {
		t.knowing++
		t.known += share(float64(hits), truth-cold)
	}
	t.sessions++
	t.truth, t.named, t.hits = t.truth+truth, t.named+named, t.hits+hits
	t.recall += share(float64(hits), truth)
	t.precision += share(float64(hits), named)
	if hits > 0 {
		t.hit++
	}
}

func (t *tally) score() Score {
	return Score{
		Sessions: t.sessions, Hit: share(t.hit, t.sessions), Recall: share(t.recall, t.sessions),
		Precision:   share(t.precision, t.sessions),
		KnownRecall: share(t.known, t.knowing),
		MicroRecall: share(float64(t.hits), t.truth), MicroPrecision: share(float64(t.hits), t.named),
	}
}

func share(part float64, of int) float64 {
	if of == 0 {
		return 0
	}
	return part / float64(of)
}

// period is a range of session starts. A zero time means no limit.
type period struct {
	name        string
	from, until time.Time
}

func (p period) holds(at time.Time) bool {
	return !at.Before(p.from) && (p.until.IsZero() || at.Before(p.until))
}

// fromThe8th is the period of the contract's baseline.
const fromThe8th = "from the 8th on (the contract's baseline)"

// periods returns the requested range, if there is one. Otherwise it returns the first half of
// the first session's month, for tuning, and the time after it, for reporting. The third period
// starts on the 8th of that month, as in the contract's baseline.
func periods(sessions []Session, from, until time.Time) []period {
	if !from.IsZero() || !until.IsZero() || len(sessions) == 0 {
		return []period{{"as asked", from, until}}
	}
	day := func(n int) time.Time {
		return time.Date(sessions[0].Start.Year(), sessions[0].Start.Month(), n, 0, 0, 0, 0, time.UTC)
	}
	return []period{
		{"first half of " + day(1).Format("January") + " (tuning)", time.Time{}, day(16)},
		{"from " + day(16).Format("2 January") + " (reporting)", day(16), time.Time{}},
		{fromThe8th, day(8), time.Time{}},
	}
}

// figures returns the results of all namers in all periods, in the order of the table.
func figures(sessions []Session, spans []period) (out []Figure) {
	for _, p := range spans {
		var in []Session
		first := 0
		for _, s := range sessions {
			if !p.holds(s.Start) {
				continue
			}
			in = append(in, s)
			if s.First && len(s.Moments[0].Touched.Files) > 0 {
				first++
			}
		}
		for _, when := range []string{atStart, atPrompt} {
			out = append(out, figuresOf(in, p.name, when, false)...)
			if first > 0 {
				out = append(out, figuresOf(in, p.name, when, true)...)
			}
		}
	}
	return out
}

// figuresOf returns the results at one moment of one period, with the ceiling last.
func figuresOf(sessions []Session, period, when string, withoutFirst bool) (out []Figure) {
	var moments []*Moment
	for i := range sessions {
		if m := sessions[i].moment(when); m != nil && !(withoutFirst && sessions[i].First) {
			moments = append(moments, m)
		}
	}
	figure := func(namer string) {
		f := Figure{Period: period, When: when, WithoutFirst: withoutFirst, Namer: namer}
		f.sum(moments)
		out = append(out, f)
	}
	for _, n := range namers() {
		if !n.prompts || when == atPrompt {
			figure(n.name)
		}
	}
	figure(Ceiling)
	return out
}

// sum sets the scores of a figure's namer from the moments.
func (f *Figure) sum(moments []*Moment) {
	var edited, touched tally
	var tokens []int
	for _, m := range moments {
		if f.Namer == Ceiling {
			m.Edited.ceiling(&edited)
			m.Touched.ceiling(&touched)
			continue
		}
		a := m.answer(f.Namer)
		edited.add(len(m.Edited.Files), len(m.Edited.Cold), len(a.Named), len(a.Edited))
		touched.add(len(m.Touched.Files), len(m.Touched.Cold), len(a.Named), len(a.Touched))
		tokens = append(tokens, a.Tokens)
	}
	f.Edited, f.Touched = edited.score(), touched.score()
	f.sumTokens(tokens)
}

// sumTokens sets the figures on text sizes.
func (f *Figure) sumTokens(sizes []int) {
	if len(sizes) == 0 {
		return
	}
	slices.Sort(sizes)
	sum := 0
	for _, n := range sizes {
		sum += n
	}
	f.TokensMean = share(float64(sum), len(sizes))
	f.TokensMedian, f.TokensP90, f.TokensMax = sizes[len(sizes)/2], sizes[len(sizes)*9/10], sizes[len(sizes)-1]
}

// ceiling counts a moment as Ceiling would.
func (t *Truth) ceiling(into *tally) {
	hits := min(len(t.Files)-len(t.Cold), Top)
	into.add(len(t.Files), len(t.Cold), hits, hits)
}

func (s *Session) moment(when string) *Moment {
	for i := range s.Moments {
		if s.Moments[i].When == when {
			return &s.Moments[i]
		}
	}
	return nil
}

func (m *Moment) answer(namer string) Answer {
	for _, a := range m.Answers {
		if a.Namer == namer {
			return a
		}
	}
	return Answer{}
}
