package retrieval_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/memories"
	"cairn/internal/memory/memorytest"
	"cairn/internal/memory/retrieval"
	"cairn/internal/memory/rules"
	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

// sizesEnv sets the number of entries of the largest store, for the soak only.
const sizesEnv = "CAIRN_SEARCH_BENCH"

// BenchmarkSearch searches one memory of a thousand entries in stores with a growing number of
// similar memories. The largest store has 10^3 entries by default; the soak sets
// CAIRN_SEARCH_BENCH to 1000000.
func BenchmarkSearch(b *testing.B) {
	most := 1_000
	if n, err := strconv.Atoi(os.Getenv(sizesEnv)); err == nil {
		most = n
	}
	for size := 1_000; size <= most; size *= 10 {
		b.Run(fmt.Sprintf("%d entries", size), func(b *testing.B) {
			d := searchDesk(b, size)
			r := rand.New(rand.NewPCG(7, 7))
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				found, err := d.Search(b.Context(), memory.Caller{}, retrieval.SearchArgs{MemoryID: d.MemoryID, Query: "when did " + babble(r, 6)})
				took = append(took, time.Since(began))
				if err != nil || found.Count == 0 {
					b.Fatal(found.Count, err)
				}
			}
			b.ReportMetric(float64(nearestRank(took, 0.95))/1e6, "p95-ms")
		})
	}
}

// searchDesk returns a desk with a thousand entries in its memory, and the others in further
// memories.
func searchDesk(b *testing.B, size int) *memorytest.Desk {
	clock := &storetest.Clock{}
	d := &memorytest.Desk{TB: b, Clock: clock, Service: memories.New(storetest.Open(b, store.Config{Clock: clock.Now}), memory.Config{})}
	b.Cleanup(func() { _ = d.Stop(b.Context()) })
	d.VaultID = d.NewVault(memory.Caller{}, "v")
	r := rand.New(rand.NewPCG(1, 2))
	for n := 0; n < size; n += 1_000 {
		d.MemoryID = d.NewMemory(memory.Caller{}, d.VaultID, "m"+strconv.Itoa(n))
		err := d.Write(b.Context(), func(ctx context.Context, tx *store.Tx) error {
			s, err := d.Enter(ctx, tx, memory.Caller{}, true)
			if err == nil {
				err = s.Open(ctx, d.MemoryID)
			}
			for i := 0; i < 1_000 && err == nil; i++ {
				e := contents.EntryRow{Synced: true}
				e.Entry = contents.Entry{EntryID: rules.NewID(), ActorID: s.User.UserID, VaultID: d.VaultID, MemoryID: d.MemoryID, RawEntry: babble(r, 25)}
				e.CreationTime = memory.Time(i+1) * memory.Time(time.Hour)
				e.CreationNS, e.CapturedTime = e.CreationTime, e.CreationTime
				err = contents.InsertEntry(ctx, s, &e)
			}
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	return d
}

// babble returns random words with the frequencies of a language.
func babble(r *rand.Rand, n int) string {
	zipf := rand.NewZipf(r, 1.1, 5, 20_000)
	var b strings.Builder
	for range n {
		b.WriteString("w" + strconv.FormatUint(zipf.Uint64(), 36) + "o ")
	}
	return b.String()
}

func nearestRank(took []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(took))
	return sorted[int(q*float64(len(sorted)-1))]
}
