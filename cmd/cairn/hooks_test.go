package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"cairn/internal/followers"
)

// TestHooksOfATestBuild controls a build with test hooks from outside (memories §15).
func TestHooksOfATestBuild(t *testing.T) {
	t.Parallel()
	program := testBuild(t)
	for _, point := range []string{
		"before_local_commit", "after_local_commit", "after_ack", "after_lease", "before_hub_send", "after_hub_201", "after_backend_201",
		"before_flip_commit", "after_flip_commit", "mid_pull", "mid_purge", "mid_migration",
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			deviceCrashes(newPair(t, program), point)
		})
	}
	for _, point := range []string{"archive_rendered", "archive_written", "archive_committed", "archive_advanced"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			archiveDies(t, program, point)
		})
	}
	for _, point := range []string{"follower_read", "follower_worked", "follower_advanced"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			embedderDies(t, program, point)
		})
	}
	for _, point := range []string{"hub_before_commit", "hub_after_commit"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			hubCrashes(newPair(t, program), point)
		})
	}
	for name, do := range map[string]func(*pair){
		"clock, pause and settings outlast a crash": outlastACrash, "shards": occupyShards, "adding": addMany,
		"purge and counts": purgeAndCount, "backend": scriptBackend, "reset": resetAll,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			do(newPair(t, program))
		})
	}
	t.Run("only with both, on loopback", func(t *testing.T) {
		t.Parallel()
		h := newHome(t)
		h.program = program
		onlyWithBoth(h)
	})
}

// deviceCrashes writes entries before and after a crash of the device.
func deviceCrashes(p *pair, point string) {
	d := p.device
	d.t.Helper()
	if status, _ := p.put("before"); status != http.StatusAccepted {
		d.t.Fatalf("before: %d", status)
	}
	d.ctl(nil, "wait-synced", p.of())
	if _, running := d.replicates(); !running {
		d.t.Error("status does not say that the device's server replicates")
	}
	if point == "mid_migration" { // only a new store reaches this point
		d.ctl(nil, "crash-point", fields{"at": point})
		d.refuses("hub_unavailable", "reset", p.layout())
		d.died(point)
		d.start()
		p.reset()
		p.put("before")
	} else {
		d.ctl(nil, "crash-point", fields{"at": point})
	}
	status, local := p.put("one")
	switch point {
	case "before_local_commit", "after_local_commit":
		if status != 0 {
			d.t.Errorf("a write was answered with %d before it was to be", status)
		}
	case "mid_purge", "mid_migration", "after_ack":
		if status != http.StatusAccepted {
			d.t.Errorf("the write: %d", status)
		}
	}
	if point == "mid_purge" {
		d.ctl(nil, "wait-synced", p.of())
		d.refuses("hub_unavailable", "purge", fields{"ignore_age": true})
	}
	if point != "mid_migration" {
		d.died(point)
		d.tellsWhatWaits(point)
		d.start()
	}
	again, id := p.put("one") // with the same key
	if again != http.StatusAccepted || local != "" && id != local {
		d.t.Errorf("the same again: %d %s, was %s", again, id, local)
	}
	p.put("two")
	p.holds("before", "one", "two")
}

// tellsWhatWaits checks the replication status after a crash of the device. An entry is pending
// from its commit until the hub has it. Until the device stores the hub's response, the entry may
// still be pending or not, because a pull can deliver it.
func (p *controlled) tellsWhatWaits(point string) {
	p.t.Helper()
	waits, known := map[string]bool{ // at the other points both results are valid
		"before_local_commit": false, "after_local_commit": true, "after_lease": true, "before_hub_send": true,
		"after_flip_commit": false, "mid_purge": false,
	}[point]
	behind, running := p.replicates()
	if running || known && waits != (behind > 0) {
		p.t.Errorf("%s: status says that %d changes wait, running: %v", point, behind, running)
	}
}

// replicates returns the replication status, read by a separate status process.
func (p *controlled) replicates() (behind int64, running bool) {
	p.t.Helper()
	for _, f := range p.followers().Followers {
		if f.Follower == followers.Replication && f.Lane != "" {
			behind, running = behind+f.Behind, running || f.Running
		}
	}
	return behind, running
}

// hubCrashes writes entries before and after a crash of the hub. The hub crashes when it reaches
// the point for the second time.
func hubCrashes(p *pair, point string) {
	p.hub.t.Helper()
	p.hub.ctl(nil, "crash-point", fields{"at": point, "skip": 1})
	p.put("before")
	p.device.ctl(nil, "wait-synced", p.of())
	if status, _ := p.put("one"); status != http.StatusAccepted {
		p.hub.t.Errorf("the write: %d", status)
	}
	p.hub.died(point)
	p.put("two")
	p.hub.start()
	p.device.ctl(nil, "wait-synced", p.of())
	p.holds("before", "one", "two")
}

