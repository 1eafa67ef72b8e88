package harnesses_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn/internal/fault"
	"cairn/internal/harness"
	"cairn/internal/harness/harnesses"
	"cairn/internal/harness/lazyjson"
)

func TestTranscriptFilesPutsOriginalsFirst(t *testing.T) {
	t.Parallel()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, content string) {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	dated := func(at, more string) string {
		return `{"type":"summary"}` + "\nnot JSON\n" + `{"type":"user","timestamp":"` + at + `"` + more + "}\n"
	}
	write("p/late.jsonl", dated("2026-03-02T10:00:00Z", ""))
	write("p/fork.jsonl", dated("2026-03-01T10:00:00Z", `,"forkedFrom":{"sessionId":"orig"}`))
	write("p/orig.jsonl", dated("2026-03-01T11:00:00+01:00", ""))
	write("p/copy.jsonl", lazyjson.ByteOrderMark+dated("2026-03-01T10:00:00.000Z", ""))
	write("p/orig/subagents/agent-a1.jsonl", dated("2026-03-01T10:05:00Z", ""))
	write("p/orig/subagents/agent-acompact-2.jsonl", dated("2026-03-01T10:05:00Z", ""))
	write("p/orig/subagents/journal.jsonl", dated("2026-03-01T10:05:00Z", ""))
	write("p/orig/tool-results/x.jsonl", dated("2026-03-01T10:05:00Z", ""))
	write("p/dateless.jsonl", "{}\n")
	write("p/notes.txt", "x")
	files, err := harnesses.TranscriptFiles(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	for i := range files {
		rel, err := filepath.Rel(root, files[i])
		if err != nil {
			t.Fatal(err)
		}
		files[i] = filepath.ToSlash(rel)
	}
	want := []string{"p/copy.jsonl", "p/orig.jsonl", "p/fork.jsonl", "p/orig/subagents/agent-a1.jsonl", "p/late.jsonl", "p/dateless.jsonl"}
	if !slices.Equal(files, want) {
		t.Errorf("got  %q\nwant %q", files, want)
	}
	one, err := harnesses.TranscriptFiles(t.Context(), filepath.Join(root, "p", "notes.txt"))
	if err != nil || len(one) != 1 {
		t.Errorf("a file: %q, %v", one, err)
	}
	if _, err := harnesses.TranscriptFiles(t.Context(), filepath.Join(root, "nowhere")); fault.KindOf(err) != fault.NotFound {
		t.Errorf("nowhere: %v", err)
	}
}

// TestTranscriptFilesStopsWithItsContext ends the context during a walk. The walk must not read
// the remaining files.
func TestTranscriptFilesStopsWithItsContext(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for i := range 10 {
		if err := os.WriteFile(filepath.Join(root, fmt.Sprint(i, ".jsonl")), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ctx := &endingContext{Context: t.Context(), after: 5}
	if files, err := harnesses.TranscriptFiles(ctx, root); !errors.Is(err, context.Canceled) || files != nil {
		t.Errorf("got %q, %v", files, err)
	}
	if ctx.asked > 8 {
		t.Errorf("the walk went on: it asked %d times", ctx.asked)
	}
}

// endingContext is canceled after a given number of calls of Err.
type endingContext struct {
	context.Context
	after, asked int
}

func (c *endingContext) Err() error {
	if c.asked++; c.asked > c.after {
		return context.Canceled
	}
	return nil
}

func TestTranscriptFilesFollowsALinkedRoot(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a.jsonl"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "projects")
	if err := os.Symlink(root, link); err != nil {
		t.Skip("no symbolic links here")
	}
	if files, err := harnesses.TranscriptFiles(t.Context(), link); err != nil || len(files) != 1 {
		t.Errorf("got %q, %v", files, err)
	}
}

func TestTranscriptFilesTellsUnreadableFolders(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	closed := filepath.Join(root, "closed")
	if err := os.Mkdir(closed, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadDir(closed); err == nil {
		t.Skip("this user may read everything")
	}
	if err := os.WriteFile(filepath.Join(root, "a.jsonl"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	files, err := harnesses.TranscriptFiles(t.Context(), root)
	if len(files) != 1 || !fault.HasCode(err, "unreadable_folder") || !strings.Contains(err.Error(), closed) {
		t.Errorf("got %q, %v", files, err)
	}
}

func TestTranscriptFoldersOfEveryHarness(t *testing.T) {
	t.Parallel()
	home := filepath.FromSlash("/home/ada")
	for _, c := range []struct {
		homes harness.Homes
		want  []harnesses.Folder
	}{
		{harness.Homes{User: home}, []harnesses.Folder{
			{"claude", filepath.Join(home, ".claude", "projects")}, {"codex", filepath.Join(home, ".codex", "sessions")},
			{"gemini", filepath.Join(home, ".gemini", "tmp")}, {"cursor", filepath.Join(home, ".cursor", "projects")},
			{"opencode", filepath.Join(home, ".local", "share", "opencode", "opencode.db")}, {"copilot", filepath.Join(home, ".copilot", "session-state")},
			{"qwen", filepath.Join(home, ".qwen", "projects")}, {"cline", filepath.Join(home, ".cline", "data", "sessions")},
		}},
		{harness.Homes{User: home, Getenv: func(name string) string {
			return map[string]string{
				"CLAUDE_CONFIG_DIR": filepath.FromSlash("/cfg"), "CODEX_HOME": filepath.FromSlash("/cx"), "XDG_DATA_HOME": filepath.FromSlash("/data"),
				"COPILOT_HOME": filepath.FromSlash("/cp"), "CLINE_DATA_DIR": filepath.FromSlash("/cl"),
			}[name]
		}}, []harnesses.Folder{
			{"claude", filepath.FromSlash("/cfg/projects")}, {"codex", filepath.FromSlash("/cx/sessions")},
			{"gemini", filepath.Join(home, ".gemini", "tmp")}, {"cursor", filepath.Join(home, ".cursor", "projects")},
			{"opencode", filepath.FromSlash("/data/opencode/opencode.db")}, {"copilot", filepath.FromSlash("/cp/session-state")},
			{"qwen", filepath.Join(home, ".qwen", "projects")}, {"cline", filepath.FromSlash("/cl/sessions")},
		}},
	} {
		if got := harnesses.TranscriptFolders(c.homes); !slices.Equal(got, c.want) {
			t.Errorf("got  %v\nwant %v", got, c.want)
		}
	}
}
