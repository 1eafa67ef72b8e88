package web

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"cairn/internal/hooktimes"
	"cairn/internal/observation"
	"cairn/internal/observation/browse"
	"cairn/internal/observation/ledger"
)

// worth shows the tokens that cairn injected in a period, how many agents used, and the
// size of the store.
type worth struct {
	choice
	Days     int               `json:"days"`
	Ledger   ledger.Report     `json:"ledger"`
	Sections []worthOf         `json:"-"`
	ByDay    []ledger.DayStats `json:"by_day"`
	ByWeek   []ledger.DayStats `json:"by_week"` // last twelve weeks, named by their Mondays
	DayBars  chart             `json:"-"`
	WeekBars chart             `json:"-"`
	Store    measured          `json:"store"`
	Kinds    []kindRows        `json:"-"`
	Tools    []toolsetRow      `json:"toolsets"`
	Calls    int64             `json:"calls"` // of all tools, to this server over HTTP
	Started  int64             `json:"calls_since"`
	Secrets  []secretRow       `json:"redactions"`
	Redacted int               `json:"redacted_rows"`
	Hooks    []hookRow         `json:"hook_times"`
	HooksAt  int64             `json:"hook_times_since,omitempty"` // time of the oldest known hook, 0 for none
}

// chart contains a bar for each day or week.
type chart struct {
	Name string
	Unit string // Day or Week
	Bars []dayBar
	Most int // tokens of the highest bar
	Rows []ledger.DayStats
	Used int // percentage of all tokens
}

// toolsetRow is the cost of a toolset as a bar.
type toolsetRow struct {
	ToolsetCost
	Calls int64   `json:"calls"`
	Width float64 `json:"-"` // percentage of the largest toolset
}

// secretRow is the number of removed secrets of one kind as a bar.
type secretRow struct {
	browse.Redaction
	Width float64 `json:"-"`
}

// hookRow contains the durations of the hooks of an event, in milliseconds.
type hookRow struct {
	Event string  `json:"event"`
	Hooks int64   `json:"hooks"`
	P50   float64 `json:"p50_ms"`
	P95   float64 `json:"p95_ms"`
	Max   float64 `json:"max_ms"`
	Width float64 `json:"-"` // P95 as a percentage of the highest
}

// worthOf is a section as a bar, with its injected tokens and the used part.
type worthOf struct {
	ledger.SectionStats
	Told, UsedWidth float64 // percentage of the largest section
}

// dayBar is a bar in the chart. Widths are in percent, heights in pixels.
type dayBar struct {
	ledger.DayStats
	X, Width, Y, Height, UsedY, UsedHeight float64
	Label, Share                           string // below and above the bar, "" if there is no space
	Last                                   bool
}

// Middle returns the position of the bar's label. The label of the last bar ends with the
// chart.
func (b dayBar) Middle() float64 {
	if b.Last {
		return 100
	}
	return b.X + b.Width/2
}

// kindRows is the number of rows of a type, with their retention.
type kindRows struct {
	Kind     string
	N, Bytes int64
	Kept     string
	Expiring int64
	Width    float64 // percentage of the most frequent type
}

const (
	chartTop    = 20.0  // pixels above the highest bar
	chartHeight = 120.0 // height of the highest bar
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
	if p.ByWeek, err = s.ledgerWeeks(r.Context(), j, c.Project, now); err != nil {
		return Response{}, err
	}
	if p.Store, err = s.measures(r.Context()); err != nil {
		return Response{}, err
	}
	if err := p.countSecrets(r.Context(), j); err != nil {
		return Response{}, err
	}
	if err := p.readHooks(s.cairn.Dir()); err != nil {
		return Response{}, err
	}
	costs, err := s.toolsets()
	if err != nil {
		return Response{}, err
	}
	p.Started = s.since.Unix()
	p.drawTools(costs, s.calls())
	p.drawSections()
	p.DayBars, p.WeekBars = drawTokens("Tokens by day", "Day", p.ByDay), drawTokens("Tokens by week", "Week", p.ByWeek)
	p.countKinds()
	return s.show(r, v, "worth", "Worth", p)
}

// weeksShown covers almost the ledger's retention of 90 days.
const weeksShown = 12

// ledgerWeeks returns totals for the last weeks, oldest first. A week begins on Monday.
func (s *Site) ledgerWeeks(ctx context.Context, j *observation.Service, project string, now int64) ([]ledger.DayStats, error) {
	since := (int(time.Unix(now, 0).Weekday()) + 6) % 7 // days since Monday
	days, err := ledger.Days(ctx, j, project, 7*(weeksShown-1)+since+1)
	weeks := []ledger.DayStats{}
	for i, d := range days {
		if i%7 == 0 {
			weeks = append(weeks, ledger.DayStats{Day: d.Day})
		}
		w := &weeks[len(weeks)-1]
		w.Tokens, w.Used = w.Tokens+d.Tokens, w.Used+d.Used
	}
	return weeks, err
}

// countSecrets counts the secrets removed from rows in the period.
func (p *worth) countSecrets(ctx context.Context, j *observation.Service) error {
	list, rows, err := browse.Redactions(ctx, j, p.Project, p.Since)
	p.Redacted, p.Secrets = rows, []secretRow{}
	for _, one := range list {
		p.Secrets = append(p.Secrets, secretRow{one, 100 * float64(one.Marks) / float64(list[0].Marks)})
	}
	return err
}

