package retrieval

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/ranking"
	"cairn/internal/memory/rules"
	"cairn/internal/words"
)

// Bounds of k, topK and top_k of searches (memories §5.1).
const (
	DefaultTopK = 10
	MaxTopK     = 100
)

// TopK returns the effective k of a search for a requested one.
func TopK(asked int64) int {
	if asked <= 0 {
		return DefaultTopK
	}
	return int(min(asked, MaxTopK))
}

// Modes of a search.
const (
	ModeAuto    = "auto"    // hybrid if an embedder responds, else lexical
	ModeLexical = "lexical" // by words
	ModeHybrid  = "hybrid"  // by words and vectors
)

const maxQuery = 1_000 // code points

// SearchArgs are the arguments of Search.
type SearchArgs struct {
	MemoryID  string            `arg:"memory_id,required,nonempty"`                                                                                   // a UUID or DefaultMemory
	Query     string            `arg:"query,required" about:"What to search for, at most 1,000 characters; names and terms help."`                    // any text; not blank
	TopK      int64             `arg:"top_k,default=10,min=1,max=100" about:"Maximum number of hits."`                                                // clamped by TopK
	Mode      string            `arg:"mode,default=auto,enum=auto|lexical|hybrid" about:"By words, by words and meaning, or whichever is available."` // "" for ModeAuto
	Tags      map[string]string `arg:"tags" about:"Only entries with all of these tags: an object of texts."`
	SessionID string            `arg:"session_id,nonempty" about:"Only entries of this session."` // "" for any
	AsIs      bool              // words that no entry contains are not corrected
}

// Hit is a committed entry found by a search.
type Hit struct {
	EntryID      string      `json:"entryId"`
	ActorID      string      `json:"actorId"`
	MemoryID     string      `json:"memoryId"`
	Summary      string      `json:"summary"`
	RawEntry     string      `json:"rawEntry"`
	CreationTime memory.Time `json:"creationTime"`
	Score        float64     `json:"score"` // 0–1, not comparable between queries
	SessionID    string      `json:"sessionId,omitempty"`
	Excerpt      string      `json:"excerpt,omitempty"` // of a RawEntry of more than maxExcerpt characters: one line around the matches
}

// maxExcerpt is the maximum number of characters of an excerpt (amendments §A.3).
const maxExcerpt = 160

// Coverage describes which part of the memory a search covered.
type Coverage struct {
	From     *memory.Time `json:"from"` // null if nothing was purged
	Complete bool         `json:"complete"`
}

// Found is the result of Search.
type Found struct {
	Entries []Hit  `json:"entries"` // the best first, of equal scores the older entry first; never nil
	Count   int    `json:"count"`
	Mode    string `json:"mode"` // ModeLexical or ModeHybrid

	Corrected map[string]string `json:"corrected,omitempty"` // words that no entry contains, with the words that replaced them
	Hint      string            `json:"hint,omitempty"`      // of a search without a hit: what was searched, and what to try next

	LatestContext    string      `json:"latestContext,omitempty"` // the memory's current context, also without a hit
	ContextTimestamp memory.Time `json:"contextTimestamp,omitzero"`

	// The context that matches the query best, of equal matches the newest; omitted if no
	// context contains a word of the query.
	BestContext          string      `json:"bestContext,omitempty"`
	BestContextTimestamp memory.Time `json:"bestContextTimestamp,omitzero"`
	BestContextScore     float64     `json:"bestContextScore,omitempty"` // 0–1

	Coverage Coverage `json:"coverage"`
}

const (
	// One row per term: the places of the entries that contain it, or the negative numbers of
	// the contexts.
	selectPostings = `SELECT ifnull(group_concat(rowid, ' '), '') FROM memory_words WHERE memory_words MATCH ?`

	// Rows without a name are counters of earlier builds.
	selectGroups = `SELECT count(*), ifnull(sum(next), 0) FROM memory_groups WHERE memory_id = ? AND name <> ''`
	selectGroup  = `SELECT key FROM memory_groups WHERE memory_id = ? AND name = ?`
	selectSizes  = `SELECT g.key, g.next FROM json_each(?) w CROSS JOIN memory_groups g ON g.key = w.value`

	selectCandidates = `SELECT w.key, e.entry_id, e.user_id, e.summary, e.raw_entry, e.tags, e.metadata, ifnull(e.session_id, ''), e.canonical_ns
FROM json_each(?3) w CROSS JOIN memory_entries e ON e.place = w.value
WHERE +e.memory_id = ?1 AND e.user_id = ?2 AND e.synced = 1 AND e.deleting_seq IS NULL`

	// The texts of the newest entries, from which unknown words are corrected.
	selectTexts   = `SELECT summary || char(10) || raw_entry FROM memory_entries WHERE memory_id = ? AND synced = 1 AND deleting_seq IS NULL ORDER BY canonical_ns DESC LIMIT +?`
	correctedFrom = 2000 // entries

	countContexts  = `SELECT count(*) FROM memory_contexts WHERE memory_id = ?`
	selectContexts = `SELECT c.seq, c.updated_ns, c.markdown FROM json_each(?2) w CROSS JOIN memory_contexts c ON c.seq = w.value
WHERE +c.memory_id = ?1` + contents.NewestContexts
)

