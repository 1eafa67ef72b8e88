package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/internal/mail/agents"
	"cairn/internal/mail/messages"
	"cairn/internal/mail/reservations"
)

// worker is one of the eight agents: a session of a host, with its own MCP server.
type worker struct {
	*yard
	number  int
	folder  string // its worktree
	codex   bool
	name    string
	session string
	lives   int // number of sessions so far
	in      *host
	server  *client
	shares  bool // its host also runs another agent, so it is never killed
}

// yard is the state that the eight agents share. holders records which agent may edit which file.
type yard struct {
	*home
	mu      sync.Mutex
	holders map[string]string
	sent    map[string][]string // subjects by recipient
	events  map[string]int
}

// edit runs the guard's hook on a file of the worker's worktree.
func (w *worker) edit(file string) string {
	f := fields{"cwd": w.folder, "session_id": w.session, "tool_name": "Edit", "tool_input": fields{"file_path": filepath.Join(w.folder, file)}}
	if w.codex {
		f = fields{"cwd": w.folder, "session_id": w.session, "turn_id": "t", "tool_name": "apply_patch", "tool_input": fields{
			"command": "*** Begin Patch\n*** Update File: " + file + "\n*** End Patch",
		}}
	}
	return w.in.recorded(w.payload("PreToolUse", f))
}

func (w *worker) begin(source string) {
	f := fields{"cwd": w.folder, "session_id": w.session, "source": source}
	if w.codex {
		f["turn_id"] = "t"
	}
	w.in.recorded(w.payload("SessionStart", f))
}

func (w *worker) end(reason string) {
	f := fields{"cwd": w.folder, "session_id": w.session, "reason": reason}
	if w.codex {
		f["turn_id"] = "t"
	}
	w.in.recorded(w.payload("SessionEnd", f))
}

// register registers under a name. Without a name it acts like an agent that no longer knows its
// own.
func (w *worker) register(name string) string {
	program := "claude-code"
	if w.codex {
		program = "codex"
	}
	return asked[agents.Registered](w.server, "register_agent", fields{"project_key": w.folder, "program": program, "model": "m1", "session_id": w.session, "name": name}).Name
}

// renewed returns an id for the worker's next session.
func (w *worker) renewed() string {
	w.lives++
	return fmt.Sprintf("w%d-%d", w.number, w.lives)
}

const killedServer = "a killed server"

// live triggers a random event in the worker's session and returns its name. Afterwards the worker
// must be the same agent.
func (w *worker) live() string {
	switch kind := rand.N(5); {
	case kind == 0:
		w.begin("compact")
		return "compaction"
	case kind == 1:
		w.end("other")
		w.begin("resume")
		return "resume"
	case kind == 2:
		w.end("other")
		w.session = w.renewed()
		w.begin("startup")
		return "a new session"
	case kind == 3 && !w.shares:
		w.in.kill()
		w.in, w.session = w.host(), w.renewed()
		w.begin("startup")
		return "a new session after a killed one"
	default:
		if err := w.server.server.Process.Kill(); err != nil {
			w.t.Error(err)
		}
		w.server.left = true
		w.server = w.serve()
		return killedServer
	}
}

// serve starts a server in the worker's worktree.
func (w *worker) serve() *client {
	cmd := w.command("serve")
	cmd.Dir = w.folder
	c := w.dialTo(cmd, "", nil)
	w.t.Cleanup(c.leave)
	return c
}

