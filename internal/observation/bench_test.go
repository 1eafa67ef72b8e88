package observation

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cairn/internal/project"
	"cairn/internal/redact"
	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

// bench is a journal over a store of the test's own, with a clock that the test
// moves and a folder that is a repository.
type bench struct {
	*Service
	t    testing.TB
	repo string
	now  *atomic.Int64 // Unix seconds
}

const testStart = 1_770_000_000

func newBench(t testing.TB) bench {
	t.Helper()
	dir := t.TempDir()
	now := &atomic.Int64{}
	now.Store(testStart)
	s, err := store.Open(t.Context(), storetest.Config(store.Config{
		Path: filepath.Join(dir, "cairn.db"), Clock: func() time.Time { return time.Unix(now.Load(), 0) },
	}))
	if err != nil {
		t.Fatal(err)
	}
	filter, err := redact.New(redact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := bench{Service: New(s, Config{Filter: filter, DedupWindow: DefaultDedupWindow, Unnamed: []string{"gemini", "cursor"}}), t: t, now: now}
	b.repo = b.repository(filepath.Join(dir, "shop"))
	t.Cleanup(func() {
		found, err := s.Check(context.Background())
		more, merr := b.Check(context.Background())
		if err != nil || merr != nil || len(found)+len(more) > 0 {
			t.Errorf("check: %v %v %v %v", found, more, err, merr)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// repository makes a folder with an empty .git folder in it.
func (b bench) repository(dir string) string {
	b.t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, ".git"), 0o755); err != nil {
		b.t.Fatal(err)
	}
	return dir
}

// record stores an event of session s1 in the repository, one second after the
// last one, unless the event says otherwise.
func (b bench) record(e Event) Recorded {
	b.t.Helper()
	if e.Session == "" {
		e.Session = "s1"
	}
	if e.Cwd == "" {
		e.Cwd = b.repo
	}
	if e.Source == "" {
		e.Source = "PostToolUse"
	}
	if e.Harness == "" {
		e.Harness = "claude"
	}
	b.now.Add(1)
	place, err := project.Locate(e.Cwd, "")
	if err != nil {
		b.t.Fatal(err)
	}
	done, err := b.Record(b.t.Context(), e, place, project.Process{})
	if err != nil {
		b.t.Fatalf("record: %v", err)
	}
	return done
}

func (b bench) prompt(text, id string) Recorded {
	return b.record(Event{Kind: Prompt, Text: text, PromptID: id, Source: "UserPromptSubmit"})
}

func (b bench) call(c Call, prompt string) Recorded {
	return b.record(Event{Kind: Tool, PromptID: prompt, Calls: []Call{c}})
}

// imported stores events as an import would.
func (b bench) imported(events ...Event) Imported {
	b.t.Helper()
	i := b.Importer(ImportOptions{})
	preparer := b.Preparer()
	for _, e := range events {
		if e.Session == "" {
			e.Session = "s1"
		}
		if e.Cwd == "" {
			e.Cwd = b.repo
		}
		if e.Source == "" {
			e.Source = "PostToolUse"
		}
		if e.Imported = true; e.Harness == "" {
			e.Harness = "claude"
		}
		p, err := preparer.Prepare(e)
		if err != nil {
			b.t.Fatal(err)
		}
		if err := i.Add(b.t.Context(), p); err != nil {
			b.t.Fatal(err)
		}
	}
	done, err := i.EndFile(b.t.Context(), ImportedFile{Path: "/t.jsonl"}, true)
	if err != nil {
		b.t.Fatal(err)
	}
	return done
}

// query gives the rows of a query as texts joined by |.
func (b bench) query(q string, args ...any) (out []string) {
	b.t.Helper()
	err := b.store.Read(b.t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return tx.Each(ctx, func(r *sql.Rows) error {
			cols, err := r.Columns()
			if err != nil {
				return err
			}
			vals, dest := make([]sql.NullString, len(cols)), make([]any, len(cols))
			for i := range vals {
				dest[i] = &vals[i]
			}
			err = r.Scan(dest...)
			texts := make([]string, len(cols))
			for i, v := range vals {
				texts[i] = v.String
			}
			out = append(out, strings.Join(texts, "|"))
			return err
		}, q, args...)
	})
	if err != nil {
		b.t.Fatalf("query: %v", err)
	}
	return out
}

func (b bench) want(what string, got, want []string) {
	b.t.Helper()
	if !slices.Equal(got, want) {
		b.t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

// fill adds n rows to a project that share no rare word with anything.
func (b bench) fill(cwd string, n int) {
	b.t.Helper()
	events := make([]Event, n)
	for i := range events {
		events[i] = Event{
			Kind: Tool, Session: "filler", Cwd: cwd, At: time.Unix(testStart-1000, 0),
			Calls: []Call{{ID: fmt.Sprint(cwd, i), Tool: "Bash", Action: Shell, Command: fmt.Sprintf("echo filler%d", i)}},
		}
	}
	b.imported(events...)
}

// helped is a bench whose help takes the time that it takes.
func helped(t testing.TB) bench {
	b := newBench(t)
	b.config.AssistTime, b.config.AssistWall = time.Minute, time.Minute
	return b
}

func bash(command string) Call { return Call{Tool: "Bash", Action: Shell, Command: command} }

// matched stores events of a transcript whose ids hooks do not know.
func (b bench) matched(m Match, events ...Event) Imported {
	b.t.Helper()
	for i := range events {
		events[i].Match = m
		if events[i].At.IsZero() {
			events[i].At = time.Unix(testStart, 0)
		}
	}
	return b.imported(events...)
}

const parents = `SELECT o.obs_type, o.content, ifnull(p.content, '-')
FROM observations o LEFT JOIN prompts p ON p.id = o.prompt_id ORDER BY o.id`

func tool(id string, c Call) Event {
	c.ID = id
	return Event{Kind: Tool, Calls: []Call{c}}
}

// with changes the settings of a bench.
func (b bench) with(change func(*Config)) bench {
	c := b.config
	change(&c)
	b.Service = New(b.store, c)
	return b
}

// printing returns a finished command with what it printed.
func printing(command, printed string) Call {
	return Call{Tool: "Bash", Action: Shell, Command: command, Stdout: printed}
}

// worked stores a session that starts on a branch, edits some files and reads
// others.
func (b bench) worked(session, branch, prompt string, edited, read []string) {
	b.t.Helper()
	b.record(Event{Kind: SessionStart, Session: session, Branch: branch, Text: "startup", Source: "SessionStart"})
	b.record(Event{Kind: Prompt, Session: session, Branch: branch, Text: prompt, Source: "UserPromptSubmit"})
	for _, file := range edited {
		b.record(Event{Kind: Tool, Session: session, Calls: []Call{{Tool: "Edit", Action: Edit, Path: filepath.Join(b.repo, file)}}})
	}
	for _, file := range read {
		b.record(Event{Kind: Tool, Session: session, Calls: []Call{{Tool: "Read", Action: Read, Path: filepath.Join(b.repo, file)}}})
	}
}
