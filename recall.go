package cairn

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"cairn/internal/fault"
	"cairn/internal/neutral"
	"cairn/internal/words"
)

// The parts of the store that Recall searches.
const (
	PartObservations = "observations"
	PartRecords      = "records"
	PartMail         = "mail"
	PartMemories     = "memories"
)

// Values of RecallItem.Matched.
const (
	MatchedAll  = "all"  // the item holds all words of the question
	MatchedSome = "some" // the item holds some words of the question
)

// The values of RecallArgs.Detail.
const (
	DetailBrief = "brief" // at most 800 tokens
	DetailFull  = "full"  // at most 4,000 tokens
)

const (
	defaultRecallResults = 5
	maxRecallResults     = 100
)

// RecallArgs is a question about past work.
type RecallArgs struct {
	Query    string // a question in plain words, or a query with operators (observations §8.1)
	Words    string // words that the answer is expected to hold: names, identifiers, error texts; "" for none
	Project  string // id or alias; "" for all projects
	Near     string // the project that is preferred where all are searched; "" for that of the working directory
	Limit    int    // maximum number of sessions; 0 for 5, at most 100
	Detail   string // "" for DetailBrief
	Asker    string // the session that asks; its rows are found only if no other session has any; "" for none
	Progress func(what string)
}

// Recalled is the answer to a question about past work.
type Recalled struct {
	Query string `json:"query"` // as it was asked, in one line
	// Results are the sessions, best first, and one group for each other part whose
	// items belong to no known session. Never nil.
	Results   []RecallGroup     `json:"results"`
	Corrected map[string]string `json:"corrected,omitempty"` // words of the question that nothing holds, and the words that replaced them
	Range     string            `json:"range,omitempty"`     // the time range that the question names
	Tried     string            `json:"tried,omitempty"`     // of an answer without results: what was searched for, and what to try
	Newest    []RecallGroup     `json:"newest,omitempty"`    // of an answer without results: the newest sessions
	Open      []string          `json:"open,omitempty"`      // the tool calls that open the items

	finder *words.Finder // of the words that were searched for
}

// RecallGroup is a session with its best items, or the best items of a part.
type RecallGroup struct {
	SessionID string       `json:"session_id,omitempty"`
	Part      string       `json:"part,omitempty"` // of a group without a session
	When      *time.Time   `json:"when,omitempty"` // of the session's best turn, or when the session began, in UTC
	Project   string       `json:"project,omitempty"`
	Agent     string       `json:"agent,omitempty"`
	Branch    string       `json:"branch,omitempty"`
	About     string       `json:"about,omitempty"` // what the session was about, in one line
	Asker     bool         `json:"this_session,omitempty"`
	Items     []RecallItem `json:"items"` // best first

	score float64
	here  bool
}

// RecallItem is a row of a part.
type RecallItem struct {
	Part    string    `json:"part"`
	ID      string    `json:"id"` // in its part; of records and messages in its project
	Type    string    `json:"type,omitempty"`
	When    time.Time `json:"when"`
	Project string    `json:"project,omitempty"` // where it differs from its group's; of a memory the vault and the memory
	Excerpt string    `json:"excerpt"`           // one line around the words that matched
	Matched string    `json:"matched"`           // MatchedAll or MatchedSome
	Count   int       `json:"count,omitempty"`   // how many rows with the same text the item stands for, if more than one

	open string // the tool call that opens the item
}