// Search returns the committed entries of a memory that match a query best (memories §11). The
// query is plain text without operators. An entry is found from its commit to its deletion.
// Filters apply before the limit. A word that no entry contains is replaced by the nearest word
// of the newest 2,000 entries, which Corrected reports (amendments §A.2).
//
// Errors: CodeInvalid for the arguments, CodeNotFound for a memory that is not the user's,
// CodeSearchUnavailable (Unavailable) for ModeHybrid if the embedder is missing or does not
// respond. A search without hits is not an error.
func (b *Retrieval) Search(ctx context.Context, c memory.Caller, a SearchArgs) (out Found, err error) {
	defer func(began time.Time) { b.Searched(began, out.Mode, err) }(time.Now())
	out = Found{Entries: []Hit{}, Mode: ModeLexical}
	memoryID, err := memory.MemoryArg(a.MemoryID)
	session, badSession := rules.SessionArg(a.SessionID, false)
	if err = cmp.Or(err, badSession, c.CheckArgs(), a.validate()); err != nil {
		return out, err
	}
	a.SessionID = session
	var vector []float32
	if b.wantsVector(a) {
		// No transaction waits for the embedder, and it is not asked for a memory that the
		// caller cannot read.
		if err = b.ReadMemory(ctx, c, memoryID, func(context.Context, *memory.CallTx) error { return nil }); err == nil {
			vector, err = b.queryVector(ctx, a)
		}
		if err != nil {
			return out, err
		}
	}
	if vector != nil {
		out.Mode = ModeHybrid
	}
	err = b.ReadMemory(ctx, c, memoryID, func(ctx context.Context, s *memory.CallTx) error {
		return b.search(ctx, s, &out, a, vector)
	})
	return out, err
}

func (a *SearchArgs) validate() error {
	blank := error(nil)
	if strings.TrimSpace(a.Query) == "" {
		blank = rules.Invalid("query", "query is required")
	}
	mode := error(nil)
	if a.Mode != "" && a.Mode != ModeAuto && a.Mode != ModeLexical && a.Mode != ModeHybrid {
		mode = rules.Invalid("mode", "mode must be auto, lexical or hybrid")
	}
	return cmp.Or(rules.CheckLength("query", a.Query, maxQuery), blank, mode, rules.CheckTags(a.Tags))
}

// search searches the scope's memory. A nil vector means words only.
func (b *Retrieval) search(ctx context.Context, s *memory.CallTx, out *Found, a SearchArgs, vector []float32) error {
	q := ranking.Ask(a.Query)
	if out.Coverage.Complete = s.Memory.PurgedNS == 0; !out.Coverage.Complete {
		from := memory.Time(s.Memory.PurgedNS)
		out.Coverage.From = &from
	}
	admitted, err := filter(ctx, s, a)
	if err != nil {
		return err
	}
	postings, err := readPostings(ctx, s, contents.OfEntry, q.Terms)
	if err == nil && !a.AsIs {
		postings, err = correctQuery(ctx, s, out, &q, postings)
	}
	if err == nil {
		err = addContexts(ctx, s, out, &q)
	}
	if err != nil {
		return err
	}
	found, err := byWords(ctx, s, postings, admitted)
	alpha := 0.0
	if err == nil && vector != nil {
		alpha = s.Config.Settings.SearchAlpha
		found, err = b.byVector(ctx, s, vector, found, admitted)
	} else {
		found = found[:min(len(found), ranking.MaxCandidates)]
	}
	if err != nil {
		return err
	}
	hits, err := ranked(ctx, s, &q, a, found, alpha)
	if err != nil {
		return err
	}
	out.Entries = append(out.Entries, hits[:min(len(hits), TopK(a.TopK))]...)
	finder := words.FinderOf(strings.Join(q.Words, " "))
	for i := range out.Entries {
		if h := &out.Entries[i]; utf8.RuneCountInString(h.RawEntry) > maxExcerpt {
			h.Excerpt = finder.Excerpt(h.RawEntry, maxExcerpt).Text
		}
	}
	if out.Count = len(out.Entries); out.Count == 0 {
		out.Hint = hintOf(a)
	}
	return nil
}

