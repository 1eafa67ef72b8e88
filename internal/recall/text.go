package recall

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	observations "cairn/internal/observation/search"
	"cairn/internal/words"
)

// Maximum tokens of an answer's text for each requested session.
const (
	briefTokens = 160
	fullTokens  = 800
	leastTokens = 40 // minimum for a session
)

// tokens estimates the tokens of a text as a quarter of its bytes, as everywhere in
// cairn.
func tokens(text string) int { return (len(text) + 3) / 4 }

// complete adds the fields of an answer besides its groups.
func (r *search) complete(out *Answer) {
	out.finder, out.Corrected = r.finder, r.corrected
	if len(out.Results) > 0 {
		return
	}
	out.Tried = "Nothing matches"
	if r.plain {
		var all []string
		for _, text := range r.asked {
			all = append(all, fmt.Sprintf("%q", neutralLine(text, maxQuery)))
		}
		out.Tried += ". Searched observations, records, mail and memories for all words, some words and similar words of " + strings.Join(all, " and ")
	}
	out.Tried += ". " + advice(r.args.Project)
	if len(out.Newest) == 0 {
		out.Tried += " No session is recorded there yet."
	}
}

// advice returns a hint for a search without a result.
func advice(project string) string {
	text := "Try other words: names, files, identifiers or error texts that may occur there"
	if project != "" {
		text += `, or all projects (only ` + neutralLine(project, maxLine) + ` was searched)`
	}
	return text + "."
}

// NothingFound returns a text for a search of observations without a result: what it
// tried, and what to try next.
func NothingFound(a observations.SearchArgs) string {
	text := "No row holds all words, and no turn some of them or similar ones. "
	if !words.IsPlain(a.Query) {
		text = "No row matches exactly. Without quotes and operators, rows with some of the words are found, too. "
	}
	if a.ObsType != "" || a.Before != nil || a.After != nil {
		text += "Rows of other types and times were left out. "
	}
	return text + advice(a.Scope.Project)
}

// rangeText returns the time range of a question as text.
func rangeText(p *observations.RecalledPeriod) string {
	until := time.Unix(p.To-1, 0).Format(time.DateOnly)
	if p.From == 0 {
		return neutralLine(p.Said, maxLine) + ": until " + until
	}
	return neutralLine(p.Said, maxLine) + ": " + time.Unix(p.From, 0).Format(time.DateOnly) + " to " + until
}

// shape holds the line lengths of an answer, in characters.
type shape struct{ about, excerpt int }

// shapes returns the shapes that are tried in turn until one item of each group fits.
func shapes() []shape { return []shape{{maxLine, excerptChars}, {80, 120}, {60, 90}, {40, 60}} }

// fit shortens lines, then omits the lowest-ranking items and groups, until the answer is
// within its tokens.
func (r *Answer) fit(detail string, sessions int) {
	limit, items := briefTokens, 3
	if detail == DetailFull {
		limit, items = fullTokens, maxItems
	}
	limit *= max(sessions, defaultResults)
	for i := range r.Newest {
		r.Newest[i].Items = []Item{}
	}
	f := fitting{out: r, all: r.Results, limit: limit}
	for _, g := range f.all[:min(len(f.all), limit/leastTokens)] {
		f.shown = append(f.shown, min(1, len(g.Items)))
	}
	for _, f.shape = range shapes() {
		if f.fits() {
			break
		}
	}
	for len(f.shown) > 1 && !f.fits() {
		f.shown = f.shown[:len(f.shown)-1]
	}
	for n := 2; n <= items && f.addItems(n); n++ {
	}
	for !f.fits() && len(r.Newest) > 1 {
		r.Newest = r.Newest[:len(r.Newest)-1]
	}
}

// fitting is an answer that is being shortened to its tokens.
type fitting struct {
	out   *Answer
	all   []Group
	shown []int // number of items of each group
	limit int
	shape shape
}

// addItems adds the nth item of each group, or of as many of the first groups as fit. It
// reports whether it added one for every group.
func (f *fitting) addItems(n int) bool {
	const many = 20 // with more groups, either all get another item or none does
	before := slices.Clone(f.shown)
	for i := range f.shown {
		f.shown[i] = min(n, len(f.all[i].Items))
	}
	if f.fits() {
		return true
	}
	f.shown = before
	for i := range f.shown {
		if len(f.shown) > many || f.shown[i] != n-1 || len(f.all[i].Items) < n {
			continue
		}
		if f.shown[i] = n; !f.fits() {
			f.shown[i] = n - 1
		}
	}
	f.fits()
	return false
}

// fits copies the shown items into the answer and reports whether it is within its
// tokens.
func (f *fitting) fits() bool {
	f.out.Results = []Group{}
	for i, n := range f.shown {
		g := f.all[i]
		g.About = neutralLine(g.About, f.shape.about)
		g.Items = slices.Clone(g.Items[:n])
		for k := range g.Items {
			if item := &g.Items[k]; f.shape.excerpt < excerptChars && f.out.finder != nil {
				item.Excerpt = f.out.finder.Excerpt(item.Excerpt, f.shape.excerpt).Text
			}
		}
		f.out.Results = append(f.out.Results, g)
	}
	f.out.Open = f.out.calls()
	text, err := json.Marshal(f.out.Text()) // as MCP sends it
	return err != nil || tokens(string(text)) <= f.limit
}

