package memory

import (
	"cmp"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"cairn/internal/memory/rules"
	"cairn/internal/store"
	"cairn/internal/store/follow"
)

// fakeHub is a minimal hub in memory: it stores keys, assigns numbers and times, and refuses
// items as configured.
type fakeHub struct {
	items   map[string][]Item // by stream
	keys    map[string]Outcome
	last    time.Time
	refuse  map[string]int // rawEntry → status
	handled int
}

func newHub(d *desk) *fakeHub {
	return &fakeHub{items: map[string][]Item{}, keys: map[string]Outcome{}, last: d.clock.Now(), refuse: map[string]int{}}
}

// push handles a batch as the hub does. It returns an outcome for each item: 424 after a
// refusal.
func (h *fakeHub) push(t testing.TB, batch []Outgoing) (out []Outcome) {
	t.Helper()
	failed := map[string]bool{}
	for _, o := range batch {
		if failed[o.Stream] {
			out = append(out, Outcome{Stream: o.Stream, Seq: o.Seq, Status: http.StatusFailedDependency})
			continue
		}
		r := h.take(t, o)
		failed[o.Stream] = r.Status >= 300
		out = append(out, r)
	}
	return out
}

func (h *fakeHub) take(t testing.TB, o Outgoing) Outcome {
	t.Helper()
	if len(o.Key) != 64 && o.Key != "" {
		t.Errorf("key %q of %s %s", o.Key, o.Kind, o.Op)
	}
	stream := cmp.Or(o.Remote, o.Stream)
	if r, ok := h.keys[stream+o.Key]; ok {
		r.Seq, r.Stream, r.Status = o.Seq, o.Stream, http.StatusOK
		return r
	}
	var doc map[string]any
	if err := json.Unmarshal(o.Doc, &doc); err != nil {
		t.Fatal(err)
	}
	h.handled++
	r := Outcome{Stream: o.Stream, Seq: o.Seq, Status: http.StatusCreated}
	if raw, ok := doc["rawEntry"].(string); ok && h.refuse[raw] != 0 {
		r.Status, r.Code, r.Message = h.refuse[raw], "refused", "refused by the hub"
		return r
	}
	id := o.ID
	switch {
	case o.Kind == KindEntry && o.Op == store.OpPut:
		captured, err := time.Parse(time.RFC3339Nano, doc["capturedTime"].(string))
		if h.last = h.last.Add(time.Nanosecond); err == nil && captured.After(h.last) {
			h.last = captured
		}
		r.CreationTime, r.EntryID = h.last, rules.NewID()
		if proposed, ok := doc["entryId"].(string); ok {
			r.EntryID = proposed
		}
		id = r.EntryID
		doc["entryId"], doc["creationTime"] = id, Time(h.last.UnixNano())
		delete(doc, "localId")
	case o.Op == store.OpDelete:
		r.Status = http.StatusNoContent
		if e, ok := doc["entryId"].(string); ok {
			id = e
		}
	}
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	r.HubSeq = int64(len(h.items[stream]) + 1)
	h.items[stream] = append(h.items[stream], Item{HubSeq: r.HubSeq, Kind: o.Kind, ID: id, Op: o.Op, Key: o.Key, Doc: text})
	h.keys[stream+o.Key] = r
	return r
}

// lanes returns leases of all lanes.
func (d *desk) lanes() []follow.Lease {
	d.Helper()
	if d.leases == nil {
		d.leases = d.newLeases(time.Minute)
	}
	return d.takeAll(d.leases)
}

// newLeases returns leases that act like those of another process.
func (d *desk) newLeases(life time.Duration) *follow.Leases {
	d.Helper()
	out := must(follow.NewLeases(d.store, PushFollower, life, func(err error) { d.Error(err) }))(d)
	d.Cleanup(out.Close)
	return out
}

// takeAll takes all available lanes and returns the held leases.
func (d *desk) takeAll(leases *follow.Leases) []follow.Lease {
	d.Helper()
	var all []int
	for i := range 256 {
		all = append(all, i)
	}
	if err := leases.Take(d.Context(), all...); err != nil {
		d.Fatal(err)
	}
	return leases.Held()
}

func (d *desk) me() string {
	d.Helper()
	return must(d.Whoami(d.Context(), Caller{}))(d).UserID
}

// take takes one batch of all ready items.
func (d *desk) take(leases []follow.Lease, limit int) []Outgoing {
	d.Helper()
	var ids []string
	for _, m := range must(d.ReadyStreams(d.Context(), d.me(), time.Unix(1, 0), 100))(d) {
		ids = append(ids, m.ID)
	}
	return must(d.NextBatch(d.Context(), d.member(), leases, ids, limit, 1<<20))(d)
}

// drain replicates until there is nothing left to send, and pulls everything.
func (d *desk) drain(h *fakeHub) {
	d.Helper()
	leases := d.lanes()
	for range 1000 {
		batch := d.take(leases, 3)
		if len(batch) == 0 {
			if more := must(d.ReadyStreams(d.Context(), d.me(), time.Unix(1, 0), 1))(d); len(more) == 0 {
				return
			}
			continue
		}
		d.settle(leases, h.push(d, batch))
	}
	d.Fatal("the backlog does not end")
}

// settle stores outcomes, as the replicator does.
func (d *desk) settle(leases []follow.Lease, outcomes []Outcome) {
	d.Helper()
	var good []Outcome
	for _, o := range outcomes {
		if o.Status < 300 {
			good = append(good, o)
		}
	}
	if err := d.Confirm(d.Context(), d.member(), leases, good); err != nil {
		d.Fatal(err)
	}
	for _, o := range outcomes {
		if o.Status >= 300 && o.Status != http.StatusFailedDependency {
			if err := d.Service.Fail(d.Context(), d.member(), leases, o, false); err != nil {
				d.Fatal(err)
			}
		}
	}
}

// pull applies all items of the hub for the given streams.
func (d *desk) pull(h *fakeHub, streams ...string) {
	d.Helper()
	for _, stream := range streams {
		items := h.items[stream]
		if err := d.Apply(d.Context(), d.member(), stream, items, int64(len(items))); err != nil {
			d.Fatal(err)
		}
	}
}

// member returns the current membership of the desk's user.
func (d *desk) member() Membership {
	d.Helper()
	u, err := d.Whoami(d.Context(), Caller{})
	if err != nil {
		d.Fatal(err)
	}
	return u.Membership()
}
