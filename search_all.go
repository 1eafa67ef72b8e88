package cairn

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/memory"
	"cairn/internal/observation"
	"cairn/internal/record"
	"cairn/internal/words"
)

// The parts that SearchAll looks through.
const (
	PartObservations = "observations"
	PartRecords      = "records"
	PartMail         = "mail"
	PartMemories     = "memories"
)

// SearchAllArgs are a question to all parts of the store.
type SearchAllArgs struct {
	Query    string
	Project  string // its id or alias; "" for all projects
	Limit    int    // 0 for 20; at most 100
	Progress func(what string)
}

// FoundAnywhere is something that SearchAll found.
type FoundAnywhere struct {
	Part    string    `json:"part"`
	ID      string    `json:"id"` // in its part, of records and messages in its project
	When    time.Time `json:"when"`
	Project string    `json:"project"` // of a memory the vault and the memory
	Title   string    `json:"title"`   // one line
	Score   float64   `json:"score"`

	here   bool    // of the project in which the question is asked
	shared float64 // the share of the question's words that it has
	weight float64 // in its part: the more the better
}

// SearchAll finds what happened, was decided, was written and was kept, the best first.
// Each part ranks what it has; the rankings are fused by their places (reciprocal rank
// fusion), because scores of different parts say nothing about each other. What has all
// words of the query comes before what has some of them; of equals what is of this
// project, then what is newer. It makes no store, and nothing found is no error.
//
// Errors: Invalid for a query that observations cannot read (observations §8.1), and
// those of reading the store.
func (c *Cairn) SearchAll(ctx context.Context, a SearchAllArgs) ([]FoundAnywhere, error) {
	if a.Limit <= 0 {
		a.Limit = 20
	}
	if a.Limit = min(a.Limit, 100); a.Progress == nil {
		a.Progress = func(string) {}
	}
	here, err := c.Here(ctx, a.Project)
	if err != nil {
		return nil, err
	}
	q := searchingAll{cairn: c, args: a, here: here, wanted: stemsOf(a.Query), plain: words.IsPlain(a.Query)}
	all := []FoundAnywhere{}
	for _, part := range []struct {
		name string
		find func(context.Context) ([]FoundAnywhere, error)
	}{{PartObservations, q.observations}, {PartRecords, q.records}, {PartMail, q.mail}, {PartMemories, q.memories}} {
		a.Progress("looking through " + part.name)
		found, err := part.find(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, fused(part.name, here, found, a.Limit)...)
	}
	slices.SortStableFunc(all, func(x, y FoundAnywhere) int {
		return cmp.Or(cmp.Compare(y.Score, x.Score), before(x.here, y.here), y.When.Compare(x.When))
	})
	return all[:min(len(all), a.Limit)], nil
}

// constantRank is what reciprocal rank fusion adds to a place, so that the first of a
// part does not outweigh the second of all others.
const constantRank = 60

// fused gives what a part found its scores, n of the best.
func fused(part, here string, found []FoundAnywhere, n int) []FoundAnywhere {
	for i := range found {
		found[i].Part, found[i].here = part, here != "" && (found[i].Project == here || strings.HasPrefix(found[i].Project, here+"/"))
	}
	slices.SortStableFunc(found, func(x, y FoundAnywhere) int {
		return cmp.Or(cmp.Compare(y.shared, x.shared), cmp.Compare(y.weight, x.weight), before(x.here, y.here), y.When.Compare(x.When))
	})
	found = found[:min(len(found), n)]
	for i := range found {
		score := 1 / float64(constantRank+1+i)
		if found[i].shared < 1 {
			score *= found[i].shared / 2 // behind each of the first 60 that have all words
		}
		found[i].Score = math.Round(score*1e6) / 1e6
	}
	return found
}

func before(x, y bool) int {
	switch {
	case x && !y:
		return -1
	case y && !x:
		return 1
	}
	return 0
}

// searchingAll is one run of SearchAll.
type searchingAll struct {
	cairn  *Cairn
	args   SearchAllArgs
	here   string
	wanted []string // the stems of the question's words
	plain  bool     // it is words alone
}

