package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestKilledProcessesLoseNothingAcknowledged kills hooks, servers and imports at random times while
// other hooks record on the same store. An event whose hook exited with 0 must be stored exactly
// once. The seed is printed; CAIRN_SEED repeats its plan, but not the machine's timing.
func TestKilledProcessesLoseNothingAcknowledged(t *testing.T) {
	t.Parallel()
	kills, seed := number(t, "CAIRN_SOAK_KILLS", int64(often(30, 15))), number(t, "CAIRN_SEED", time.Now().UnixNano())
	t.Logf("CAIRN_SEED=%d", seed)
	o := newOrdeal(t, seed)
	began := time.Now()
	o.cairn("import", o.newStory().dir)
	o.typical["import"] = time.Since(began)
	victims := []func(){
		o.killWriter,
		func() { o.amongOthers(o.killHook) },
		func() { o.amongOthers(o.killImport) },
		func() { o.amongOthers(o.killServer) },
	}
	for round := 1; o.landed() < kills && round <= 20*int(kills); round++ {
		victims[o.random.IntN(len(victims))]()
		if round%16 == 0 {
			o.verify()
		}
		if t.Failed() {
			return
		}
	}
	o.verify()
	o.importAgain()
	t.Logf("killed %v; of the killed hooks %d had stored their event", o.kills, o.storedAtDeath())
	if o.landed() < kills {
		t.Errorf("only %d processes were killed before they ended", o.landed())
	}
}

// TestKilledFirstWriterLeavesAStoreThatOthersFinish kills a process that creates the store. The
// process runs alone before others start, or is one of four concurrent processes.
func TestKilledFirstWriterLeavesAStoreThatOthersFinish(t *testing.T) {
	t.Parallel()
	seed := number(t, "CAIRN_SEED", time.Now().UnixNano())
	t.Logf("CAIRN_SEED=%d", seed)
	o := newOrdeal(t, seed)
	rounds := max(int64(often(6, 4)), number(t, "CAIRN_SOAK_KILLS", 0)/10)
	for i := range rounds {
		o.vars["CAIRN_HOME"] = filepath.Join(o.dir, fmt.Sprint("data", i))
		o.sure, o.perhaps = nil, nil
		switch i % 3 {
		case 0:
			o.killWriter()
			o.amongOthers(func() {})
		case 1:
			o.amongOthers(o.killWriter)
		default:
			o.amongOthers(o.killHook)
		}
		o.verify()
	}
	t.Logf("killed %d of %d", o.landed(), rounds)
	if o.landed() == 0 {
		t.Error("no process was killed before it ended")
	}
}

// number returns the number in an environment variable, or standard if the variable is not set.
func number(t *testing.T, name string, standard int64) int64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return standard
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// ordeal is one store whose processes are killed, and the rows that it must contain.
type ordeal struct {
	*home
	random  *rand.Rand
	events  int                      // number created so far
	kills   map[string]int64         // number of killed processes by kind
	typical map[string]time.Duration // duration by kind without a kill

	mu      sync.Mutex
	sure    []string // contents of events whose hook exited with 0
	perhaps []string // contents of events whose hook was killed
	stories []*story // imported, some only partially
}

func newOrdeal(t *testing.T, seed int64) *ordeal {
	t.Helper()
	o := &ordeal{
		home: newHome(t), random: rand.New(rand.NewPCG(uint64(seed), 0)),
		kills: map[string]int64{}, typical: map[string]time.Duration{},
	}
	o.sends(o.event())
	began := time.Now()
	o.sends(o.event())
	o.typical["record"] = time.Since(began)
	o.typical["serve"] = 2 * o.typical["record"]
	return o
}

// newStory creates a folder of transcripts to import.
func (o *ordeal) newStory() *story {
	name := fmt.Sprintf("tale%d", len(o.stories))
	// A session of more than 500 rows takes several transactions.
	s := newStory(o.t, filepath.Join(o.dir, "transcripts", name), name, o.repo, 10, 130, 10)
	o.stories = append(o.stories, s)
	return s
}

// event creates an event of a random kind whose row has unique content.
func (o *ordeal) event() (payload []byte, content string) {
	o.events++
	step := fmt.Sprintf("step%06d", o.events)
	session := fmt.Sprintf("live%d", o.random.IntN(5))
	f := fields{"session_id": session}
	switch o.random.IntN(6) {
	case 0:
		f["prompt"], content = "please do "+step+" now", "please do "+step+" now"
		f["prompt_id"] = "prompt-" + step
		return o.payload("UserPromptSubmit", f), content
	case 1:
		f["last_assistant_message"] = step + " is done."
		return o.payload("Stop", f), step + " is done."
	case 2:
		f["source"] = step
		return o.payload("SessionStart", f), step
	case 3:
		f["reason"] = step
		return o.payload("SessionEnd", f), step
	case 4:
		content = filepath.Join(o.repo, step+".go")
		f["tool_name"], f["tool_use_id"], f["tool_input"] = "Edit", "toolu_"+step, fields{"file_path": content}
		return o.payload("PostToolUse", f), content
	default:
		f["tool_name"], f["tool_use_id"] = "Bash", "toolu_"+step
		f["tool_input"] = fields{"command": "make " + step}
		return o.payload("PostToolUse", f), "make " + step
	}
}

