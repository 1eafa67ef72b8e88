package gemini_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cairn/internal/harness"
	"cairn/internal/harness/harnesstest"
	"cairn/internal/harness/readtest"
	"cairn/internal/observation"
)

func hashOf(folder string) string {
	sum := sha256.Sum256([]byte(folder))
	return hex.EncodeToString(sum[:])
}

// geminiCwd returns the folder of a session whose file is stored at path.
func geminiCwd(t *testing.T, path, hash, file string, o harness.TranscriptOptions) string {
	t.Helper()
	o.Path, o.ModTime = path, harnesstest.Someday
	in := fmt.Sprintf("{\n\"sessionId\":\"s\",\"projectHash\":%q,\"messages\":[{\"type\":\"user\",\"content\":\"x\"},"+
		"{\"type\":\"gemini\",\"toolCalls\":[{\"id\":\"t\",\"name\":\"read_file\",\"args\":{\"file_path\":%q},\"status\":\"success\"}]}]}", hash, file)
	events, _ := readtest.ReadAll(t, strings.NewReader(in), o)
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
	if got := geminiCwd(t, old, hash, "relative.go", harness.TranscriptOptions{}); got != unknown {
		t.Errorf("nothing known: %q, want %q", got, unknown)
	}
	if got := geminiCwd(t, old, hash, filepath.Join(kiln, "cones", "six.go"), harness.TranscriptOptions{}); got != kiln {
		t.Errorf("by a file that was read: %q", got)
	}
	if got := geminiCwd(t, old, hash, "", harness.TranscriptOptions{Roots: []string{"/other", kiln}}); got != kiln {
		t.Errorf("by a known project: %q", got)
	}
	if got := geminiCwd(t, "", hash[:16], "", harness.TranscriptOptions{Roots: []string{kiln}}); got != kiln {
		t.Errorf("by the start of the hash: %q", got)
	}
	if got := geminiCwd(t, "elsewhere.json", hash, "", harness.TranscriptOptions{}); got != string(filepath.Separator)+"gemini-"+hash[:8] {
		t.Errorf("a file somewhere else: %q", got)
	}
	if got := geminiCwd(t, "elsewhere.json", "abc", "", harness.TranscriptOptions{}); got != "" {
		t.Errorf("no hash: %q", got)
	}
	write(filepath.Join(dir, ".gemini", "projects.json"), fmt.Sprintf(`{"projects":{"/a":"a",%q:"kiln"}}`, kiln))
	if got := geminiCwd(t, old, hash, "", harness.TranscriptOptions{}); got != kiln {
		t.Errorf("by the list of projects: %q", got)
	}
	named := filepath.Join(tmp, "kiln-1", "chats", "session-y.json")
	if got := geminiCwd(t, named, hashOf("/gone"), "", harness.TranscriptOptions{}); got != filepath.Join(tmp, "kiln-1") {
		t.Errorf("by its own name: %q", got)
	}
	write(filepath.Join(tmp, "kiln-1", ".project_root"), "/somewhere/kiln\n")
	if got := geminiCwd(t, named, hash, "", harness.TranscriptOptions{}); got != "/somewhere/kiln" {
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
		events, _ := readtest.ReadAll(t, strings.NewReader(in), harness.TranscriptOptions{Path: path})
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
	events, report := readtest.ReadAll(t, io.MultiReader(strings.NewReader(head), io.LimitReader(harnesstest.Endless('x'), harness.MaxLine)), harness.TranscriptOptions{})
	if len(events) != 0 || report.Skipped[harness.HugeDocument] != 1 || report.Bytes != harness.MaxLine+int64(len(head)) {
		t.Errorf("%d events, %+v", len(events), report)
	}
}
