package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// hookBudget is the time after which an agent's host aborts a hook. It limits every wait in these
// tests. The actual wait times of hooks are logged.
const hookBudget = 10 * time.Second

// TestThirtyTwoFirstWritersLoseNothing starts 32 hooks on a missing store. All of them are running
// before the first one may read its event.
func TestThirtyTwoFirstWritersLoseNothing(t *testing.T) {
	t.Parallel()
	const writers = 32
	h := newHome(t)
	var hooks [writers]*exec.Cmd
	var said [writers]bytes.Buffer
	start := make(chan struct{})
	var fed sync.WaitGroup
	var want []string
	for i := range hooks {
		hooks[i] = h.command("record")
		hooks[i].Stdout, hooks[i].Stderr = &said[i], &said[i]
		in, err := hooks[i].StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := hooks[i].Start(); err != nil {
			t.Fatal(err)
		}
		command := fmt.Sprintf("make part%d", i)
		want = append(want, command)
		payload := h.shell(fmt.Sprintf("toolu_%d", i), command)
		fed.Go(func() {
			defer in.Close()
			<-start
			if _, err := in.Write(payload); err != nil {
				t.Errorf("writer %d: %v", i, err)
			}
		})
	}
	close(start)
	fed.Wait()
	for i, hook := range hooks {
		if err := hook.Wait(); err != nil || said[i].Len() > 0 {
			t.Errorf("writer %d: %v, %s", i, err, &said[i])
		}
	}
	h.check()
	wantOnce(t, h.contents(), want)
	h.wantRows(`SELECT count(*) FROM observations`, fmt.Sprint(writers))
	h.wantModes()
}

// wait is the longest duration of a hook so far.
type wait struct {
	mu      sync.Mutex
	longest time.Duration
	hooks   int
}

func (w *wait) add(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.longest, w.hooks = max(w.longest, d), w.hooks+1
}

// loop runs hooks sequentially while more returns true, and returns the contents that they stored.
// No hook may return an error.
func (h *home) loop(w *wait, name string, more func() bool) (contents []string) {
	for i := 0; more(); i++ {
		command := fmt.Sprintf("make %s%d", name, i)
		e := h.record(h.shell(fmt.Sprintf("toolu_%s_%d", name, i), command))
		w.add(e.took)
		if e.code != 0 || e.stdout+e.stderr != "" || e.took > hookBudget {
			h.t.Errorf("hook %d of %s: exit %d after %v, %s", i, name, e.code, e.took, e.stderr)
			return contents
		}
		contents = append(contents, command)
	}
	return contents
}

// TestEightWritersBesideAServerLoseNothing runs eight loops of hooks while a server continuously
// responds to a client.
func TestEightWritersBesideAServerLoseNothing(t *testing.T) {
	t.Parallel()
	const writers = 8
	h := newHome(t)
	h.recorded(h.shell("toolu_first", "make first"))
	c := h.connect("", nil)
	length := 2 * time.Second
	if soaking() {
		length = 10 * time.Second
	}
	end := time.Now().Add(length)
	more := func() bool { return time.Now().Before(end) }

	var w wait
	var written [writers][]string
	var all sync.WaitGroup
	for i := range written {
		all.Go(func() { written[i] = h.loop(&w, fmt.Sprintf("writer%dstep", i), more) })
	}
	asked := 0
	for ; more(); asked++ {
		if len(c.rows("search", fields{"query": "make", "limit": 5})) == 0 {
			t.Error("the server found nothing")
		}
	}
	all.Wait()

	want := []string{"make first"}
	for _, list := range written {
		want = append(want, list...)
	}
	newest := strings.TrimPrefix(want[len(want)-1], "make ")
	if len(c.rows("search", fields{"query": newest})) != 1 {
		t.Errorf("the server does not see %q, though its hook has exited", newest)
	}
	c.leave()
	h.check()
	wantOnce(t, h.contents(), want)
	h.wantRows(`SELECT count(*) FROM observations`, fmt.Sprint(len(want)))
	t.Logf("%d hooks, the longest took %v; %d questions answered meanwhile", w.hooks, w.longest, asked)
}

// TestHooksAreNotHeldUpByAnImport records while an import stores thousands of rows. The hooks
// report some of the same rows.
func TestHooksAreNotHeldUpByAnImport(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.recorded(h.shell("toolu_first", "make first"))
	turns := []int{300, 300, 300, 300}
	if soaking() {
		turns = append(turns, 5000, 5000)
	}
	s := newStory(t, filepath.Join(h.dir, "transcripts"), "tale", h.repo, turns...)
	cmd := h.command("import", "--json", s.dir)
	over := make(chan struct{})
	var report ending
	go func() {
		defer close(over)
		report = h.run(cmd, nil)
	}()
	more := func() bool {
		select {
		case <-over:
			return false
		default:
			return true
		}
	}

	var w wait
	var written [2][]string
	var all sync.WaitGroup
	for i := range written {
		all.Go(func() { written[i] = h.loop(&w, fmt.Sprintf("beside%dstep", i), more) })
	}
	all.Go(func() {
		for _, c := range s.calls[len(s.calls)-20:] {
			e := h.record(h.payload("PostToolUse", fields{
				"session_id": c.session, "tool_name": "Bash", "tool_use_id": c.id, "tool_input": fields{"command": c.command},
			}))
			if w.add(e.took); e.code != 0 {
				t.Errorf("a call that is imported too: exit %d, %s", e.code, e.stderr)
			}
		}
	})
	all.Wait()
	<-over

	if report.code != 0 {
		t.Fatalf("import: exit %d, %s", report.code, report.stderr)
	}
	h.check()
	want := append([]string{"make first"}, s.contents...)
	want = append(append(want, written[0]...), written[1]...)
	wantOnce(t, h.contents(), want)
	h.wantRows(`SELECT count(*) FROM observations`, fmt.Sprint(len(want)))
	t.Logf("%d hooks beside an import of %d rows in %v; the longest took %v", w.hooks, len(s.contents), report.took, w.longest)
}

