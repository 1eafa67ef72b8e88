package commands_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cairn/internal/project"
	"cairn/internal/record"
	"cairn/internal/record/archived"
	"cairn/internal/record/commands"
	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

// hall returns a service with many records: of each fifty the first is a root with the
// others below it, a tenth of them OPEN; R001 has fifty OPEN children.
func hall(b *testing.B, records int) (*commands.Commands, *store.Store) {
	b.Helper()
	s, err := store.Open(b.Context(), storetest.Config(store.Config{Path: filepath.Join(b.TempDir(), "cairn.db"), Role: store.Server}))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	book := commands.New(s, record.Config{})
	var wait sync.WaitGroup
	var next atomic.Int64
	for g := range 64 {
		wait.Go(func() {
			root := ""
			for n := 0; next.Add(1) <= int64(records-51); n++ {
				a := record.CreateArgs{
					Caller: as(fmt.Sprint("fill", g)), Type: "note", Title: fmt.Sprintf("Decision %d about %s", n, name(n%97)),
					Summary: "why it is so", Body: strings.Repeat(fmt.Sprintf("reasoning about %s and %s\n", name(n%997), name(1000+n%89)), 20),
					State: record.Later,
				}
				if n%50 == 0 {
					root = ""
				} else {
					a.ParentID = &root
				}
				if n%10 == 0 {
					a.State = record.Open
				}
				out, err := book.Create(b.Context(), a)
				if err != nil {
					b.Error(err)
					return
				}
				if n%50 == 0 {
					root = out.Record.ID
				}
			}
			if _, err := book.Close(b.Context(), record.SaveArgs{Caller: as(fmt.Sprint("fill", g))}); err != nil {
				b.Error(err)
			}
		})
	}
	wait.Wait()
	top, err := book.Create(b.Context(), record.CreateArgs{Caller: as("top"), Type: "question", Title: "top"})
	for n := 0; n < 50 && err == nil; n++ {
		_, err = book.Create(b.Context(), record.CreateArgs{
			Caller: as("top"), ParentID: &top.Record.ID, Type: "note", Title: "child", Body: strings.Repeat("child's reasoning\n", 50),
		})
	}
	if err != nil {
		b.Fatal(err)
	}
	return book, s
}

// name returns a word for a number.
func name(n int) string {
	letters := []byte("handler")
	for n += 676; n > 0; n /= 26 {
		letters = append(letters, byte('a'+n%26))
	}
	return string(letters)
}

// spread measures fn and reports the median and the 99th percentile.
func spread(b *testing.B, fn func(n int) error) {
	b.Helper()
	var times []time.Duration
	for n := 0; b.Loop(); n++ {
		began := time.Now()
		if err := fn(n); err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(began))
	}
	report(b, times)
}

func BenchmarkBook(b *testing.B) {
	for _, records := range []int{1000, 100_000} {
		b.Run(fmt.Sprint(records), func(b *testing.B) {
			if records > 1000 && testing.Short() {
				b.Skip("takes a minute to fill")
			}
			book, s := hall(b, records)
			ctx := context.Background()
			parent := fmt.Sprintf("R%03d", records-50)
			b.Run("activate with 50 open children", func(b *testing.B) {
				spread(b, func(int) error {
					_, err := book.Activate(ctx, record.ActivateArgs{Caller: as("reader"), ID: parent, Override: true})
					return err
				})
			})
			b.Run("overview", func(b *testing.B) {
				spread(b, func(int) error {
					_, err := book.Overview(ctx, record.OverviewArgs{Caller: as("reader")})
					return err
				})
			})
			b.Run("search", func(b *testing.B) {
				spread(b, func(n int) error {
					_, err := book.Search(ctx, record.SearchArgs{Caller: as("reader"), Query: name(n % 997)})
					return err
				})
			})
			b.Run("search for a common word", func(b *testing.B) {
				spread(b, func(int) error {
					_, err := book.Search(ctx, record.SearchArgs{Caller: as("reader"), Query: "reasoning"})
					return err
				})
			})
			b.Run("what a session had to do with", func(b *testing.B) {
				spread(b, func(int) error {
					list, err := book.Touched(ctx, project.Project{ID: "p"}, "top")
					if err == nil && len(list) != 51 {
						err = fmt.Errorf("%d records", len(list))
					}
					return err
				})
			})
			b.Run("archive's files of one change", func(b *testing.B) { benchRender(b, s) })
			b.Run("sync of 500 changes", func(b *testing.B) { benchSync(b, book, s) })
			for _, callers := range []int{1, 64} {
				b.Run(fmt.Sprint("create by ", callers), func(b *testing.B) {
					together(b, callers, func(g, n int) error {
						_, err := book.Create(ctx, record.CreateArgs{Caller: as(fmt.Sprint("c", g)), Type: "note", Title: "new", Body: "short"})
						return err
					})
				})
				b.Run(fmt.Sprint("update by ", callers), func(b *testing.B) { benchUpdate(b, book, callers) })
			}
		})
	}
}

