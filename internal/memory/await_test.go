package memory

import (
	"context"
	"runtime"
	"testing"
	"time"

	"cairn/internal/fault"
	"cairn/internal/memory/rules"
	"cairn/internal/store"
)

func TestAnAwaitWaitsForWhatWasAcknowledgedBeforeIt(t *testing.T) {
	t.Parallel()
	d := newDesk(t).joined()
	h := newHub(d)
	d.add("before")
	done := make(chan error, 1)
	go func() { done <- d.AwaitConsistency(context.Background(), Caller{}, d.memory, time.Minute) }()
	for waits := false; !waits; { // until it waits
		runtime.Gosched()
		d.progress.mu.Lock()
		waits = d.progress.next != nil
		d.progress.mu.Unlock()
	}
	leases := d.lanes()
	batch := d.take(leases, 100)
	late := d.add("later")
	select {
	case err := <-done:
		t.Fatalf("it has not waited: %v", err)
	default:
	}
	d.settle(leases, h.push(t, batch))
	if err := <-done; err != nil {
		t.Errorf("await: %v", err)
	}
	want(t, "the later one is no matter", d.pending(), "later")
	wantError(t, "a look", d.AwaitConsistency(t.Context(), Caller{}, d.memory, 0), 504, CodeAwaitTimeout, `"pending":1`)
	if err := d.SetPaused(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	wantError(t, "while paused", d.AwaitConsistency(t.Context(), Caller{}, d.memory, time.Millisecond), 504, CodeAwaitTimeout, `"paused":true`)
	if _, err := d.DeleteEntry(t.Context(), Caller{}, d.memory, late.LocalID); err != nil {
		t.Fatal(err)
	}
	for what, memory := range map[string]string{"nothing pending": d.memory, "unknown": rules.NewID()} {
		if err := d.AwaitConsistency(t.Context(), Caller{}, memory, 0); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	wantError(t, "another's user_id", d.AwaitConsistency(t.Context(), Caller{UserID: rules.NewID()}, d.memory, 0), 404, CodeNotFound)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.AwaitConsistency(gone, Caller{}, d.memory, time.Minute); err == nil {
		t.Error("an await goes on without its caller")
	}
}

func TestErrorsOfTheStoreHaveTheirCodesAndShowNoSQL(t *testing.T) {
	t.Parallel()
	for code, w := range map[string]struct {
		status int
		code   string
	}{
		store.CodeBusy: {503, "store_busy"}, store.CodeOverloaded: {503, "store_busy"}, store.CodeFull: {507, "disk_full"},
		store.CodeReadOnly: {503, "store_read_only"}, store.CodeIO: {503, "store_read_only"}, store.CodeClosed: {503, "stopping"},
		store.CodeCorrupt: {500, "internal"}, "database_error": {500, "internal"}, "internal": {500, "internal"},
	} {
		err := toFault(fault.New(fault.Unavailable, code, "database is locked: SELECT").WithHint("h"))
		if code == store.CodeFull || code == store.CodeReadOnly || code == store.CodeClosed {
			wantError(t, code, err, w.status, w.code)
			continue
		}
		wantError(t, code, err, w.status, w.code)
		wantNot(t, code, err.Error(), "locked")
	}
	d := newDesk(t)
	err := d.write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, "SELECT nothing FROM nowhere")
		return err
	})
	wantNot(t, "an error of SQL", err.Error(), "nowhere")
}
