package observation

import (
	"fmt"
	"testing"
	"time"

	"cairn/internal/store"
)

// largeBench is a journal of n rows in ten projects, a second apart and ending
// now; one in ten is of a type that expires after two days.
func largeBench(b *testing.B, n int) bench {
	b.Helper()
	j := newBench(b).with(func(c *Config) {
		c.Retention = DefaultRetention()
		c.Retention[typeRead] = 2
	})
	var repos []string
	for i := range 10 {
		repos = append(repos, j.repository(fmt.Sprintf("%s-%d", j.repo, i)))
	}
	var events []Event
	for i := range n {
		c := Call{ID: fmt.Sprint("t", i), Tool: "Bash", Action: Shell, Command: fmt.Sprint("go test ./internal/part", i%97, " -run TestSomething", i)}
		if i%10 == 0 {
			c = Call{ID: c.ID, Tool: "Read", Action: Read, Path: fmt.Sprintf("internal/part%d/file%d.go", i%97, i)}
		}
		events = append(events, Event{
			Kind: Tool, Session: fmt.Sprint("s", i/200), Cwd: repos[i/200%10],
			At: time.Unix(testStart-int64(n-i), 0), Calls: []Call{c},
		})
	}
	j.imported(events...)
	return j
}

// BenchmarkSweepAtSessionStart is what the start of a session pays, at 100,000
// rows: with nothing expired, and with at least 500 rows that are.
func BenchmarkSweepAtSessionStart(b *testing.B) {
	j := largeBench(b, 100_000)
	s, err := store.Open(b.Context(), store.Config{
		Path: j.store.Path(), Role: store.Hook, Clock: func() time.Time { return time.Unix(j.now.Load(), 0) },
	})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	j.Service = New(s, j.config)
	hook := SweepArgs{Limit: 500, Budget: 10 * time.Millisecond}
	b.Run("nothing expired", func(b *testing.B) {
		for b.Loop() {
			if done := j.sweep(hook); done.Rows != 0 {
				b.Fatalf("%+v", done)
			}
		}
	})
	b.Run("500 expired", func(b *testing.B) {
		j.now.Store(testStart + 2*secondsPerDay)
		swept, times := 0, 0
		for b.Loop() {
			done := j.sweep(hook)
			if done.Rows == 0 {
				b.Skip("everything is swept")
			}
			swept, times = swept+done.Rows, times+1
		}
		b.ReportMetric(float64(swept)/float64(times), "rows/op")
	})
}

// BenchmarkPurge purges the tenth part of 100,000 rows, to the last byte.
func BenchmarkPurge(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		j := largeBench(b, 100_000)
		b.StartTimer()
		if done := j.purge(PurgeArgs{Type: typeRead}); done.Rows != 10_000 {
			b.Fatalf("%+v", done)
		}
	}
}
