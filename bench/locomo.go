package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/memories"
	"cairn/internal/memory/retrieval"
	"cairn/internal/memory/rules"
	"cairn/internal/memory/vaults"
	"cairn/internal/store"
)

// conversation is one LoCoMo dialogue: sessions of turns, and questions with the turns that
// answer them.
type conversation struct {
	ID           string                     `json:"sample_id"`
	Conversation map[string]json.RawMessage `json:"conversation"`
	Questions    []struct {
		Question string   `json:"question"`
		Category int      `json:"category"`
		Evidence []string `json:"evidence"`
	} `json:"qa"`
}

type turn struct {
	Speaker string `json:"speaker"`
	ID      string `json:"dia_id"`
	Text    string `json:"text"`
	Caption string `json:"blip_caption"`
}

// recalled contains the result of one question as shares, 0–1. turns has the share of its
// evidence in the first n entries. sessions has the share of the evidence's sessions in the
// first n sessions, and 1 if all of them are there.
type recalled struct {
	conversation string
	category     int
	turns        [len(locomoDepths)]float64
	sessions     [2 * len(sessionDepths)]float64
}

var (
	locomoDepths  = [...]int{5, 10, 25, 50}
	sessionDepths = [...]int{5, 10}
)

// measureLocomo stores the conversations of a file, one memory each. It reports how much of the
// evidence of their questions a search finds (contract memories §11).
func measureLocomo(ctx context.Context, args []string, out, progress io.Writer) (err error) {
	f := flag.NewFlagSet("cairn-bench locomo", flag.ContinueOnError)
	f.SetOutput(progress)
	file := f.String("json", "", "also write the figures to this `file`")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() != 1 {
		return errors.New("locomo takes the file of conversations, locomo-dev.json say; it is not part of cairn")
	}
	all, err := readConversations(f.Arg(0))
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "cairn-locomo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	l := &locomo{progress: progress}
	s, err := store.Open(ctx, store.Config{Path: filepath.Join(dir, "cairn.db"), Role: store.Server, Clock: func() time.Time { return l.now }})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	l.book = memories.New(s, memory.Config{})
	defer func() { err = errors.Join(err, l.book.Stop(context.WithoutCancel(ctx))) }()
	if err := l.run(ctx, all); err != nil {
		return err
	}
	r := report{Tables: l.tables()}
	for _, t := range r.Tables {
		if err := t.print(out); err != nil {
			return err
		}
	}
	if *file == "" {
		return nil
	}
	return r.save(*file)
}

func readConversations(path string) (all []conversation, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the conversations cannot be read: %w", err)
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("%s is not a file of conversations: %w", path, err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s holds no conversation", path)
	}
	return all, nil
}

// locomo is one run.
type locomo struct {
	book     *memories.Service
	now      time.Time // the store's clock
	progress io.Writer
	results  []recalled
	took     sample
}

// run stores all conversations before it asks any question, so that they share one index.
func (l *locomo) run(ctx context.Context, all []conversation) error {
	vault, _, err := l.book.CreateVault(ctx, memory.Caller{}, vaults.NewVault{Title: "locomo"})
	if err != nil {
		return err
	}
	memories := make([]string, len(all))
	places := make([]map[string]place, len(all))
	for i, c := range all {
		fmt.Fprintf(l.progress, "storing %s\n", c.ID)
		m, _, err := l.book.CreateMemory(ctx, memory.Caller{}, vaults.NewMemory{VaultID: vault.VaultID, Title: "c" + strconv.Itoa(i)})
		if err != nil {
			return err
		}
		memories[i] = m.MemoryID
		if places[i], err = l.ingest(ctx, m.MemoryID, c); err != nil {
			return fmt.Errorf("%s: %w", c.ID, err)
		}
	}
	for i, c := range all {
		fmt.Fprintf(l.progress, "asking %s\n", c.ID)
		if err := l.ask(ctx, memories[i], c, places[i]); err != nil {
			return fmt.Errorf("%s: %w", c.ID, err)
		}
	}
	if len(l.results) == 0 {
		return errors.New("no question has evidence among the turns")
	}
	return nil
}

// place is the location of a stored turn.
type place struct {
	entry   string
	session int
}

// ingest adds the turns of a conversation, session by session, at the date of each session.
func (l *locomo) ingest(ctx context.Context, memoryID string, c conversation) (map[string]place, error) {
	at := map[string]place{}
	for n := 1; n <= len(c.Conversation); n++ {
		var turns []turn
		var date string
		key := "session_" + strconv.Itoa(n)
		if json.Unmarshal(c.Conversation[key], &turns) != nil || json.Unmarshal(c.Conversation[key+"_date_time"], &date) != nil {
			continue // the numbers have gaps
		}
		when, err := time.Parse("3:04 pm on 2 January, 2006", date)
		if err != nil {
			return nil, err
		}
		l.now = when
		session := rules.NewID()
		for _, t := range turns {
			text := t.Text
			if t.Caption != "" {
				text += " [shares " + t.Caption + "]"
			}
			speaker, err := json.Marshal(map[string]string{"speaker": t.Speaker})
			if err != nil {
				return nil, err
			}
			added, _, err := l.book.AddEntry(ctx, memory.Caller{}, contents.NewEntry{MemoryID: memoryID, RawEntry: text, Metadata: speaker, SessionID: session})
			if err != nil {
				return nil, fmt.Errorf("turn %s: %w", t.ID, err)
			}
			at[t.ID] = place{added.EntryID, n}
		}
	}
	return at, nil
}

