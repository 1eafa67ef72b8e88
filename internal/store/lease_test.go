package store_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

// TestOneLiveFollowerOfALeaseRunsAndNothingIsStored has two: the second takes over
// when the first ends, and sees what is written from then on.
func TestOneLiveFollowerOfALeaseRunsAndNothingIsStored(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{})
	write := func(id string) {
		t.Helper()
		err := s.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Append(ctx, store.Change{Stream: "s", Kind: "k", ID: id, Op: store.OpPut, Doc: []byte(`{}`)})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var running sync.WaitGroup
	follow := func(seen chan string) (elected chan struct{}, stop func()) {
		ctx, cancel := context.WithCancel(context.Background())
		elected = make(chan struct{})
		running.Go(func() {
			err := s.Follow(ctx, store.Follower{
				Lease: "one", Poll: 10 * time.Millisecond, Elected: func() { close(elected) },
				Batch: func(_ context.Context, changes []store.Change) ([]store.Refusal, error) {
					for _, c := range changes {
						seen <- c.ID
					}
					return nil, nil
				},
			})
			if err != nil {
				t.Error(err)
			}
		})
		return elected, cancel
	}
	first, second := make(chan string, 10), make(chan string, 10)
	write("before")
	elected, stop := follow(first)
	<-elected
	later, stopLater := follow(second)
	write("one")
	if id := <-first; id != "one" {
		t.Errorf("the first sees %s", id)
	}
	select {
	case <-later:
		t.Error("both run at once")
	default:
	}
	stop()
	<-later
	write("two")
	if id := <-second; id != "two" {
		t.Errorf("the second sees %s", id)
	}
	stopLater()
	running.Wait()
	if all, err := s.Followers(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("stored: %v, %v", all, err)
	}
}
