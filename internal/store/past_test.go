package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"cairn/internal/fault"
	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

// loggedStore returns a store with a random log of two streams, and the content of that
// log.
func loggedStore(t *testing.T, clock *storetest.Clock, n int) (*store.Store, []store.Change) {
	t.Helper()
	s := storetest.Open(t, store.Config{Clock: clock.Now})
	random := rand.New(rand.NewPCG(1, 2))
	var all []store.Change
	for i := range n {
		clock.Move(time.Duration(random.IntN(3)) * time.Second)
		err := s.Write(t.Context(), store.Normal, func(ctx context.Context, tx *store.Tx) error {
			c := store.Change{
				Stream: fmt.Sprint("stream", random.IntN(2)), Kind: fmt.Sprint("kind", random.IntN(2)), ID: fmt.Sprint("id", random.IntN(4)),
				Op: store.OpPut, Doc: fmt.Appendf(nil, `{"n":%d}`, i), At: clock.Now().UnixNano(),
			}
			if random.IntN(5) == 0 {
				c.Doc = nil
			}
			seq, err := tx.Append(ctx, c)
			c.Seq = seq
			all = append(all, c)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return s, all
}

func TestTheDocumentsOfAMomentAreTheNewestThatWereThereThen(t *testing.T) {
	t.Parallel()
	clock := &storetest.Clock{}
	clock.Move(1_700_000_000 * time.Second)
	s, all := loggedStore(t, clock, 120)
	ids := []string{"id3", "id1", "id0", "id2", "none"}
	for i := range all {
		at := time.Unix(0, all[i].At)
		var byTime, byTick int64
		docs, changes := map[string]string{}, []int64{}
		for _, c := range all {
			if c.Stream != "stream1" || c.Doc == nil {
				continue
			}
			if c.At <= at.UnixNano() {
				byTime = c.Seq
			}
			if c.Seq <= all[i].Seq {
				byTick = c.Seq
				changes = append(changes, c.Seq)
				if c.Kind == "kind1" {
					docs[c.ID] = string(c.Doc)
				}
			}
		}
		err := s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			m, err := tx.MomentOf(ctx, "stream1", at, 0)
			if err != nil || m.Tick != byTime || !m.Time.Equal(at) || (m.Note == "") != (byTime > 0) {
				t.Errorf("at %v: %+v %v, want #%d", at, m, err, byTime)
			}
			if m, err = tx.MomentOf(ctx, "stream1", time.Time{}, all[i].Seq); err != nil || m.Tick != all[i].Seq || !m.Time.Equal(at) || (m.Note == "") != (byTick > 0) {
				t.Errorf("#%d: %+v %v", all[i].Seq, m, err)
			}
			got := []string{}
			err = tx.DocumentsAt(ctx, m, "stream1", "kind1", ids, func(doc json.RawMessage) error {
				got = append(got, string(doc))
				return nil
			})
			var want []string
			for _, id := range ids {
				if docs[id] != "" {
					want = append(want, docs[id])
				}
			}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("#%d: %q %v, want %q of %v", m.Tick, got, err, want, slices.Sorted(maps.Keys(docs)))
			}
			seqs := []int64{}
			err = tx.ChangesUntil(ctx, "stream1", m.Tick, func(c store.Change) error {
				seqs = append(seqs, c.Seq)
				return nil
			})
			if err != nil || !slices.Equal(seqs, changes) {
				t.Errorf("#%d: changes %v %v, want %v", m.Tick, seqs, err, changes)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestAMomentThatHasNotComeIsRefusedAndOneBeforeTheLogIsNamed(t *testing.T) {
	t.Parallel()
	clock := &storetest.Clock{}
	clock.Move(1_700_000_000 * time.Second)
	s, all := loggedStore(t, clock, 3)
	err := s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		if _, err := tx.MomentOf(ctx, "stream1", clock.Now().Add(time.Hour), 0); !fault.HasCode(err, store.CodeFuture) {
			t.Errorf("a time: %v", err)
		}
		if _, err := tx.MomentOf(ctx, "stream1", time.Time{}, all[2].Seq+1); !fault.HasCode(err, store.CodeFuture) {
			t.Errorf("a tick: %v", err)
		}
		for name, m := range map[string]func() (store.Moment, error){
			"a time":         func() (store.Moment, error) { return tx.MomentOf(ctx, "stream1", time.Unix(1, 0), 0) },
			"a tick":         func() (store.Moment, error) { return tx.MomentOf(ctx, "stream1", time.Time{}, 0) },
			"another stream": func() (store.Moment, error) { return tx.MomentOf(ctx, "unheard of", clock.Now(), 0) },
		} {
			if m, err := m(); err != nil || m.Tick != 0 || m.Note != store.BeforeFirst {
				t.Errorf("%s: %+v %v", name, m, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheSkewOfAMomentIsHowFarAClockWasSetBack(t *testing.T) {
	t.Parallel()
	clock := &storetest.Clock{}
	clock.Move(1_700_000_000 * time.Second)
	s := storetest.Open(t, store.Config{Clock: clock.Now})
	put := func(move time.Duration) (m store.Moment) {
		t.Helper()
		clock.Move(move)
		err := s.Write(t.Context(), store.Normal, func(ctx context.Context, tx *store.Tx) (err error) {
			m.Time = clock.Now()
			m.Tick, err = tx.Append(ctx, store.Change{Stream: "s", Kind: "k", ID: "i", Op: store.OpPut, Doc: []byte(`{}`), At: m.Time.UnixNano()})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	first := put(0)
	second := put(time.Hour)
	back := put(-3 * time.Hour) // two hours before the first change
	last := put(10 * time.Hour)
	for _, c := range []struct {
		name string
		at   store.Moment
		want time.Duration
	}{
		{"behind the first", first, 2 * time.Hour}, {"behind the second", second, 3 * time.Hour},
		{"behind the one that went back", back, 3 * time.Hour}, {"behind the last", last, 0}, {"before all", store.Moment{}, 0},
	} {
		err := s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			if c.at.Time.IsZero() {
				c.at.Time = time.Unix(0, 0)
			}
			got, err := tx.Skew(ctx, c.at, "s")
			if got != c.want {
				t.Errorf("%s: %v, want %v", c.name, got, c.want)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
