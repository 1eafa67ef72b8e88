package search

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/internal/fault"
	"cairn/internal/observation"
	"cairn/internal/observation/observationtest"
	"cairn/internal/store"
)

func TestSearchRanksAndBreaksTiesNewestFirst(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	for range 3 {
		b.Call(observation.Call{Tool: "Bash", Action: observation.Shell, Command: "deploy staging"}, "")
	}
	b.Call(observation.Call{Tool: "Bash", Action: observation.Shell, Command: "deploy staging with a much longer tail of other words behind it"}, "")
	find := func(a SearchArgs) (out []int64) {
		hits, err := Search(t.Context(), b.Service, a)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range hits {
			out = append(out, h.ID)
		}
		return out
	}
	for name, c := range map[string]struct {
		args SearchArgs
		want []int64
	}{
		"ties newest first":   {SearchArgs{Query: "deploy", Limit: 10}, []int64{3, 2, 1, 4}},
		"offset":              {SearchArgs{Query: "deploy", Limit: 2, Offset: 1}, []int64{2, 1}},
		"offset past the end": {SearchArgs{Query: "deploy", Limit: 2, Offset: 9}, nil},
		"offset beyond all":   {SearchArgs{Query: "deploy", Limit: 2, Offset: math.MaxInt}, nil},
		"limit below one":     {SearchArgs{Query: "deploy", Limit: -3}, []int64{3}},
		"unknown project":     {SearchArgs{Query: "deploy", Limit: 9, Scope: observation.Scope{Project: "none"}}, nil},
		"own project":         {SearchArgs{Query: "deploy", Limit: 1, Scope: observation.Scope{Project: "shop"}}, []int64{3}},
		"bounds exclusive":    {SearchArgs{Query: "deploy", Limit: 9, After: new(int64(observationtest.Start + 1)), Before: new(int64(observationtest.Start + 3))}, []int64{2}},
		"blended":             {SearchArgs{Query: "deploy", Limit: 9, OrderBy: "blended"}, []int64{3, 2, 1, 4}},
	} {
		if got := find(c.args); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	for _, a := range []SearchArgs{{Query: " "}, {Query: "deploy", OrderBy: "chance"}, {Query: "deploy", ObsType: "dance"}} {
		if _, err := Search(t.Context(), b.Service, a); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%+v: %v", a, err)
		}
	}
}

// Ranking by full text and then filtering must give the same result as filtering first, even if
// more rows tie than are ranked first.
func TestSearchPagesEqualRankingEverything(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	other := b.Repository(filepath.Join(filepath.Dir(b.Repo), "billing"))
	rnd := rand.New(rand.NewPCG(3, 4))
	var events []observation.Event
	for i := range 2400 {
		e := observation.Event{Kind: observation.Tool, At: time.Unix(observationtest.Start+int64(rnd.IntN(900_000)), 0)}
		command := "deploy staging" // most rows tie
		if i%3 == 0 {
			command = "deploy" + strings.Repeat(" again", rnd.IntN(9))
		}
		if i%100 == 0 {
			e.Session, e.Cwd = "s2", other
		}
		e.Calls = []observation.Call{{ID: fmt.Sprint("t", i), Tool: "Bash", Action: observation.Shell, Command: command}}
		events = append(events, e)
	}
	b.Imported(events...)
	var want []match
	err := b.Store.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return tx.Each(ctx, func(r *sql.Rows) error {
			var m match
			var ignored int
			err := r.Scan(&m.id, &m.timestamp, &m.relevance, &ignored, &ignored)
			want = append(want, m)
			return err
		}, selectBest, "deploy", nil, nil, nil, nil, 10_000)
	})
	if err != nil || len(want) != 2400 {
		t.Fatal(len(want), err)
	}
	project := map[int64]string{}
	for _, row := range b.Query(`SELECT id || ' ' || project_id FROM observations`) {
		var id int64
		var name string
		if _, err := fmt.Sscan(row, &id, &name); err != nil {
			t.Fatal(err)
		}
		project[id] = name
	}
	for _, scope := range []string{"", "shop", "billing"} {
		var ids []int64
		for _, m := range want {
			if scope == "" || project[m.id] == scope {
				ids = append(ids, m.id)
			}
		}
		for _, offset := range []int{0, 7, 90, 700, 2390, 9999} {
			hits, err := Search(t.Context(), b.Service, SearchArgs{Query: "deploy", Scope: observation.Scope{Project: scope}, Limit: 20, Offset: offset})
			if err != nil {
				t.Fatal(err)
			}
			page := ids[min(offset, len(ids)):min(offset+20, len(ids))]
			for i := range max(len(hits), len(page)) {
				if i >= len(hits) || i >= len(page) || hits[i].ID != page[i] {
					t.Fatalf("%q from %d: %d hits, differ at %d from %d expected", scope, offset, len(hits), i, len(page))
				}
			}
		}
	}
}
