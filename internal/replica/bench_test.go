package replica_test

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"cairn/internal/hub"
	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/replica"
)

// percentiles reports what of the times lies below.
func percentiles(b *testing.B, times []time.Duration) {
	b.Helper()
	slices.Sort(times)
	for _, p := range []int{50, 95, 99} {
		b.ReportMetric(float64(times[min(len(times)-1, len(times)*p/100)].Microseconds())/1000, fmt.Sprintf("p%d-ms", p))
	}
}

// BenchmarkAck is the time until a write is acknowledged, whatever the hub does.
func BenchmarkAck(b *testing.B) {
	for _, how := range []string{"up", "slow by 500 ms", "gone"} {
		b.Run(how, func(b *testing.B) {
			o := open(b, "")
			d := o.desk().furnish()
			d.drain()
			o.set(func(o *office) {
				o.before = func(_ http.ResponseWriter, r *http.Request) bool {
					switch {
					case how == "gone":
						panic(http.ErrAbortHandler)
					case how != "up" && r.URL.Path == replica.PathPush:
						time.Sleep(500 * time.Millisecond) // the hub's slowness is what is tried
					}
					return false
				}
			})
			d.equip()
			d.start()
			var times []time.Duration
			for i := 0; b.Loop(); i++ {
				begun := time.Now()
				d.add(fmt.Sprint("e", i))
				times = append(times, time.Since(begun))
			}
			percentiles(b, times)
			o.set(func(o *office) { o.before = nil })
		})
	}
}

// BenchmarkInflightList lists 25 inflight entries beside a backlog.
func BenchmarkInflightList(b *testing.B) {
	o := open(b, "")
	d := o.desk().furnish()
	for i := range 1000 {
		d.add(fmt.Sprint("e", i))
	}
	var times []time.Duration
	for b.Loop() {
		begun := time.Now()
		if _, err := d.ListInflight(b.Context(), memory.Caller{}, d.memory, 25); err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(begun))
	}
	percentiles(b, times)
}

// backlog is how many entries are drained: CAIRN_BENCH_ENTRIES, 5000 without it.
func backlog() int {
	if n, err := strconv.Atoi(os.Getenv("CAIRN_BENCH_ENTRIES")); err == nil {
		return n
	}
	return 5000
}

// BenchmarkDrain sends what was written offline to hubs over both databases, and
// next to it what the hub's own upsert of the same rows takes.
func BenchmarkDrain(b *testing.B) {
	for _, database := range []string{"sqlite", "postgres"} {
		for _, memories := range []int{1, 20} {
			b.Run(fmt.Sprintf("%s, %d memories", database, memories), func(b *testing.B) {
				for range b.N {
					b.StopTimer()
					address := ""
					if database == "postgres" {
						address = postgres.Database(b)
					}
					o := open(b, address)
					o.set(func(o *office) { o.direct = true })
					d := o.desk().furnish()
					to := []string{d.memory}
					for len(to) < memories {
						to = append(to, d.newMemory(d.vault, fmt.Sprint("m", len(to))))
					}
					d.drain()
					n := backlog()
					text := strings.Repeat("what an agent has decided, in a line or two. ", 5)
					d.fill(to, n, text)
					b.StartTimer()
					begun := time.Now()
					d.start()
					for _, m := range to {
						if err := d.AwaitConsistency(b.Context(), memory.Caller{}, m, 5*time.Minute); err != nil {
							b.Fatal(err)
						}
					}
					took := time.Since(begun)
					b.StopTimer()
					d.end()
					b.ReportMetric(float64(n)/took.Seconds(), "entries/s")
					b.ReportMetric(float64(n)/o.bare(to, n, text).Seconds(), "bare-entries/s")
				}
			})
		}
	}
}

// fill writes entries from many callers at once.
func (d *desk) fill(to []string, n int, text string) {
	d.Helper()
	work := make(chan int)
	done := make(chan error, 8)
	for range 8 {
		go func() {
			var failed error
			for i := range work {
				_, _, err := d.AddEntry(d.Context(), memory.Caller{}, contents.NewEntry{MemoryID: to[i%len(to)], RawEntry: fmt.Sprint(i, " ", text)})
				if err != nil {
					failed = err
				}
			}
			done <- failed
		}()
	}
	for i := range n {
		work <- i
	}
	close(work)
	for range 8 {
		if err := <-done; err != nil {
			d.Fatal(err)
		}
	}
}

// bare is how long the hub alone takes for as many entries: pushes of 500 without a
// device, without HTTP.
func (o *office) bare(to []string, n int, text string) time.Duration {
	o.Helper()
	who := hub.Identity{UserID: o.user, Level: hub.LevelAdmin}
	begun := time.Now()
	for i := 0; i < n; {
		ask := replica.PushRequest{DeviceID: "bare"}
		for ; i < n && len(ask.Items) < 500; i++ {
			key := replica.Key("POST", "bare", fmt.Sprint(i))
			ask.Items = append(ask.Items, replica.Item{
				Stream: to[i%len(to)], Seq: int64(i + 1), Kind: replica.KindEntry, ID: "x", Op: replica.OpPut, Key: key,
				Doc: fmt.Appendf(nil, `{"key":%q,"localId":"pending-1","rawEntry":"%d %s","summary":"","tags":{},"capturedTime":"2026-01-01T00:00:00Z"}`, key, i, text),
			})
		}
		results, err := o.hub.Push(o.Context(), who, ask)
		if err != nil {
			o.Fatal(err)
		}
		for _, r := range results {
			if r.Status != 201 {
				o.Fatal(r.Status, r.Error)
			}
		}
	}
	return time.Since(begun)
}

// BenchmarkOneMemoryBlocked is the time from writing to commit at the hub of 100
// memories, with and without one more that the hub refuses for now.
func BenchmarkOneMemoryBlocked(b *testing.B) {
	for _, blocked := range []bool{false, true} {
		b.Run(fmt.Sprint("blocked=", blocked), func(b *testing.B) {
			o := open(b, "")
			d := o.desk().furnish()
			var others []string
			for i := range 100 {
				others = append(others, d.newMemory(d.vault, fmt.Sprint("m", i)))
			}
			d.drain()
			o.set(func(o *office) {
				o.item = func(it replica.Item) int {
					if blocked && it.Stream == d.memory {
						return 503
					}
					return 0
				}
			})
			for i := range 50 {
				d.add(fmt.Sprint("b", i))
			}
			d.start()
			if !blocked {
				d.awaits(d.memory)
			}
			var times []time.Duration
			for i := 0; b.Loop(); i++ {
				m := others[i%100]
				begun := time.Now()
				d.addTo(m, "x")
				d.awaits(m)
				times = append(times, time.Since(begun))
			}
			percentiles(b, times)
		})
	}
}