// sends runs a hook that is not killed. It must succeed.
func (o *ordeal) sends(payload []byte, content string) {
	o.t.Helper()
	e := o.record(payload)
	if e.code != 0 || e.stderr != "" {
		o.t.Errorf("hook of %q: exit %d, %s", content, e.code, e.stderr)
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.Contains(o.sure, content) {
		o.sure = append(o.sure, content)
	}
}

// amongOthers runs a victim concurrently with three queues of hooks. The hooks of a queue run
// sequentially.
func (o *ordeal) amongOthers(victim func()) {
	type told struct {
		payload []byte
		content string
	}
	var queues [3][]told
	for i := range queues {
		for range 1 + o.random.IntN(2) {
			p, c := o.event()
			queues[i] = append(queues[i], told{p, c})
		}
	}
	var all sync.WaitGroup
	for _, queue := range queues {
		all.Go(func() {
			for _, e := range queue {
				o.sends(e.payload, e.content)
			}
		})
	}
	victim()
	all.Wait()
}

// fatal kills a started process as soon as instant returns, unless it has already exited. It
// reports whether the kill ended the process. It also updates the typical duration of this kind.
func (o *ordeal) fatal(kind string, cmd *exec.Cmd, instant func(over <-chan struct{})) (killed bool) {
	o.t.Helper()
	began := time.Now()
	over, shot := make(chan struct{}), make(chan error, 1)
	go func() {
		instant(over)
		shot <- cmd.Process.Kill()
	}()
	if err := cmd.Wait(); err != nil && cmd.ProcessState == nil {
		o.t.Fatalf("cairn %s: %v", kind, err)
	}
	close(over)
	err := <-shot
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		o.t.Errorf("kill: %v", err)
	}
	code := cmd.ProcessState.ExitCode()
	killed = err == nil && (code == -1 || runtime.GOOS == "windows" && code == 1)
	switch {
	case killed:
		if o.kills[kind]++; kind != "serve" {
			o.typical[kind] += o.typical[kind] / 20
		}
	case code == 0:
		o.typical[kind] = (o.typical[kind] + time.Since(began)) / 2
	default:
		o.t.Errorf("cairn %s: exit %d, %s", kind, code, cmd.Stderr)
	}
	return killed
}

// anyTime returns a function that waits until a random time in a process's typical life, or until
// it exits.
func (o *ordeal) anyTime(kind string) func(<-chan struct{}) {
	life := 1.1 * float64(o.typical[kind])
	timer := time.NewTimer(time.Duration(o.random.Float64() * life))
	return func(over <-chan struct{}) {
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-over:
		}
	}
}

// writing returns a function that waits until a file changes or the process exits.
func writing(path string) func(<-chan struct{}) {
	type stamp struct {
		size int64
		at   time.Time
	}
	look := func() (s stamp) {
		if info, err := os.Stat(path); err == nil {
			s = stamp{info.Size(), info.ModTime()}
		}
		return s
	}
	before := look()
	return func(over <-chan struct{}) {
		for look() == before {
			select {
			case <-over:
				return
			default:
			}
		}
	}
}

func (o *ordeal) landed() (n int64) {
	for _, k := range o.kills {
		n += k
	}
	return n
}

// start starts a process whose standard error is checked at the end.
func (o *ordeal) start(cmd *exec.Cmd) {
	o.t.Helper()
	said := &gathered{}
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() {
		for line := range strings.Lines(said.String()) {
			if !strings.HasSuffix(line, " files\n") { // a slow import prints its progress
				o.t.Errorf("cairn %v said: %s", cmd.Args[1:], line)
			}
		}
	})
}

func (o *ordeal) killHook() { o.killRecord(o.anyTime("record")) }

// killWriter kills a hook while it writes to the log, or to the database when it closes the store
// and checkpoints the log.
func (o *ordeal) killWriter() {
	o.killRecord(writing(o.db() + []string{"-wal", ""}[o.random.IntN(2)]))
}

