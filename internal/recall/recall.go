// Package recall answers a question about past work from all parts of the store at once:
// observations, records, mail and memories, grouped by session.
package recall

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"cairn/internal/fault"
	"cairn/internal/mail/service"
	"cairn/internal/memory/memories"
	"cairn/internal/neutral"
	"cairn/internal/observation"
	observations "cairn/internal/observation/search"
	"cairn/internal/project"
	"cairn/internal/record/commands"
	"cairn/internal/words"
)

// The parts of the store that Ask searches.
const (
	PartObservations = "observations"
	PartRecords      = "records"
	PartMail         = "mail"
	PartMemories     = "memories"
)

// Values of Item.Matched.
const (
	MatchedAll  = "all"  // the item contains all words of the question
	MatchedSome = "some" // the item contains some words of the question

	MatchedSimilar = observations.MatchedSimilar // the item contains none of them, but words of nearly the same meaning
)

// Values of Args.Detail.
const (
	DetailBrief = "brief" // at most 160 tokens per session: 800 for five sessions
	DetailFull  = "full"  // at most 800 tokens per session
)

const (
	defaultResults = 5
	maxResults     = 100
)

// Service answers questions about one store. Its methods change nothing.
type Service struct {
	Observations *observation.Service // may have no store

	// The parts besides observations. Each is nil while there is no store.
	Records  *commands.Commands
	Mail     *service.Mail
	Memories *memories.Service

	Place project.Location // of the working directory; its user's memories are searched
}

// Args is a question about past work.
type Args struct {
	Query    string // a question in plain words, or a query with operators (observations §8.1)
	Words    string // words expected in the answer: names, identifiers, error texts; "" for none
	Project  string // only this project, an id or alias; "" for all projects
	Near     string // id of the project to prefer if all are searched, or of Project; "" for none
	Limit    int    // maximum number of sessions; 0 for 5, at most 100
	Detail   string // "" for DetailBrief
	Asker    string // the calling session, whose rows are used only if no other session matches; "" for none
	Progress func(what string)
}

// Answer is the answer to a question about past work.
type Answer struct {
	Query string `json:"query"` // the question in one line
	// Results contains the sessions, best first, and one group for each part with items
	// without a known session. Never nil.
	Results   []Group           `json:"results"`
	Corrected map[string]string `json:"corrected,omitempty"` // words of the question that occur nowhere, and their replacements
	Note      string            `json:"note,omitempty"`      // why a query with operators was changed
	Range     string            `json:"range,omitempty"`     // time range in the question
	Tried     string            `json:"tried,omitempty"`     // without results: what was searched for, and what to try next
	Newest    []Group           `json:"newest,omitempty"`    // without results: the newest sessions
	Open      []string          `json:"open,omitempty"`      // the tool calls that open the items

	finder *words.Finder // for the words of the search
}

// Group is a session with its best items, or the best items of a part.
type Group struct {
	SessionID string     `json:"session_id,omitempty"`
	Part      string     `json:"part,omitempty"` // of a group without a session
	When      *time.Time `json:"when,omitempty"` // time of the session's best turn, or its start, in UTC
	Project   string     `json:"project,omitempty"`
	Agent     string     `json:"agent,omitempty"`
	Branch    string     `json:"branch,omitempty"`
	About     string     `json:"about,omitempty"` // subject of the session, in one line
	Asker     bool       `json:"this_session,omitempty"`
	Items     []Item     `json:"items"` // best first

	score float64
	here  bool
}

// Item is a row of a part.
type Item struct {
	Part    string    `json:"part"`
	ID      string    `json:"id"` // unique in its part; for records and messages in the project
	Type    string    `json:"type,omitempty"`
	When    time.Time `json:"when"`
	Project string    `json:"project,omitempty"` // if it differs from the group's; for memories the vault and the memory
	Excerpt string    `json:"excerpt"`           // one line around the words that matched
	Matched string    `json:"matched"`           // MatchedAll, MatchedSome or MatchedSimilar
	Count   int       `json:"count,omitempty"`   // number of rows with the same text, if more than one

	call    string // tool call that opens the item; "" for observations, because one call opens many
	command string // command that opens the item, likewise
}

