package observationtest

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

	"cairn/internal/observation"
	"cairn/internal/observation/capture"
	"cairn/internal/observation/integrity"
	"cairn/internal/project"
	"cairn/internal/redact"
	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

// Bench is a journal over a store of the test's own, with a clock that the test
// moves and a folder that is a repository.
type Bench struct {
	*observation.Service
	T    testing.TB
	Repo string
	Now  *atomic.Int64 // Unix seconds
}

const Start = 1_770_000_000

func New(t testing.TB) Bench {
	t.Helper()
	dir := t.TempDir()
	now := &atomic.Int64{}
	now.Store(Start)
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
	b := Bench{Service: observation.New(s, observation.Config{Filter: filter, DedupWindow: observation.DefaultDedupWindow, Unnamed: []string{"gemini", "cursor"}}), T: t, Now: now}
	b.Repo = b.Repository(filepath.Join(dir, "shop"))
	t.Cleanup(func() {
		found, err := s.Check(context.Background())
		more, merr := integrity.Check(context.Background(), b.Service)
		if err != nil || merr != nil || len(found)+len(more) > 0 {
			t.Errorf("check: %v %v %v %v", found, more, err, merr)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// Repository makes a folder with an empty .git folder in it.
func (b Bench) Repository(dir string) string {
	b.T.Helper()
	if err := os.MkdirAll(filepath.Join(dir, ".git"), 0o755); err != nil {
		b.T.Fatal(err)
	}
	return dir
}

// Record stores an event of session s1 in the repository, one second after the
// last one, unless the event says otherwise.
func (b Bench) Record(e observation.Event) observation.Recorded {
	b.T.Helper()
	if e.Session == "" {
		e.Session = "s1"
	}
	if e.Cwd == "" {
		e.Cwd = b.Repo
	}
	if e.Source == "" {
		e.Source = "PostToolUse"
	}
	if e.Harness == "" {
		e.Harness = "claude"
	}
	b.Now.Add(1)
	place, err := project.Locate(e.Cwd, "")
	if err != nil {
		b.T.Fatal(err)
	}
	done, err := capture.Record(b.T.Context(), b.Service, e, place, project.Process{})
	if err != nil {
		b.T.Fatalf("record: %v", err)
	}
	return done
}

func (b Bench) Prompt(text, id string) observation.Recorded {
	return b.Record(observation.Event{Kind: observation.Prompt, Text: text, PromptID: id, Source: "UserPromptSubmit"})
}

func (b Bench) Call(c observation.Call, prompt string) observation.Recorded {
	return b.Record(observation.Event{Kind: observation.Tool, PromptID: prompt, Calls: []observation.Call{c}})
}

// Imported stores events as an import would.
func (b Bench) Imported(events ...observation.Event) capture.Imported {
	b.T.Helper()
	i := capture.NewImporter(b.Service, capture.ImportOptions{})
	preparer := capture.NewPreparer(b.Service)
	for _, e := range events {
		if e.Session == "" {
			e.Session = "s1"
		}
		if e.Cwd == "" {
			e.Cwd = b.Repo
		}
		if e.Source == "" {
			e.Source = "PostToolUse"
		}
		if e.Imported = true; e.Harness == "" {
			e.Harness = "claude"
		}
		p, err := preparer.Prepare(e)
		if err != nil {
			b.T.Fatal(err)
		}
		if err := i.Add(b.T.Context(), p); err != nil {
			b.T.Fatal(err)
		}
	}
	done, err := i.EndFile(b.T.Context(), capture.ImportedFile{Path: "/t.jsonl"}, true)
	if err != nil {
		b.T.Fatal(err)
	}
	return done
}

// Query gives the rows of a query as texts joined by |.
func (b Bench) Query(q string, args ...any) (out []string) {
	b.T.Helper()
	err := b.Store.Read(b.T.Context(), func(ctx context.Context, tx *store.Tx) error {
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
		b.T.Fatalf("query: %v", err)
	}
	return out
}

func (b Bench) Want(what string, got, want []string) {
	b.T.Helper()
	if !slices.Equal(got, want) {
		b.T.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

// Fill adds n rows to a project that share no rare word with anything.
func (b Bench) Fill(cwd string, n int) {
	b.T.Helper()
	events := make([]observation.Event, n)
	for i := range events {
		events[i] = observation.Event{
			Kind: observation.Tool, Session: "filler", Cwd: cwd, At: time.Unix(Start-1000, 0),
			Calls: []observation.Call{{ID: fmt.Sprint(cwd, i), Tool: "Bash", Action: observation.Shell, Command: fmt.Sprintf("echo filler%d", i)}},
		}
	}
	b.Imported(events...)
}

// Helped is a bench whose help takes the time that it takes.
func Helped(t testing.TB) Bench {
	b := New(t)
	b.Config.AssistTime, b.Config.AssistWall = time.Minute, time.Minute
	return b
}

func Bash(command string) observation.Call {
	return observation.Call{Tool: "Bash", Action: observation.Shell, Command: command}
}

// Matched stores events of a transcript whose ids hooks do not know.
func (b Bench) Matched(m observation.Match, events ...observation.Event) capture.Imported {
	b.T.Helper()
	for i := range events {
		events[i].Match = m
		if events[i].At.IsZero() {
			events[i].At = time.Unix(Start, 0)
		}
	}
	return b.Imported(events...)
}

const Parents = `SELECT o.obs_type, o.content, ifnull(p.content, '-')
FROM observations o LEFT JOIN prompts p ON p.id = o.prompt_id ORDER BY o.id`

func Tool(id string, c observation.Call) observation.Event {
	c.ID = id
	return observation.Event{Kind: observation.Tool, Calls: []observation.Call{c}}
}

// With changes the settings of a bench.
func (b Bench) With(change func(*observation.Config)) Bench {
	c := b.Config
	change(&c)
	b.Service = observation.New(b.Store, c)
	return b
}

// Printing returns a finished command with what it printed.
func Printing(command, printed string) observation.Call {
	return observation.Call{Tool: "Bash", Action: observation.Shell, Command: command, Stdout: printed}
}

// Worked stores a session that starts on a branch, edits some files and reads
// others.
func (b Bench) Worked(session, branch, prompt string, edited, read []string) {
	b.T.Helper()
	b.Record(observation.Event{Kind: observation.SessionStart, Session: session, Branch: branch, Text: "startup", Source: "SessionStart"})
	b.Record(observation.Event{Kind: observation.Prompt, Session: session, Branch: branch, Text: prompt, Source: "UserPromptSubmit"})
	for _, file := range edited {
		b.Record(observation.Event{Kind: observation.Tool, Session: session, Calls: []observation.Call{{Tool: "Edit", Action: observation.Edit, Path: filepath.Join(b.Repo, file)}}})
	}
	for _, file := range read {
		b.Record(observation.Event{Kind: observation.Tool, Session: session, Calls: []observation.Call{{Tool: "Read", Action: observation.Read, Path: filepath.Join(b.Repo, file)}}})
	}
}

func (b Bench) Runs(session, command string, failure string) {
	b.T.Helper()
	c := observation.Call{Tool: "Bash", Action: observation.Shell, Command: command, Failed: failure != "", Error: failure}
	b.Record(observation.Event{Kind: observation.Tool, Session: session, Calls: []observation.Call{c}})
}

func (b Bench) Project(id string) (p project.Project) {
	b.T.Helper()
	err := b.Store.Read(b.T.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		p, _, err = project.Find(ctx, tx, id)
		return err
	})
	if err != nil {
		b.T.Fatal(err)
	}
	return p
}

func (b Bench) Edits(session string, files ...string) {
	b.T.Helper()
	for _, f := range files {
		b.Record(observation.Event{Kind: observation.Tool, Session: session, Calls: []observation.Call{{Tool: "Edit", Action: observation.Edit, Path: filepath.Join(b.Repo, f)}}})
	}
}
