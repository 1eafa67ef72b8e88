package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"cairn/internal/observation"
	"cairn/internal/observation/search"
)

// question is one kind of search, measured with several queries in turn.
type question struct {
	kind    string
	queries []string
	plain   bool // valid FTS5 syntax, which allows counting the matches
}

// asking is a way to restrict or order a search.
type asking struct {
	name string
	args search.SearchArgs
}

// search measures queries in this process, over both stores.
func (b *bench) search(ctx context.Context) error {
	for _, rows := range []int{b.small, b.large} {
		path, err := b.filledStore(ctx, rows)
		if err != nil {
			return err
		}
		err = withJournal(ctx, path, func(j journal) error { return b.searchOver(ctx, j, rows) })
		if err != nil {
			return err
		}
	}
	return nil
}

// questions returns the kinds of query defined in observations §8.1. All words are from the
// workload. Rare words are from the end of its vocabulary; common words are in a fifth to a
// third of all rows.
func (b *bench) questions() []question {
	w := b.load.Words()
	s := b.load.Session(5_000_000, time.Now())
	some := func(make func(i int) string) (list []string) {
		for i := range 8 {
			list = append(list, make(i))
		}
		return list
	}
	rare := func(i int) string { return w[12_000+1_700*i] }
	medium := func(i int) string { return w[150+9*i] }
	file := func(i int) string { return b.load.Projects[i%4].Files[3*i] }
	return []question{
		{"rare word", some(rare), true},
		{"word of some rows", some(medium), true},
		{"common word", []string{"test", "go"}, true},
		{"two words", some(func(i int) string { return medium(i) + " " + medium(i+1) }), true},
		{"common and rare word", some(func(i int) string { return "test " + rare(i) }), true},
		{"phrase", []string{`"failing test in"`, `"why does"`, `"is still wrong"`, `"look at the"`}, true},
		{"prefix", some(func(i int) string { return medium(i)[:4] + "*" }), true},
		{"OR", some(func(i int) string { return medium(i) + " OR " + medium(i+2) }), true},
		{"NOT", some(func(i int) string { return medium(i) + " NOT test" }), true},
		{"identifier", some(func(int) string { return s.Identifier(2) }), false},
		{"path", some(func(i int) string { return file(i)[len(b.load.Projects[i%4].Root)+1:] }), false},
		{"CJK", []string{"数据库", "订单退款", "テスト", "설정", "결제"}, false},
	}
}

// firstProject returns the name of the project with the most sessions.
func (b *bench) firstProject() string { return filepath.Base(b.load.Projects[0].Root) }

func (b *bench) askings() []asking {
	return []asking{
		{"", search.SearchArgs{}},
		{"in a project", search.SearchArgs{Scope: observation.Scope{Project: b.firstProject()}}},
		{"of a type", search.SearchArgs{ObsType: "command"}},
		{"blended", search.SearchArgs{OrderBy: "blended"}},
	}
}

// asked contains the measurements of one kind of question.
type asked struct {
	took    []sample // by asking
	matches any      // mean number of matching rows per query; nil if not counted
}

func (b *bench) searchOver(ctx context.Context, j journal, rows int) error {
	questions, askings := b.questions(), b.askings()
	results := make([]asked, len(questions))
	for i, q := range questions {
		results[i].took = make([]sample, len(askings))
		if !q.plain {
			continue
		}
		total := 0
		for _, query := range q.queries {
			n, err := j.count(ctx, `SELECT count(*) FROM observations_fts WHERE observations_fts MATCH ?`, query)
			if err != nil {
				return fmt.Errorf("%s %q: %w", q.kind, query, err)
			}
			total += n
		}
		results[i].matches = total / len(q.queries)
	}
	b.say("  searching %s rows", grouped(rows))
	end := time.Now().Add(b.searching)
	for round := 0; round < 3 || time.Now().Before(end) && round < 400; round++ {
		for i, q := range questions {
			for k, a := range askings {
				args := a.args
				args.Query, args.Limit = q.queries[round%len(q.queries)], 20
				began := time.Now()
				if _, err := search.Search(ctx, j.Service, args); err != nil {
					return fmt.Errorf("%s %q: %w", q.kind, args.Query, err)
				}
				results[i].took[k] = append(results[i].took[k], time.Since(began))
			}
		}
	}
	return b.publish(searchTable(rows, questions, askings, results))
}

func searchTable(rows int, questions []question, askings []asking, results []asked) *table {
	columns := []string{"matches", "p50 ms", "p95 ms"}
	for _, a := range askings[1:] {
		columns = append(columns, a.name+" p50", "p95")
	}
	t := newTable("search", fmt.Sprintf("in process, %s rows, first 20 hits, %d askings of each kind in turn with the others",
		grouped(rows), len(results[0].took[0])), columns...)
	add := func(kind string, matches any, took []sample) {
		cells := []any{matches}
		for _, s := range took {
			cells = append(cells, s.median(), s.at(0.95))
		}
		r := t.add(kind, cells...)
		if rows >= 1_000_000 {
			r.target("p50 ≤ 10 ms", took[0].median() <= 10*time.Millisecond)
		}
	}
	all := make([]sample, len(askings))
	for i, q := range questions {
		add(q.kind, results[i].matches, results[i].took)
		for k, s := range results[i].took {
			all[k] = append(all[k], s...)
		}
	}
	add("all kinds", nil, all)
	return t
}
