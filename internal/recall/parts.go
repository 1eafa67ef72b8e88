package recall

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/mail/messages"
	"cairn/internal/memory"
	"cairn/internal/memory/retrieval"
	"cairn/internal/memory/vaults"
	"cairn/internal/record"
	"cairn/internal/words"
)

// search is one run of Ask.
type search struct {
	*Service
	args   Args
	asked  []string   // texts that the parts search for: the expected words, the question
	keys   [][]string // the keys of each of them
	finder *words.Finder
	plain  bool   // the question has no operators
	note   string // why a query with operators is treated as plain words

	correcting bool              // the parts correct unknown words
	corrected  map[string]string // words that were replaced
}

func newSearch(s *Service, a Args) *search {
	r := &search{Service: s, args: a, plain: words.IsPlain(a.Query)}
	r.ask(a.Words)
	r.ask(a.Query)
	r.finder = words.FinderOf(r.asked...)
	return r
}

// ask adds a text that the parts besides observations search for.
func (r *search) ask(text string) {
	if strings.TrimSpace(text) == "" || slices.Contains(r.asked, text) {
		return
	}
	var keys []string
	for _, t := range words.Ask(text).Terms {
		keys = append(keys, t.Key)
	}
	r.asked, r.keys = append(r.asked, text), append(r.keys, keys)
}

// partHit is an item that a part found.
type partHit struct {
	Item
	session string // "" if unknown
	here    bool
	shared  float64 // share of the question's words that it contains
	weight  float64 // relevance in its part: higher is better
	score   float64
}

// part is a part that is searched in addition to observations.
type part struct {
	name string
	find func(context.Context) ([]partHit, error)
}

func (r *search) parts() []part {
	if r.Records == nil {
		return nil
	}
	return []part{{PartRecords, r.records}, {PartMail, r.mail}, {PartMemories, r.memories}}
}

const (
	// constantRank is the constant of reciprocal rank fusion. It keeps the first item of
	// one part from outweighing the second of all others.
	constantRank = 60
	// minShare is the minimum share of the question's words in an item of a part other
	// than observations.
	minShare = 0.5
	// excerptChars is the length of an excerpt in characters.
	excerptChars = 160
	// nearWeight is the factor for sessions of the project in which the question is
	// asked.
	nearWeight = 1.03
	// maxItems is the maximum number of rows per session.
	maxItems = 8
	// maxSimilar is the maximum number of sessions that similar words add.
	maxSimilar = 5
	// maxRows is the maximum number of rows of a query with operators that are grouped by
	// session.
	maxRows = 100
	// maxQuery is the maximum length of the question in an answer.
	maxQuery = 200
)

// placeScore returns the score of the item at a place, from 0, in its part's ranking.
func placeScore(place int, shared float64) float64 {
	score := 1 / float64(constantRank+1+place)
	if shared < 1 {
		score *= shared / 2 // after each of the first 60 items that contain all words
	}
	return math.Round(score*1e6) / 1e6
}

// fusePart ranks the hits of a part, sets their scores and keeps the n best.
func fusePart(part, here string, found []partHit, n int) []partHit {
	found = slices.DeleteFunc(found, func(h partHit) bool { return h.shared < minShare })
	for i := range found {
		h := &found[i]
		h.Part, h.here = part, here != "" && (h.Project == here || strings.HasPrefix(h.Project, here+"/"))
		if h.Matched = MatchedSome; h.shared >= 1 {
			h.Matched = MatchedAll
		}
	}
	slices.SortStableFunc(found, func(x, y partHit) int {
		return cmp.Or(cmp.Compare(y.shared, x.shared), cmp.Compare(y.weight, x.weight), compareBool(x.here, y.here), y.When.Compare(x.When))
	})
	found = found[:min(len(found), n)]
	for i := range found {
		found[i].score = placeScore(i, found[i].shared)
	}
	return found
}

// share returns the share of the question's words, or of the expected words, in a text, 0
// to 1. It is 1 for queries with operators, which the part itself matches.
func (r *search) share(text string) (best float64) {
	if !r.plain {
		return 1
	}
	has := map[string]bool{}
	words.EachKey(text, func(key string) { has[key] = true })
	for _, keys := range r.keys {
		n := 0
		for _, k := range keys {
			if has[k] {
				n++
			}
		}
		if len(keys) > 0 {
			best = max(best, float64(n)/float64(len(keys)))
		}
	}
	return best
}

// excerpt returns the neutralised part of a text around the question's words.
func (r *search) excerpt(text string) string {
	return neutralLine(r.finder.Excerpt(text, excerptChars).Text, excerptChars)
}

