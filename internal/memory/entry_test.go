package memory

import (
	"testing"
)

func TestAnEntryWithoutAHubIsCommittedAtOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	first := d.add("first")
	second, _, err := d.AddEntry(t.Context(), Caller{}, NewEntry{
		MemoryID: d.memory, RawEntry: " é\u0001\n", Summary: "s", Tags: map[string]string{"k": "v"}, Metadata: []byte(`{ "n": 1.50 }`),
		SessionID: "S-01J00000000000000000000000",
	})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "status", first.Status, Committed)
	want(t, "localId", first.LocalID, "pending-1")
	want(t, "second's localId", second.LocalID, "pending-2")
	want(t, "strictly later", second.CreationTime > first.CreationTime, true)
	want(t, "list", d.texts(), " é\u0001\n first")
	want(t, "inflight", d.pending(), "")
	e := must(d.GetEntry(t.Context(), Caller{}, d.memory, second.EntryID))(t)
	want(t, "metadata", string(e.Metadata), `{"n":1.50}`)
	want(t, "session", e.SessionID, "01900000-0000-0000-0000-000000000000")
	want(t, "captured", e.CapturedTime, e.CreationTime)
	_, err = d.GetInflight(t.Context(), Caller{}, d.memory, second.LocalID)
	wantError(t, "a committed localId", err, 404, CodeCommitted, `"entryId":"`+second.EntryID)
}

func TestAnEntryWithAHubIsInflight(t *testing.T) {
	t.Parallel()
	d := newDesk(t).joined()
	first := d.add("first")
	d.add("second")
	want(t, "status", first.Status, Enqueued)
	want(t, "entryId", first.EntryID, "")
	want(t, "list", d.texts(), "")
	want(t, "inflight", d.pending(), "first second")
	one := must(d.GetInflight(t.Context(), Caller{}, d.memory, first.LocalID))(t)
	list := must(d.ListInflight(t.Context(), Caller{}, d.memory, 1))(t)
	want(t, "the listed", asJSON(t, list), `{"entries":[`+asJSON(t, one)+`],"count":1,"applied_limit":1}`)
	want(t, "the fields", asJSON(t, one), `{"localId":"`+first.LocalID+`","creationTime":"2023-11-14T22:13:20Z","rawEntry":"first","summary":"","tags":{}}`)
}