// calls returns the tool calls that open the shown items.
func (r *Answer) calls() []string {
	return r.opened(
		func(rows []string) string { return "get_observations(ids=[" + strings.Join(rows, ",") + "])" },
		func(session string) string { return fmt.Sprintf("session_trace(session_id=%q)", session) },
		func(item Item) string { return item.call })
}

// commands returns the commands that open the shown items.
func (r *Answer) commands() []string {
	return r.opened(
		func(rows []string) string { return "cairn show " + strings.Join(rows, " ") },
		func(session string) string { return "cairn show " + shellWord(session) },
		func(item Item) string { return item.command })
}

// shellWord quotes a text as one shell word.
func shellWord(text string) string {
	special := func(r rune) bool {
		return r != '-' && r != '_' && r != '.' && (r > 'z' || !unicode.IsLetter(r) && !unicode.IsDigit(r))
	}
	if text != "" && !strings.ContainsFunc(text, special) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// opened lists how to open the answer's observations, its first session, and the first
// item of each other part.
func (r *Answer) opened(observations func([]string) string, session func(string) string, other func(Item) string) (all []string) {
	var rows []string
	for _, g := range r.Results {
		for _, item := range g.Items {
			if item.Part == PartObservations {
				rows = append(rows, item.ID)
			}
		}
	}
	if len(rows) > 0 {
		all = append(all, observations(rows))
	}
	for _, g := range slices.Concat(r.Results, r.Newest) {
		if g.SessionID != "" && neutralLine(g.SessionID, maxLine) == g.SessionID {
			all = append(all, session(g.SessionID))
			break
		}
	}
	seen := map[string]bool{}
	for _, g := range r.Results {
		for _, item := range g.Items {
			if how := other(item); how != "" && !seen[item.Part] {
				seen[item.Part] = true
				all = append(all, how)
			}
		}
	}
	return all
}

// Text returns the answer as text for a model: one line per session, then its best items
// as "part #id when: excerpt", then the tool calls that open them.
func (r *Answer) Text() string {
	return r.text(func(excerpt string) string { return excerpt }, r.Open)
}

// TextForPeople is Text with the commands that open the items. It puts on and off before
// and after each matching word of an excerpt.
func (r *Answer) TextForPeople(on, off string) string {
	return r.text(func(excerpt string) string { return Marked(r.finder, excerpt, on, off) }, r.commands())
}

func (r *Answer) text(mark func(string) string, open []string) string {
	var b strings.Builder
	for _, word := range slices.Sorted(maps.Keys(r.Corrected)) {
		fmt.Fprintf(&b, "%q was searched for as %q.\n", neutralLine(word, maxLine), neutralLine(r.Corrected[word], maxLine))
	}
	if r.Range != "" {
		fmt.Fprintf(&b, "Time: %s.\n", r.Range)
	}
	if r.Note != "" {
		b.WriteString(r.Note + "\n")
	}
	for i := range r.Results {
		fmt.Fprintf(&b, "%d. %s\n", i+1, r.Results[i].head())
		for _, item := range r.Results[i].Items {
			b.WriteString("   " + item.line(r.Results[i], mark) + "\n")
		}
	}
	if r.Tried != "" {
		b.WriteString(r.Tried + "\n")
	}
	if len(r.Newest) > 0 {
		b.WriteString("The newest sessions:\n")
	}
	for i := range r.Newest {
		b.WriteString("- " + r.Newest[i].head() + "\n")
	}
	if len(open) > 0 {
		b.WriteString("Open: " + strings.Join(open, "; ") + "\n")
	}
	return b.String()
}

// head returns the line about a group.
func (g *Group) head() string {
	if g.SessionID == "" {
		return g.Part
	}
	var all []string
	if g.When != nil {
		all = append(all, g.When.Format("2006-01-02 15:04"))
	}
	if g.Agent != "" {
		all = append(all, g.Agent)
	}
	if g.Branch != "" {
		all = append(all, "branch "+g.Branch)
	}
	if g.Project != "" {
		all = append(all, "project "+g.Project)
	}
	id := "session " + neutralLine(g.SessionID, maxLine)
	if g.Asker {
		id += " (this session)"
	}
	return strings.Join(append(all, id), ", ") + ": " + cmp.Or(g.About, "(no prompt)")
}

// line returns the line about an item of a group.
func (item Item) line(g Group, mark func(string) string) string {
	when := item.When.Format("2006-01-02 15:04")
	if g.When != nil && g.When.Format(time.DateOnly) == item.When.Format(time.DateOnly) {
		when = item.When.Format("15:04")
	}
	text := item.Part + " #" + item.ID + " " + when
	if item.Project != "" && item.Project != g.Project {
		text += " " + item.Project
	}
	text += ": "
	if item.Type != "" {
		text += item.Type + ": "
	}
	if text += mark(item.Excerpt); item.Count > 1 {
		text += fmt.Sprintf(" (%d times)", item.Count)
	}
	return text
}
