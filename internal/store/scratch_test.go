package store_test

import (
	"context"
	"testing"
	"time"

	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

func TestScratchHasTheSchemaAndLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{})
	at := time.Unix(0, 1_700_000_000_123_456_789)
	err := s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return store.Scratch(ctx, at, func(ctx context.Context, scratch *store.Tx) error {
			if !scratch.Now().Equal(at) {
				t.Errorf("its time is %v", scratch.Now())
			}
			if err := storetest.Note(ctx, scratch, "a"); err != nil {
				return err
			}
			list, err := scratch.Changes(ctx, 0, 10)
			if err != nil || len(list) != 1 || list[0].ID != "a" || list[0].At != at.UnixNano() {
				t.Errorf("changes %+v, %v", list, err)
			}
			head, err := tx.Head(ctx)
			if err != nil || head != 0 {
				t.Errorf("the store's own log is at %d, %v", head, err)
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	if left := storetest.Changes(t, s); len(left) > 0 {
		t.Errorf("%d changes were left behind", len(left))
	}
}
