package shards_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cairn/internal/memory"
	"cairn/internal/memory/memorytest"
	"cairn/internal/memory/rules"
	"cairn/internal/memory/shards"
)

func TestAShardIsTheUnsignedHashOfTheMemory(t *testing.T) {
	t.Parallel()
	// FNV-1a-32 of "a" is 0xe40c292c, which is negative as an int32.
	memorytest.Want(t, "shard", shards.Of("a", 256), 0x2c)
	memorytest.Want(t, "of seven", shards.Of("a", 7), 0xe40c292c%7)
	memorytest.Want(t, "lane", shards.LaneOf("a"), 0x2c)
	for n := 1; n < 300; n++ {
		if s := shards.Of("foobar", n); s < 0 || s >= n {
			t.Fatalf("shard %d of %d", s, n)
		}
	}
}

func TestJobsOfAMemoryRunInOrderAndOneByOne(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3, 256} {
		s := shards.New(n, 128, time.Minute)
		var running atomic.Int32
		var wg sync.WaitGroup
		for m := range 8 {
			wg.Go(func() {
				next := 0
				for i := range 200 {
					err := s.Run(t.Context(), fmt.Sprint("m", m), func(context.Context) error {
						if i != next {
							t.Errorf("job %d ran as number %d", i, next)
						}
						next++
						if n == 1 && running.Add(1) != 1 {
							t.Error("two jobs at once")
						}
						running.Add(-1)
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestAFullQueueRefusesAfterAWhileAndTheOthersGoOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := shards.New(2, 3, 100*time.Millisecond)
		var names [2]string
		for i := 0; names[0] == "" || names[1] == ""; i++ {
			names[shards.Of(fmt.Sprint(i), 2)] = fmt.Sprint(i)
		}
		release := make(chan struct{})
		var ran atomic.Int32
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				if err := s.Run(t.Context(), names[0], func(context.Context) error { <-release; ran.Add(1); return nil }); err != nil {
					t.Errorf("job %d: %v", i, err)
				}
			})
			synctest.Wait()
		}
		begun := time.Now()
		err := s.Run(t.Context(), names[0], func(context.Context) error { ran.Add(1); return nil })
		memorytest.WantError(t, "the fifth", err, 429, memory.CodeQueueFull, `"capacity":3,"length":3,"shard":0`)
		memorytest.Want(t, "patience", time.Since(begun), 100*time.Millisecond)
		if err := s.Run(t.Context(), names[1], func(context.Context) error { return nil }); err != nil {
			t.Errorf("another shard: %v", err)
		}
		close(release)
		wg.Wait()
		memorytest.Want(t, "ran", ran.Load(), 4)
		st := s.Stats()
		memorytest.Want(t, "stats", fmt.Sprint(st[0].Submissions, st[0].Full, st[0].Runs.Count, st[0].Depth), "4 1 4 0")
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestACallerThatHasLeftTheQueueIsSkippedAndOneThatLeavesLaterIsNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := shards.New(1, 8, time.Second)
		release, ran := make(chan struct{}), 0
		first, leaveFirst := context.WithCancel(t.Context())
		second, leaveSecond := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			err := s.Run(first, "m", func(ctx context.Context) error { <-release; ran++; return ctx.Err() })
			if err != nil {
				t.Errorf("the running job: %v", err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if err := s.Run(second, "m", func(context.Context) error { ran += 10; return nil }); !errors.Is(err, context.Canceled) {
				t.Errorf("the waiting job: %v", err)
			}
		})
		synctest.Wait()
		leaveFirst()
		leaveSecond()
		synctest.Wait()
		close(release)
		wg.Wait()
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		memorytest.Want(t, "ran", ran, 1)
		memorytest.Want(t, "skipped", s.Stats()[0].Skipped, 1)
	})
}

func TestAPanicIsOneCallersAlone(t *testing.T) {
	t.Parallel()
	s := shards.New(1, 8, time.Second)
	err := s.Run(t.Context(), "m", func(context.Context) error { panic("secret text") })
	f := err
	if f == nil || f.Error() == "" || memory.Status(err) != 500 {
		t.Errorf("the panic: %v", err)
	}
	memorytest.WantNot(t, "the message", f.Error(), "secret")
	if err := s.Run(t.Context(), "m", func(context.Context) error { return nil }); err != nil {
		t.Errorf("the next: %v", err)
	}
	memorytest.Want(t, "panics", s.Stats()[0].Panics, 1)
	if err := s.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestSubmitsThatRaceStopRunExactlyIfTheyAreAccepted is the suite of memories §15.
func TestSubmitsThatRaceStopRunExactlyIfTheyAreAccepted(t *testing.T) {
	t.Parallel()
	for round := range 5 {
		s := shards.New(4, 8, time.Minute)
		var accepted, executed, refused atomic.Int32
		var wg sync.WaitGroup
		begin := make(chan struct{})
		for i := range 1000 {
			wg.Go(func() {
				<-begin
				switch err := s.Run(context.Background(), fmt.Sprint("m", i%7), func(context.Context) error { executed.Add(1); return nil }); {
				case err == nil:
					accepted.Add(1)
				case memory.Status(err) == 503:
					refused.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		stopped := make(chan error, 2)
		for range 2 {
			go func() {
				<-begin
				for int(executed.Load()) < round*100 {
					select {
					case <-t.Context().Done():
					default:
					}
				}
				stopped <- s.Stop(context.Background())
			}()
		}
		close(begin)
		for range 2 {
			if err := <-stopped; err != nil {
				t.Error(err)
			}
		}
		after := executed.Load()
		wg.Wait()
		if accepted.Load() != executed.Load() || executed.Load() != after || accepted.Load()+refused.Load() != 1000 {
			t.Errorf("accepted %d, executed %d (%d when stopped), refused %d", accepted.Load(), executed.Load(), after, refused.Load())
		}
		err := s.Run(t.Context(), "m", func(context.Context) error { return nil })
		memorytest.WantError(t, "after the stop", err, 503, memory.CodeStopping)
	}
}

func TestStopReleasesThoseWhoWaitForAPlaceAndRunsTheAccepted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := shards.New(1, 1, time.Hour)
		release, ran := make(chan struct{}), 0
		var wg sync.WaitGroup
		for range 2 { // one runs, one waits
			wg.Go(func() {
				if err := s.Run(t.Context(), "m", func(context.Context) error { <-release; ran++; return nil }); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		wg.Go(func() {
			err := s.Run(t.Context(), "m", func(context.Context) error { ran += 10; return nil })
			memorytest.WantError(t, "the blocked", err, 503, memory.CodeStopping)
		})
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Stop(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a stop that cannot wait: %v", err)
		}
		close(release)
		wg.Wait()
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		memorytest.Want(t, "ran", ran, 2)
	})
}

func BenchmarkShardsOfNoopJobs(b *testing.B) {
	d := memory.Defaults()
	s := shards.New(d.Shards, d.QueueLen, d.EnqueueTimeout)
	names := make([]string, 64)
	for i := range names {
		names[i] = rules.NewID()
	}
	var n atomic.Int64
	b.RunParallel(func(p *testing.PB) {
		name := names[n.Add(1)%64]
		for p.Next() {
			if err := s.Run(b.Context(), name, func(context.Context) error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
	if err := s.Stop(b.Context()); err != nil {
		b.Fatal(err)
	}
}
