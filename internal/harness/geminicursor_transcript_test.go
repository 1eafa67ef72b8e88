package harness

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/internal/observation"
)

var someday = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// TestTranscriptsOfGeminiAndCursorGolden reads one file of each format, stored at the harness's
// path.
func TestTranscriptsOfGeminiAndCursorGolden(t *testing.T) {
	t.Parallel()
	for file, path := range map[string]string{
		"gemini.jsonl":     ".gemini/tmp/kiln/chats/session-2026-03-04T10-00-0f3c1f7e.jsonl",
		"gemini.json":      ".gemini/tmp/kiln/chats/session-2026-03-04T10-10-9b1d6d6e.json",
		"gemini-logs.json": ".gemini/tmp/kiln/logs.json",
		"cursor.jsonl":     ".cursor/projects/no-such-folder/agent-transcripts/c-1/c-1.jsonl",
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			in, err := os.ReadFile(filepath.Join("testdata/placed", file))
			if err != nil {
				t.Fatal(err)
			}
			events, report := readAll(t, bytes.NewReader(in), TranscriptOptions{Path: "/" + path, ModTime: someday})
			var got strings.Builder
			for _, e := range events {
				e.Cwd = filepath.ToSlash(e.Cwd)
				fmt.Fprintln(&got, golden(t, e))
			}
			fmt.Fprintf(&got, "\n%s: %d lines, resume at %d\n", report.Harness, report.Lines, report.Resume)
			for _, reason := range slices.Sorted(maps.Keys(report.Skipped)) {
				fmt.Fprintf(&got, "%d %s\n", report.Skipped[reason], reason)
			}
			if report.Bytes != int64(len(in)) {
				t.Errorf("%d bytes of %d", report.Bytes, len(in))
			}
			sameAsGolden(t, filepath.Join("testdata/placed", file+".golden"), got.String())
		})
	}
}

// The events of a growing file, cut anywhere, occur again in the whole file, unchanged and in the
// same order. So ids and line ids are permanent. Messages are excluded, because a last message may
// be followed by another.
func TestGrownTranscriptsTellTheSameAgain(t *testing.T) {
	t.Parallel()
	for file, path := range map[string]string{
		"gemini.jsonl": "/x/.gemini/tmp/kiln/chats/session-a.jsonl",
		"cursor.jsonl": "/x/.cursor/projects/kiln/agent-transcripts/c-1.jsonl",
	} {
		in, err := os.ReadFile(filepath.Join("testdata/placed", file))
		if err != nil {
			t.Fatal(err)
		}
		lasting := func(b []byte) (list []observation.Event) {
			events, _ := readAll(t, bytes.NewReader(b), TranscriptOptions{Path: path, ModTime: someday})
			for _, e := range events {
				if e.Kind != observation.Message {
					list = append(list, e)
				}
			}
			return list
		}
		whole := lasting(in)
		for cut := 0; cut < len(in); cut += 97 {
			part := lasting(in[:cut])
			i := 0
			for _, e := range whole {
				if i < len(part) && reflect.DeepEqual(part[i], e) {
					i++
				}
			}
			if i != len(part) {
				t.Fatalf("%s cut at %d: %d of %d events come again, next %+v", file, cut, i, len(part), part[i])
			}
		}
	}
}

func TestFormatsAreRecognisedByTheirContent(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][2]bool{
		`{"sessionId":"s","projectHash":"h","startTime":"x"}`:                             {true, false},
		"\ufeff {\n  \"sessionId\": \"s\",\n  \"projectHash\": \"h\",\n  \"messages\": [": {true, false},
		`[{"sessionId":"s","messageId":0}]`:                                               {true, false},
		`[]`:                                                                              {false, false},
		`{"sessionId":"s","type":"user","uuid":"u"}`:                                      {false, false},
		`{"role":"user","message":{"content":[]}}`:                                        {false, true},
		`{"type":"turn_ended","status":"success"}`:                                        {false, true},
		`{"role":"user","message":"x"}`:                                                   {false, false},
		`{"role":"user","message":{},"uuid":"u","type":"user"}`:                           {false, false},
		`{"type":"response_item","payload":{}}`:                                           {false, false},
		``:                                                                                {false, false},
	} {
		if got := [2]bool{looksLikeGemini([]byte(in)), looksLikeCursor([]byte(in))}; got != want {
			t.Errorf("%.60s: %v, want %v", in, got, want)
		}
	}
	long := `{"sessionId":"s","projectHash":"0123456789abcdef","messages":[{"id":"1","type":"user","timestamp":"2026-01-01T00:00:00Z","content":"` +
		strings.Repeat("x", 2<<20) + `"}]}`
	events, report := readAll(t, strings.NewReader(long), TranscriptOptions{})
	if report.Harness != "gemini" || len(events) != 1 {
		t.Errorf("a document of one long line: %s, %d events", report.Harness, len(events))
	}
}

func hashOf(folder string) string {
	sum := sha256.Sum256([]byte(folder))
	return hex.EncodeToString(sum[:])
}

