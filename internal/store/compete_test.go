package store_test

import (
	"bufio"
	"context"
	"fmt"
	"math/bits"
	"os"
	"testing"
	"time"

	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

// histogram counts durations in buckets an eighth of an octave wide.
type histogram [64 * 8]int

func (h *histogram) add(d time.Duration) {
	octave := bits.Len64(uint64(d | 8))
	h[octave*8+int(uint64(d|8)>>(octave-4)&7)]++
}

// quantile returns the lower bound of the bucket with the quantile.
func (h *histogram) quantile(q float64) time.Duration {
	total, seen, last := 0, 0, 0
	for _, n := range h {
		total += n
	}
	for i, n := range h {
		if n > 0 {
			last = i
		}
		if seen += n; float64(seen) > q*float64(total) {
			break
		}
	}
	return time.Duration((8 + uint64(last%8)) << max(last/8-4, 0))
}

// compete writes row after row for a while and reports the duration of each write.
func compete(o order, in *bufio.Reader) error {
	ctx := context.Background()
	s, err := open(ctx, store.Config{Path: o.Path, Role: store.Command})
	if err != nil {
		return err
	}
	storetest.Tell("ready")
	storetest.Hear(in)
	var h histogram
	for n, end := 0, time.Now().Add(o.For); time.Now().Before(end); n++ {
		begin := time.Now()
		if err := storetest.Write(ctx, s, o.Sync, fmt.Sprintf("%s-%d", o.Prefix, n)); err != nil {
			return err
		}
		h.add(time.Since(begin))
	}
	for bucket, n := range h {
		if n > 0 {
			storetest.Tell(fmt.Sprint(bucket, " ", n))
		}
	}
	return s.Close()
}

func TestEightConcurrentWritingProcessesMeetNoError(t *testing.T) {
	t.Parallel()
	length := 500 * time.Millisecond // per durability
	if os.Getenv("CAIRN_SOAK") != "" {
		length = 10 * time.Second
	}
	path := storetest.Path(t)
	total := 0
	for _, sync := range []store.Sync{store.Full, store.Normal} {
		var all []*storetest.Process
		for n := range 8 {
			all = append(all, child(t, "compete", order{Path: path, Sync: sync, For: length, Prefix: fmt.Sprint(sync, "-", n)}))
		}
		for _, p := range all {
			p.Expect(t, "ready")
		}
		for _, p := range all {
			p.Send("go")
		}
		var h histogram
		var each []int
		for _, p := range all {
			lines, err := p.Wait(t)
			if err != nil {
				t.Errorf("a writer met %v", err)
			}
			mine := 0
			for _, line := range lines {
				var bucket, n int
				if _, err := fmt.Sscan(line, &bucket, &n); err != nil {
					t.Fatal(err)
				}
				h[bucket] += n
				mine += n
			}
			each = append(each, mine)
			total += mine
		}
		t.Logf("synchronous %d: rows by process %v; a row took p50 %v, p99 %v, at most %v",
			sync, each, h.quantile(0.5), h.quantile(0.99), h.quantile(1))
	}
	if got := len(storetest.IDs(t, storetest.Open(t, store.Config{Path: path}))); got != total {
		t.Errorf("the log holds %d changes, want %d", got, total)
	}
}
