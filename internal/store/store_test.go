package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"cairn/internal/fault"
)

// open makes a store in a folder of the test's own and checks it at the end.
func open(t testing.TB, c Config) *Store {
	t.Helper()
	if c.Path == "" {
		c.Path = filepath.Join(t.TempDir(), "data", "cairn.db")
	}
	s, err := Open(t.Context(), c)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if found, err := s.Check(context.Background()); !c.Reading && (err != nil || len(found) > 0) && !fault.HasCode(err, CodeClosed) {
			t.Errorf("check: %v %v", found, err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// note appends one small change, as a part would in the transaction of its row.
func note(ctx context.Context, tx *Tx, id string) error {
	_, err := tx.Append(ctx, Change{Project: "p", Stream: "s/" + id[:1], Kind: "note", ID: id, Op: OpPut, Doc: []byte(`{"n":1}`)})
	return err
}

func TestConcurrentWritersShareCommitsAndOneErrorHurtsNobodyElse(t *testing.T) {
	t.Parallel()
	s := open(t, Config{})
	refuse := errors.New("refused")
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			err := s.Write(t.Context(), Sync(i%2), func(ctx context.Context, tx *Tx) error {
				if err := note(ctx, tx, fmt.Sprintf("a%d", i)); err != nil {
					return err
				}
				if i%10 == 3 {
					return refuse
				}
				if i%10 == 4 {
					panic("defect")
				}
				return nil
			})
			switch {
			case i%10 == 3 && !errors.Is(err, refuse):
				t.Errorf("write %d: %v", i, err)
			case i%10 == 4 && fault.As(err).Code != "internal":
				t.Errorf("write %d: %v", i, err)
			case i%10 != 3 && i%10 != 4 && err != nil:
				t.Errorf("write %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	var changes []Change
	err := s.Read(t.Context(), func(ctx context.Context, tx *Tx) (err error) {
		changes, err = tx.Changes(ctx, 0, 1000)
		return err
	})
	if err != nil || len(changes) != 160 {
		t.Fatalf("%d changes, %v", len(changes), err)
	}
	for i, c := range changes {
		if c.DeviceSeq != int64(i+1) {
			t.Fatalf("change %d has number %d", i, c.DeviceSeq)
		}
	}
}