func benchRender(b *testing.B, s *store.Store) {
	log := ofRecords(storetest.Changes(b, s))
	last := slices.IndexFunc(log, func(c store.Change) bool { return c.Kind == record.KindRecord && c.ID == "R900" })
	spread(b, func(int) error {
		return s.Read(b.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := archived.Render(ctx, tx, log[last:last+1])
			return err
		})
	})
}

func benchSync(b *testing.B, book *commands.Commands, s *store.Store) {
	ctx := context.Background()
	made, err := book.Create(ctx, record.CreateArgs{Caller: as("writer"), Type: "note", Title: "t"})
	for n := 0; n < 500 && err == nil; n++ {
		_, err = book.Update(ctx, record.UpdateArgs{Caller: as("writer"), ID: made.Record.ID, Summary: ptr(fmt.Sprint(n))})
	}
	if err == nil {
		_, err = book.Activate(ctx, record.ActivateArgs{Caller: as("late"), ID: "R001"})
	}
	if err != nil {
		b.Fatal(err)
	}
	const behind = `UPDATE record_sessions SET last_sync_tick = (SELECT max(tick) - 500 FROM projects)
WHERE session_key = (SELECT key FROM sessions WHERE id = 'late')`
	var times []time.Duration
	for b.Loop() {
		err := s.Write(ctx, store.Full, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, behind)
			return err
		})
		began := time.Now()
		out, syncErr := book.Sync(ctx, record.SyncArgs{Caller: as("late")})
		times = append(times, time.Since(began))
		if err != nil || syncErr != nil || len(out.Changes) != 500 {
			b.Fatal(len(out.Changes), err, syncErr)
		}
	}
	report(b, times)
}

func benchUpdate(b *testing.B, book *commands.Commands, callers int) {
	ctx := context.Background()
	ids := make([]string, callers)
	for g := range ids {
		made, err := book.Create(ctx, record.CreateArgs{Caller: as(fmt.Sprint("u", g)), Type: "note", Title: "t"})
		if err != nil {
			b.Fatal(err)
		}
		ids[g] = made.Record.ID
	}
	together(b, callers, func(g, n int) error {
		out, err := book.Update(ctx, record.UpdateArgs{Caller: as(fmt.Sprint("u", g)), ID: ids[g], Body: ptr(fmt.Sprint(b.N, " ", n))})
		if err == nil && out.Conflict != nil {
			return fmt.Errorf("conflict %+v", out.Conflict)
		}
		return err
	})
}

// together measures fn called by several callers concurrently.
func together(b *testing.B, callers int, fn func(g, n int) error) {
	b.Helper()
	var mu sync.Mutex
	var times []time.Duration
	var wait sync.WaitGroup
	var next atomic.Int64
	b.ResetTimer()
	for g := range callers {
		wait.Go(func() {
			var own []time.Duration
			for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
				began := time.Now()
				if err := fn(g, int(n)); err != nil {
					b.Error(err)
					return
				}
				own = append(own, time.Since(began))
			}
			mu.Lock()
			times = append(times, own...)
			mu.Unlock()
		})
	}
	wait.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "per-s")
	report(b, times)
}

func report(b *testing.B, times []time.Duration) {
	b.Helper()
	if len(times) == 0 {
		return
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "p99-ms")
}