// ask searches for the questions whose evidence is among the turns.
func (l *locomo) ask(ctx context.Context, memoryID string, c conversation, places map[string]place) error {
	turnID := regexp.MustCompile(`D\d+:\d+`)
	sessions := map[string]int{}
	for _, p := range places {
		sessions[p.entry] = p.session
	}
	for _, q := range c.Questions {
		wanted := map[string]bool{}
		wantedSessions := map[int]bool{}
		for _, id := range turnID.FindAllString(strings.Join(q.Evidence, " "), -1) {
			if p, ok := places[id]; ok {
				wanted[p.entry], wantedSessions[p.session] = true, true
			}
		}
		if len(wanted) == 0 {
			continue
		}
		began := time.Now()
		found, err := l.book.Search(ctx, memory.Caller{}, retrieval.SearchArgs{MemoryID: memoryID, Query: q.Question, TopK: retrieval.MaxTopK})
		l.took = append(l.took, time.Since(began))
		if err != nil {
			return fmt.Errorf("%q: %w", q.Question, err)
		}
		r := recalled{conversation: c.ID, category: q.Category}
		r.count(found.Entries, wanted, wantedSessions, sessions)
		l.results = append(l.results, r)
	}
	return nil
}

// count stores the shares of a question's hits.
func (r *recalled) count(hits []retrieval.Hit, wanted map[string]bool, wantedSessions map[int]bool, sessions map[string]int) {
	var seen []int // sessions, ordered by their best entries
	for rank, h := range hits {
		for i, depth := range locomoDepths {
			if rank < depth && wanted[h.EntryID] {
				r.turns[i] += 1 / float64(len(wanted))
			}
		}
		if n := sessions[h.EntryID]; !slices.Contains(seen, n) {
			seen = append(seen, n)
		}
	}
	for i, depth := range sessionDepths {
		got := 0
		for _, n := range seen[:min(depth, len(seen))] {
			if wantedSessions[n] {
				got++
			}
		}
		r.sessions[2*i] = float64(got) / float64(len(wantedSessions))
		if got == len(wantedSessions) {
			r.sessions[2*i+1] = 1
		}
	}
}

// tables returns the human-readable results: recall, and the duration of searches.
func (l *locomo) tables() []*table {
	t := newTable("locomo", "evidence found, in percent", "questions", "R@5", "R@10", "R@25", "R@50", "sessions@5", "all@5", "sessions@10", "all@10")
	var names []string
	for _, r := range l.results {
		if !slices.Contains(names, r.conversation) {
			names = append(names, r.conversation)
		}
	}
	add := func(name string, of func(recalled) bool) []float64 {
		n, mean := meanOf(l.results, of)
		cells := []any{n}
		for _, x := range mean {
			cells = append(cells, x)
		}
		t.add(name, cells...)
		return mean
	}
	add("all questions", func(recalled) bool { return true })
	for category := 1; category <= 5; category++ {
		add("category "+strconv.Itoa(category), func(r recalled) bool { return r.category == category })
	}
	sum := make([]float64, len(locomoDepths)+2*len(sessionDepths))
	for _, name := range names {
		for i, x := range add(name, func(r recalled) bool { return r.conversation == name }) {
			sum[i] += x / float64(len(names))
		}
	}
	cells := []any{len(l.results)}
	for _, x := range sum {
		cells = append(cells, x)
	}
	t.add("mean of conversations", cells...).target("R@5 at least 70, R@10 at least 78", sum[0] >= 70 && sum[1] >= 78)
	t.note("Categories: 1 several hops, 2 time, 3 open domain, 4 single hop, 5 adversarial.")
	t.note("The weights were tuned on conv-26, conv-41 and conv-43.")
	took := newTable("locomo", "time of one search", "searches", "p50 ms", "p95 ms")
	took.add("", len(l.took), l.took.median(), l.took.at(0.95))
	return []*table{t, took}
}

// meanOf returns the number of the selected results and the means of their shares, in percent.
func meanOf(results []recalled, of func(recalled) bool) (n int, mean []float64) {
	mean = make([]float64, len(locomoDepths)+2*len(sessionDepths))
	for _, r := range results {
		if !of(r) {
			continue
		}
		n++
		for i, x := range append(slices.Clone(r.turns[:]), r.sessions[:]...) {
			mean[i] += 100 * x
		}
	}
	for i := range mean {
		mean[i] /= float64(max(n, 1))
	}
	return n, mean
}
