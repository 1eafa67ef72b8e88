package main

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"cairn/bench/workload"
	"cairn/internal/observation"
	"cairn/internal/observation/search"
	"cairn/internal/store"
	"cairn/internal/words"
)

// recall measures questions in plain words in this process, over both stores.
func (b *bench) recall(ctx context.Context) error {
	for _, rows := range []int{b.small, b.large} {
		path, err := b.filledStore(ctx, rows)
		if err != nil {
			return err
		}
		if err := b.recallOver(ctx, path, rows); err != nil {
			return err
		}
	}
	return nil
}

// sentences returns the kinds of question for recall. make returns the i-th question, of about
// ten words.
func (b *bench) sentences() []sentence {
	s := asker{b.load.Session(6_000_000, time.Now()), b.load.Words()}
	times := []string{"yesterday", "last week", "two weeks ago", "last month", "in the last three days"}
	return []sentence{
		{"common words", func(int) string { return s.some(10, 0, 200) }},
		{"common and rare words", func(int) string {
			return fmt.Sprintf("why did the %s in %s %s", s.some(3, 60, 300), s.some(2, 300, 3000), s.some(2, 3000, 30_000))
		}},
		{"rare words", func(int) string { return s.some(10, 3000, 30_000) }},
		{"names of the code", func(int) string {
			return fmt.Sprintf("where does %s call %s for the %s", s.Identifier(2), s.Identifier(2), s.some(4, 60, 3000))
		}},
		{"a time", func(i int) string {
			return fmt.Sprintf("what did we do about the %s %s", s.some(5, 60, 3000), times[i%len(times)])
		}},
		{"misspelt words", func(int) string {
			return fmt.Sprintf("how was the %s %s %s fixed", s.some(4, 60, 3000), misspelt(s.some(1, 60, 150)), misspelt(s.some(1, 3000, 30_000)))
		}},
		{"a pasted line", func(int) string { return "what printed this: " + s.Line() }},
	}
}

// sentence is a kind of question.
type sentence struct {
	kind string
	make func(i int) string
}

// asker generates questions.
type asker struct {
	*workload.Session
	words []string
}

// some returns n words between two ranks of the vocabulary.
func (s asker) some(n, from, to int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = s.words[from+s.IntN(min(to, len(s.words))-from)]
	}
	return strings.Join(list, " ")
}

// misspelt returns a word with two letters in its middle swapped.
func misspelt(word string) string {
	m := len(word) / 2
	return word[:m] + word[m:m+1] + word[m-1:m] + word[m+1:]
}

// recallWay is a way to ask.
type recallWay struct {
	name string
	ask  func(ctx context.Context, j journal, question string) error
}

func (b *bench) recallWays() []recallWay {
	return []recallWay{
		{"recall", func(ctx context.Context, j journal, q string) error {
			_, err := search.Recall(ctx, j.Service, search.RecallArgs{Query: q, Limit: 5, Similar: 5})
			return err
		}},
		{"in a project", func(ctx context.Context, j journal, q string) error {
			_, err := search.Recall(ctx, j.Service, search.RecallArgs{Query: q, Limit: 5, Similar: 5, Scope: observation.Scope{Project: b.firstProject()}})
			return err
		}},
		{"search", func(ctx context.Context, j journal, q string) error {
			_, err := search.Find(ctx, j.Service, search.FindArgs{SearchArgs: search.SearchArgs{Query: strings.ReplaceAll(q, `"`, " "), Limit: 20}})
			return err
		}},
		{"bm25 of rows", bestRows},
	}
}

// selectBestRows is the query of a search that ranks every row with any of the words.
const selectBestRows = `SELECT rowid FROM observations_fts WHERE observations_fts MATCH ? ORDER BY rank LIMIT 20`

// bestRows is the reference: SQLite's ranking of all rows with any of the words.
func bestRows(ctx context.Context, j journal, question string) error {
	var list []string
	for _, t := range words.Ask(question).Terms {
		list = append(list, `"`+t.Word+`"`)
	}
	return j.store.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Each(ctx, func(r *sql.Rows) error {
			var id int64
			return r.Scan(&id)
		}, selectBestRows, strings.Join(list, " OR "))
	})
}

// recallOver asks each kind of question in each way, in turn. It begins with a store that was
// just opened.
func (b *bench) recallOver(ctx context.Context, path string, rows int) error {
	b.say("  asking %s rows", grouped(rows))
	kinds, ways := b.sentences(), b.recallWays()
	took, cpu := make([][]sample, len(kinds)), make([]sample, len(kinds))
	first := make([]sample, len(kinds))
	ask := func(j journal, way recallWay, question string, into *sample) error {
		began := time.Now()
		if err := way.ask(ctx, j, question); err != nil {
			return fmt.Errorf("%s %q: %w", way.name, question, err)
		}
		*into = append(*into, time.Since(began))
		return nil
	}
	for i := range kinds {
		took[i] = make([]sample, len(ways))
		for n := range 5 {
			err := withJournal(ctx, path, func(j journal) error { return ask(j, ways[0], kinds[i].make(n), &first[i]) })
			if err != nil {
				return err
			}
		}
	}
	err := withJournal(ctx, path, func(j journal) error {
		end := time.Now().Add(b.searching)
		for n := 0; n < 20 || time.Now().Before(end) && n < 200; n++ {
			for i := range kinds {
				question := kinds[i].make(n)
				used := ownCPU()
				for k := range ways {
					if err := ask(j, ways[k], question, &took[i][k]); err != nil {
						return err
					}
					if k == 0 {
						cpu[i] = append(cpu[i], ownCPU()-used)
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return b.publish(recallTable(rows, kinds, ways, took, cpu, first))
}

func recallTable(rows int, kinds []sentence, ways []recallWay, took [][]sample, cpu, first []sample) *table {
	columns := []string{"p50 ms", "p99", "CPU p50", "p99", "first p50"}
	for _, w := range ways[1:] {
		columns = append(columns, w.name+" p50", "p99")
	}
	t := newTable("recall", fmt.Sprintf("in process, %s rows, %d questions of each kind in turn, each way; first: in a store just opened",
		grouped(rows), len(took[0][0])), columns...)
	most := 10 * time.Millisecond
	if rows >= 1_000_000 {
		most = 25 * time.Millisecond
	}
	add := func(kind string, took []sample, cpu, first sample) {
		cells := []any{took[0].median(), took[0].at(0.99), cpu.median(), cpu.at(0.99), first.median()}
		for _, s := range took[1:] {
			cells = append(cells, s.median(), s.at(0.99))
		}
		met := took[0].median() <= most && took[0].at(0.99) <= 100*time.Millisecond
		t.add(kind, cells...).target(fmt.Sprintf("p50 ≤ %d ms, p99 ≤ 100 ms", most.Milliseconds()), met)
	}
	all, allCPU, allFirst := make([]sample, len(ways)), sample{}, sample{}
	for i, k := range kinds {
		add(k.kind, took[i], cpu[i], first[i])
		for n, s := range took[i] {
			all[n] = append(all[n], s...)
		}
		allCPU = append(allCPU, cpu[i]...)
		allFirst = append(allFirst, first[i]...)
	}
	add("all kinds", all, allCPU, allFirst)
	t.note("bm25 of rows: the limit beside, SQLite's ranking of all rows that hold any of the words")
	return t
}
