package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"cairn/internal/harness"
	"cairn/internal/harness/harnesses"
	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/memories"
	"cairn/internal/memory/retrieval"
	"cairn/internal/memory/rules"
	"cairn/internal/memory/vaults"
	"cairn/internal/observation"
	"cairn/internal/store"
	"cairn/internal/words"
)

// chatQuestion is a question about past sessions, with the sessions that answer it.
type chatQuestion struct {
	Question string   `json:"question"`
	Keywords string   `json:"keywords"`
	Answers  []string `json:"answers"`
}

// chatEntry is one prompt or reply.
type chatEntry struct {
	id      string // id of the entry in the memory
	session string // the harness's session id
	at      time.Time
	text    string
}

// maxChatEntry is the maximum number of characters in an entry (memories §5.1).
const maxChatEntry = 9_000

// measureChats stores the prompts and replies of transcripts as entries of one memory and
// searches it for each question. It reports how often an entry of an answering session is among
// the first hits. Plain BM25 over the same entries is the comparison (amendments §A.11).
func measureChats(ctx context.Context, args []string, out, progress io.Writer) (err error) {
	f := flag.NewFlagSet("cairn-bench chats", flag.ContinueOnError)
	f.SetOutput(progress)
	file := f.String("json", "", "also write the figures to this `file`")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() != 2 {
		return errors.New("chats takes a folder of transcripts and a file of questions")
	}
	entries, err := readChats(ctx, f.Arg(0))
	if err != nil {
		return err
	}
	questions, err := readChatQuestions(f.Arg(1))
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "cairn-chats-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	now := time.Time{}
	s, err := store.Open(ctx, store.Config{Path: filepath.Join(dir, "cairn.db"), Role: store.Server, Clock: func() time.Time { return now }})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	book := memories.New(s, memory.Config{})
	defer func() { err = errors.Join(err, book.Stop(context.WithoutCancel(ctx))) }()
	id, err := storeChats(ctx, book, entries, &now)
	if err != nil {
		return err
	}
	t, err := askChats(ctx, book, id, entries, questions)
	if err != nil {
		return err
	}
	if err := t.print(out); err != nil || *file == "" {
		return err
	}
	r := report{Tables: []*table{t}}
	return r.save(*file)
}

// readChats reads the prompts and replies of every transcript below a folder, ordered by time.
// Transcripts of subagents and texts over the limit of an entry are cut or omitted, as in
// package harness.
func readChats(ctx context.Context, folder string) (entries []chatEntry, err error) {
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".jsonl" {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close() //nolint:errcheck // read only
		_, err = harnesses.ReadTranscript(ctx, f, harness.TranscriptOptions{Path: path}, func(e observation.Event) error {
			if e.AgentID == "" && (e.Kind == observation.Prompt || e.Kind == observation.Message) && strings.TrimSpace(e.Text) != "" {
				text := []rune(strings.ToValidUTF8(e.Text, "\uFFFD"))
				entries = append(entries, chatEntry{session: e.Session, at: e.At, text: string(text[:min(len(text), maxChatEntry)])})
			}
			return nil
		})
		return err
	})
	slices.SortStableFunc(entries, func(a, b chatEntry) int { return a.at.Compare(b.at) })
	if err == nil && len(entries) == 0 {
		err = fmt.Errorf("%s holds no transcript with prompts", folder)
	}
	return entries, err
}

func readChatQuestions(path string) ([]chatQuestion, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the questions cannot be read: %w", err)
	}
	var all struct {
		Questions []chatQuestion `json:"questions"`
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("%s is not a file of questions: %w", path, err)
	}
	if len(all.Questions) == 0 {
		return nil, fmt.Errorf("%s holds no question", path)
	}
	return all.Questions, nil
}

// storeChats adds the entries, each in the session of its chat, and stores their ids.
func storeChats(ctx context.Context, book *memories.Service, entries []chatEntry, now *time.Time) (memoryID string, err error) {
	vault, _, err := book.CreateVault(ctx, memory.Caller{}, vaults.NewVault{Title: "chats"})
	if err != nil {
		return "", err
	}
	m, _, err := book.CreateMemory(ctx, memory.Caller{}, vaults.NewMemory{VaultID: vault.VaultID, Title: "chats"})
	if err != nil {
		return "", err
	}
	sessions := map[string]string{}
	for i := range entries {
		e := &entries[i]
		if sessions[e.session] == "" {
			sessions[e.session] = rules.NewID()
		}
		*now = e.at
		added, _, err := book.AddEntry(ctx, memory.Caller{}, contents.NewEntry{MemoryID: m.MemoryID, RawEntry: e.text, SessionID: sessions[e.session]})
		if err != nil {
			return "", fmt.Errorf("entry %d: %w", i+1, err)
		}
		e.id = added.EntryID
	}
	return m.MemoryID, nil
}