// records searches the caller's project first, then all others together, unless the
// question names a project.
func (r *search) records(ctx context.Context) (out []partHit, err error) {
	where := []record.SearchArgs{}
	if r.args.Near != "" {
		where = append(where, record.SearchArgs{Caller: record.Caller{ProjectID: r.args.Near}})
	}
	if r.args.Project == "" {
		where = append(where, record.SearchArgs{Everywhere: true})
	}
	known := map[[2]string]bool{}
	for _, a := range where {
		for _, query := range r.asked {
			a.Query = query
			found, err := r.recordsOf(ctx, a, known)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
	}
	return out, nil
}

func (r *search) recordsOf(ctx context.Context, a record.SearchArgs, known map[[2]string]bool) (out []partHit, err error) {
	a.Limit, a.AsIs = max(r.args.Limit, maxItems), !r.correcting
	found, err := r.Records.Search(ctx, a)
	if fault.KindOf(err) == fault.NotFound {
		return nil, nil
	}
	r.correct(found.Corrected)
	for i, h := range found.Results {
		if err != nil {
			return nil, err
		}
		place := [2]string{h.Project, h.ID}
		if known[place] {
			continue
		}
		known[place] = true
		var whole record.Record
		whole, err = r.Records.Get(ctx, record.GetRefArgs{Caller: record.Caller{ProjectID: h.Project}, ID: h.ID})
		title := neutralLine(h.Title, maxLine)
		if text := r.excerpt(cmp.Or(h.Summary, whole.Body) + "\n" + whole.Body); text != "" && title != "" {
			title += ": " + text
		}
		out = append(out, partHit{
			Item: Item{
				ID: h.ID, Type: neutralLine(h.Type, maxLine), When: time.Unix(0, int64(whole.Modified)).UTC(), Project: h.Project,
				Excerpt: neutralLine(title, excerptChars), call: fmt.Sprintf("activate(project_id=%q, id=%q)", h.Project, h.ID),
				command: "cairn records show " + h.ID + " --project " + shellWord(h.Project),
			},
			session: h.SessionID, shared: r.share(h.Title + "\n" + h.Summary + "\n" + whole.Body), weight: -float64(i),
		})
	}
	return out, err
}

// mail searches the caller's project first, then all others. It searches them together,
// except with full-text operators, which it sends to each project.
func (r *search) mail(ctx context.Context) (out []partHit, err error) {
	projects, err := r.Mail.Projects(ctx)
	if err != nil || len(projects) == 0 {
		return nil, err
	}
	where := []messages.SearchArgs{}
	for _, p := range projects {
		if near := p.ProductID == r.args.Near; near || r.args.Project == "" && !r.plain {
			where = append(where, messages.SearchArgs{ProjectKey: p.Slug})
		}
	}
	if r.args.Project == "" && r.plain {
		where = append(where, messages.SearchArgs{ProjectKey: projects[0].Slug, Everywhere: true})
	}
	known := map[int64]bool{}
	for _, a := range where {
		for _, query := range r.asked {
			a.Query = query
			found, err := r.mailOf(ctx, a, known)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
	}
	return out, nil
}

func (r *search) mailOf(ctx context.Context, a messages.SearchArgs, known map[int64]bool) (out []partHit, err error) {
	a.Limit, a.AsIs = &r.args.Limit, !r.correcting
	found, err := r.Mail.SearchMessages(ctx, mail.Caller{Owner: true, Place: r.Place}, a)
	r.correct(found.Corrected)
	for i, h := range found.Result {
		if known[h.ID] {
			continue
		}
		known[h.ID] = true
		id := strconv.FormatInt(h.ID, 10)
		out = append(out, partHit{
			Item: Item{
				ID: id, When: h.Created.UTC(), Project: h.Project,
				Excerpt: neutralLine(neutralLine(h.From+": "+h.Subject, maxLine)+": "+h.Excerpt, excerptChars),
				call:    fmt.Sprintf("resource://message/%s?project=%s", id, h.Slug),
				command: "cairn mail show " + id + " --project " + shellWord(h.Slug),
			},
			session: h.SessionID, shared: r.share(h.Subject + "\n" + h.Body), weight: -float64(i),
		})
	}
	return out, err
}

// memories searches the entries in the store. It does not pull from a hub.
func (r *search) memories(ctx context.Context) (out []partHit, err error) {
	who := memory.Caller{ProjectID: r.args.Project, Place: r.Place}
	list, err := r.vaults(ctx, who)
	for _, v := range list {
		if err != nil {
			return nil, err
		}
		var all vaults.Memories
		if all, err = r.Memories.Memories(ctx, who, v.VaultID); err != nil {
			return nil, err
		}
		for _, m := range all.Memories {
			found, err := r.entriesOf(ctx, who, m.MemoryID, v.Title+"/"+m.Title)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
	}
	return out, err
}

func (r *search) entriesOf(ctx context.Context, who memory.Caller, memoryID, name string) (out []partHit, err error) {
	known := map[string]bool{}
	for _, query := range r.asked {
		found, err := r.Memories.Search(ctx, who, retrieval.SearchArgs{MemoryID: memoryID, Query: query, TopK: int64(r.args.Limit), AsIs: !r.correcting})
		if err != nil {
			return nil, err
		}
		r.correct(found.Corrected)
		for _, h := range found.Entries {
			shared := r.share(h.RawEntry + "\n" + h.Summary)
			if known[h.EntryID] || shared == 0 { // it was returned only as a neighbour of an entry with a word
				continue
			}
			known[h.EntryID] = true
			text := cmp.Or(strings.TrimSpace(h.Summary), h.RawEntry)
			if r.share(h.RawEntry) > r.share(h.Summary) {
				text = h.RawEntry
			}
			out = append(out, partHit{
				Item: Item{
					ID: h.EntryID, When: time.Unix(0, int64(h.CreationTime)).UTC(), Project: neutralLine(name, maxLine),
					Excerpt: r.excerpt(text), call: fmt.Sprintf("get_entry(memory_id=%q, entry_id=%q)", memoryID, h.EntryID),
					command: "cairn memory get-entry " + h.EntryID + " --memory " + memoryID,
				},
				session: h.SessionID, shared: shared, weight: h.Score,
			})
		}
	}
	return out, nil
}

// vaults returns the vaults to search. With a project these are the project's vaults.
func (r *search) vaults(ctx context.Context, who memory.Caller) ([]memory.Vault, error) {
	all, err := r.Memories.Vaults(ctx, who)
	if err != nil || r.args.Project == "" {
		return all.Vaults, err
	}
	own, err := r.Memories.Memory(ctx, who, memory.DefaultMemory)
	if err != nil {
		if fault.KindOf(err) == fault.NotFound {
			return nil, nil
		}
		return nil, err
	}
	return slices.DeleteFunc(all.Vaults, func(v memory.Vault) bool { return v.VaultID != own.VaultID }), nil
}
