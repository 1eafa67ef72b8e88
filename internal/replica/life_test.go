package replica_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/entries"
	"cairn/internal/memory/items"
	"cairn/internal/memory/memorytest"
	"cairn/internal/memory/rules"
	"cairn/internal/memory/vaults"
	"cairn/internal/replica"
)

// An entry from its writing to its purge, by the table of memories §10.2: where it is
// seen, step by step.
func TestAnEntryIsInOneViewAtEachStepOfItsLife(t *testing.T) {
	t.Parallel()
	o := open(t, "")
	d := o.desk().furnish()
	d.drain()
	views := func(step, committed, inflight string) {
		t.Helper()
		want(t, step+": committed", d.texts(d.memory), committed)
		want(t, step+": inflight", d.pending(d.memory), inflight)
	}
	out := d.add("a")
	want(t, "status", out.Status, entries.Enqueued)
	want(t, "no entryId", out.EntryID, "")
	views("written", "", "a")

	lose := true
	o.set(func(o *office) {
		o.after = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != replica.PathPush || !lose {
				return false
			}
			lose = false
			panic(http.ErrAbortHandler)
		}
	})
	if err := d.one.Drain(t.Context()); fault.As(err).Code != replica.CodeUnavailable {
		t.Errorf("drain: %v", err)
	}
	want(t, "at the hub", o.texts(d.memory), "a")
	views("taken, reply lost", "", "a")

	d.equip()
	d.drain()
	views("flipped", "a", "")
	_, err := d.GetInflight(t.Context(), memory.Caller{}, d.memory, out.LocalID)
	want(t, "inflight afterwards", fault.As(err).Code, memory.CodeCommitted)
	want(t, "attempts", o.attempts("a"), 2)

	e := d.all(d.memory)[0]
	if _, _, err := d.PatchEntry(t.Context(), memory.Caller{}, d.memory, e.EntryID, entries.Patch{Tags: map[string]string{"k": "v"}}); err != nil {
		t.Fatal(err)
	}
	want(t, "a patch shows at once", d.all(d.memory)[0].Tags["k"], "v")
	d.drain()

	other := o.desk().subscribe(d.memory).drain()
	want(t, "pulled", other.look(d.memory), d.look(d.memory))
	want(t, "pulled, inflight", other.pending(d.memory), "")

	d.start()
	if _, err := d.DeleteEntry(t.Context(), memory.Caller{}, d.memory, e.EntryID); err != nil {
		t.Fatal(err)
	}
	views("deleted", "", "")
	want(t, "deleted at the hub", o.texts(d.memory), "")
	other.drain()
	want(t, "deleted elsewhere", other.texts(d.memory), "")
}

// A deleted entry stays deleted whatever is repeated (P10).
func TestADeletedEntryStaysDeletedWhateverIsRepeated(t *testing.T) {
	t.Parallel()
	o := open(t, "")
	d := o.desk().furnish()
	d.add("a")
	keep := d.add("b")
	d.start()
	d.awaits(d.memory)
	other := o.desk().subscribe(d.memory).drain()
	id := d.all(d.memory)[0].EntryID
	o.set(func(o *office) { o.sent = nil })
	if _, err := d.DeleteEntry(t.Context(), memory.Caller{}, d.memory, id); err != nil {
		t.Fatal(err)
	}
	if _, err := d.DeleteEntry(t.Context(), memory.Caller{}, d.memory, id); err != nil {
		t.Errorf("again: %v", err)
	}
	// Old pages come once more, to both.
	for _, one := range []*desk{d, other} {
		answer, err := one.one.Client.Pull(t.Context(), replica.PullRequest{Cursors: []replica.Cursor{{Stream: d.memory}}})
		if err != nil || len(answer.Streams) != 1 {
			t.Fatal(err, answer)
		}
		var pulled []items.Item
		for _, p := range answer.Streams[0].Items {
			pulled = append(pulled, items.Item{HubSeq: p.HubSeq, Kind: p.Kind, ID: p.ID, Op: p.Op, Key: p.Key, Doc: p.Doc})
		}
		for range 2 {
			if err := one.Apply(t.Context(), one.member(), d.memory, pulled, answer.Streams[0].Next); err != nil {
				t.Fatal(err)
			}
		}
		want(t, "what is left", one.texts(d.memory), "b")
	}
	_ = keep
	want(t, "at the hub", o.texts(d.memory), "b")
	want(t, "alike", other.look(d.memory), d.look(d.memory))
}

