package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cairn"
	"cairn/internal/fault"
	"cairn/internal/mcp"
	"cairn/internal/mcp/toolargs"
	"cairn/internal/observation"
	"cairn/internal/observation/browse"
	"cairn/internal/recall"
)

// update is set by go test -update. Flags must be registered before TestMain.
var update = flag.Bool("update", false, "write the golden files of testdata")

// TestWireStaysAsItIs compares the traffic on standard input and output, byte by byte, with
// testdata/*.jsonl. Lines "> " are sent one after the other; lines "< " are the responses.
func TestWireStaysAsItIs(t *testing.T) {
	t.Parallel()
	wireStays(t, filepath.Join("testdata", "*.jsonl"), observing)
}

// TestWireOfRecordsStaysAsItIs does the same for testdata/records/*.jsonl, with a store.
func TestWireOfRecordsStaysAsItIs(t *testing.T) {
	t.Parallel()
	wireStays(t, filepath.Join("testdata", "records", "*.jsonl"), recording)
}

// TestWireOfMailStaysAsItIs does the same for testdata/mail/*.jsonl, with a store.
func TestWireOfMailStaysAsItIs(t *testing.T) {
	t.Parallel()
	wireStays(t, filepath.Join("testdata", "mail", "*.jsonl"), posting)
}

// TestWireOfMemoriesStaysAsItIs does the same for testdata/memories/*.jsonl, without a store.
// Successful calls would return random ids; see cmd/cairn.
func TestWireOfMemoriesStaysAsItIs(t *testing.T) {
	t.Parallel()
	wireStays(t, filepath.Join("testdata", "memories", "*.jsonl"), func(t *testing.T) *mcp.Server {
		return newServer(t, mcp.Config{Tools: mcp.MemoryTools(opened(t, ticking).Memories(), "")})
	})
}

// withoutUIDs replaces the uids of projects and the ids of connections in responses, because
// they differ between stores.
func withoutUIDs(wire []byte) []byte {
	uid := regexp.MustCompile(`\b[0-9a-f]{20}\b|\bS-[0-9A-Z]{26}\b`)
	lines := bytes.SplitAfter(wire, []byte("\n"))
	for i, line := range lines {
		if bytes.HasPrefix(line, []byte("< ")) {
			lines[i] = uid.ReplaceAll(line, []byte("<uid>"))
		}
	}
	return bytes.Join(lines, nil)
}

