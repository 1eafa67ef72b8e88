package commands_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"cairn/internal/record"
	"cairn/internal/record/commands"
	"cairn/internal/store"
	"cairn/internal/store/storetest"
	"cairn/internal/words"
)

// plain is the simplest SQL with the expected results of a search: every match that
// passes the filter, ranked and sorted.
const plain = `SELECT r.number, bm25(records_fts, 1e12, 1e6, 1, 1e12, 1e6, 1) AS score
FROM records_fts JOIN records r ON r.key = records_fts.rowid JOIN projects p ON p.key = r.project_key
WHERE records_fts MATCH ?1 AND p.id = 'p'
AND (?2 = 0 OR hex(r.path) LIKE (SELECT hex(path) || '%' FROM records a WHERE a.project_key = r.project_key AND a.number = ?2))
AND (?3 = '' OR r.state = ?3) AND (?4 = '' OR r.type = ?4)
ORDER BY score, r.modified_at DESC, r.key DESC`

var fewWords = []string{"red", "blue", "green", "cache", "every"}

// crowded returns a service with records made of a few words, so that many have the same
// score, and some also the same time.
func crowded(t *testing.T) (*commands.Commands, *store.Store) {
	t.Helper()
	var calls atomic.Int64
	s := storetest.Open(t, store.Config{Clock: func() time.Time {
		return time.Unix(1_700_000_000, calls.Add(1)/40*1_000_000)
	}})
	b := commands.New(s, record.Config{})
	for n := range 90 {
		word := func(i int) string { return fewWords[(n*7+i*3+n/(i+1))%4] }
		a := record.CreateArgs{
			Caller: as("s"), Type: []string{"note", "question"}[n%2], Title: "t", Summary: "s", Body: "every " + word(1) + " " + word(2),
			State: []record.State{record.Open, record.Later}[n%3/2],
		}
		if n%11 == 0 {
			a.Title = word(3)
		}
		if n%5 == 0 {
			a.Summary, a.Body = word(4), strings.Repeat(word(5)+" every ", n%4+1)
		}
		if n%10 > 0 {
			a.ParentID = ptr(fmt.Sprintf("R%03d", n/10*10+1))
		}
		must(b.Create(t.Context(), a))(t)
	}
	for n := 90; n > 0; n -= 7 { // the older a record, the later changed
		must(b.Update(t.Context(), record.UpdateArgs{Caller: as("s"), ID: fmt.Sprintf("R%03d", n), Body: ptr("every red blue")}))(t)
	}
	return b, s
}

// foundPlainly runs the plain query. any makes the words alternatives.
func foundPlainly(ctx context.Context, s *store.Store, a record.SearchArgs, any bool) (ids []string, scores []float64, err error) {
	if words.IsPlain(a.Query) {
		a.Query = strings.Join(words.PlainWords(a.Query), " ")
	}
	match, err := words.Language{
		Parts: "{title summary body}", Wholes: "{title_wholes summary_wholes body_wholes}", AnyOf: any,
	}.Parse(a.Query)
	if err != nil {
		return nil, nil, err
	}
	below, state, kind := 0, "", ""
	if a.ParentID != "" {
		if _, err := fmt.Sscanf(a.ParentID, "R%d", &below); err != nil {
			return nil, nil, err
		}
	}
	if len(a.States) > 0 {
		state = string(a.States[0])
	}
	if len(a.Types) > 0 {
		kind = a.Types[0]
	}
	err = s.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Each(ctx, func(r *sql.Rows) error {
			var number int
			var score float64
			err := r.Scan(&number, &score)
			ids, scores = append(ids, fmt.Sprintf("R%03d", number)), append(scores, score)
			return err
		}, plain, match, below, state, kind)
	})
	return ids, scores, err
}

// foundInTiers returns the expected result of Search: for a query of plain words, records
// with all of them come first.
func foundInTiers(ctx context.Context, s *store.Store, a record.SearchArgs) (want record.SearchResult, tied bool, err error) {
	ids, scores, err := foundPlainly(ctx, s, a, true)
	if err != nil {
		return want, false, err
	}
	whole := []string{}
	if words.IsPlain(a.Query) {
		if whole, _, err = foundPlainly(ctx, s, a, false); err != nil {
			return want, false, err
		}
	}
	score := map[string]float64{}
	for i, id := range ids {
		score[id] = scores[i]
	}
	rest := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return slices.Contains(whole, id) })
	last := 1.0
	for i, id := range slices.Concat(whole, rest)[:min(a.Limit, len(ids))] {
		hit := record.Hit{Ref: record.Ref{ID: id}}
		switch {
		case len(whole) == 0:
			last = score[id] / scores[0]
		case i < len(whole):
			last = score[id] / score[whole[0]]
		default:
			last = min(last, score[id]/scores[0])
		}
		if i >= len(whole) && words.IsPlain(a.Query) && len(words.PlainWords(a.Query)) > 1 {
			hit.Matched = record.MatchedSome
		}
		hit.Relevance = math.Round(last*1000) / 1000
		want.Results = append(want.Results, hit)
	}
	want.Total = len(ids)
	n := len(want.Results)
	return want, n > 0 && n < len(ids) && score[ids[n-1]] == score[ids[n]], nil
}

// Order, total and relevance are equal too, for any filter and limit, with one and with
// two projects in the store.
func TestSearchFindsWhatThePlainQueryFinds(t *testing.T) {
	t.Parallel()
	b, s := crowded(t)
	tied := 0
	compare := func(rt *rapid.T) {
		a := record.SearchArgs{
			Caller: as(""), Limit: rapid.IntRange(1, 100).Draw(rt, "limit"),
			Query: strings.Join(rapid.SliceOfN(rapid.SampledFrom(append(slices.Clone(fewWords), "absent", "ca*", "red NOT blue")), 1, 3).Draw(rt, "query"), " "),
		}
		if rapid.IntRange(0, 3).Draw(rt, "below") == 0 {
			a.ParentID = fmt.Sprintf("R%03d", rapid.IntRange(1, 90).Draw(rt, "parent"))
		}
		if rapid.IntRange(0, 3).Draw(rt, "states") == 0 {
			a.States = []record.State{rapid.SampledFrom([]record.State{record.Open, record.Later, record.Resolved}).Draw(rt, "state")}
		}
		if rapid.IntRange(0, 3).Draw(rt, "types") == 0 {
			a.Types = []string{rapid.SampledFrom([]string{"note", "question", "none"}).Draw(rt, "type")}
		}
		want, cut, err := foundInTiers(t.Context(), s, a)
		if err != nil {
			rt.Fatal(err)
		}
		if cut {
			tied++
		}
		got, err := b.Search(t.Context(), a)
		if err != nil {
			rt.Fatal(err)
		}
		if g, w := outline(rt, got), outline(rt, want); g != w {
			rt.Fatalf("%+v\n got %s\nwant %s", a, g, w)
		}
	}
	rapid.Check(t, compare)
	for range 3 {
		other := record.Caller{Project: "q", SessionID: "s"}
		must(b.Create(t.Context(), record.CreateArgs{Caller: other, Type: "note", Title: "red blue green cache every"}))(t)
	}
	rapid.Check(t, compare)
	if tied == 0 && !testing.Short() {
		t.Error("no limit ever cut a tie")
	}
}

// outline returns a result's total, and the id, relevance and tier of each hit.
func outline(t *rapid.T, r record.SearchResult) string {
	list := []any{r.Total}
	for _, h := range r.Results {
		list = append(list, h.ID, h.Relevance, h.Matched)
	}
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
