package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

// pages returns README.md and the pages in docs.
func pages(t *testing.T) []string {
	t.Helper()
	root := filepath.Join("..", "..")
	all, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(all) < 5 {
		t.Fatal(len(all), err)
	}
	return append(all, filepath.Join(root, "README.md"))
}

// TestEveryCommandLineOfThePagesWorks runs the commands of each page in order, in a home with one
// recorded session. A comment "exit code N" states the expected exit code.
func TestEveryCommandLineOfThePagesWorks(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	if runtime.GOOS == "windows" {
		t.Skip("the pages are written for a POSIX shell")
	}
	lines := 0
	for _, page := range pages(t) {
		typed := consoleLines(t, page)
		lines += len(typed)
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			h := newReader(t)
			if !strings.Contains(strings.Join(typed, "\n"), "cairn init") {
				h.types("cairn init --claude")
			}
			for _, line := range typed {
				h.types(line)
			}
		})
	}
	if lines < 40 {
		t.Errorf("the pages have %d command lines", lines)
	}
}

// consoleLines returns the lines of a page's console blocks that begin with a prompt.
func consoleLines(t *testing.T, page string) (out []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(block[1]) {
			if typed, ok := strings.CutPrefix(strings.TrimSpace(line), "$ "); ok {
				out = append(out, typed)
			}
		}
	}
	return out
}

// newReader returns a home with an agent, a real repository and one recorded session.
func newReader(t *testing.T) *home {
	t.Helper()
	h := newHome(t)
	h.put(".claude/settings.json", []byte("{}\n"))
	h.put(".claude/projects/-shop/old.jsonl", fmt.Appendf(nil, `{"type":"user","uuid":"u1","sessionId":"old","cwd":%q,"timestamp":"2026-01-02T10:00:00Z","message":{"role":"user","content":"add a refund window"}}`+"\n", h.repo))
	if err := os.RemoveAll(filepath.Join(h.repo, ".git")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.repo, "window.go"), []byte("package refund\n\nconst days = 30\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.inShell("git init -q . && git add . && git -c user.name=Ana -c user.email=ana@example.org commit -q -m 'Refunds expire after 30 days'")
	for _, payload := range []string{
		`{"session_id":"S1","hook_event_name":"SessionStart","source":"startup"`,
		`{"session_id":"S1","hook_event_name":"UserPromptSubmit","prompt":"let refunds expire after 30 days, and say why the refund test failed last week"`,
		`{"session_id":"S1","hook_event_name":"Stop","last_assistant_message":"Refunds expire after 30 days now."`,
	} {
		if e := h.run(h.command("record", "--from", "claude"), []byte(payload+fmt.Sprintf(`,"cwd":%q}`, h.repo))); e.code != 0 {
			t.Fatal(e)
		}
	}
	return h
}

// inShell runs a line with the shell, in the repository.
func (h *home) inShell(line string) (code int, said string) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), stopLimit)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir, cmd.Stdout, cmd.Stderr = h.repo, &out, &out
	cmd.WaitDelay = time.Second
	for name, value := range h.vars {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Env = append(cmd.Env, "PATH="+filepath.Dir(h.program)+string(filepath.ListSeparator)+h.vars["PATH"])
	if err := cmd.Run(); err != nil {
		if _, ok := errors.AsType[*exec.ExitError](err); !ok {
			h.t.Fatalf("%s: %v", line, err)
		}
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

// types runs a command line of a page. It interrupts a listening server after it has printed its
// address, and a command that waits for events after it has found no problem.
func (h *home) types(line string) {
	h.t.Helper()
	want := 0
	if m := regexp.MustCompile(`exit code (\d)`).FindStringSubmatch(line); m != nil {
		want = int(m[1][0] - '0')
	}
	if strings.HasPrefix(line, "cairn open") {
		command, _, _ := strings.Cut(line, "#")
		line = strings.TrimSpace(command) + " --print --http 127.0.0.1:0"
		line += untilItListens
	}
	if strings.HasPrefix(line, "cairn serve --http") {
		line = strings.Replace(line, "127.0.0.1:8765", "127.0.0.1:0", 1)
		command, _, _ := strings.Cut(line, "#")
		line = strings.TrimSpace(command) + untilItListens
	}
	if code, said := h.inShell(line); code != want {
		h.t.Errorf("%s\nexit %d, want %d: %s", line, code, want, said)
	}
}

// untilItListens makes the shell interrupt a server after it has printed its address.
const untilItListens = ` 2>said & p=$!; until grep -q http said; do kill -0 $p || exit 9; done; kill -INT $p; wait $p`

var link = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)

// TestEveryLinkOfThePagesLeadsToAFile checks that each link points to a file of the repository.
func TestEveryLinkOfThePagesLeadsToAFile(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	found := 0
	for _, page := range append(pages(t), filepath.Join("..", "..", "ARCHITECTURE.md"), filepath.Join("..", "..", "AGENTS.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			found++
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", page, m[1])
			}
		}
	}
	if found < 10 {
		t.Errorf("the pages have %d links", found)
	}
}
