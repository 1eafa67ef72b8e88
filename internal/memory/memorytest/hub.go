package memorytest

import (
	"cmp"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"cairn/internal/memory"
	"cairn/internal/memory/items"
	"cairn/internal/memory/replication"
	"cairn/internal/memory/rules"
	"cairn/internal/store"
	"cairn/internal/store/follow"
)

// FakeHub is a minimal hub in memory: it stores keys, assigns numbers and times, and refuses
// items as configured.
type FakeHub struct {
	Items   map[string][]items.Item // by stream
	keys    map[string]replication.Outcome
	Last    time.Time
	Refuse  map[string]int // rawEntry → status
	Handled int
}

func NewHub(d *Desk) *FakeHub {
	return &FakeHub{Items: map[string][]items.Item{}, keys: map[string]replication.Outcome{}, Last: d.Clock.Now(), Refuse: map[string]int{}}
}

// Push handles a batch as the hub does. It returns an outcome for each item: 424 after a
// refusal.
func (h *FakeHub) Push(t testing.TB, batch []replication.Outgoing) (out []replication.Outcome) {
	t.Helper()
	failed := map[string]bool{}
	for _, o := range batch {
		if failed[o.Stream] {
			out = append(out, replication.Outcome{Stream: o.Stream, Seq: o.Seq, Status: http.StatusFailedDependency})
			continue
		}
		r := h.take(t, o)
		failed[o.Stream] = r.Status >= 300
		out = append(out, r)
	}
	return out
}

func (h *FakeHub) take(t testing.TB, o replication.Outgoing) replication.Outcome {
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
	h.Handled++
	r := replication.Outcome{Stream: o.Stream, Seq: o.Seq, Status: http.StatusCreated}
	if raw, ok := doc["rawEntry"].(string); ok && h.Refuse[raw] != 0 {
		r.Status, r.Code, r.Message = h.Refuse[raw], "refused", "refused by the hub"
		return r
	}
	id := o.ID
	switch {
	case o.Kind == memory.KindEntry && o.Op == store.OpPut:
		captured, err := time.Parse(time.RFC3339Nano, doc["capturedTime"].(string))
		if h.Last = h.Last.Add(time.Nanosecond); err == nil && captured.After(h.Last) {
			h.Last = captured
		}
		r.CreationTime, r.EntryID = h.Last, rules.NewID()
		if proposed, ok := doc["entryId"].(string); ok {
			r.EntryID = proposed
		}
		id = r.EntryID
		doc["entryId"], doc["creationTime"] = id, memory.Time(h.Last.UnixNano())
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
	r.HubSeq = int64(len(h.Items[stream]) + 1)
	h.Items[stream] = append(h.Items[stream], items.Item{HubSeq: r.HubSeq, Kind: o.Kind, ID: id, Op: o.Op, Key: o.Key, Doc: text})
	h.keys[stream+o.Key] = r
	return r
}

// Lanes returns leases of all lanes.
func (d *Desk) Lanes() []follow.Lease {
	d.Helper()
	if d.leases == nil {
		d.leases = d.NewLeases(time.Minute)
	}
	return d.TakeAll(d.leases)
}

// NewLeases returns leases that act like those of another process.
func (d *Desk) NewLeases(life time.Duration) *follow.Leases {
	d.Helper()
	out := Must(follow.NewLeases(d.Store, memory.PushFollower, life, func(err error) { d.Error(err) }))(d)
	d.Cleanup(out.Close)
	return out
}

// TakeAll takes all available lanes and returns the held leases.
func (d *Desk) TakeAll(leases *follow.Leases) []follow.Lease {
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

func (d *Desk) Me() string {
	d.Helper()
	return Must(d.Whoami(d.Context(), memory.Caller{}))(d).UserID
}

// Take takes one batch of all ready items.
func (d *Desk) Take(leases []follow.Lease, limit int) []replication.Outgoing {
	d.Helper()
	var ids []string
	for _, m := range Must(d.ReadyStreams(d.Context(), d.Me(), time.Unix(1, 0), 100))(d) {
		ids = append(ids, m.ID)
	}
	return Must(d.NextBatch(d.Context(), d.Member(), leases, ids, limit, 1<<20))(d)
}

// Drain replicates until there is nothing left to send, and pulls everything.
func (d *Desk) Drain(h *FakeHub) {
	d.Helper()
	leases := d.Lanes()
	for range 1000 {
		batch := d.Take(leases, 3)
		if len(batch) == 0 {
			if more := Must(d.ReadyStreams(d.Context(), d.Me(), time.Unix(1, 0), 1))(d); len(more) == 0 {
				return
			}
			continue
		}
		d.Settle(leases, h.Push(d, batch))
	}
	d.Fatal("the backlog does not end")
}

// Settle stores outcomes, as the replicator does.
func (d *Desk) Settle(leases []follow.Lease, outcomes []replication.Outcome) {
	d.Helper()
	var good []replication.Outcome
	for _, o := range outcomes {
		if o.Status < 300 {
			good = append(good, o)
		}
	}
	if err := d.Confirm(d.Context(), d.Member(), leases, good); err != nil {
		d.Fatal(err)
	}
	for _, o := range outcomes {
		if o.Status >= 300 && o.Status != http.StatusFailedDependency {
			if err := d.Service.Fail(d.Context(), d.Member(), leases, o, false); err != nil {
				d.Fatal(err)
			}
		}
	}
}

// Pull applies all items of the hub for the given streams.
func (d *Desk) Pull(h *FakeHub, streams ...string) {
	d.Helper()
	for _, stream := range streams {
		items := h.Items[stream]
		if err := d.Apply(d.Context(), d.Member(), stream, items, int64(len(items))); err != nil {
			d.Fatal(err)
		}
	}
}

// Member returns the current membership of the desk's user.
func (d *Desk) Member() memory.Membership {
	d.Helper()
	u, err := d.Whoami(d.Context(), memory.Caller{})
	if err != nil {
		d.Fatal(err)
	}
	return u.Membership()
}