type clockState struct {
	Now          time.Time
	Frozen, Real bool
}

type hookState struct {
	PID    int
	Clock  clockState
	Config map[string]string
	Points []struct {
		At   string
		Skip int
	}
	Holds []string
}

func (p *controlled) state() (s hookState) {
	p.t.Helper()
	p.ctl(&s, "state")
	return s
}

func outlastACrash(p *pair) {
	d := p.device
	s := d.state()
	d.is("the process", s.PID, d.cmd.Process.Pid)
	d.is("the clock", s.Clock.Real, true)
	d.ctl(nil, "config", fields{"shards": 3, "hub.batch": "7", "memory.redact": false})
	at := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	d.ctl(nil, "clock", fields{"set": at, "frozen": true})
	d.ctl(nil, "clock", fields{"advance_ms": 1500})
	p.hub.ctl(nil, "clock", fields{"set": at})
	d.ctl(nil, "replication", fields{"state": "paused"})
	d.ctl(nil, "crash-point", fields{"at": "after_lease", "skip": 2})
	d.is("what is armed", fmt.Sprint(d.state().Points), "[{after_lease 2}]")
	d.refuses("hub_unavailable", "crash")
	p.hub.refuses("hub_unavailable", "crash")
	d.died("")
	p.hub.died("")
	d.start()
	p.hub.start()
	s = d.state()
	d.is("the clock", s.Clock, clockState{Now: at.Add(1500 * time.Millisecond), Frozen: true})
	d.is("the settings", s.Config, map[string]string{"memory.shards": "3", "hub.batch": "7", "memory.redact": "false"})
	d.is("what is armed", len(s.Points), 0)
	if now := p.hub.state().Clock; now.Frozen || now.Real || now.Now.Sub(at) < 0 || now.Now.Sub(at) > stopLimit {
		d.t.Errorf("the hub's clock: %v", now)
	}
	p.put("one")
	d.refuses("await_timeout", "wait-synced", p.of("timeout_ms", 0))
	if got := d.cairn("replication", "status", "--json"); !strings.Contains(got, `"state": "paused"`) {
		d.t.Errorf("replication: %s", got)
	}
	if got := d.cairn("memory", "list-inflight-entries", "--memory", p.memory, "--json"); !strings.Contains(got, `"2031-02-03T04:05:07.5Z"`) {
		d.t.Errorf("inflight: %s", got)
	}
	d.ctl(nil, "replication", fields{"state": "running"})
	d.ctl(nil, "clock", fields{"real": true})
	p.holds("one")
	d.ctl(nil, "config", fields{})
	d.is("the settings", len(d.state().Config), 0)
	d.refuses("validation_error", "config", fields{"shards": 0})
	d.refuses("validation_error", "config", fields{"shard": 1})
	d.refuses("validation_error", "clock", fields{"real": true, "advance_ms": 1})
	d.refuses("validation_error", "crash-point", fields{"at": "hub_before_commit"})
	d.refuses("not_found", "nothing")
}

func occupyShards(p *pair) {
	d := p.device
	d.ctl(nil, "config", fields{"settings": fields{"shards": 1, "queue_len": 2, "enqueue_timeout_ms": 20}})
	d.ctl(nil, "shard/hold", p.of())
	d.is("the held", d.state().Holds, []string{p.memory})
	d.refuses("already_exists", "shard/hold", p.of())
	var job struct{ Job string }
	d.ctl(&job, "add-many", p.of("prefix", "n", "n", 5, "concurrent", true, "async", true))
	var sofar struct {
		Done     bool
		Statuses []int
		LocalIDs []*string `json:"local_ids"`
	}
	d.soon("the refused", func() bool { d.ctl(&sofar, "job", fields{"id": job.Job}); return len(sofar.Statuses) == 3 })
	d.is("the refused", sofar.Statuses, []int{429, 429, 429})
	d.is("the job", sofar.Done, false)
	if got := d.cairn("memory", "list-inflight-entries", "--memory", p.memory, "--json"); !strings.Contains(got, `"count": 0`) {
		d.t.Errorf("inflight while the worker is held: %s", got)
	}
	d.ctl(nil, "shard/release", p.of())
	d.soon("the job", func() bool { d.ctl(&sofar, "job", fields{"id": job.Job}); return sofar.Done })
	d.is("the accepted", sofar.Statuses, []int{429, 429, 429, 202, 202})
	d.is("the held", len(d.state().Holds), 0)
	d.ctl(nil, "shard/hold", p.of("ms", 1))
	if status, _ := p.put("behind"); status != http.StatusAccepted {
		d.t.Errorf("behind a hold that ends by itself: %d", status)
	}
	d.ctl(nil, "shard/panic", p.of())
	if status, _ := p.put("panics"); status != http.StatusInternalServerError {
		d.t.Errorf("a job that panics: %d", status)
	}
	if status, _ := p.put("after"); status != http.StatusAccepted {
		d.t.Errorf("after a panic: %d", status)
	}
	d.ctl(nil, "shard/hold", p.of())
	d.ctl(nil, "config", fields{}) // releases the process
	d.refuses("not_found", "shard/hold", fields{"memory": p.made.Users["ann"].UserID})
	d.refuses("validation_error", "shard/panic", fields{"memory": "log"})
	d.refuses("not_found", "job", fields{"id": "job-9"})
}

