package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn"
	"cairn/internal/mail/documents"
	"cairn/internal/observation"
	"cairn/internal/observation/integrity"
	"cairn/internal/store"
)

// stopLimit is the time after which a process counts as hanging.
const stopLimit = 90 * time.Second

// home is the home directory of one test. The program runs in it in real processes, which
// are copies of this test binary named cairn. So the race detector, if enabled, checks them
// too.
type home struct {
	t       *testing.T
	program string
	dir     string // HOME
	repo    string // a repository in the home; the default location of events
	vars    map[string]string
	limit   time.Duration // the time after which a process counts as hanging
	as      uint32        // the user id of the processes; 0 means the user of the test
}

func newHome(t *testing.T) *home {
	t.Helper()
	program, err := exec.LookPath("cairn")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	h := &home{t: t, program: program, dir: dir, limit: stopLimit, repo: filepath.Join(dir, "shop"), vars: map[string]string{
		"HOME": dir, "USERPROFILE": dir,
		// Otherwise the race detector's runtime waits a second at each exit.
		"GORACE": strings.TrimSpace(os.Getenv("GORACE") + " atexit_sleep_ms=0"),
	}}
	for _, name := range []string{"PATH", "SYSTEMROOT", "GOCOVERDIR"} {
		h.vars[name] = os.Getenv(name)
	}
	tmp := t.TempDir() // in a shared one, doctor would report files that killed processes of other tests left
	for _, name := range []string{"TMPDIR", "TMP", "TEMP"} {
		h.vars[name] = tmp
	}
	h.repository(h.repo)
	return h
}

// repository creates a directory with an empty .git directory in it.
func (h *home) repository(dir string) string {
	h.t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, ".git"), 0o755); err != nil {
		h.t.Fatal(err)
	}
	return dir
}

// newClone is like newHome, but the repository is a clone of a remote that all such homes
// share. They are one project on several devices.
func newClone(t *testing.T) *home {
	t.Helper()
	h := newHome(t)
	config := "[remote \"origin\"]\n\turl = https://example.org/acme/shop.git\n"
	if err := os.WriteFile(filepath.Join(h.repo, ".git", "config"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return h
}

// dataDir returns the program's data directory.
func (h *home) dataDir() string {
	if dir := h.vars["CAIRN_HOME"]; dir != "" {
		return dir
	}
	return filepath.Join(h.dir, ".cairn")
}

func (h *home) db() string { return filepath.Join(h.dataDir(), "cairn.db") }

// command returns a command that runs cairn in the repository, not started yet. Hooks run
// cairn-hook. The process is killed when it exceeds the home's limit.
func (h *home) command(args ...string) *exec.Cmd {
	h.t.Helper()
	// The test's own context ends before its cleanups, which still need processes.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(h.t.Context()), h.limit)
	h.t.Cleanup(cancel)
	program := h.program
	if len(args) > 0 && args[0] == "record" {
		program = filepath.Join(filepath.Dir(program), "cairn-hook"+filepath.Ext(program))
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = h.repo
	if h.as != 0 {
		actAs(cmd, h.as)
	}
	for name, value := range h.vars {
		if value != "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	return cmd
}

// ending is the result of a process.
type ending struct {
	code   int // -1 after a signal
	stdout string
	stderr string
	took   time.Duration
	state  *os.ProcessState
}

// run runs a command with an input and waits for its end.
func (h *home) run(cmd *exec.Cmd, input []byte) ending {
	h.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &stdout, &stderr
	began := time.Now()
	err := cmd.Run()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		h.t.Errorf("cairn %v: %v", cmd.Args[1:], err)
		return ending{code: -1, stderr: err.Error()}
	}
	return ending{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String(), time.Since(began), cmd.ProcessState}
}

// cairn runs a command that must succeed and returns what it printed.
func (h *home) cairn(args ...string) string {
	h.t.Helper()
	e := h.run(h.command(args...), nil)
	if e.code != 0 {
		h.t.Fatalf("cairn %v: exit %d, %s", args, e.code, e.stderr)
	}
	return e.stdout
}

// fields are the fields of a hook payload.
type fields map[string]any

// payload returns an event of session s1 in the repository, unless f overrides these
// fields.
func (h *home) payload(event string, f fields) []byte {
	h.t.Helper()
	all := fields{"hook_event_name": event, "session_id": "s1", "cwd": h.repo}
	for name, value := range f {
		all[name] = value
	}
	data, err := json.Marshal(all)
	if err != nil {
		h.t.Error(err)
	}
	return data
}

// shell returns the payload of a shell call.
func (h *home) shell(id, command string) []byte {
	h.t.Helper()
	return h.payload("PostToolUse", fields{
		"tool_name": "Bash", "tool_use_id": id, "tool_input": fields{"command": command},
		"tool_response": fields{"stdout": "ok", "stderr": "", "interrupted": false},
	})
}

// record runs the hook on a payload.
func (h *home) record(payload []byte) ending {
	h.t.Helper()
	return h.run(h.command("record"), payload)
}

// recorded runs the hook on a payload that it must accept, and returns what it
// printed.
func (h *home) recorded(payload []byte) string {
	h.t.Helper()
	e := h.record(payload)
	if e.code != 0 || e.stderr != "" {
		h.t.Fatalf("record: exit %d, %s", e.code, e.stderr)
	}
	return e.stdout
}

// opened opens the store in this process, passes it to fn, and closes it.
func (h *home) opened(fn func(ctx context.Context, c *cairn.Cairn) error) {
	h.t.Helper()
	ctx := context.WithoutCancel(h.t.Context())
	c, err := cairn.Open(cairn.Config{Home: h.dir, Dir: h.dataDir()})
	if err != nil {
		h.t.Fatal(err)
	}
	if err := errors.Join(fn(ctx, c), c.Close()); err != nil {
		h.t.Fatalf("%s: %v", c.Path(), err)
	}
}

// check runs the store's own check and reports all its findings.
func (h *home) check() {
	h.t.Helper()
	h.opened(func(ctx context.Context, c *cairn.Cairn) error {
		s, err := c.Store(ctx)
		if err != nil {
			return err
		}
		found, err := s.Check(ctx)
		more, merr := integrity.Check(ctx, observation.New(s, observation.Config{}))
		found = append(found, more...)
		lerr := s.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
			letters, err := documents.Check(ctx, tx)
			found = append(found, letters...)
			return err
		})
		for _, f := range found {
			h.t.Errorf("check: %s", f)
		}
		return errors.Join(err, merr, lerr)
	})
}

// rows returns the rows of a query, with columns separated by |.
func (h *home) rows(query string, args ...any) (out []string) {
	h.t.Helper()
	h.opened(func(ctx context.Context, c *cairn.Cairn) error {
		s, err := c.Store(ctx)
		if err != nil {
			return err
		}
		return s.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
			return tx.Each(ctx, func(r *sql.Rows) error {
				text, err := rowText(r)
				out = append(out, text)
				return err
			}, query, args...)
		})
	})
	return out
}