// geminiCwd returns the folder of a session whose file is stored at path.
func geminiCwd(t *testing.T, path, hash, file string, o TranscriptOptions) string {
	t.Helper()
	o.Path, o.ModTime = path, someday
	in := fmt.Sprintf("{\n\"sessionId\":\"s\",\"projectHash\":%q,\"messages\":[{\"type\":\"user\",\"content\":\"x\"},"+
		"{\"type\":\"gemini\",\"toolCalls\":[{\"id\":\"t\",\"name\":\"read_file\",\"args\":{\"file_path\":%q},\"status\":\"success\"}]}]}", hash, file)
	events, _ := readAll(t, strings.NewReader(in), o)
	if len(events) == 0 {
		return ""
	}
	return events[0].Cwd
}

func TestGeminiFolderIsFoundFromItsHash(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kiln := filepath.Join(dir, "work", "kiln")
	hash := hashOf(kiln)
	tmp := filepath.Join(dir, ".gemini", "tmp")
	write := func(path, content string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	old := filepath.Join(tmp, hash, "chats", "session-x.json")
	unknown := filepath.Join(tmp, "gemini-"+hash[:8])
	if got := geminiCwd(t, old, hash, "relative.go", TranscriptOptions{}); got != unknown {
		t.Errorf("nothing known: %q, want %q", got, unknown)
	}
	if got := geminiCwd(t, old, hash, filepath.Join(kiln, "cones", "six.go"), TranscriptOptions{}); got != kiln {
		t.Errorf("by a file that was read: %q", got)
	}
	if got := geminiCwd(t, old, hash, "", TranscriptOptions{Roots: []string{"/other", kiln}}); got != kiln {
		t.Errorf("by a known project: %q", got)
	}
	if got := geminiCwd(t, "", hash[:16], "", TranscriptOptions{Roots: []string{kiln}}); got != kiln {
		t.Errorf("by the start of the hash: %q", got)
	}
	if got := geminiCwd(t, "elsewhere.json", hash, "", TranscriptOptions{}); got != string(filepath.Separator)+"gemini-"+hash[:8] {
		t.Errorf("a file somewhere else: %q", got)
	}
	if got := geminiCwd(t, "elsewhere.json", "abc", "", TranscriptOptions{}); got != "" {
		t.Errorf("no hash: %q", got)
	}
	write(filepath.Join(dir, ".gemini", "projects.json"), fmt.Sprintf(`{"projects":{"/a":"a",%q:"kiln"}}`, kiln))
	if got := geminiCwd(t, old, hash, "", TranscriptOptions{}); got != kiln {
		t.Errorf("by the list of projects: %q", got)
	}
	named := filepath.Join(tmp, "kiln-1", "chats", "session-y.json")
	if got := geminiCwd(t, named, hashOf("/gone"), "", TranscriptOptions{}); got != filepath.Join(tmp, "kiln-1") {
		t.Errorf("by its own name: %q", got)
	}
	write(filepath.Join(tmp, "kiln-1", ".project_root"), "/somewhere/kiln\n")
	if got := geminiCwd(t, named, hash, "", TranscriptOptions{}); got != "/somewhere/kiln" {
		t.Errorf("by .project_root: %q", got)
	}
}

func TestGeminiSubagentsBelongToTheirSession(t *testing.T) {
	t.Parallel()
	in := `{"sessionId":"a-9","projectHash":"0123456789abcdef","kind":"subagent"}
{"id":"1","type":"user","timestamp":"2026-01-01T00:00:00Z","content":"find the heat"}
{"id":"2","type":"gemini","timestamp":"2026-01-01T00:00:02Z","content":"","toolCalls":[{"id":"t","name":"glob","args":{"pattern":"*"},"status":"success","result":[]}]}
{"id":"3","type":"gemini","timestamp":"2026-01-01T00:00:03Z","content":"It is at the top."}
`
	for path, want := range map[string][2]string{
		"/h/.gemini/tmp/kiln/chats/s-1/a-9.jsonl":       {"s-1", "a-9"},
		"/h/.gemini/tmp/kiln/chats/session-2-a-9.jsonl": {"a-9", "a-9"},
	} {
		events, _ := readAll(t, strings.NewReader(in), TranscriptOptions{Path: path})
		if len(events) != 2 || events[0].Kind != observation.Tool || events[1].Role != "subagent" || events[1].TurnEnds {
			t.Fatalf("%s: %+v", path, events)
		}
		for _, e := range events {
			if e.Session != want[0] || e.AgentID != want[1] {
				t.Errorf("%s: session %q, agent %q", path, e.Session, e.AgentID)
			}
		}
	}
}

func TestGeminiDocumentOverTheLimitIsCounted(t *testing.T) {
	t.Parallel()
	head := "{\n\"sessionId\":\"s\",\"projectHash\":\"0123456789abcdef\",\"x\":\""
	events, report := readAll(t, io.MultiReader(strings.NewReader(head), io.LimitReader(endless('x'), maxLine)), TranscriptOptions{})
	if len(events) != 0 || report.Skipped[hugeDocument] != 1 || report.Bytes != maxLine+int64(len(head)) {
		t.Errorf("%d events, %+v", len(events), report)
	}
}

func TestCursorTimesAreRead(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"<timestamp>Thursday, May 28, 2026, 8:37 PM (UTC+8)</timestamp>\nx":       "2026-05-28T12:37:00Z",
		"<timestamp>Friday, Sep 18, 2026, 9:02 PM (UTC-7)</timestamp>":            "2026-09-19T04:02:00Z",
		"[Image] <timestamp>Friday, Sep 18, 2026, 9:02 AM (UTC+5:30)</timestamp>": "2026-09-18T03:32:00Z",
		"<timestamp>Friday, Sep 18, 2026, 12:02 AM (UTC)</timestamp>":             "2026-09-18T00:02:00Z",
		"<timestamp>2026-09-18T00:02:03Z</timestamp>":                             "2026-09-18T00:02:03Z",
		"<timestamp>Friday, Sep 18, 2026, 9:02 AM</timestamp>":                    "",
		"<timestamp>Friday, Sep 18, 2026, 9:02 AM (UTC+99)</timestamp>":           "",
		"<timestamp>yesterday (UTC+1)</timestamp>":                                "",
		"<timestamp>":      "",
		"no time in there": "",
	} {
		at, ok := cursorTime(in)
		if got := at.UTC().Format(time.RFC3339); ok != (want != "") || ok && got != want {
			t.Errorf("%s: %s, %t", in, got, ok)
		}
	}
}

