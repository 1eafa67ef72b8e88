package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary also act as cairn-demo when it is started under that name.
func TestMain(m *testing.M) {
	if strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") == "cairn-demo" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestDemo runs the demo as a process, on a cairn built for it.
func TestDemo(t *testing.T) {
	t.Parallel()
	cairn := buildCairn(t)
	for name, test := range map[string]func(*testing.T, stage){
		"shows the whole story":                   showsTheWholeStory,
		"interrupted leaves nothing":              interruptedLeavesNothing,
		"whose reader leaves leaves nothing":      readerLeavesLeavesNothing,
		"on own transcripts asks about them":      asksAboutOwnTranscripts,
		"without transcripts says so, and --keep": withoutTranscriptsSaysSo,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newStage(t, cairn))
		})
	}
}

// buildCairn builds the program without the race detector, which would make each of its many
// short processes ten times slower. It builds without cgo, so that it compiles only what the
// second pass of make test needs anyway.
func buildCairn(t *testing.T) string {
	t.Helper()
	tool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("there is no go to build cairn with")
	}
	path := filepath.Join(t.TempDir(), "cairn"+exe())
	build := exec.CommandContext(t.Context(), tool, "build", "-o", path, "cairn/cmd/cairn")
	build.Dir = filepath.Join("..", "..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

func exe() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}

// stage is an environment in which the demo runs as a process.
type stage struct {
	cairn, demo string
	user        string // HOME
	temp        string // TMPDIR
}

func newStage(t *testing.T, cairn string) stage {
	t.Helper()
	dir := t.TempDir()
	s := stage{
		cairn: cairn, demo: filepath.Join(dir, "cairn-demo"+exe()),
		user: filepath.Join(dir, "user"), temp: filepath.Join(dir, "temp"),
	}
	for _, d := range []string{s.user, s.temp} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err == nil {
		err = copyFile(self, s.demo)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// copyFile links a program, or copies it if links require privileges.
func copyFile(from, to string) error {
	if os.Symlink(from, to) == nil {
		return nil
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o700)
}

func (s stage) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), s.demo, append([]string{"--cairn", s.cairn}, args...)...)
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); !strings.HasPrefix(name, "CAIRN_") && name != "CLAUDE_CONFIG_DIR" {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "HOME="+s.user, "USERPROFILE="+s.user, "TMPDIR="+s.temp, "TMP="+s.temp, "TEMP="+s.temp)
	return cmd
}

// run runs the demo and returns its output. The demo must succeed and leave no files.
func (s stage) run(t *testing.T, args ...string) string {
	t.Helper()
	cmd := s.command(t, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, &stdout, &stderr)
	}
	s.mustBeClean(t)
	return stdout.String()
}

func (s stage) mustBeClean(t *testing.T) {
	t.Helper()
	left, err := os.ReadDir(s.temp)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		t.Errorf("left behind: %s", e.Name())
	}
	if _, err := os.Stat(filepath.Join(s.user, ".cairn")); err == nil {
		t.Error("the user's own ~/.cairn was made")
	}
}

func wantAll(t *testing.T, out string, wants ...string) {
	t.Helper()
	rest := out
	for _, w := range wants {
		_, after, ok := strings.Cut(rest, w)
		if !ok {
			t.Fatalf("%q is missing, or not in its place, in\n%s", w, out)
		}
		rest = after
	}
}

func showsTheWholeStory(t *testing.T, s stage) {
	out := s.run(t)
	wantAll(t, out,
		"== 1. Five invented sessions", "hook calls, a process each",
		"== 2. A new session starts in shop", "# cairn context", "TestRefundWindow", "| ID |", "tokens",
		"== 3. The agent asks over MCP",
		"search(", "command_error", "get_observations(", "day 30 must still be open", "timeline(", "▸ #", "file_edit",
		"session_trace(", "git_push", "file_history(", "CI is red again since Sunday", "recent_context(",
		"== 4. A key was pasted", "[REDACTED]",
		"== 5. That session is forgotten", "would purge 14 observations", "nothing was changed", "purged 14 observations",
		"stood in cairn.db", "no file in ~/.cairn holds it",
		"== 6. Another invented home", "$ cairn init", "changed    ~/.claude/settings.json", "created    ~/.codex/hooks.json",
		"imported 1 conversation, 5 observations", "What made “go test ./plan” pass again", "Look it up: cairn search",
		"$ cairn uninstall", "restored   ~/.claude/settings.json", "deleted    ~/.codex/hooks.json", "byte for byte",
		"== 7. On your own sessions", "cairn init", "cairn doctor", "cairn uninstall",
		"== 8. The same as pages", "cairn open", "Today: ", "checks still fail", "served at http://127.0.0.1:", "make demo ARGS=--pages",
	)
	if strings.Contains(out, "sk_"+"live_") {
		t.Error("the key was printed")
	}
	for n, l := range strings.Split(out, "\n") {
		if strings.ContainsRune(l, 0x1b) {
			t.Errorf("line %d is coloured: %q", n+1, l)
		}
	}
}

