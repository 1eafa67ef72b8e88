package forget

import (
	"fmt"
	"testing"
	"time"

	"cairn/internal/observation"
	"cairn/internal/observation/observationtest"
	"cairn/internal/store"
)

// largeBench returns a store with n rows in ten projects. The rows are one second apart and end
// now. One in ten is of a type that expires after two days.
func largeBench(b *testing.B, n int) observationtest.Bench {
	b.Helper()
	j := observationtest.New(b).With(func(c *observation.Config) {
		c.Retention = observation.DefaultRetention()
		c.Retention[observation.TypeRead] = 2
	})
	var repos []string
	for i := range 10 {
		repos = append(repos, j.Repository(fmt.Sprintf("%s-%d", j.Repo, i)))
	}
	var events []observation.Event
	for i := range n {
		c := observation.Call{ID: fmt.Sprint("t", i), Tool: "Bash", Action: observation.Shell, Command: fmt.Sprint("go test ./internal/part", i%97, " -run TestSomething", i)}
		if i%10 == 0 {
			c = observation.Call{ID: c.ID, Tool: "Read", Action: observation.Read, Path: fmt.Sprintf("internal/part%d/file%d.go", i%97, i)}
		}
		events = append(events, observation.Event{
			Kind: observation.Tool, Session: fmt.Sprint("s", i/200), Cwd: repos[i/200%10],
			At: time.Unix(observationtest.Start-int64(n-i), 0), Calls: []observation.Call{c},
		})
	}
	j.Imported(events...)
	return j
}

// BenchmarkSweepAtSessionStart measures the sweep at the start of a session with 100,000 rows:
// with no expired rows, and with at least 500 expired rows.
func BenchmarkSweepAtSessionStart(b *testing.B) {
	j := largeBench(b, 100_000)
	s, err := store.Open(b.Context(), store.Config{
		Path: j.Store.Path(), Role: store.Hook, Clock: func() time.Time { return time.Unix(j.Now.Load(), 0) },
	})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	j.Service = observation.New(s, j.Config)
	hook := SweepArgs{Limit: 500, Budget: 10 * time.Millisecond}
	b.Run("nothing expired", func(b *testing.B) {
		for b.Loop() {
			if done := sweep(j, hook); done.Rows != 0 {
				b.Fatalf("%+v", done)
			}
		}
	})
	b.Run("500 expired", func(b *testing.B) {
		j.Now.Store(observationtest.Start + 2*observation.SecondsPerDay)
		swept, times := 0, 0
		for b.Loop() {
			done := sweep(j, hook)
			if done.Rows == 0 {
				b.Skip("everything is swept")
			}
			swept, times = swept+done.Rows, times+1
		}
		b.ReportMetric(float64(swept)/float64(times), "rows/op")
	})
}

// BenchmarkPurge purges a tenth of 100,000 rows, including their bytes on the disk.
func BenchmarkPurge(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		j := largeBench(b, 100_000)
		b.StartTimer()
		if done := purge(j, PurgeArgs{Type: observation.TypeRead}); done.Rows != 10_000 {
			b.Fatalf("%+v", done)
		}
	}
}