var chatDepths = [...]int{1, 5, 10}

// askChats runs each question in both forms, on the memory and on plain BM25.
func askChats(ctx context.Context, book *memories.Service, id string, entries []chatEntry, questions []chatQuestion) (*table, error) {
	sessionOf := map[string]string{}
	sessions := map[string]bool{}
	for _, e := range entries {
		sessionOf[e.id] = e.session
		sessions[e.session] = true
	}
	plain := newBM25(entries)
	ways := []struct {
		name string
		ask  func(query string) ([]string, error) // returns the sessions of the first hits
	}{
		{"search_memories", func(query string) (found []string, err error) {
			hits, err := book.Search(ctx, memory.Caller{}, retrieval.SearchArgs{MemoryID: id, Query: query, TopK: 10})
			for _, h := range hits.Entries {
				found = append(found, sessionOf[h.EntryID])
			}
			return found, err
		}},
		{"plain BM25", func(query string) ([]string, error) { return plain.find(query, 10), nil }},
	}
	t := newTable("chats", fmt.Sprintf("questions answered within the first entries, in percent; %d entries of %d sessions", len(entries), len(sessions)),
		"questions", "R@1", "R@5", "R@10")
	var tenth [2]float64
	for i, w := range ways {
		for _, form := range []string{"sentence", "keywords"} {
			var got [len(chatDepths)]float64
			for _, q := range questions {
				query := q.Question
				if form == "keywords" {
					query = q.Keywords
				}
				found, err := w.ask(query)
				if err != nil {
					return nil, fmt.Errorf("%q: %w", query, err)
				}
				at := slices.IndexFunc(found, func(session string) bool { return slices.Contains(q.Answers, sessionUUID(session)) })
				for k, depth := range chatDepths {
					if at >= 0 && at < depth {
						got[k] += 100 / float64(len(questions))
					}
				}
			}
			tenth[i] += got[2] / 2
			t.add(w.name+", "+form, len(questions), got[0], got[1], got[2])
		}
	}
	t.add("lead over BM25, mean of both forms", len(questions), "", "", tenth[0]-tenth[1]).target("R@10 at least 3 over BM25", tenth[0]-tenth[1] >= 3)
	return t, nil
}

var uuidPattern = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// sessionUUID returns the UUID in a session id, else the id itself.
func sessionUUID(id string) string { return cmp.Or(uuidPattern.FindString(id), id) }

// bm25 is the plain ranking used for comparison: k1 1.2, b 0.75, stems.
type bm25 struct {
	entries []chatEntry
	counts  []map[string]int
	lengths []float64
	usual   float64
	having  map[string]int
}

func newBM25(entries []chatEntry) *bm25 {
	b := &bm25{entries: entries, having: map[string]int{}}
	for _, e := range entries {
		counts := map[string]int{}
		n := 0
		words.Each(e.text, func(_ string, parts []string) {
			for _, p := range parts {
				counts[words.Stem(strings.ToLower(p))]++
				n++
			}
		})
		for w := range counts {
			b.having[w]++
		}
		b.counts, b.lengths = append(b.counts, counts), append(b.lengths, float64(n))
		b.usual += float64(n) / float64(len(entries))
	}
	return b
}

// find returns the sessions of the n best entries.
func (b *bm25) find(query string, n int) (sessions []string) {
	asked := map[string]bool{}
	words.Each(query, func(_ string, parts []string) {
		for _, p := range parts {
			asked[words.Stem(strings.ToLower(p))] = true
		}
	})
	scores := make([]float64, len(b.entries))
	order := make([]int, len(b.entries))
	for i, counts := range b.counts {
		order[i] = i
		for w := range asked {
			if tf := float64(counts[w]); tf > 0 {
				has := float64(b.having[w])
				scores[i] += math.Log1p((float64(len(b.entries))-has+0.5)/(has+0.5)) * tf * 2.2 / (tf + 1.2*(0.25+0.75*b.lengths[i]/b.usual))
			}
		}
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(scores[y], scores[x]) })
	for _, i := range order[:min(n, len(order))] {
		sessions = append(sessions, b.entries[i].session)
	}
	return sessions
}