// stemsOf are the stems of a text's words, each once.
func stemsOf(text string) (stems []string) {
	for _, id := range words.Identifiers(strings.ToValidUTF8(text, "\uFFFD")) {
		for _, part := range id.Parts {
			if s := words.Stem(strings.ToLower(part)); !slices.Contains(stems, s) {
				stems = append(stems, s)
			}
		}
	}
	return stems
}

// share is how much of the question's words is in a text, 0 to 1; 1 where the question
// is more than words, which the part itself has judged then.
func (q *searchingAll) share(text string) float64 {
	if !q.plain || len(q.wanted) == 0 {
		return 1
	}
	has, n := stemsOf(text), 0
	for _, s := range q.wanted {
		if slices.Contains(has, s) {
			n++
		}
	}
	return float64(n) / float64(len(q.wanted))
}

// passes are the questions to a part that wants all words: the question itself, and
// then, if it is words alone, any of them.
func (q *searchingAll) passes() []string {
	all := slices.DeleteFunc(strings.Fields(q.args.Query), func(word string) bool { return len(stemsOf(word)) == 0 })
	if q.plain && len(all) > 1 {
		return []string{q.args.Query, strings.Join(all, " OR ")}
	}
	return []string{q.args.Query}
}

// passed is what all words (pass 0) or some of them (pass 1) are worth.
func passed(pass int) float64 { return 1 / float64(1+pass) }

func (q *searchingAll) observations(ctx context.Context) (out []FoundAnywhere, err error) {
	j, err := q.cairn.Journal(ctx)
	if err != nil || !j.Exists() {
		if err == nil { // what is no query is told without a store, too
			_, err = j.Search(ctx, observation.SearchArgs{Query: q.args.Query, Limit: 1})
		}
		return nil, err
	}
	if !q.plain {
		hits, err := j.Search(ctx, observation.SearchArgs{Query: q.args.Query, Scope: observation.Scope{Project: q.args.Project}, Limit: q.args.Limit})
		for i, h := range hits {
			out = append(out, FoundAnywhere{
				ID: strconv.FormatInt(h.ID, 10), When: time.Unix(h.Timestamp, 0).UTC(), Project: h.Project, Title: h.ObsType + ": " + inOneLine(h.ContentPreview),
				shared: 1, weight: -float64(i),
			})
		}
		return out, err
	}
	found, err := j.Recall(ctx, observation.RecallArgs{Query: q.args.Query, Scope: observation.Scope{Project: q.args.Project}, Limit: q.args.Limit, Items: 1})
	for i, s := range found.Sessions {
		for _, h := range s.Items {
			out = append(out, FoundAnywhere{
				ID: strconv.FormatInt(h.ID, 10), When: time.Unix(h.Timestamp, 0).UTC(), Project: h.Project, Title: h.ObsType + ": " + h.Excerpt,
				shared: 1, weight: -float64(i),
			})
		}
	}
	return out, err
}

func (q *searchingAll) records(ctx context.Context) (out []FoundAnywhere, err error) {
	r := q.cairn.Records()
	projects := []string{q.here}
	if q.args.Project == "" {
		all, err := r.ListProjects(ctx)
		if err != nil {
			return nil, err
		}
		projects = nil
		for _, p := range all {
			projects = append(projects, p.ID)
		}
	}
	for _, p := range projects {
		who := record.Caller{ProjectID: p, Ancestors: nil}
		found, err := r.Search(ctx, record.SearchArgs{Caller: who, Query: q.args.Query, Limit: q.args.Limit})
		if err != nil {
			if fault.KindOf(err) == fault.NotFound {
				continue
			}
			return nil, err
		}
		for i, h := range found.Results {
			whole, err := r.Get(ctx, record.GetRefArgs{Caller: who, ID: h.ID})
			if err != nil {
				return nil, err
			}
			out = append(out, FoundAnywhere{
				ID: h.ID, When: time.Unix(0, int64(whole.Modified)).UTC(), Project: p, Title: h.Type + ": " + inOneLine(h.Title),
				shared: q.share(h.Title + "\n" + h.Summary + "\n" + whole.Body), weight: -float64(i),
			})
		}
	}
	return out, nil
}

