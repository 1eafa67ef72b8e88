package hub_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cairn/internal/hub"
	"cairn/internal/hub/pgtest"
	"cairn/internal/replica"
)

// pusher is a device that pushes entries until it is stopped. It resends each batch under the
// same keys until all of it is acknowledged.
type pusher struct {
	memories []string
	sent     []replica.Item
	acked    map[string]replica.Result // by idempotency key
	last     *atomic.Int64             // when any pusher got its last response, Unix nanoseconds
	most     *atomic.Int64             // the longest time without a response since the reset
}

func (p *pusher) run(token string, hubs []*process, stop <-chan struct{}) {
	var pending []replica.Item
	for {
		if len(pending) == 0 {
			select {
			case <-stop:
				return
			default:
				pending = p.next()
			}
		}
		results, err := tryPush(*hubs[rand.N(len(hubs))].url.Load(), token, replica.PushRequest{DeviceID: "p", Items: pending})
		var left []replica.Item
		for i, it := range pending {
			if err == nil && results[i].Status <= 201 {
				p.acked[it.Key] = results[i]
			} else {
				left = append(left, it)
			}
		}
		if len(left) == len(pending) {
			time.Sleep(50 * time.Millisecond) // like a device between attempts
		} else {
			now := time.Now().UnixNano()
			if gap := now - p.last.Swap(now); gap > p.most.Load() {
				p.most.Store(gap)
			}
		}
		pending = left
	}
}

// next returns a batch of new entries for some of the memories.
func (p *pusher) next() (batch []replica.Item) {
	for range 1 + rand.N(12) {
		n := len(p.sent)
		it := entryPut(p.memories[rand.N(len(p.memories))], fmt.Sprint(n), object{"metadata": object{"n": n}})
		it.Seq = int64(n + 1)
		p.sent, batch = append(p.sent, it), append(batch, it)
	}
	return batch
}

// inOrder compares the hub's items of a memory with the results that its pushers got.
func inOrder(t *testing.T, d *device, memory string, pushers []*pusher) (found int) {
	t.Helper()
	type origin struct{ pusher, n int }
	origins := map[string]origin{}
	for i, p := range pushers {
		for n, it := range p.sent {
			if it.Stream == memory {
				origins[it.Key] = origin{i, n}
			}
		}
	}
	want := len(origins)
	last := map[int]int{}
	for i, it := range d.all(memory) {
		if it.HubSeq != int64(i+1) {
			t.Fatalf("number %d stands where %d is due", it.HubSeq, i+1)
		}
		if it.Kind != "entry" {
			continue
		}
		o, known := origins[it.Key]
		if !known {
			t.Errorf("number %d is there twice, or nobody sent it", it.HubSeq)
			continue
		}
		delete(origins, it.Key)
		found++
		if o.n < last[o.pusher] {
			t.Errorf("item %d is behind item %d of the same device", o.n, last[o.pusher])
		}
		last[o.pusher] = o.n
		if ack := pushers[o.pusher].acked[it.Key]; ack.EntryID != it.ID || ack.HubSeq != it.HubSeq {
			t.Errorf("acknowledged as %s at %d, is %s at %d", ack.EntryID, ack.HubSeq, it.ID, it.HubSeq)
		}
	}
	if found != want {
		t.Errorf("%d of %d acknowledged items are lost", want-found, want)
	}
	return found
}

// failOver stops the leader and restarts it as a follower once another server leads. A frozen
// leader continues for a while as if nothing had happened.
func failOver(ctx context.Context, c *pgtest.Patroni, frozen bool) error {
	old := c.Leader(ctx, -1)
	if old < 0 {
		return errors.New("nobody leads")
	}
	if frozen {
		c.Freeze(old)
	} else if err := c.Kill(old); err != nil {
		return err
	}
	for until := time.Now().Add(2 * time.Minute); c.Leader(ctx, old) < 0; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(until) {
			return errors.New("nobody else leads")
		}
	}
	time.Sleep(rand.N(5 * time.Second)) // the new leader continues without it
	if frozen {
		if err := c.Thaw(old); err != nil {
			return err
		}
		time.Sleep(time.Second + rand.N(4*time.Second)) // two servers accept connections
		if err := c.Kill(old); err != nil {
			return err
		}
	}
	if err := c.Begin(old); err != nil {
		return err
	}
	return c.Whole(ctx)
}

// PostgreSQL's leader is killed repeatedly, and frozen once, under two hubs to which four
// devices push. Another server must take over. Each acknowledged item must exist once, under
// its number, in the order of its device.
func TestNothingAcknowledgedIsLostWhenPostgreSQLFailsOver(t *testing.T) {
	t.Parallel()
	if os.Getenv("CAIRN_SOAK") == "" {
		t.Skip("starts three servers and takes minutes; make soak runs it")
	}
	c, err := pgtest.StartPatroni(t.Context())
	if errors.Is(err, pgtest.ErrNoPatroni) || errors.Is(err, pgtest.ErrMissing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	d := open(t, c.URL()).device("new", hub.LevelAdmin)
	hubs := []*process{{}, {}}
	for _, p := range hubs {
		p.start(t, c.URL())
		t.Cleanup(p.kill)
	}
	var last, most atomic.Int64
	var pushers []*pusher
	shared := d.memory()
	memories := []string{shared}
	for range 4 {
		p := &pusher{memories: []string{shared}, acked: map[string]replica.Result{}, last: &last, most: &most}
		for range 6 {
			p.memories = append(p.memories, d.memory())
		}
		memories = append(memories, p.memories[1:]...)
		pushers = append(pushers, p)
	}
	stop := make(chan struct{})
	var all sync.WaitGroup
	last.Store(time.Now().UnixNano())
	for _, p := range pushers {
		all.Go(func() { p.run(d.token, hubs, stop) })
	}
	for i, frozen := range []bool{false, false, true, false, false} {
		time.Sleep(time.Second + rand.N(2*time.Second)) // a random instant
		most.Store(0)
		if err := failOver(t.Context(), c, frozen); err != nil {
			t.Error(err)
			break
		}
		t.Logf("failover %d, frozen %t: nothing was answered for %.1f s", i+1, frozen, time.Duration(most.Load()).Seconds())
	}
	close(stop)
	all.Wait()
	found := 0
	for _, memory := range memories {
		found += inOrder(t, d, memory, pushers)
	}
	t.Logf("%d entries in %d memories were acknowledged, and are there", found, len(memories))
}