// A delete that the hub does not confirm in time is withdrawn; had the hub done it,
// the next pull takes the row (memories §10.6).
func TestADeleteThatIsNotConfirmedIsWithdrawnUnlessTheHubHasDoneIt(t *testing.T) {
	t.Parallel()
	for _, done := range []bool{false, true} {
		t.Run(fmt.Sprint("done at the hub: ", done), func(t *testing.T) {
			t.Parallel()
			o := open(t, "")
			d := o.desk().furnish()
			d.add("a")
			d.drain()
			id := d.all(d.memory)[0].EntryID
			drop := func(w http.ResponseWriter, r *http.Request) bool {
				if done && r.URL.Path != replica.PathPush && r.URL.Path != replica.PathHeads {
					return false // the hub must be verified before the delete is sent
				}
				panic(http.ErrAbortHandler)
			}
			o.set(func(o *office) {
				if o.after = drop; !done {
					o.after, o.before = nil, drop
				}
			})
			d.equip()
			d.start()
			_, err := d.DeleteEntry(t.Context(), memory.Caller{}, d.memory, id)
			want(t, "code", fault.As(err).Code, memory.CodeHubUnavailable)
			want(t, "visible again", d.texts(d.memory), "a")
			o.set(func(o *office) { o.before, o.after = nil, nil })
			if !done {
				d.add("b")
				d.awaits(d.memory)
				want(t, "it was never sent", o.texts(d.memory), "a b")
				return
			}
			eventually(t, "the delete wins", func() bool { return d.texts(d.memory) == "" })
		})
	}
}