// TestTwoImportsOfTheSameFolderAddEveryRowOnce starts both imports concurrently on a missing store.
func TestTwoImportsOfTheSameFolderAddEveryRowOnce(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	s := newStory(t, filepath.Join(h.dir, "transcripts"), "tale", h.repo, 140, 20, 20, 60)
	var reports [2]ending
	var both sync.WaitGroup
	for i := range reports {
		cmd := h.command("import", "--json", s.dir)
		both.Go(func() { reports[i] = h.run(cmd, nil) })
	}
	both.Wait()
	sum := 0
	for _, r := range reports {
		if r.code != 0 {
			t.Fatalf("import: exit %d, %s", r.code, r.stderr)
		}
		n := added(t, r.stdout)
		t.Logf("added %d", n)
		sum += n
	}
	if sum != len(s.contents) {
		t.Errorf("both together report %d added rows, want %d", sum, len(s.contents))
	}
	h.check()
	wantOnce(t, h.contents(), s.contents)
	h.wantRows(`SELECT count(*) FROM observations`, fmt.Sprint(len(s.contents)))
	h.wantRows(`SELECT id, summary ->> '$.prompts', summary ->> '$.actions' FROM sessions ORDER BY id`, s.digests...)
	if n := added(t, h.cairn("import", "--json", s.dir)); n != 0 {
		t.Errorf("a third import added %d rows", n)
	}
}

// wantModes expects that only the owner can access the data directory and everything in it.
func (h *home) wantModes() {
	h.t.Helper()
	if runtime.GOOS == "windows" {
		return // on Windows, permissions are not mode bits
	}
	for path, mode := range h.files() {
		want := "-rw-------"
		if path == "." {
			want = "drwx------"
		}
		if mode.String() != want {
			h.t.Errorf("%s has mode %v, want %s", path, mode, want)
		}
	}
}

// TestHooksImportsSweepsAndAPurgeAtOnce runs processes of every kind on one store. Hooks lose
// nothing. Nothing of the purged session remains or is stored again.
func TestHooksImportsSweepsAndAPurgeAtOnce(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	dir := filepath.Join(h.dir, "transcripts")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var lines bytes.Buffer
	for i := range 1500 {
		fmt.Fprintf(&lines, `{"type":"user","uuid":"u%d","sessionId":"old","cwd":%q,"timestamp":"2026-01-02T10:%02d:%02dZ","message":{"content":"quagga number %d"}}`+"\n",
			i, h.repo, i/60, i%60, i)
	}
	if err := os.WriteFile(filepath.Join(dir, "old.jsonl"), lines.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	h.recorded(h.payload("UserPromptSubmit", fields{"session_id": "old", "prompt": "quagga number none"}))

	const hooks = 12
	var want []string
	var all sync.WaitGroup
	run := func(what string, args ...string) {
		all.Go(func() {
			if e := h.run(h.command(args...), nil); e.code != 0 {
				t.Errorf("%s: exit %d, %s", what, e.code, e.stderr)
			}
		})
	}
	run("import", "import", dir)
	run("the same import", "import", dir)
	run("sweep", "sweep")
	run("purge", "purge", "--session", "old", "--confirm")
	for i := range hooks {
		want = append(want, fmt.Sprint("make part", i))
		payload := h.shell(fmt.Sprint("toolu_", i), want[i])
		all.Go(func() {
			if e := h.record(payload); e.code != 0 {
				t.Errorf("hook %d: exit %d, %s", i, e.code, e.stderr)
			}
		})
		all.Go(func() {
			start := h.payload("SessionStart", fields{"session_id": fmt.Sprint("n", i), "source": "startup"})
			if e := h.record(start); e.code != 0 {
				t.Errorf("start %d: exit %d, %s", i, e.code, e.stderr)
			}
		})
	}
	all.Wait()
	h.cairn("import", dir)
	h.wantRows(`SELECT count(*) FROM observations WHERE session_id = 'old'`, "0")
	h.wantRows(`SELECT count(*) FROM sessions WHERE id = 'old'`, "0")
	h.wantRows(`SELECT count(*) FROM sessions WHERE id LIKE 'n%'`, fmt.Sprint(hooks))
	wantOnce(t, h.contents(), want)
	h.check()
}