// round reserves a file, edits it, triggers an event meanwhile, and sends mail to another agent.
func (w *worker) round(n int, names []string) {
	file := fmt.Sprintf("src/f%d.go", rand.N(6))
	g := asked[reservations.GrantedReservations](w.server, "file_reservation_paths", fields{"project_key": w.folder, "agent_name": w.name, "paths": []string{file}, "ttl_seconds": 3600})
	if len(g.Granted) == 1 {
		w.mu.Lock()
		if holder := w.holders[file]; holder != "" {
			w.t.Errorf("%s was granted %s, which %s holds", w.name, file, holder)
		}
		w.holders[file] = w.name
		w.mu.Unlock()
		event := w.live()
		if said := w.edit(file); strings.Contains(said, "reserved by") {
			w.t.Errorf("after %s %s is kept from its own %s: %s", event, w.name, file, said)
		}
		known := ""
		if event == killedServer { // the model still has its context
			known = w.name
		}
		if name := w.register(known); name != w.name {
			w.t.Errorf("after %s %s is %s", event, w.name, name)
		}
		w.mu.Lock()
		delete(w.holders, file)
		w.events[event]++
		w.mu.Unlock()
		asked[map[string]any](w.server, "release_file_reservations", fields{"project_key": w.folder, "agent_name": w.name, "paths": []string{file}})
	}
	to := names[rand.N(len(names))]
	subject := fmt.Sprintf("%d of %s", n, w.name)
	asked[map[string]any](w.server, "send_message", fields{"project_key": w.folder, "sender_name": w.name, "to": []string{to}, "subject": subject, "body_md": "b"})
	w.mu.Lock()
	w.sent[to] = append(w.sent[to], subject)
	w.mu.Unlock()
}

// TestEightAgentsOfFourWorktreesWorkSideBySide runs eight agents, two of them in one process. They
// reserve, edit and write while their sessions are compacted, resumed, replaced and killed.
// CAIRN_SOAK_AGENTS sets the duration, for example five minutes. Without it each agent has four
// rounds.
func TestEightAgentsOfFourWorktreesWorkSideBySide(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	lasting, err := time.ParseDuration(os.Getenv("CAIRN_SOAK_AGENTS"))
	if err != nil && os.Getenv("CAIRN_SOAK_AGENTS") != "" {
		t.Fatal(err)
	}
	h := newClone(t)
	h.limit += lasting
	h.settle("[guard]\nmax_ms = 20000\n")
	y := &yard{home: h, holders: map[string]string{}, sent: map[string][]string{}, events: map[string]int{}}
	folders := []string{h.repo}
	for i := range 3 {
		folders = append(folders, h.worktree(fmt.Sprint("wt", i+1)))
	}
	var all []*worker
	var names []string
	for i := range 8 {
		w := &worker{yard: y, number: i, folder: folders[i/2], codex: i%2 == 1 && i > 1, shares: i < 2}
		if w.session = w.renewed(); i == 1 {
			w.in = all[0].in
		} else {
			w.in = h.host()
		}
		w.server = w.serve()
		w.begin("startup")
		w.name = w.register("")
		if slices.Contains(names, w.name) {
			t.Fatalf("two are %s", w.name)
		}
		all, names = append(all, w), append(names, w.name)
	}
	var group sync.WaitGroup
	end := time.Now().Add(lasting)
	for i, w := range all {
		if i == 1 {
			continue // alternates with the other session of its process
		}
		group.Go(func() {
			for n := 0; lasting == 0 && n < 4 || time.Now().Before(end); n++ {
				w.round(n, names)
				if i == 0 {
					all[1].round(n, names)
				}
			}
		})
	}
	group.Wait()
	total := 0
	for _, w := range all {
		var got []string
		for _, item := range asked[[]messages.Item](w.server, "fetch_inbox", fields{"project_key": w.folder, "agent_name": w.name, "limit": 1000}) {
			got = append(got, item.Subject)
		}
		want := slices.Clone(y.sent[w.name])
		slices.Sort(want)
		slices.Sort(got)
		if len(want) < 1000 && !slices.Equal(got, want) {
			t.Errorf("%s was sent %d messages and has %d", w.name, len(want), len(got))
		}
		total += len(got)
	}
	h.wantRows(`SELECT count(*) FROM mail_agents WHERE name <> 'HumanOverseer'`, "8")
	h.check()
	t.Logf("%d messages; %v", total, y.events)
}

// worktree creates a linked worktree of the repository, like `git worktree add`.
func (h *home) worktree(name string) string {
	h.t.Helper()
	dir, own := filepath.Join(h.dir, name), filepath.Join(h.repo, ".git", "worktrees", name)
	for path, text := range map[string]string{
		filepath.Join(dir, ".git"):      "gitdir: " + own + "\n",
		filepath.Join(own, "gitdir"):    filepath.Join(dir, ".git") + "\n",
		filepath.Join(own, "commondir"): "../..\n",
		filepath.Join(own, "HEAD"):      "ref: refs/heads/" + name + "\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			h.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			h.t.Fatal(err)
		}
	}
	return dir
}