// hintOf returns the hint of a search without a hit.
func hintOf(a SearchArgs) string {
	text := "No entry of this memory contains one of the words or a similar one. "
	if len(a.Tags) > 0 || a.SessionID != "" {
		text = "No entry of this memory with these tags or of this session contains one of the words or a similar one. "
	}
	return text + "Try other words, or recall, which searches every memory and all other parts of the store."
}

// correctQuery replaces the words of a question that no entry contains with the nearest words of
// the memory's newest entries. It returns the postings of the corrected question.
func correctQuery(ctx context.Context, s *memory.CallTx, out *Found, q *ranking.Question, postings []ranking.Posting) ([]ranking.Posting, error) {
	var unknown []string
	for _, word := range q.Words {
		if i := slices.Index(q.Terms, ranking.TermOf(word)); i >= 0 && len(postings[i].Places) == 0 {
			unknown = append(unknown, word)
		}
	}
	if len(unknown) == 0 {
		return postings, nil
	}
	corrector := words.NewCorrector(unknown)
	err := s.Tx.Each(ctx, func(rows *sql.Rows) error {
		var text string
		err := rows.Scan(&text)
		corrector.Learn(text)
		return err
	}, selectTexts, s.Memory.MemoryID, correctedFrom)
	corrections := corrector.Corrections()
	if err != nil || len(corrections) == 0 {
		return postings, err
	}
	time := q.Time
	*q = ranking.Ask(strings.Join(words.Corrected(q.Words, corrections), " "))
	q.Time, out.Corrected = time, corrections
	return readPostings(ctx, s, contents.OfEntry, q.Terms)
}

// byWords returns the candidates by the words of the question.
func byWords(ctx context.Context, s *memory.CallTx, postings []ranking.Posting, admitted func(place int64) bool) ([]ranking.Candidate, error) {
	var groups, entries int
	if err := s.Tx.Get(ctx, []any{&groups, &entries}, selectGroups, s.Memory.MemoryID); err != nil {
		return nil, err
	}
	postings = ranking.Weigh(postings, entries)
	sizes, err := sizes(ctx, s, postings)
	if err != nil {
		return nil, err
	}
	usual := float64(entries) / float64(max(groups, 1))
	return ranking.Candidates(postings, func(group int64) float64 { return sizes[group] }, usual, admitted), nil
}

// readPostings reads the places of terms, one posting per term.
func readPostings(ctx context.Context, s *memory.CallTx, of string, terms []string) ([]ranking.Posting, error) {
	out := make([]ranking.Posting, len(terms))
	for i, t := range terms {
		var text string
		if err := s.Tx.Get(ctx, []any{&text}, selectPostings, `"`+contents.Space(s.Memory.MemoryID)+of+t+`"`); err != nil {
			return nil, err
		}
		for field := range strings.SplitSeq(text, " ") {
			if n, err := strconv.ParseInt(field, 10, 64); err == nil {
				out[i].Places = append(out[i].Places, n)
			}
		}
		slices.Sort(out[i].Places)
	}
	return out, nil
}

// filter returns a function that reports which places match the tags and the session; nil if all
// do.
func filter(ctx context.Context, s *memory.CallTx, a SearchArgs) (func(place int64) bool, error) {
	if len(a.Tags) == 0 && a.SessionID == "" {
		return nil, nil
	}
	group := int64(-1)
	if a.SessionID != "" {
		if err := memory.IgnoreNone(s.Tx.Get(ctx, []any{&group}, selectGroup, s.Memory.MemoryID, a.SessionID)); err != nil {
			return nil, err
		}
	}
	var tags []string
	for k, v := range a.Tags {
		tags = append(tags, strings.TrimPrefix(contents.TagTerm("", k, v), contents.OfTag))
	}
	tagged, err := readPostings(ctx, s, contents.OfTag, tags)
	return func(place int64) bool {
		if a.SessionID != "" && place>>ranking.PlaceBits != group {
			return false
		}
		return !slices.ContainsFunc(tagged, func(p ranking.Posting) bool {
			_, has := slices.BinarySearch(p.Places, place)
			return !has
		})
	}, err
}

// sizes returns the sizes of the groups of postings.
func sizes(ctx context.Context, s *memory.CallTx, postings []ranking.Posting) (map[int64]float64, error) {
	sizes := map[int64]float64{}
	var wanted []int64
	for _, p := range postings {
		for _, place := range p.Places {
			if group := place >> ranking.PlaceBits; sizes[group] == 0 {
				sizes[group] = 1
				wanted = append(wanted, group)
			}
		}
	}
	list, err := json.Marshal(wanted)
	if err != nil {
		return nil, err
	}
	err = s.Tx.Each(ctx, func(rows *sql.Rows) error {
		var group int64
		var size float64
		err := rows.Scan(&group, &size)
		sizes[group] = size
		return err
	}, selectSizes, string(list))
	return sizes, err
}