// What two devices wrote while they were offline looks alike on both afterwards, and
// nothing is there twice.
func TestTwoDevicesThatWereOfflineConverge(t *testing.T) {
	t.Parallel()
	o := open(t, "")
	a := o.desk().furnish()
	a.drain()
	b := o.desk().subscribe(a.memory).drain()
	b.memory = a.memory
	var all sync.WaitGroup
	for i, d := range []*desk{a, b} {
		all.Go(func() {
			for n := range 30 {
				d.add(fmt.Sprint(string(rune('a'+i)), n))
				if n%10 == 5 {
					_, _, err := d.UpdateContext(context.Background(), memory.Caller{}, entries.NewDocument{
						MemoryID: d.memory, SessionID: rules.NewID(), Markdown: fmt.Sprint("context ", i, " ", n),
					})
					if err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	a.start()
	b.start()
	a.awaits(a.memory)
	b.awaits(a.memory)
	eventually(t, "both have all", func() bool { return len(a.all(a.memory)) == 60 && len(b.all(a.memory)) == 60 })
	eventually(t, "they are alike", func() bool { return a.look(a.memory) == b.look(a.memory) })
	inOrder(t, o.texts(a.memory), 30, "a", "b")
	want(t, "the hub is like them", a.texts(a.memory), o.texts(a.memory))

	// The later patch in the hub's order wins everywhere.
	id := a.all(a.memory)[0].EntryID
	for i, d := range []*desk{a, b} {
		if _, _, err := d.PatchEntry(t.Context(), memory.Caller{}, a.memory, id, entries.Patch{Tags: map[string]string{"by": fmt.Sprint(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	a.awaits(a.memory)
	b.awaits(a.memory)
	eventually(t, "they are alike after patches", func() bool { return a.look(a.memory) == b.look(a.memory) })
}

// inOrder wants the words of each writer once, in order.
func inOrder(tb testing.TB, text string, each int, writers ...string) {
	tb.Helper()
	for _, w := range writers {
		n := 0
		for _, word := range strings.Fields(text) {
			if strings.HasPrefix(word, w) {
				if word != fmt.Sprint(w, n) {
					tb.Errorf("%s where %s%d should be", word, w, n)
				}
				n++
			}
		}
		want(tb, "words of "+w, n, each)
	}
}

// Vault and memory of one title, made on two devices, are one at the hub: each device
// keeps its own ids for them.
func TestTheSameTitlesOnTwoDevicesAreOneMemoryAtTheHub(t *testing.T) {
	t.Parallel()
	o := open(t, "")
	a, b := o.desk().furnish(), o.desk().furnish()
	a.add("a")
	b.add("b")
	a.drain()
	b.drain()
	a.drain()
	want(t, "a has", a.texts(a.memory), "a b")
	want(t, "b has", b.texts(b.memory), "a b")
	want(t, "b has under the hub's id", b.texts(a.memory), "a b")
	want(t, "b's stream is", b.stream(b.memory).RemoteID, a.memory)
	want(t, "failures", len(a.failures())+len(b.failures()), 0)
	b.add("c")
	b.drain()
	a.drain()
	want(t, "a has", a.texts(a.memory), "a b c")

	// One that learns of the hub's from the catalogue before its own put is sent.
	c := o.desk().furnish()
	c.add("d")
	heads, err := c.one.Client.Heads(t.Context(), "")
	if err != nil || len(heads.Heads) != 2 {
		t.Fatal(err, heads)
	}
	_ = c.one.PullStream(t.Context(), a.memory)
	c.drain()
	want(t, "c has", c.texts(c.memory), "a b c d")
	want(t, "failures of c", len(c.failures()), 0)
}

// A memory that another device has deleted: what is committed goes, what is inflight
// stays until it is discarded.
func TestAMemoryDeletedElsewhereKeepsWhatIsInflightReadable(t *testing.T) {
	t.Parallel()
	o := open(t, "")
	a := o.desk().furnish()
	a.add("a")
	a.drain()
	b := o.desk().subscribe(a.memory).drain()
	a.start()
	if _, err := a.DeleteMemory(t.Context(), memory.Caller{}, a.memory); err != nil {
		t.Fatal(err)
	}
	left := b.addTo(a.memory, "b")
	b.drain()
	got, err := b.GetInflight(t.Context(), memory.Caller{}, a.memory, left.LocalID)
	if err != nil || got.RawEntry != "b" {
		t.Errorf("inflight: %+v %v", got, err)
	}
	// Its title is free again, on both devices and at the hub.
	again, _, err := b.CreateMemory(t.Context(), memory.Caller{}, vaults.NewMemory{VaultID: a.vault, Title: "m"})
	if err != nil {
		t.Fatal(err)
	}
	b.addTo(again.MemoryID, "c")
	b.drain()
	want(t, "in the new one", b.texts(again.MemoryID), "c")
	want(t, "at the hub", o.texts(again.MemoryID), "c")
	if got, err := b.GetInflight(t.Context(), memory.Caller{}, a.memory, left.LocalID); err != nil || got.RawEntry != "b" {
		t.Errorf("inflight beside the new one: %+v %v", got, err)
	}
	if found := memorytest.Findings(t, b.store); found != "" {
		t.Errorf("it is no damage: %s", found)
	}
	// It cannot be sent again, and is not lost sight of when somebody tries.
	if n, err := b.Retry(t.Context(), memory.Caller{}, nil); n != 0 || err != nil {
		t.Error(n, err)
	}
	b.drain()
	if all := b.failures(); len(all) != 1 || all[0].LocalID != left.LocalID {
		t.Errorf("failures after a retry: %+v", all)
	}
	if n, err := b.Discard(t.Context(), memory.Caller{}, []string{left.LocalID}); n != 1 || err != nil {
		t.Error(n, err)
	}
	if _, err := b.GetInflight(t.Context(), memory.Caller{}, a.memory, left.LocalID); fault.As(err).Code != memory.CodeNotFound {
		t.Errorf("discarded: %v", err)
	}
}

// A long backlog in one memory, or one that is blocked, delays no other.
func TestALongBacklogLeavesOthersTheirShare(t *testing.T) {
	t.Parallel()
	o := open(t, "")
	d := o.desk(func(c *replica.Config) { c.Batch = 10 }).furnish()
	other := d.newMemory(d.vault, "other")
	for i := range 300 {
		d.add(fmt.Sprint(i))
	}
	d.addTo(other, "x")
	d.start()
	d.awaits(other)
	if n := len(strings.Fields(o.texts(d.memory))); n > 150 {
		t.Errorf("%d of the long backlog went first", n)
	}
	d.awaits(d.memory)
	words := strings.Fields(o.texts(d.memory))
	for i, w := range words {
		if w != fmt.Sprint(i) {
			t.Fatalf("%s at %d", w, i)
		}
	}
	want(t, "entries", len(words), 300)
}

// A replicator that is told to stop lets its request end and stops within ten seconds.
func TestItStopsInTimeAndWhatWasSentIsSettled(t *testing.T) {
	t.Parallel()
	o := open(t, "")
	d := o.desk().furnish()
	d.drain()
	arrived, gate := make(chan struct{}, 8), make(chan struct{})
	o.set(func(o *office) {
		o.before = func(_ http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == replica.PathPush {
				arrived <- struct{}{}
				<-gate
			}
			return false
		}
	})
	d.equip()
	d.add("a")
	d.start()
	<-arrived
	ended := make(chan struct{})
	begun := time.Now()
	go func() { d.end(); close(ended) }()
	close(gate)
	<-ended
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
	want(t, "settled", d.texts(d.memory), "a")
}