func wireStays(t *testing.T, pattern string, server func(*testing.T) *mcp.Server) {
	t.Helper()
	scripts, err := filepath.Glob(pattern)
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, script := range scripts {
		t.Run(filepath.Base(script), func(t *testing.T) {
			t.Parallel()
			want, err := os.ReadFile(script)
			if err != nil {
				t.Fatal(err)
			}
			got := withoutUIDs(play(t, server(t), want))
			if *update {
				if err := os.WriteFile(script, got, 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if !bytes.Equal(got, want) {
				t.Errorf("the wire changed (go test -update accepts it)\ngot:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// observing returns a server with invented results.
func observing(t *testing.T) *mcp.Server {
	t.Helper()
	o := echoing()
	o.Search = func(context.Context, mcp.SearchArgs) (any, error) {
		return []map[string]any{{
			"id": 42, "timestamp": 1707400000, "obs_type": "command_error", "content_preview": "cargo test: a < b && c", "excerpt": "cargo test: a < b && c",
			"file_path": nil, "session_id": "s-1", "project": "app", "is_pinned": false,
		}}, nil
	}
	o.RecentContext = func(context.Context, mcp.RecentArgs) (any, error) {
		return []browse.Scored{{Observation: observation.Observation{ID: 42, ObsType: "command", Metadata: json.RawMessage(`{"exit":1}`)}, Score: 0.5}}, nil
	}
	o.FileHistory = func(_ context.Context, a mcp.FileHistoryArgs) (any, error) {
		return browse.History{FilePath: a.FilePath, Sessions: []browse.HistorySession{}}, nil
	}
	o.Timeline = func(context.Context, mcp.TimelineArgs) (any, error) {
		return nil, fault.New(fault.NotFound, "observation_not_found", "anchor observation not found")
	}
	o.SessionTrace = func(context.Context, mcp.TraceArgs) (any, error) {
		return nil, fault.New(fault.Unavailable, "locked", "database is locked")
	}
	return newServer(t, mcp.Config{
		Instructions: "Search before you ask.",
		Tools:        append([]mcp.Tool{mcp.RecallTool(remembering)}, mcp.ObservationTools(o)...),
		Context:      func(context.Context, toolargs.Scope) (string, error) { return "# cairn context\n", nil },
	})
}

// remembering returns one session for recall, and none if the question is "nothing".
func remembering(_ context.Context, a mcp.RecallArgs) (recall.Answer, error) {
	if a.Query == "nothing" {
		return recall.Answer{Query: a.Query, Results: []recall.Group{}, Tried: "Nothing matches. Try other words."}, nil
	}
	at := time.Unix(1_750_000_000, 0).UTC()
	return recall.Answer{
		Query: a.Query, Corrected: map[string]string{"refnd": "refund"}, Range: "last week: 2025-06-09 to 2025-06-15",
		Results: []recall.Group{
			{
				SessionID: "s-1", When: &at, Project: "app", Agent: "claude", Branch: "main", About: "let refunds expire",
				Items: []recall.Item{{Part: recall.PartObservations, ID: "42", Type: "user_prompt", When: at, Excerpt: "let refunds expire", Matched: recall.MatchedAll, Count: 2}},
			},
			{Part: recall.PartRecords, Items: []recall.Item{{Part: recall.PartRecords, ID: "R001", When: at, Project: "app", Excerpt: "30 days", Matched: recall.MatchedSome}}},
		},
		Open: []string{"get_observations(ids=[42])"},
	}, nil
}

// recording returns a server of records over an empty store. Its clock advances by a second at
// each call.
func recording(t *testing.T) *mcp.Server {
	t.Helper()
	var ticks atomic.Int64
	c := opened(t, func(config *cairn.Config) {
		config.Clock = func() time.Time { return time.Unix(1_750_000_000+ticks.Add(1), 0) }
	})
	return newServer(t, mcp.Config{Tools: mcp.RecordTools(c.Records(), "design")})
}

// play sends the lines of a script and returns the script with the actual responses.
func play(t *testing.T, server *mcp.Server, script []byte) []byte {
	t.Helper()
	r := connectRaw(t.Context(), t, server)
	var out bytes.Buffer
	for line := range strings.Lines(string(script)) {
		if strings.HasPrefix(line, "<") {
			continue
		}
		out.WriteString(line)
		message, sent := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "> ")
		if !sent {
			continue
		}
		r.send(message)
		if !strings.HasPrefix(message, `{"jsonrpc":"2.0","method":`) { // a notification has no response
			out.WriteString("< " + r.read() + "\n")
		}
	}
	if rest, err := r.end(); err != nil || len(rest) != 0 {
		t.Errorf("%q, %v", rest, err)
	}
	return out.Bytes()
}

func TestGoldenAnswersAreJSON(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob(filepath.Join("testdata", "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	records, err := filepath.Glob(filepath.Join("testdata", "records", "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	letters, err := filepath.Glob(filepath.Join("testdata", "mail", "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range slices.Concat(scripts, records, letters) {
		data, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		answers := 0
		for line := range strings.Lines(string(data)) {
			if answer, ok := strings.CutPrefix(line, "< "); ok {
				answers++
				if !json.Valid([]byte(answer)) {
					t.Errorf("%s: %s", script, answer)
				}
			}
		}
		if answers == 0 {
			t.Errorf("%s holds no answers: run go test -update", script)
		}
	}
}
