package replica_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cairn/internal/fault"
	"cairn/internal/hub"
	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/entries"
	"cairn/internal/memory/memories"
	"cairn/internal/memory/replication"
	"cairn/internal/memory/rules"
	"cairn/internal/memory/shards"
	"cairn/internal/replica"
	"cairn/internal/store"
	"cairn/internal/store/follow"
	"cairn/internal/store/storetest"
)

// childVar tells a child process what it is, in JSON.
const childVar = "CAIRN_REPLICA_CHILD"

// errand is what a child does: it serves a hub's database, or it is a device that
// writes and replicates. It ends when it is killed or its standard input ends.
type errand struct {
	Database string // of a hub

	Store, URL, Secret, User string
	Name                     string   // of what it writes
	Memories                 []string // to which it writes in turn
	Count                    int      // entries, some of which it may have written before
	Pace                     time.Duration
}

// childMain does a child's errand; false if this process is none.
func childMain() bool {
	text := os.Getenv(childVar)
	if text == "" {
		return false
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	var e errand
	err := json.Unmarshal([]byte(text), &e)
	switch {
	case err != nil:
	case e.Database != "":
		err = e.serve(ctx)
	default:
		err = e.work(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

func (e errand) serve(ctx context.Context) error {
	h, err := hub.Open(ctx, hub.Config{Database: e.Database, Log: slog.New(slog.DiscardHandler), Pool: 4})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	storetest.Tell("http://" + l.Addr().String())
	return errors.Join(h.Serve(ctx, l, "child", nil), h.Close())
}

func (e errand) work(ctx context.Context) error {
	s, err := store.Open(ctx, storetest.Config(store.Config{Path: e.Store, Wait: 20 * time.Second}))
	if err != nil {
		return err
	}
	b := memories.New(s, memory.Config{})
	client, err := replica.NewClient(e.URL, e.Secret, 5*time.Second, false)
	if err != nil {
		return err
	}
	storetest.Tell("ready")
	var group sync.WaitGroup
	group.Go(func() {
		me, err := b.Whoami(ctx, memory.Caller{User: e.User})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		one := replica.New(replica.Config{Store: s, Book: b, User: e.User, Generation: me.Generation, Client: client, Batch: 20})
		if err := one.Run(ctx); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	})
	tick := time.NewTicker(max(e.Pace, time.Millisecond))
	defer tick.Stop()
	progress := e.Store + "-progress" // how far it was surely written; what is behind is repeated under its key
	text, _ := os.ReadFile(progress)
	first, _ := strconv.Atoi(string(text))
	for n := first; n < e.Count && err == nil && ctx.Err() == nil; n++ {
		if err = e.write(ctx, b, n); err == nil {
			err = errors.Join(os.WriteFile(progress+"-next", []byte(strconv.Itoa(n)), 0o600), os.Rename(progress+"-next", progress))
		}
		<-tick.C
	}
	if ctx.Err() != nil {
		err = nil
	}
	group.Wait()
	return errors.Join(err, b.Stop(context.Background()), s.Close())
}

// write writes the nth entry to one of the memories, or finds that it was written.
func (e errand) write(ctx context.Context, b *memories.Service, n int) error {
	to := e.Memories[n%len(e.Memories)]
	c := memory.Caller{User: e.User, Key: fmt.Sprint(e.Name, "-", n)}
	_, _, err := b.AddEntry(ctx, c, contents.NewEntry{MemoryID: to, RawEntry: fmt.Sprint(e.Name, n/len(e.Memories))})
	if err == nil && n%7 == 3 {
		_, _, err = b.UpdateContext(ctx, c, entries.NewDocument{MemoryID: to, SessionID: rules.NewID(), Markdown: fmt.Sprint(e.Name, " ", n)})
	}
	if f := fault.As(err); err != nil && f.Code == memory.CodeMismatch {
		err = nil // the context's session is another one
	}
	return err
}

// process is a child that is killed and started again.
type process struct {
	testing.TB
	errand errand
	url    atomic.Pointer[string] // of a hub
	child  *storetest.Process
}

func (p *process) start() {
	p.Helper()
	text, err := json.Marshal(p.errand)
	if err != nil {
		p.Fatal(err)
	}
	p.child = storetest.StartProcess(p, storetest.Command("", childVar+"="+string(text), "GORACE=atexit_sleep_ms=0"))
	url, ok := p.child.Line(p)
	if !ok {
		_, err := p.child.Wait(p)
		p.Fatalf("a child did not start: %v", err)
	}
	p.url.Store(&url)
}

func (p *process) kill() { p.child.Kill() }

// finish lets a child end by itself.
func (p *process) finish() { p.Helper(); p.child.Finish(p) }

// balancer passes requests to any of some hub processes.
func balancer(hubs []*process) http.Handler {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		ask, err := http.NewRequestWithContext(r.Context(), r.Method, *hubs[rand.N(len(hubs))].url.Load()+r.URL.RequestURI(), bytes.NewReader(body))
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		ask.Header = r.Header.Clone()
		answer, err := client.Do(ask)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer answer.Body.Close()
		w.WriteHeader(answer.StatusCode)
		_, _ = io.Copy(w, answer.Body)
	})
}

// Three devices and two hub processes over one database, all of them killed again and
// again at any moment, while one memory is refused throughout: in the end all devices
// hold the same, each word once and in its writer's order.
func TestKilledDevicesAndHubsConverge(t *testing.T) {
	t.Parallel()
	lasting, pause, pace := time.Minute, 2*time.Second, 100*time.Millisecond
	if os.Getenv("CAIRN_SOAK") != "" {
		lasting, pause, pace = 10*time.Minute, 500*time.Millisecond, 40*time.Millisecond
	} else if testing.Short() {
		lasting, pause, pace = 3*time.Second, 500*time.Millisecond, 40*time.Millisecond
	}
	address := postgres.Database(t)
	o := open(t, address)
	hubs := []*process{{TB: t, errand: errand{Database: address}}, {TB: t, errand: errand{Database: address}}}
	for _, h := range hubs {
		h.start()
	}
	o.inner = balancer(hubs)
	desks := []*desk{o.desk().furnish(), o.desk(), o.desk()}
	shared, poisoned := desks[0].memory, desks[0].newMemory(desks[0].vault, "poisoned")
	desks[0].drain()
	o.set(func(o *office) {
		o.item = func(it replica.Item) int {
			if it.Stream == poisoned && it.Kind == replica.KindEntry {
				return http.StatusInternalServerError
			}
			return 0
		}
	})
	all := hubs
	count := 2 * int(lasting/pace/2)
	names := []string{"a", "b", "c"}
	for i, d := range desks {
		d.subscribe(shared).subscribe(poisoned)
		d.drain() // both memories are here before anything is written to them
		p := &process{TB: t, errand: errand{
			Store: d.store.Path(), URL: o.url, Secret: o.secret, User: d.me, Name: names[i], Memories: []string{shared, poisoned}, Count: count, Pace: pace,
		}}
		p.start()
		all = append(all, p)
	}
	kills := 0
	for end := time.Now().Add(lasting); time.Now().Before(end); kills++ {
		time.Sleep(rand.N(pause)) // the moment of death is what is tried
		p := all[rand.N(len(all))]
		p.kill()
		p.start()
	}
	whole(o, "the shared memory is whole although the other is refused", shared, len(names)*count/2)
	want(t, "of the poisoned one", o.texts(poisoned), "")
	o.set(func(o *office) { o.item = nil })
	whole(o, "the poisoned memory is whole", poisoned, len(names)*count/2)
	for _, p := range all[len(hubs):] {
		p.finish()
	}
	for _, m := range []string{shared, poisoned} {
		inOrder(t, o.texts(m), count/2, names...)
		for _, d := range desks {
			d.drain()
		}
		for i, d := range desks {
			want(t, fmt.Sprint("inflight at ", i), d.pending(m), "")
			want(t, fmt.Sprint("device ", i, " is like the hub"), d.texts(m), o.texts(m))
			want(t, fmt.Sprint("device ", i, " is like the first"), d.look(m) == desks[0].look(m), true)
			want(t, "failures", len(d.failures()), 0)
		}
	}
	for _, h := range hubs {
		h.finish()
	}
	t.Logf("%d kills, %d entries each of three devices, alike everywhere", kills, count)
}

// whole waits until a memory at the hub has so many words. However slow the machine is
// or how much was still to be written, it only has to grow.
func whole(o *office, what, m string, all int) {
	o.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	have, grown := 0, time.Now()
	for ; have != all; <-tick.C {
		switch now := len(strings.Fields(o.texts(m))); {
		case now != have:
			have, grown = now, time.Now()
		case time.Since(grown) > time.Minute:
			o.Fatalf("never: %s: %d of %d", what, have, all)
		}
	}
}

// Two processes on one store: each change goes once, and what a killed one held the
// other takes over at once, long before the lease would end.
func TestOfTwoProcessesOnOneStoreOneTakesOverWhenTheOtherIsKilled(t *testing.T) {
	t.Parallel()
	o := open(t, "")
	d := o.desk().furnish()
	e := errand{Store: d.store.Path(), URL: o.url, Secret: o.secret, User: d.me}
	first, second := &process{TB: t, errand: e}, &process{TB: t, errand: e}
	first.start()
	for i := range 10 {
		d.add(fmt.Sprint("a", i))
	}
	d.awaits(d.memory)
	second.start()
	for i := range 10 {
		d.add(fmt.Sprint("b", i))
	}
	d.awaits(d.memory)
	for i := range 10 {
		want(t, "sent once", o.attempts(fmt.Sprint("b", i)), 1)
	}
	first.kill()
	begun := time.Now()
	d.add("c0")
	d.awaits(d.memory)
	took := time.Since(begun)
	if took > 10*time.Second { // the machine may be slow; the lease lasts 60 s
		t.Errorf("the other process took over after %s", took)
	}
	t.Logf("taken over after %s", took)
	second.finish()
	inOrder(t, o.texts(d.memory), 10, "a", "b")
	d.add("d")
	d.drain()
	want(t, "a later one goes on at once", d.pending(d.memory), "")
}

// leases are those of another process on the lane of the desk's memory, which ends with
// the test.
func (d *desk) leases(life time.Duration) *follow.Leases {
	d.Helper()
	out, err := follow.NewLeases(d.store, memory.PushFollower, life, func(err error) { d.Error(err) })
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(out.Close)
	if err := out.Take(d.Context(), shards.LaneOf(d.memory)); err != nil {
		d.Fatal(err)
	}
	return out
}

// A process that slept past its lease cannot settle what another has taken meanwhile.
func TestALateHolderSettlesNothing(t *testing.T) {
	t.Parallel()
	o := open(t, "")
	d := o.desk().furnish()
	d.drain()
	out := d.add("a")
	late := d.leases(time.Nanosecond).Held()
	want(t, "leases", len(late), 1)
	batch, err := d.NextBatch(t.Context(), d.member(), late, []string{d.memory}, 10, 1<<20)
	if err != nil || len(batch) != 1 {
		t.Fatal(batch, err)
	}
	want(t, "leases of another process", len(d.leases(time.Nanosecond).Held()), 1)
	err = d.Confirm(t.Context(), d.member(), late, []replication.Outcome{{Stream: d.memory, Seq: batch[0].Seq, Status: 201, EntryID: rules.NewID(), HubSeq: 9}})
	want(t, "code", fault.As(err).Code, memory.CodeLeaseLost)
	want(t, "still inflight", d.pending(d.memory), "a")
	d.drain()
	want(t, "sent by who may", o.texts(d.memory), "a")
	_, err = d.GetInflight(t.Context(), memory.Caller{}, d.memory, out.LocalID)
	want(t, "committed", fault.As(err).Code, memory.CodeCommitted)
}
