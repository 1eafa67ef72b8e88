package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// origin is the result of why, with the fields that these tests check.
type origin struct {
	File, Text string
	Line       int
	Commit     *struct{ Hash, Subject string }
	Commits    []struct{ Hash string }
	Sessions   []struct {
		SessionID string `json:"session_id"`
		Via       string
		Prompt    *struct{ Content string }
	}
	Records []struct {
		ID      string
		Drifted bool
		Because []string
	}
	Missing []struct{ Link, Why string }
}

func TestAgentsAskWhyALineIsAsItIs(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	h := newHome(t)
	file := filepath.Join(h.repo, "cart.go")
	if err := os.WriteFile(file, []byte("package cart\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.recorded(h.payload("UserPromptSubmit", fields{"prompt": "begin with the cart"}))
	h.recorded(h.payload("PostToolUse", fields{"tool_name": "Write", "tool_use_id": "w1", "tool_input": fields{"file_path": file}}))
	for _, args := range [][]string{{"init", "-q"}, {"add", "cart.go"}, {"commit", "-q", "-m", "Begin, see R001"}} {
		cmd := exec.Command("git", append([]string{"-C", h.repo, "-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
	c := h.connect("", nil)
	c.created(fields{"parent_id": nil, "title": "Carts", "body": "As in cart.go#L1."})
	got := asked[origin](c, "why", fields{"file": "cart.go", "line": 1})
	if got.File != "cart.go" || got.Text != "package cart" || got.Commit == nil || got.Commit.Subject != "Begin, see R001" || len(got.Commits) != 0 {
		t.Errorf("the commit: %+v", got)
	}
	if len(got.Sessions) != 1 || got.Sessions[0].Via != "edit" || got.Sessions[0].Prompt == nil || got.Sessions[0].Prompt.Content != "begin with the cart" {
		t.Errorf("the session: %+v", got.Sessions)
	}
	if len(got.Records) != 1 || got.Records[0].ID != "R001" || got.Records[0].Drifted || !slices.Contains(got.Records[0].Because, "cites cart.go#L1") ||
		!slices.Contains(got.Records[0].Because, "named in commit "+got.Commit.Hash[:12]) {
		t.Errorf("the record: %+v", got.Records)
	}
	if len(got.Missing) != 1 || got.Missing[0].Link != "session" {
		t.Errorf("missing: %+v", got.Missing)
	}
	if err := os.WriteFile(file, []byte("package basket\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := asked[origin](c, "why", fields{"file": file}); got.Line != 0 || len(got.Commits) != 1 || len(got.Records) != 1 || !got.Records[0].Drifted ||
		!slices.Contains(got.Records[0].Because, "cites cart.go#L1, drifted") {
		t.Errorf("the file: %+v", got)
	}
	c.fails("why", fields{"file": "cart.go", "line": 9}, "NO_SUCH_LINE")
	c.fails("why", fields{"file": "cart.go", "line": -1}, "INVALID_ARGUMENT")
	c.fails("why", fields{"file": " "}, "INVALID_ARGUMENT")
	c.fails("why", fields{"file": "."}, "INVALID_ARGUMENT")
	c.fails("why", fields{"line": 1}, "INVALID_ARGUMENT")
	c.leave()
	h.check()
}

// TestTheHistoryOfAFileIsNotThatOfAnotherProjectsFileOfThatName uses two repositories that
// contain a file with the same relative path.
func TestTheHistoryOfAFileIsNotThatOfAnotherProjectsFileOfThatName(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	other := h.repository(filepath.Join(h.dir, "market"))
	for _, repo := range []string{h.repo, other} {
		if err := os.MkdirAll(filepath.Join(repo, "src"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	edit := func(session, cwd, file string) {
		h.recorded(h.payload("PostToolUse", fields{
			"session_id": session, "cwd": cwd, "tool_name": "Edit", "tool_use_id": session + file,
			"tool_input": fields{"file_path": file, "old_string": "a", "new_string": "b"},
		}))
	}
	edit("s1", h.repo, filepath.Join(h.repo, "src", "cart.go"))
	edit("s2", other, filepath.Join(other, "src", "else.go"))
	server := h.command("serve")
	server.Dir = other
	c := h.dialTo(server, "", nil)
	t.Cleanup(c.leave)
	sessions := func(file string) (ids []string) {
		t.Helper()
		for _, s := range asked[struct {
			Sessions []struct {
				SessionID string `json:"session_id"`
			}
		}](c, "file_history", fields{"file_path": file}).Sessions {
			ids = append(ids, s.SessionID)
		}
		return ids
	}
	own := filepath.Join(other, "src", "cart.go")
	for _, file := range []string{"src/cart.go", own} {
		if got := sessions(file); got != nil {
			t.Errorf("%s was touched by nobody, yet by %v", file, got)
		}
		if got := asked[origin](c, "why", fields{"file": file}); len(got.Sessions) != 0 {
			t.Errorf("%s was edited by nobody, yet by %v", file, got.Sessions)
		}
	}
	if got := sessions(filepath.Join(h.repo, "src", "cart.go")); !slices.Equal(got, []string{"s1"}) {
		t.Errorf("the other's file, by its absolute path: %v", got)
	}
	// A session in another project may edit this file. That edit is part of its history.
	edit("s3", h.repo, own)
	for _, file := range []string{"src/cart.go", own} {
		if got := sessions(file); !slices.Equal(got, []string{"s3"}) {
			t.Errorf("%s was touched by s3, but the history has %v", file, got)
		}
		if got := asked[origin](c, "why", fields{"file": file}); len(got.Sessions) != 1 || got.Sessions[0].SessionID != "s3" {
			t.Errorf("%s was edited by s3, but why says %v", file, got.Sessions)
		}
	}
}
