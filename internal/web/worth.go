package web

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"cairn/internal/observation/ledger"
)

// worth is what agents were told in a period and whether they used it, and what the store takes.
type worth struct {
	choice
	Days     int               `json:"days"`
	Ledger   ledger.Report     `json:"ledger"`
	Sections []worthOf         `json:"-"`
	ByDay    []ledger.DayStats `json:"by_day"`
	Bars     []dayBar          `json:"-"`
	Most     int               `json:"-"` // tokens of the day with most
	Store    measured          `json:"store"`
	Kinds    []kindRows        `json:"-"`
}

// worthOf is a section as bars: what was told and, of it, what was used.
type worthOf struct {
	ledger.SectionStats
	Told, UsedWidth float64 // in percent of the largest section
}

// dayBar is a day in the chart; widths are in percent, heights in pixels.
type dayBar struct {
	ledger.DayStats
	X, Width, Y, Height, UsedY, UsedHeight float64
	Label                                  string // "" where there is no room for it
	Last                                   bool
}

// Middle is where the label of the bar is: that of the last one ends with the chart.
func (b dayBar) Middle() float64 {
	if b.Last {
		return 100
	}
	return b.X + b.Width/2
}

// kindRows is how many rows of a kind there are.
type kindRows struct {
	Kind  string
	N     int64
	Width float64 // in percent of the most frequent kind
}

const (
	chartTop    = 20.0  // pixels above the highest bar
	chartHeight = 120.0 // of the highest bar
)

func (s *Site) worth(r *http.Request, v Visitor, _ place) (Response, error) {
	now := s.now().Unix()
	c, err := s.choose(r, now)
	if err != nil {
		return Response{}, err
	}
	p := &worth{choice: c, Days: int((now - c.Since) / (24 * 3600))}
	if p.Ledger, err = s.cairn.Ledger(r.Context(), c.Project, p.Days); err != nil {
		return Response{}, err
	}
	j, err := s.cairn.Observations(r.Context())
	if err != nil {
		return Response{}, err
	}
	if p.ByDay, err = ledger.Days(r.Context(), j, c.Project, p.Days); err != nil {
		return Response{}, err
	}
	if p.Store, err = s.measures(r.Context()); err != nil {
		return Response{}, err
	}
	p.drawSections()
	p.drawDays()
	p.countKinds()
	return s.show(r, v, "worth", "Worth", p)
}

func (p *worth) drawSections() {
	most := 1
	for _, one := range p.Ledger.Sections {
		most = max(most, one.Tokens)
	}
	for _, one := range p.Ledger.Sections {
		told := 100 * float64(one.Tokens) / float64(most)
		p.Sections = append(p.Sections, worthOf{one, told, told * one.UseRate})
	}
	slices.SortStableFunc(p.Sections, func(a, b worthOf) int { return cmp.Compare(b.Tokens, a.Tokens) })
}

// drawDays draws a bar for each day if there are several; labels keep their distance.
func (p *worth) drawDays() {
	for _, d := range p.ByDay {
		p.Most = max(p.Most, d.Tokens)
	}
	if len(p.ByDay) < 2 || p.Most == 0 {
		return
	}
	each := 100 / float64(len(p.ByDay))
	every := (len(p.ByDay) + 6) / 7
	for i, d := range p.ByDay {
		height := chartHeight * float64(d.Tokens) / float64(p.Most)
		used := chartHeight * float64(d.Used) / float64(p.Most)
		b := dayBar{DayStats: d, X: each * (float64(i) + 0.15), Width: each * 0.7, Y: chartTop + chartHeight - height, Height: height, UsedY: chartTop + chartHeight - used, UsedHeight: used, Last: i == len(p.ByDay)-1}
		if day, err := time.Parse(time.DateOnly, d.Day); err == nil && (len(p.ByDay)-1-i)%every == 0 {
			b.Label = day.Format("2 Jan")
		}
		p.Bars = append(p.Bars, b)
	}
}

func (p *worth) countKinds() {
	kinds := map[string]int64{}
	most := int64(1)
	for kind, n := range p.Store.Counts.ByType {
		kinds[kindOf(kind)] += n
		most = max(most, kinds[kindOf(kind)])
	}
	for kind, n := range kinds {
		p.Kinds = append(p.Kinds, kindRows{kind, n, 100 * float64(n) / float64(most)})
	}
	slices.SortFunc(p.Kinds, func(a, b kindRows) int { return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Kind, b.Kind)) })
}

// UsedShare is the share of the tokens told on all days that was used, in percent.
func (p *worth) UsedShare() int {
	told, used := 0, 0
	for _, d := range p.ByDay {
		told, used = told+d.Tokens, used+d.Used
	}
	if told == 0 {
		return 0
	}
	return 100 * used / told
}

// triggerName says for people when a section is told.
func triggerName(trigger string) string {
	return cmp.Or(map[string]string{"session_start": "session start", "prompt": "with a prompt", "tool": "before a tool"}[trigger], trigger)
}