func rowText(r *sql.Rows) (string, error) {
	columns, err := r.Columns()
	if err != nil {
		return "", err
	}
	values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	err = r.Scan(into...)
	texts := make([]string, len(columns))
	for i, v := range values {
		texts[i] = v.String
	}
	return strings.Join(texts, "|"), err
}

// wantRows compares the rows of a query.
func (h *home) wantRows(query string, want ...string) {
	h.t.Helper()
	if got := h.rows(query); !slices.Equal(got, want) {
		h.t.Errorf("%s:\n got %q\nwant %q", query, got, want)
	}
}

// contents returns the number of rows of each content.
func (h *home) contents() map[string]int {
	h.t.Helper()
	seen := map[string]int{}
	for _, content := range h.rows(`SELECT content FROM observations`) {
		seen[content]++
	}
	return seen
}

// wantOnce reports contents that the store does not contain exactly once.
func wantOnce(t *testing.T, seen map[string]int, contents []string) {
	t.Helper()
	wrong := 0
	for _, c := range contents {
		if seen[c] == 1 {
			continue
		}
		if wrong++; wrong <= 10 {
			t.Errorf("%q is stored %d times", c, seen[c])
		}
	}
	if wrong > 10 {
		t.Errorf("… and %d more are lost or repeated", wrong-10)
	}
}

// soaking reports whether tests run longer than usual.
func soaking() bool { return os.Getenv("CAIRN_SOAK") != "" || os.Getenv("CAIRN_SOAK_KILLS") != "" }

// often returns the number of repetitions of a test: full, or again in the repeated run
// with the other driver (-short).
func often(full, again int) int {
	if testing.Short() {
		return again
	}
	return full
}

// sameWithEachDriver skips a test in the repeated run with the other driver (-short),
// because its result does not depend on SQLite.
func sameWithEachDriver(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("the same with each driver")
	}
}

// gathered is a buffer that a process writes while the test reads it.
type gathered struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (g *gathered) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.text.Write(p)
}

func (g *gathered) String() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.text.String()
}

// files returns the modes of the data directory and of the files in it, by relative path.
func (h *home) files() map[string]os.FileMode {
	h.t.Helper()
	modes := map[string]os.FileMode{}
	err := filepath.WalkDir(h.dataDir(), func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(h.dataDir(), path)
		modes[name] = info.Mode()
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return modes
}

// racing reports whether the race detector is enabled in this binary.
func racing() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "-race" && s.Value == "true" })
}

// measured is the main function of a helper program. It runs a command and prints the
// command's peak memory in bytes. Its exit code is the command's.
func measured() {
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stdin, cmd.Stderr = os.Stdin, os.Stderr
	err := cmd.Run()
	if cmd.ProcessState == nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(peakMemory(cmd.ProcessState))
	os.Exit(cmd.ProcessState.ExitCode())
}
