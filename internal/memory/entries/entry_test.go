package entries_test

import (
	"testing"

	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/entries"
	"cairn/internal/memory/memorytest"
)

func TestAnEntryWithoutAHubIsCommittedAtOnce(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	first := d.Add("first")
	second, _, err := d.AddEntry(t.Context(), memory.Caller{}, contents.NewEntry{
		MemoryID: d.MemoryID, RawEntry: " é\u0001\n", Summary: "s", Tags: map[string]string{"k": "v"}, Metadata: []byte(`{ "n": 1.50 }`),
		SessionID: "S-01J00000000000000000000000",
	})
	if err != nil {
		t.Fatal(err)
	}
	memorytest.Want(t, "status", first.Status, entries.Committed)
	memorytest.Want(t, "localId", first.LocalID, "pending-1")
	memorytest.Want(t, "second's localId", second.LocalID, "pending-2")
	memorytest.Want(t, "strictly later", second.CreationTime > first.CreationTime, true)
	memorytest.Want(t, "list", d.Texts(), " é\u0001\n first")
	memorytest.Want(t, "inflight", d.Pending(), "")
	e := memorytest.Must(d.GetEntry(t.Context(), memory.Caller{}, d.MemoryID, second.EntryID))(t)
	memorytest.Want(t, "metadata", string(e.Metadata), `{"n":1.50}`)
	memorytest.Want(t, "session", e.SessionID, "01900000-0000-0000-0000-000000000000")
	memorytest.Want(t, "captured", e.CapturedTime, e.CreationTime)
	_, err = d.GetInflight(t.Context(), memory.Caller{}, d.MemoryID, second.LocalID)
	memorytest.WantError(t, "a committed localId", err, 404, memory.CodeCommitted, `"entryId":"`+second.EntryID)
}

func TestAnEntryWithAHubIsInflight(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t).Joined()
	first := d.Add("first")
	d.Add("second")
	memorytest.Want(t, "status", first.Status, entries.Enqueued)
	memorytest.Want(t, "entryId", first.EntryID, "")
	memorytest.Want(t, "list", d.Texts(), "")
	memorytest.Want(t, "inflight", d.Pending(), "first second")
	one := memorytest.Must(d.GetInflight(t.Context(), memory.Caller{}, d.MemoryID, first.LocalID))(t)
	list := memorytest.Must(d.ListInflight(t.Context(), memory.Caller{}, d.MemoryID, 1))(t)
	memorytest.Want(t, "the listed", memorytest.AsJSON(t, list), `{"entries":[`+memorytest.AsJSON(t, one)+`],"count":1,"applied_limit":1}`)
	memorytest.Want(t, "the fields", memorytest.AsJSON(t, one), `{"localId":"`+first.LocalID+`","creationTime":"2023-11-14T22:13:20Z","rawEntry":"first","summary":"","tags":{}}`)
}