func addMany(p *pair) {
	d := p.device
	var added struct {
		Statuses []int
		LocalIDs []string `json:"local_ids"`
	}
	d.ctl(&added, "add-many", p.of("prefix", "e", "n", 3))
	d.is("statuses", added.Statuses, []int{202, 202, 202})
	d.is("localIds", added.LocalIDs, []string{"pending-1", "pending-2", "pending-3"})
	p.holds("e1", "e2", "e3")
	d.ctl(&added, "add-many", p.of("prefix", "f", "n", 40, "concurrent", 8))
	d.is("statuses", added.Statuses, slices.Repeat([]int{202}, 40))
	slices.Sort(added.LocalIDs)
	d.is("different localIds", len(slices.Compact(added.LocalIDs)), 40)
	d.ctl(nil, "wait-synced", p.of())
	var took struct{ P50, P95, P99, Max float64 }
	d.ctl(&took, "ack-latency", p.of("n", 20))
	if took.P50 <= 0 || took.P50 > took.P95 || took.P95 > took.P99 || took.P99 > took.Max {
		d.t.Errorf("latency: %+v", took)
	}
}

func purgeAndCount(p *pair) {
	d := p.device
	type counts struct {
		Entries, Inflight, Changes, Failures int
		Position                             int64
	}
	var c counts
	d.ctl(nil, "add-many", p.of("prefix", "e", "n", 2))
	for range 2 {
		d.cairn("memory", "update-context", "--memory", p.memory, "the context")
	}
	d.ctl(nil, "wait-synced", p.of())
	d.ctl(&c, "counts", p.of())
	if c.Entries != 2 || c.Inflight != 0 || c.Failures != 0 || c.Changes < 5 || c.Position == 0 {
		d.t.Errorf("counts: %+v", c)
	}
	var rows struct{ Count int }
	d.ctl(&rows, "context-rows", p.of())
	d.is("rows of the context", rows.Count, 2)
	d.ctl(nil, "replication", fields{"state": "paused"})
	d.ctl(nil, "add-many", p.of("prefix", "late", "n", 1, "concurrent", false))
	d.ctl(&c, "counts", p.of())
	d.is("inflight", c.Inflight, 1)
	var purged struct{ Entries, Contexts int }
	d.ctl(&purged, "purge", fields{"ignore_age": true})
	d.is("purged beside what is pending", purged.Entries, 0)
	d.ctl(nil, "replication", fields{"state": "running"})
	d.ctl(nil, "wait-synced", p.of())
	d.ctl(&purged, "purge", fields{"ignore_age": true})
	d.is("purged", purged.Entries, 3)
	d.ctl(&c, "counts", p.of())
	d.ctl(&rows, "context-rows", p.of())
	d.is("entries", c.Entries, 0)
	d.is("rows of the context", rows.Count, 1)
	var ops struct{ Ops []string }
	p.hub.ctl(&ops, "backend/ops", p.of("all", 1))
	d.is("what the hub took", ops.Ops, []string{"entry:e1", "entry:e2", "context:the context", "context:the context", "entry:late1"})
}