func interruptedLeavesNothing(t *testing.T, s stage) {
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be interrupted from outside there")
	}
	cmd := s.command(t)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	for lines.Scan() && !strings.Contains(lines.Text(), "events, context") {
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, stdout); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("exit %d (%v)", cmd.ProcessState.ExitCode(), err)
	}
	if got := stderr.String(); got != "cairn-demo: interrupted\n" {
		t.Errorf("said %q", got)
	}
	s.mustBeClean(t)
}

func readerLeavesLeavesNothing(t *testing.T, s stage) {
	cmd := s.command(t)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := stdout.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("it took no notice")
	}
	s.mustBeClean(t)
}

func withoutTranscriptsSaysSo(t *testing.T, s stage) {
	out, err := s.command(t, "--mine", "--keep").Output()
	if err != nil {
		t.Fatal(err)
	}
	wantAll(t, string(out), "There are no transcripts in", "== 1. Five invented sessions", "== 7. On your own sessions")
	_, path, ok := strings.Cut(string(out), "The temporary folder stays: ")
	if !ok {
		t.Fatal("the path of what was kept is not printed")
	}
	if _, err := os.Stat(filepath.Join(strings.TrimSpace(path), ".cairn", "cairn.db")); err != nil {
		t.Error(err)
	}
}

func asksAboutOwnTranscripts(t *testing.T, s stage) {
	writeTranscript(t, filepath.Join(s.user, ".claude", "projects", "-work-kiln"), filepath.Join(s.user, "kiln"))
	out := s.run(t, "--mine")
	wantAll(t, out,
		"== 1. Your transcripts", "imported ",
		"== 2. A new session in kiln", "# cairn context", "make the kiln test pass",
		"== 3. The agent asks over MCP", "search(", "TestKiln", "timeline(", "session_trace(", "file_history(", "recent_context(",
		"== 4. On your own sessions")
	if strings.Contains(out, "invented") {
		t.Error("invented sessions were shown all the same")
	}
}

// writeTranscript writes a session with a failing test and an edited file.
func writeTranscript(t *testing.T, folder, cwd string) {
	t.Helper()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(folder, "7d3c.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	at := time.Now().Add(-time.Hour)
	line := func(kind string, content any, more map[string]any) {
		at = at.Add(time.Second)
		l := map[string]any{
			"type": kind, "uuid": fmt.Sprint("line-", at.UnixNano()), "sessionId": "7d3c", "cwd": cwd,
			"timestamp": at.UTC().Format(time.RFC3339Nano), "message": map[string]any{"role": kind, "content": content},
		}
		for k, v := range more {
			l[k] = v
		}
		text, err := json.Marshal(l)
		if err == nil {
			_, err = fmt.Fprintf(f, "%s\n", text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	call := func(id, tool string, input map[string]any, result any, failed bool) {
		line("assistant", []any{map[string]any{"type": "tool_use", "id": id, "name": tool, "input": input}}, nil)
		line("user", []any{map[string]any{"type": "tool_result", "tool_use_id": id, "content": result, "is_error": failed}},
			map[string]any{"toolUseResult": result})
	}
	line("user", "please make the kiln test pass", nil)
	call("t1", "Bash", map[string]any{"command": "go test ./kiln"}, "Error: Exit code 1\n--- FAIL: TestKiln", true)
	call("t2", "Edit", map[string]any{"file_path": filepath.Join(cwd, "kiln.go"), "old_string": "a", "new_string": "b"}, "done", false)
	line("assistant", []any{map[string]any{"type": "text", "text": "The kiln test passes now."}}, nil)
}