func TestCursorPromptsAreUnwrapped(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"<user_query>\nhi\n</user_query>":                               "hi",
		"<a_b>x</a_b>\n<user_query>a </user_query> b</user_query> tail": "a </user_query> b",
		"<user_query>never closed":                                      "never closed",
		"<timestamp>now</timestamp>\nraw words":                         "raw words",
		"<user_info>x</user_info><rules_x>y</rules_x> typed":            "typed",
		"<system_reminder>only this</system_reminder>":                  "",
		"<b>bold</b> words":                                             "<b>bold</b> words",
		"<my_tag> never closed":                                         "<my_tag> never closed",
		"<user_query><system-reminder>x</system-reminder></user_query>": "",
		" ": "",
	} {
		if got := cursorTyped(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestCursorFolderIsFoundFromItsName(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	real := filepath.Join(dir, "some.work", "my-kiln_2")
	if err := os.MkdirAll(real, 0o700); err != nil {
		t.Fatal(err)
	}
	projects := filepath.Join(dir, ".cursor", "projects")
	file := func(name string) string {
		return filepath.Join(projects, name, "agent-transcripts", "c-1", "c-1.jsonl")
	}
	if got := cursorFolder(file(hyphened(real)), nil); got != real {
		t.Errorf("by looking: %q, want %q", got, real)
	}
	if got := cursorFolder(file("no-such-place"), nil); got != filepath.Join(projects, "no-such-place") {
		t.Errorf("nowhere: %q", got)
	}
	gone := filepath.Join(dir, "gone", "kiln")
	if got := cursorFolder(file(hyphened(gone)), []string{"/x", gone}); got != gone {
		t.Errorf("by a known project: %q", got)
	}
	twin := filepath.Join(dir, "some-work", "my-kiln_2")
	if err := os.MkdirAll(twin, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := cursorFolder(file(hyphened(real)), nil); got != filepath.Join(projects, hyphened(real)) {
		t.Errorf("of two it takes none: %q", got)
	}
	if err := os.MkdirAll(filepath.Join(projects, "p"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"worker.log":         "[info] starting\n[info] workspacePath=/srv/kiln one\n",
		".workspace-trusted": `{"trustedAt":"2026-01-01","workspacePath":"/srv/kiln two"}`,
	} {
		if err := os.WriteFile(filepath.Join(projects, "p", name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		want := "/srv/kiln " + map[string]string{"worker.log": "one", ".workspace-trusted": "two"}[name]
		if got := cursorFolder(file("p"), nil); got != want {
			t.Errorf("by %s: %q", name, got)
		}
		if err := os.Remove(filepath.Join(projects, "p", name)); err != nil {
			t.Fatal(err)
		}
	}
	if got := cursorFolder("/elsewhere/c-1.jsonl", nil); got != "" {
		t.Errorf("elsewhere: %q", got)
	}
}

func TestCursorSubagentsBelongToTheirSession(t *testing.T) {
	t.Parallel()
	in := `{"role":"user","message":{"content":"find the heat"}}
{"role":"assistant","message":{"content":[{"type":"tool_use","name":"Glob","input":{"glob_pattern":"*"}}]}}
{"role":"assistant","message":{"content":[{"type":"text","text":"At the top."}]}}
`
	events, _ := readAll(t, strings.NewReader(in), TranscriptOptions{
		Path: "/h/.cursor/projects/none/agent-transcripts/c-1/subagents/a-9.jsonl", ModTime: someday,
	})
	if len(events) != 2 || events[0].Kind != observation.Tool || events[1].Role != "subagent" {
		t.Fatalf("%+v", events)
	}
	for _, e := range events {
		if e.Session != "c-1" || e.AgentID != "a-9" || !e.At.Equal(someday) {
			t.Errorf("%+v", e)
		}
	}
}
