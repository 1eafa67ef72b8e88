package hub_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cairn/internal/hub"
	"cairn/internal/replica"
	"cairn/internal/store/storetest"
)

const childVar = "CAIRN_TEST_HUB"

// serveAsChild runs a hub process: it prints its address and serves until it is killed or its
// standard input ends.
func serveAsChild(address string) {
	h, err := hub.Open(context.Background(), hub.Config{Database: address, Log: slog.New(slog.DiscardHandler), Pool: 4})
	if err == nil {
		var l net.Listener
		if l, err = net.Listen("tcp", "127.0.0.1:0"); err == nil {
			storetest.Tell("http://" + l.Addr().String())
			ctx, stop := context.WithCancel(context.Background())
			go func() {
				_, _ = io.Copy(io.Discard, os.Stdin)
				stop()
			}()
			err = h.Serve(ctx, l, "child", nil)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// process is a hub process that is killed and restarted.
type process struct {
	url   atomic.Pointer[string]
	child *storetest.Process
}

func (p *process) start(t *testing.T, address string) {
	t.Helper()
	p.child = storetest.StartProcess(t, storetest.Command("", childVar+"="+address, "GORACE=atexit_sleep_ms=0"))
	url, ok := p.child.Line(t)
	if !ok {
		_, err := p.child.Wait(t)
		t.Fatalf("a hub did not start: %v", err)
	}
	p.url.Store(&url)
}

func (p *process) kill() { p.child.Kill() }

// tryPush sends a request whose delivery is uncertain.
func tryPush(url, token string, req replica.PushRequest) ([]replica.Result, error) {
	body, err := json.Marshal(req)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "POST", url+replica.PathPush, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != 200 {
		return nil, fmt.Errorf("status %d", answer.StatusCode)
	}
	var out replica.PushResponse
	return out.Results, json.NewDecoder(answer.Body).Decode(&out)
}

// writer is a device that pushes entries in order until all are acknowledged.
type writer struct {
	own, shared string
	items       []replica.Item
	acked       map[string]replica.Result // by idempotency key
	tries       int
}

func newWriter(n int, own, shared string) *writer {
	w := &writer{own: own, shared: shared, acked: map[string]replica.Result{}}
	for i := range n {
		memory := own
		if i%3 == 0 {
			memory = shared
		}
		it := entryPut(memory, fmt.Sprint(i), object{"metadata": object{"writer": own, "n": i}})
		it.Seq = int64(i + 1)
		w.items = append(w.items, it)
	}
	return w
}

func (w *writer) run(ctx context.Context, token string, hubs []*process) {
	for len(w.acked) < len(w.items) && ctx.Err() == nil {
		var batch []replica.Item
		size := 1 + rand.N(12)
		for _, it := range w.items {
			if _, done := w.acked[it.Key]; !done && len(batch) < size {
				batch = append(batch, it)
			}
		}
		w.tries++
		results, err := tryPush(*hubs[rand.N(len(hubs))].url.Load(), token, replica.PushRequest{DeviceID: "w", Items: batch})
		if err != nil {
			time.Sleep(5 * time.Millisecond) // like a device between attempts
		}
		for i, r := range results {
			if r.Status == 200 || r.Status == 201 {
				w.acked[batch[i].Key] = r
			}
		}
	}
}

// check compares the hub's data with the acknowledged entries.
func (w *writer) check(t *testing.T, d *device) {
	t.Helper()
	if len(w.acked) != len(w.items) {
		t.Fatalf("only %d of %d were acknowledged in %d tries", len(w.acked), len(w.items), w.tries)
	}
	order := map[string]int{}
	for i, it := range w.items {
		order[it.Key] = i
	}
	for _, memory := range []string{w.own, w.shared} {
		last, seen := -1, map[string]bool{}
		for _, it := range d.all(memory) {
			i, mine := order[it.Key]
			if !mine {
				continue
			}
			if seen[it.Key] {
				t.Errorf("item %d is there twice", i)
			}
			seen[it.Key] = true
			if i < last {
				t.Errorf("item %d is behind item %d", i, last)
			}
			last = i
			if ack := w.acked[it.Key]; ack.EntryID != it.ID || ack.HubSeq != it.HubSeq {
				t.Errorf("item %d was acknowledged as %s at %d and is %s at %d", i, ack.EntryID, ack.HubSeq, it.ID, it.HubSeq)
			}
		}
		for _, it := range w.items {
			if it.Stream == memory && !seen[it.Key] {
				t.Errorf("an acknowledged item is lost: %d", order[it.Key])
			}
		}
	}
}

// Hub processes are killed at random while devices push through any of them. Each acknowledged
// entry must exist once, under its id, in the order of its device.
func TestKilledHubsLoseNothingAndTakeNothingTwice(t *testing.T) {
	t.Parallel()
	kills, entries := 4, 60
	if testing.Short() {
		kills = 2
	}
	if soak, err := strconv.Atoi(os.Getenv("CAIRN_SOAK_KILLS")); err == nil {
		kills, entries = soak, 30*soak
	}
	for name, hubs := range map[string]int{"sqlite": 1, "sqlite shared by two": 2, "postgres": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := "sqlite:" + t.TempDir() + "/hub.db"
			if name == "postgres" {
				address = postgres.Database(t)
			}
			d := open(t, address).device("new", hub.LevelAdmin)
			shared := d.memory()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			processes := make([]*process, hubs)
			for i := range processes {
				processes[i] = &process{}
				processes[i].start(t, address)
			}
			var all sync.WaitGroup
			writers := []*writer{newWriter(entries, d.memory(), shared), newWriter(entries, d.memory(), shared)}
			for _, w := range writers {
				all.Go(func() { w.run(ctx, d.token, processes) })
			}
			for range kills {
				time.Sleep(rand.N(60 * time.Millisecond)) // a random instant
				p := processes[rand.N(len(processes))]
				p.kill()
				p.start(t, address)
			}
			all.Wait()
			for _, p := range processes {
				p.kill()
			}
			for _, w := range writers {
				w.check(t, d)
			}
		})
	}
}