// Recall answers a question about past work from all parts of the store: sessions first
// by what happened in them, with the records, messages and entries that were written in
// them; items without a known session follow in one group per part. Scores of parts
// cannot be compared, so Recall fuses the parts' rankings by place (reciprocal rank
// fusion). An item that holds all words ranks before each item that holds some of them.
// Texts in the result are neutral (package neutral). The result keeps to the number of
// tokens that Detail names: the items that rank last are left out.
//
// Without a match, Results is empty; Tried says what was searched for, and Newest holds
// the newest sessions. Recall creates no store. It changes nothing.
//
// Errors: Invalid for a query that observations §8.1 refuses and for an unknown Detail,
// and errors of reading the store.
func (c *Cairn) Recall(ctx context.Context, a RecallArgs) (Recalled, error) {
	if a.Detail != "" && a.Detail != DetailBrief && a.Detail != DetailFull {
		return Recalled{}, fault.Newf(fault.Invalid, "invalid_argument", "detail must be brief or full, not %q", a.Detail)
	}
	if a.Limit <= 0 {
		a.Limit = defaultRecallResults
	}
	if a.Limit = min(a.Limit, maxRecallResults); a.Progress == nil {
		a.Progress = func(string) {}
	}
	here, err := c.Here(ctx, cmp.Or(a.Project, a.Near))
	if err != nil {
		return Recalled{}, err
	}
	run := newRecallRun(c, a, here)
	out, err := run.sessions(ctx)
	if err != nil {
		return Recalled{}, err
	}
	err = run.addParts(ctx, &out)
	if err == nil && len(out.Results) == 0 && run.plain { // the parts may know words that observations do not
		run.correcting = true
		err = run.addParts(ctx, &out)
	}
	if err != nil {
		return Recalled{}, err
	}
	out.rank(a.Limit)
	run.complete(&out)
	out.fit(a.Detail)
	return out, nil
}

// addParts adds what the parts besides observations find.
func (r *recallRun) addParts(ctx context.Context, out *Recalled) error {
	for _, part := range r.parts() {
		r.args.Progress("searching " + part.name)
		found, err := part.find(ctx)
		if err != nil {
			return err
		}
		found = fusePart(part.name, r.here, found, r.args.Limit)
		if err := r.addSessions(ctx, out, found); err != nil {
			return err
		}
		out.add(found)
	}
	return nil
}

// group returns the index of a session's group, -1 if there is none.
func (r *Recalled) group(sessionID string) int {
	return slices.IndexFunc(r.Results, func(g RecallGroup) bool { return g.SessionID == sessionID })
}

// add puts the ranked hits of a part into the groups of their sessions, or into the
// group of the part.
func (r *Recalled) add(hits []partHit) {
	for _, h := range hits {
		i := -1
		if h.session != "" {
			i = r.group(h.session)
		} else if i = slices.IndexFunc(r.Results, func(g RecallGroup) bool { return g.Part == h.Part }); i < 0 {
			r.Results, i = append(r.Results, RecallGroup{Part: h.Part, here: h.here}), len(r.Results)
		}
		g := &r.Results[i]
		if len(g.Items) == 0 || g.SessionID != "" {
			g.score += h.score
		}
		g.Items = append(g.Items, h.RecallItem)
	}
}

// rank sorts the groups, best first, and keeps the given number of sessions beside the
// groups of parts. Inside a session what holds all words comes first.
func (r *Recalled) rank(limit int) {
	slices.SortStableFunc(r.Results, func(x, y RecallGroup) int {
		return cmp.Or(compareBool(y.Asker, x.Asker), cmp.Compare(y.score, x.score), compareBool(x.here, y.here))
	})
	sessions := 0
	r.Results = slices.DeleteFunc(r.Results, func(g RecallGroup) bool {
		if g.SessionID != "" {
			sessions++
		}
		return g.SessionID != "" && sessions > limit
	})
	for i := range r.Results {
		slices.SortStableFunc(r.Results[i].Items, func(x, y RecallItem) int {
			return compareBool(x.Matched == MatchedAll, y.Matched == MatchedAll)
		})
		r.Results[i].fold()
	}
}

// fold replaces items of one type with equal excerpts by the first of them.
func (g *RecallGroup) fold() {
	kept := g.Items[:0]
	for _, item := range g.Items {
		i := slices.IndexFunc(kept, func(k RecallItem) bool {
			return k.Part == item.Part && k.Type == item.Type && k.Excerpt == item.Excerpt
		})
		if i < 0 {
			kept = append(kept, item)
			continue
		}
		kept[i].Count = max(kept[i].Count, 1) + max(item.Count, 1)
	}
	g.Items = kept
}

// compareBool orders true before false.
func compareBool(x, y bool) int {
	switch {
	case x && !y:
		return -1
	case y && !x:
		return 1
	}
	return 0
}

// maxRecallLine is the maximum number of characters of a line about a session.
const maxRecallLine = 120

// neutralLine returns a text as one neutral line of at most n characters.
func neutralLine(text string, n int) string {
	runes := []rune(neutral.Line(text))
	if len(runes) > n {
		runes = append(runes[:n-1], '…')
	}
	return strings.TrimSpace(string(runes))
}