func (o *ordeal) killRecord(instant func(<-chan struct{})) {
	payload, content := o.event()
	cmd := o.command("record")
	cmd.Stdin = bytes.NewReader(payload)
	o.start(cmd)
	killed := o.fatal("record", cmd, instant)
	o.mu.Lock()
	defer o.mu.Unlock()
	if killed {
		o.perhaps = append(o.perhaps, content)
	} else {
		o.sure = append(o.sure, content)
	}
}

// killImport kills an import while a hook reports a call that its transcripts also contain.
func (o *ordeal) killImport() {
	s := o.newStory()
	c := s.calls[o.random.IntN(len(s.calls))]
	payload := o.payload("PostToolUse", fields{
		"session_id": c.session, "tool_name": "Bash", "tool_use_id": c.id, "tool_input": fields{"command": c.command},
	})
	cmd := o.command("import", s.dir)
	o.start(cmd)
	var hook sync.WaitGroup
	hook.Go(func() { o.sends(payload, c.command) })
	o.fatal("import", cmd, o.anyTime("import"))
	hook.Wait()
}

// killServer kills a server that responds to a client and follows the log for it.
func (o *ordeal) killServer() {
	cmd := o.command("serve")
	in, err := cmd.StdinPipe()
	if err != nil {
		o.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		o.t.Fatal(err)
	}
	o.start(cmd)
	var client sync.WaitGroup
	client.Go(func() { ask(in) })
	answered := make(chan struct{})
	client.Go(func() {
		o.listen(out, answered)
	})
	<-answered // the server now responds
	o.fatal("serve", cmd, o.anyTime("serve"))
	client.Wait()
}

// ask subscribes to the context and sends requests until the server exits.
func ask(in io.WriteCloser) {
	defer in.Close()
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":"s","method":"resources/subscribe","params":{"uri":"cairn://context"}}`,
	} {
		if _, err := io.WriteString(in, line+"\n"); err != nil {
			return
		}
	}
	for i := 0; ; i++ {
		_, err := fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"search","arguments":{"query":"step*","project":"*"}}}`+"\n", i)
		if err != nil {
			return
		}
	}
}

// listen reads a server's output until its end and closes answered after the first line. Each line
// must be a message without an error, except that the last line may be incomplete.
func (o *ordeal) listen(out io.Reader, answered chan<- struct{}) {
	r := bufio.NewReader(out)
	for n := 0; ; n++ {
		line, err := r.ReadBytes('\n')
		if n == 0 {
			close(answered)
		}
		if err != nil {
			return
		}
		var m struct{ Error any }
		if err := json.Unmarshal(line, &m); err != nil || m.Error != nil {
			o.t.Errorf("the server said %.300s", line)
		}
	}
}

// verify completes the interrupted imports and compares the store with its expected rows. A newly
// started server must respond.
func (o *ordeal) verify() {
	o.t.Helper()
	o.check()
	if len(o.stories) > 0 {
		o.cairn("import", filepath.Join(o.dir, "transcripts"))
	}
	seen := o.contents()
	sure := slices.Clone(o.sure)
	var digests []string
	for _, s := range o.stories {
		sure, digests = append(sure, s.contents...), append(digests, s.digests...)
	}
	wantOnce(o.t, seen, sure)
	for _, c := range append(sure, o.perhaps...) {
		if seen[c] > 1 {
			o.t.Errorf("%q is stored %d times", c, seen[c])
		}
		delete(seen, c)
	}
	for c := range seen {
		o.t.Errorf("%q is stored and nobody told it", c)
	}
	slices.Sort(digests)
	o.wantRows(`SELECT id, summary ->> '$.prompts', summary ->> '$.actions' FROM sessions
		WHERE id LIKE 'tale%' ORDER BY id`, digests...)
	o.wantRows(`SELECT session_id, tool_use_id, part FROM observations
		WHERE tool_use_id IS NOT NULL GROUP BY 1, 2, 3 HAVING count(*) > 1`)
	client := o.connect("", nil)
	if hits := client.rows("search", fields{"query": "step*", "project": "*", "limit": 100}); len(hits) == 0 {
		o.t.Error("a server started afterwards finds nothing")
	}
	client.leave()
}

// importAgain imports the same transcripts from another folder. All lines are read again, and no
// row is added.
func (o *ordeal) importAgain() {
	o.t.Helper()
	other := filepath.Join(o.dir, "elsewhere")
	if err := os.Rename(filepath.Join(o.dir, "transcripts"), other); err != nil {
		o.t.Fatal(err)
	}
	if n := added(o.t, o.cairn("import", "--json", other)); n != 0 {
		o.t.Errorf("importing once more added %d rows", n)
	}
	o.check()
}

// storedAtDeath counts the killed hooks that had committed their event.
func (o *ordeal) storedAtDeath() (n int) {
	seen := o.contents()
	for _, c := range o.perhaps {
		n += seen[c]
	}
	return n
}