func scriptBackend(p *pair) {
	d := p.device
	attempts := func(want int) {
		d.t.Helper()
		var got struct{ Attempts int }
		p.hub.ctl(&got, "backend/attempts")
		d.is("attempts", got.Attempts, want)
	}
	// The hub rejects the first entry temporarily. This does not affect the second entry in the
	// same push.
	d.ctl(nil, "replication", fields{"state": "paused"})
	p.hub.ctl(nil, "backend", fields{"mode": "script", "statuses": []int{503, 201, 422}})
	p.put("a")
	p.put("b")
	p.put("c")
	d.ctl(nil, "replication", fields{"state": "running"})
	d.ctl(nil, "wait-synced", p.of())
	attempts(4)
	var c struct {
		Entries, Inflight, Changes, Failures int
		Position                             int64
	}
	d.ctl(&c, "counts", p.of())
	d.is("failures", c.Failures, 1)
	d.cairn("replication", "retry")
	p.holds("a", "c", "b")
	// One memory fails and another one works.
	p.hub.ctl(nil, "backend", fields{"mode": "fail_memory", "memory": p.memory, "status": 503})
	d.ctl(nil, "add-many", p.of("prefix", "late", "n", 1))
	d.ctl(nil, "add-many", fields{"memory": p.made.Memories["other"], "prefix": "o", "n": 1})
	d.ctl(nil, "wait-synced", fields{"memory": p.made.Memories["other"]})
	d.refuses("await_timeout", "wait-synced", p.of("timeout_ms", 0))
	// A hub that is down refuses connections, except on its control listener.
	p.hub.ctl(nil, "backend", fields{"mode": "down"})
	if conn, err := new(net.Dialer).DialContext(d.t.Context(), "tcp", strings.TrimPrefix(p.hub.url, "http://")); err == nil {
		d.t.Error("a hub that is down listens", conn.Close())
	}
	attempts(0)
	p.hub.ctl(nil, "backend", fields{"mode": "down"})
	// A slow hub delays its response.
	p.hub.ctl(nil, "backend", fields{"mode": "slow", "delay_ms": 600_000})
	p.put("slow")
	d.refuses("await_timeout", "wait-synced", p.of("timeout_ms", 300))
	attempts(0)
	p.hub.ctl(nil, "backend", fields{"mode": "up"})
	p.holds("a", "c", "b", "late1", "slow")
	for _, bad := range []fields{{"mode": "sideways"}, {"mode": "script", "statuses": []int{12}}, {"mode": "fail_memory", "status": 503}} {
		p.hub.refuses("validation_error", "backend", bad)
	}
}

func resetAll(p *pair) {
	d := p.device
	p.put("gone")
	d.ctl(nil, "replication", fields{"state": "paused"})
	d.ctl(nil, "config", fields{"shards": 5})
	d.ctl(nil, "clock", fields{"advance_ms": 1e9})
	d.ctl(nil, "crash-point", fields{"at": "before_local_commit"})
	p.hub.ctl(nil, "backend", fields{"mode": "down"})
	before := p.memory
	p.reset()
	if p.memory == "" || p.memory == before || len(p.made.Users) != 2 || len(p.made.Vaults) != 2 || len(p.made.Memories) != 3 {
		d.t.Errorf("made: %+v", p.made)
	}
	s := d.state()
	d.is("the clock", s.Clock.Real, true)
	d.is("settings and points", len(s.Config)+len(s.Points), 0)
	p.put("kept")
	p.holds("kept")
	d.refuses("validation_error", "reset", fields{"hub": p.hub.url, "users": []string{"ann"}})
	d.refuses("validation_error", "reset", fields{"users": []string{"ann"}, "vaults": []fields{{"name": "v", "owner": "eve"}}})
	p.hub.refuses("validation_error", "reset", fields{"users": []string{"ann"}})
	// Without a hub the local store is authoritative.
	d.ctl(nil, "reset", fields{"users": []string{"ann"}})
	if got := d.cairn("replication", "status", "--json"); !strings.Contains(got, `"state": "none"`) {
		d.t.Errorf("replication: %s", got)
	}
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		d.t.Fatal(err)
	}
	if err := d.cmd.Wait(); err != nil {
		d.t.Errorf("after resets the server ends with %v, %s", err, d.said)
	}
}

func onlyWithBoth(h *home) {
	h.t.Helper()
	p := h.hub("--test-hooks", "127.0.0.1:0") // prints one line
	p.stop()
	h.vars["CAIRN_TEST_HOOKS"] = "1"
	p = h.hub()
	p.stop()
	for _, args := range [][]string{
		{"hub", "--listen", "127.0.0.1:0", "--test-hooks", "0.0.0.0:0"},
		{"serve", "--test-hooks", "127.0.0.1:0"},
	} {
		if e := h.run(h.command(args...), nil); e.code != 2 {
			h.t.Errorf("%v: exit %d, %s", args, e.code, e.stderr)
		}
	}
	at := h.control("hub", "--listen", "127.0.0.1:0")
	r, err := http.NewRequestWithContext(context.WithoutCancel(h.t.Context()), http.MethodGet, at.control+"/test/state", nil)
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Origin", "https://page.example")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	if answer.StatusCode != http.StatusForbidden {
		h.t.Errorf("a page: %d", answer.StatusCode)
	}
	if err := answer.Body.Close(); err != nil {
		h.t.Error(err)
	}
}