func (q *searchingAll) mail(ctx context.Context) (out []FoundAnywhere, err error) {
	err = q.cairn.Mail().Read(ctx, mail.Caller{Owner: true}, func(ctx context.Context, o *mail.Office, who mail.Caller) error {
		projects, err := o.Projects(ctx)
		if err != nil {
			return err
		}
		for _, p := range projects {
			if q.args.Project != "" && p.ProductID != q.here {
				continue
			}
			found, err := q.mailOf(ctx, o, who, p)
			if err != nil {
				return err
			}
			out = append(out, found...)
		}
		return nil
	})
	return out, err
}

func (q *searchingAll) mailOf(ctx context.Context, o *mail.Office, who mail.Caller, p mail.ProjectShort) (out []FoundAnywhere, err error) {
	known := map[int64]bool{}
	for pass, query := range q.passes() {
		found, err := o.SearchMessages(ctx, who, mail.SearchArgs{ProjectKey: p.Slug, Query: query, Limit: &q.args.Limit})
		if err != nil {
			return nil, err
		}
		for i, h := range found.Result {
			if !known[h.ID] {
				known[h.ID] = true
				out = append(out, FoundAnywhere{
					ID: strconv.FormatInt(h.ID, 10), When: h.Created.UTC(), Project: p.ProductID, Title: h.From + ": " + inOneLine(h.Subject),
					shared: passed(pass), weight: -float64(i),
				})
			}
		}
	}
	return out, nil
}

// memories looks through what is here: a memory of which nothing was pulled stays so.
func (q *searchingAll) memories(ctx context.Context) (out []FoundAnywhere, err error) {
	s, err := q.cairn.opened(ctx, false)
	if err != nil || s == nil {
		return nil, err
	}
	b := memory.New(s, q.cairn.settings.work.bookConfig(q.cairn.journal.Filter))
	defer func() { _ = b.Stop(ctx) }()
	who := memory.Caller{ProjectID: q.args.Project, Place: q.cairn.place}
	vaults, err := q.vaults(ctx, b, who)
	for _, v := range vaults {
		if err != nil {
			return nil, err
		}
		var all memory.Memories
		if all, err = b.Memories(ctx, who, v.VaultID); err != nil {
			return nil, err
		}
		for _, m := range all.Memories {
			found, err := b.Search(ctx, who, memory.SearchArgs{MemoryID: m.MemoryID, Query: q.args.Query, TopK: int64(q.args.Limit)})
			if err != nil {
				return nil, err
			}
			for _, h := range found.Entries {
				if shared := q.share(h.RawEntry + "\n" + h.Summary); shared > 0 { // others only stand beside one that has
					out = append(out, FoundAnywhere{
						ID: h.EntryID, When: time.Unix(0, int64(h.CreationTime)).UTC(), Project: v.Title + "/" + m.Title,
						Title: inOneLine(cmp.Or(strings.TrimSpace(h.Summary), h.RawEntry)), shared: shared, weight: h.Score,
					})
				}
			}
		}
	}
	return out, err
}

// vaults are those to look through: with a project its own.
func (q *searchingAll) vaults(ctx context.Context, b *memory.Book, who memory.Caller) ([]memory.Vault, error) {
	all, err := b.Vaults(ctx, who)
	if err != nil || q.args.Project == "" {
		return all.Vaults, err
	}
	own, err := b.Memory(ctx, who, memory.DefaultMemory)
	if err != nil {
		if fault.KindOf(err) == fault.NotFound {
			return nil, nil
		}
		return nil, err
	}
	return slices.DeleteFunc(all.Vaults, func(v memory.Vault) bool { return v.VaultID != own.VaultID }), nil
}

// maxTitle is how many characters a title of SearchAll has.
const maxTitle = 200

func inOneLine(text string) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > maxTitle {
		runes = append(runes[:maxTitle-1], '…')
	}
	return string(runes)
}