// readHooks reads the durations of the hooks in the period, of all projects.
func (p *worth) readHooks(dir string) error {
	list, oldest, err := hooktimes.Read(dir, time.Unix(p.Since, 0))
	if p.Hooks = []hookRow{}; !oldest.IsZero() {
		p.HooksAt = oldest.Unix()
	}
	ms := func(d time.Duration) float64 { return math.Round(float64(d.Microseconds())/10) / 100 }
	most := 0.01
	for _, t := range list {
		row := hookRow{Event: t.Event, Hooks: t.Took.Count, P50: ms(t.Took.Quantile(0.5)), P95: ms(t.Took.Quantile(0.95)), Max: ms(t.Longest)}
		row.P50, row.P95 = min(row.P50, row.Max), min(row.P95, row.Max)
		p.Hooks, most = append(p.Hooks, row), max(most, row.P95)
	}
	for i := range p.Hooks {
		p.Hooks[i].Width = 100 * p.Hooks[i].P95 / most
	}
	return err
}

func (p *worth) drawTools(costs []ToolsetCost, calls map[string]int64) {
	most := 1
	for _, c := range costs {
		most = max(most, c.Tokens)
	}
	p.Tools = []toolsetRow{}
	for _, c := range costs {
		row := toolsetRow{ToolsetCost: c, Width: 100 * float64(c.Tokens) / float64(most)}
		for _, name := range c.Names {
			row.Calls += calls[name]
		}
		p.Tools, p.Calls = append(p.Tools, row), p.Calls+row.Calls
	}
	slices.SortStableFunc(p.Tools, func(a, b toolsetRow) int { return cmp.Compare(b.Tokens, a.Tokens) })
}

// ToolTokens returns the total cost of all toolsets, complete and in the lean profile.
func (p *worth) ToolTokens() (all ToolsetCost) {
	for _, t := range p.Tools {
		all.Tools, all.Tokens, all.LeanTools, all.LeanTokens = all.Tools+t.Tools, all.Tokens+t.Tokens, all.LeanTools+t.LeanTools, all.LeanTokens+t.LeanTokens
	}
	return all
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

// drawTokens draws a bar for each day or week. It draws nothing unless there are several
// and one has tokens. Labels do not overlap.
func drawTokens(name, unit string, days []ledger.DayStats) chart {
	c := chart{Name: name, Unit: unit, Rows: days, Used: usedShare(days)}
	for _, d := range days {
		c.Most = max(c.Most, d.Tokens)
	}
	if len(days) < 2 || c.Most == 0 {
		return c
	}
	each := 100 / float64(len(days))
	every := (len(days) + 6) / 7
	for i, d := range days {
		height := chartHeight * float64(d.Tokens) / float64(c.Most)
		used := chartHeight * float64(d.Used) / float64(c.Most)
		b := dayBar{DayStats: d, X: each * (float64(i) + 0.15), Width: each * 0.7, Y: chartTop + chartHeight - height, Height: height, UsedY: chartTop + chartHeight - used, UsedHeight: used, Last: i == len(days)-1}
		if day, err := time.Parse(time.DateOnly, d.Day); err == nil && (len(days)-1-i)%every == 0 {
			b.Label = day.Format("2 Jan")
		}
		if d.Tokens > 0 && len(days) <= weeksShown {
			b.Share = fmt.Sprintf("%d %%", 100*d.Used/d.Tokens)
		}
		c.Bars = append(c.Bars, b)
	}
	return c
}

// ShareY returns the vertical position of the share, above the bar.
func (b dayBar) ShareY() float64 { return b.Y - 4 }

func (p *worth) countKinds() {
	at := map[string]int{}
	most := int64(1)
	for _, t := range p.Store.Types {
		kept := "permanently"
		if t.Days > 0 {
			kept = count(t.Days, "day")
		}
		key := typeName(t.Type) + kept
		i, known := at[key]
		if !known {
			i = len(p.Kinds)
			at[key] = i
			p.Kinds = append(p.Kinds, kindRows{Kind: typeName(t.Type), Kept: kept})
		}
		k := &p.Kinds[i]
		k.N, k.Bytes, k.Expiring = k.N+t.Rows, k.Bytes+t.Bytes, k.Expiring+t.Expiring
		most = max(most, k.N)
	}
	for i := range p.Kinds {
		p.Kinds[i].Width = 100 * float64(p.Kinds[i].N) / float64(most)
	}
	slices.SortStableFunc(p.Kinds, func(a, b kindRows) int { return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Kind, b.Kind)) })
}

// UsedShare returns the percentage of injected tokens that agents used.
func (p *worth) UsedShare() int { return usedShare(p.ByDay) }

func usedShare(days []ledger.DayStats) int {
	told, used := 0, 0
	for _, d := range days {
		told, used = told+d.Tokens, used+d.Used
	}
	if told == 0 {
		return 0
	}
	return 100 * used / told
}

// triggerName returns the label of the trigger that injects a section.
func triggerName(trigger string) string {
	return cmp.Or(map[string]string{"session_start": "session start", "prompt": "with a prompt", "tool": "before a tool"}[trigger], trigger)
}