// ranked reads candidates and computes their scores. alpha is the share of the vectors. The best
// hit is first, of equal scores the older entry.
func ranked(ctx context.Context, s *memory.CallTx, q *ranking.Question, a SearchArgs, found []ranking.Candidate, alpha float64) ([]Hit, error) {
	places := make([]int64, len(found))
	for i, c := range found {
		places[i] = c.Place
	}
	list, err := json.Marshal(places)
	if err != nil {
		return nil, err
	}
	var hits []Hit
	err = s.Tx.Each(ctx, func(rows *sql.Rows) error {
		h := Hit{MemoryID: s.Memory.MemoryID}
		var at int
		var tags, session string
		var metadata sql.NullString
		err := rows.Scan(&at, &h.EntryID, &h.ActorID, &h.Summary, &h.RawEntry, &tags, &metadata, &session, &h.CreationTime)
		if err != nil || !a.admits(tags, session) {
			return err
		}
		h.SessionID = session
		words := q.Score(found[at], h.RawEntry+"\n"+h.Summary, h.RawEntry, contents.SpeakerOf(json.RawMessage(metadata.String)))
		h.Score = (1-alpha)*words + alpha*found[at].Near
		hits = append(hits, h)
		return nil
	}, selectCandidates, s.Memory.MemoryID, s.Memory.ActorID, string(list))
	slices.SortFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.CreationTime, b.CreationTime))
	})
	return hits, err
}

// admits checks the tags and the session themselves, because the index has only hashes and
// groups.
func (a *SearchArgs) admits(tags, session string) bool {
	if a.SessionID != "" && session != a.SessionID {
		return false
	}
	if len(a.Tags) == 0 {
		return true
	}
	var has map[string]string
	if json.Unmarshal([]byte(tags), &has) != nil {
		return false
	}
	for k, v := range a.Tags {
		if got, ok := has[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// addContexts adds the current context and the best one.
func addContexts(ctx context.Context, s *memory.CallTx, out *Found, q *ranking.Question) error {
	latest, found, err := contents.CurrentContext(ctx, s)
	if err != nil || !found {
		return err
	}
	out.LatestContext, out.ContextTimestamp = latest.Markdown, latest.UpdatedAt
	var n int
	if err := s.Tx.Get(ctx, []any{&n}, countContexts, s.Memory.MemoryID); err != nil {
		return err
	}
	postings, err := readPostings(ctx, s, contents.OfContext, q.Terms)
	if err != nil {
		return err
	}
	scores := map[int64]float64{}
	best := 0.0
	for _, p := range ranking.Weigh(postings, n) {
		for _, seq := range p.Places {
			scores[-seq] += p.Weight
			best = max(best, scores[-seq])
		}
	}
	const close = 1e-9 // sums of the same numbers differ by their order
	var equal []int64
	for seq, score := range scores {
		if score > best-close {
			equal = append(equal, seq)
		}
	}
	if len(equal) == 0 {
		return nil
	}
	list, err := json.Marshal(equal)
	if err != nil {
		return err
	}
	var seq int64
	out.BestContextScore = min(best, 1)
	return memory.IgnoreNone(s.Tx.Get(ctx, []any{&seq, &out.BestContextTimestamp, &out.BestContext}, selectContexts, s.Memory.MemoryID, string(list)))
}

// wantsVector reports whether a search needs the embedder.
func (b *Retrieval) wantsVector(a SearchArgs) bool {
	return a.Mode == ModeHybrid || a.Mode != ModeLexical && b.embedder != nil && b.Config.Settings.SearchAlpha > 0
}

// queryVector returns the vector of a query, or nil for a search by words. Without a vector,
// ModeHybrid is CodeSearchUnavailable (Unavailable).
func (b *Retrieval) queryVector(ctx context.Context, a SearchArgs) ([]float32, error) {
	err := errors.New("memory.embed_url is not set")
	var all [][]float32
	if b.embedder != nil {
		if all, err = b.embedder.Vectors(ctx, []string{a.Query}); err == nil {
			return all[0], nil
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if a.Mode != ModeHybrid {
		b.FellBack("embedder_failed")
		return nil, nil
	}
	f := fault.Wrap(err, fault.Unavailable, memory.CodeSearchUnavailable, "a search by vectors is not possible now: the embedder is missing or does not respond").
		WithHint("search with mode auto or lexical, or check memory.embed_url")
	f.Details = map[string]any{}
	return nil, f
}
