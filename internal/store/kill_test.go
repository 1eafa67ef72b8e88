package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

// rounds returns the number of kills in a test: n, a quarter with -short (second driver),
// more in a soak.
func rounds(n int) int {
	if soak, err := strconv.Atoi(os.Getenv("CAIRN_SOAK_KILLS")); err == nil {
		return soak
	}
	if testing.Short() {
		return (n + 3) / 4
	}
	return n
}

// writeUntilKilled writes from several goroutines, with both durabilities, and sends
// every acknowledged id. Every fifth closure fails after it has written.
func writeUntilKilled(o order) error {
	ctx := context.Background()
	s, err := open(ctx, store.Config{Path: o.Path, Role: o.Role})
	if err != nil {
		return err
	}
	failed := make(chan error)
	for g := range 6 {
		go func() {
			for n := 0; ; n++ {
				if err := acknowledged(ctx, s, store.Sync(g%2), fmt.Sprintf("%s-%d-%d", o.Prefix, g, n), n%5 == 4); err != nil {
					failed <- err
				}
			}
		}()
	}
	return <-failed
}

// openAndCloseUntilKilled opens and closes the store repeatedly, like a sequence of hooks.
func openAndCloseUntilKilled(o order) error {
	ctx := context.Background()
	for n := 0; ; n++ {
		s, err := open(ctx, store.Config{Path: o.Path, Role: o.Role})
		if err != nil {
			return err
		}
		err = acknowledged(ctx, s, store.Sync(n%2), fmt.Sprintf("%s-0-%d", o.Prefix, n), n%5 == 4)
		if err := errors.Join(err, s.Close()); err != nil {
			return err
		}
	}
}

func acknowledged(ctx context.Context, s *store.Store, sync store.Sync, id string, fail bool) error {
	refused := errors.New("refused")
	err := s.Write(ctx, sync, func(ctx context.Context, tx *store.Tx) error {
		if err := storetest.Note(ctx, tx, id); err != nil || !fail {
			return err
		}
		return refused
	})
	switch {
	case err == nil && !fail:
		storetest.Tell("stored " + id)
	case fail && errors.Is(err, refused):
		storetest.Tell("refused " + id)
	default:
		return fmt.Errorf("write %s: %w", id, err)
	}
	return nil
}

func TestKillLosesNothingAcknowledgedAndKeepsNothingRefused(t *testing.T) {
	t.Parallel()
	path := storetest.Path(t)
	stored, refused := map[string]bool{}, map[string]bool{}
	for round := range rounds(10) {
		var two []*storetest.Process
		for n := range 2 {
			name, role := "write until killed", store.Server
			if (round+n)%3 == 2 {
				name, role = "open and close until killed", store.Hook
			}
			two = append(two, child(t, name, order{Path: path, Role: role, Prefix: fmt.Sprintf("r%d.%d", round, n)}))
		}
		for _, p := range two { // the second process continues to write while the first is dead
			readUntilKilled(t, p, 1+rand.IntN(300), func(line string) {
				if id, ok := strings.CutPrefix(line, "stored "); ok {
					stored[id] = true
				} else {
					refused[strings.TrimPrefix(line, "refused ")] = true
				}
			})
		}
		s, err := open(t.Context(), store.Config{Path: path})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		expectAcknowledged(t, s, stored, refused)
		storetest.Closed(t, s)
		storetest.Check(t, path)
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	t.Logf("%d stored and %d refused writes acknowledged", len(stored), len(refused))
}

// readUntilKilled kills a child at a random instant after its n-th line.
func readUntilKilled(t *testing.T, p *storetest.Process, n int, line func(string)) {
	t.Helper()
	for range n {
		text, ok := p.Line(t)
		if !ok {
			_, err := p.Wait(t)
			t.Fatalf("the child ended by itself: %v", err)
		}
		line(text)
	}
	if err := p.Signal(); err != nil {
		t.Fatal(err)
	}
	rest, _ := p.Wait(t)
	for _, text := range rest {
		line(text)
	}
}

func expectAcknowledged(t *testing.T, s *store.Store, stored, refused map[string]bool) {
	t.Helper()
	there := map[string]bool{}
	for i, c := range storetest.Changes(t, s) {
		if there[c.ID] {
			t.Errorf("%s is there twice", c.ID)
		}
		if there[c.ID] = true; refused[c.ID] {
			t.Errorf("%s was refused and is there", c.ID)
		}
		if c.DeviceSeq != int64(i+1) {
			t.Fatalf("change %d has number %d of its device", i+1, c.DeviceSeq)
		}
	}
	for id := range stored {
		if !there[id] {
			t.Errorf("%s was acknowledged and is lost", id)
		}
	}
}