// Ask answers a question about past work from all parts of the store. Sessions come
// first, ranked by their rows, with the records, messages and entries written in them.
// Items without a known session follow in one group per part. Scores of different parts
// are not comparable, so Ask fuses the parts' rankings by place (reciprocal rank fusion).
// Items with all words rank before items with some of them. Texts in the result are
// neutral (package neutral). The text of the result stays within the tokens of Detail
// times Limit: lines are shortened, and the lowest-ranking items are omitted.
//
// A query with operators is matched exactly in each part. If it has no match or cannot be
// parsed, Ask searches for its words, and Note says why.
//
// Without a match, Results is empty. Tried lists what was searched for, and Newest
// contains the newest sessions. Ask changes nothing.
//
// Errors: Invalid for a query without a letter or digit or an unknown Detail; errors of
// reading the store.
func (s *Service) Ask(ctx context.Context, a Args) (Answer, error) {
	if a.Detail != "" && a.Detail != DetailBrief && a.Detail != DetailFull {
		return Answer{}, fault.Newf(fault.Invalid, "invalid_argument", "detail must be brief or full, not %q", a.Detail)
	}
	if a.Limit <= 0 {
		a.Limit = defaultResults
	}
	if a.Limit = min(a.Limit, maxResults); a.Progress == nil {
		a.Progress = func(string) {}
	}
	run := newSearch(s, a)
	out, err := run.find(ctx)
	if err == nil && len(out.Results) == 0 && !run.plain {
		run.asPlain("Nothing matches exactly, so quotes and operators were left out.")
		out, err = run.find(ctx)
	}
	if err != nil {
		return Answer{}, err
	}
	out.rank(a.Limit)
	run.complete(&out)
	out.fit(a.Detail, a.Limit)
	return out, nil
}

// find collects the groups of an answer, unranked.
func (r *search) find(ctx context.Context) (Answer, error) {
	out, err := r.sessions(ctx)
	if err == nil {
		err = r.addParts(ctx, &out)
	}
	if err == nil && len(out.Results) == 0 && r.plain { // the parts may contain words that observations lack
		r.correcting = true
		err = r.addParts(ctx, &out)
	}
	return out, err
}

// addParts adds the items of the parts besides observations.
func (r *search) addParts(ctx context.Context, out *Answer) error {
	for _, part := range r.parts() {
		r.args.Progress("searching " + part.name)
		found, err := part.find(ctx)
		if err != nil {
			return err
		}
		found = fusePart(part.name, r.args.Near, found, r.args.Limit)
		if err := r.addSessions(ctx, out, found); err != nil {
			return err
		}
		out.add(found)
	}
	return nil
}

// group returns the index of a session's group, or -1.
func (r *Answer) group(sessionID string) int {
	return slices.IndexFunc(r.Results, func(g Group) bool { return g.SessionID == sessionID })
}

// add adds the ranked hits of a part to the groups of their sessions, or to the part's
// group.
func (r *Answer) add(hits []partHit) {
	for _, h := range hits {
		i := -1
		if h.session != "" {
			i = r.group(h.session)
		} else if i = slices.IndexFunc(r.Results, func(g Group) bool { return g.Part == h.Part }); i < 0 {
			r.Results, i = append(r.Results, Group{Part: h.Part, here: h.here}), len(r.Results)
		}
		g := &r.Results[i]
		if len(g.Items) == 0 || g.SessionID != "" {
			g.score += h.score
		}
		g.Items = append(g.Items, h.Item)
	}
}

// rank sorts the groups, best first. It keeps the given number of sessions and all groups
// of parts. Inside a session, items with all words come first.
func (r *Answer) rank(limit int) {
	slices.SortStableFunc(r.Results, func(x, y Group) int {
		return cmp.Or(compareBool(y.Asker, x.Asker), cmp.Compare(y.score, x.score), compareBool(x.here, y.here))
	})
	sessions := 0
	r.Results = slices.DeleteFunc(r.Results, func(g Group) bool {
		if g.SessionID != "" {
			sessions++
		}
		return g.SessionID != "" && sessions > limit
	})
	for i := range r.Results {
		slices.SortStableFunc(r.Results[i].Items, func(x, y Item) int {
			return compareBool(x.Matched == MatchedAll, y.Matched == MatchedAll)
		})
		r.Results[i].fold()
	}
}

// fold merges items of one type with equal excerpts into the first of them.
func (g *Group) fold() {
	kept := g.Items[:0]
	for _, item := range g.Items {
		i := slices.IndexFunc(kept, func(k Item) bool {
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

// maxLine is the maximum length of a line about a session, in characters.
const maxLine = 120

// neutralLine returns a text as one neutralised line of at most n characters.
func neutralLine(text string, n int) string {
	runes := []rune(neutral.Line(text))
	if len(runes) > n {
		runes = append(runes[:n-1], '…')
	}
	return strings.TrimSpace(string(runes))
}
