package replication_test

import (
	"context"
	"regexp"
	"runtime"
	"testing"
	"time"

	"cairn/internal/memory"
	"cairn/internal/memory/memorytest"
	"cairn/internal/memory/rules"
)

func TestAnAwaitWaitsForWhatWasAcknowledgedBeforeIt(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t).Joined()
	h := memorytest.NewHub(d)
	d.Add("before")
	done := make(chan error, 1)
	go func() { done <- d.AwaitConsistency(context.Background(), memory.Caller{}, d.MemoryID, time.Minute) }()
	waiting := regexp.MustCompile(`Pause\([^\n]*\n(.+\n)*.*TestAnAwaitWaitsForWhatWasAcknowledgedBeforeIt\.func`)
	for all := make([]byte, 1<<20); !waiting.Match(all[:runtime.Stack(all, true)]); { // until it waits
		runtime.Gosched()
	}
	leases := d.Lanes()
	batch := d.Take(leases, 100)
	late := d.Add("later")
	select {
	case err := <-done:
		t.Fatalf("it has not waited: %v", err)
	default:
	}
	d.Settle(leases, h.Push(t, batch))
	if err := <-done; err != nil {
		t.Errorf("await: %v", err)
	}
	memorytest.Want(t, "the later one is no matter", d.Pending(), "later")
	memorytest.WantError(t, "a look", d.AwaitConsistency(t.Context(), memory.Caller{}, d.MemoryID, 0), 504, memory.CodeAwaitTimeout, `"pending":1`)
	if err := d.SetPaused(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	memorytest.WantError(t, "while paused", d.AwaitConsistency(t.Context(), memory.Caller{}, d.MemoryID, time.Millisecond), 504, memory.CodeAwaitTimeout, `"paused":true`)
	if _, err := d.DeleteEntry(t.Context(), memory.Caller{}, d.MemoryID, late.LocalID); err != nil {
		t.Fatal(err)
	}
	for what, memoryID := range map[string]string{"nothing pending": d.MemoryID, "unknown": rules.NewID()} {
		if err := d.AwaitConsistency(t.Context(), memory.Caller{}, memoryID, 0); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	memorytest.WantError(t, "another's user_id", d.AwaitConsistency(t.Context(), memory.Caller{UserID: rules.NewID()}, d.MemoryID, 0), 404, memory.CodeNotFound)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.AwaitConsistency(gone, memory.Caller{}, d.MemoryID, time.Minute); err == nil {
		t.Error("an await goes on without its caller")
	}
}
