package observation_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"cairn/bench/workload"
	"cairn/internal/observation"
	"cairn/internal/observation/assist"
	"cairn/internal/observation/capture"
	"cairn/internal/project"
	"cairn/internal/redact"
	"cairn/internal/store"
)

// BenchmarkAssist measures assistance as a hook provides it: on a store opened just before, so
// that SQLite's cache is empty. It runs with the time limit and without, which shows how often
// the limit would be exceeded. Creating the store of a million rows takes a minute or two;
// -short skips it.
func BenchmarkAssist(b *testing.B) {
	for _, rows := range []int{100_000, 1_000_000} {
		if testing.Short() && rows > 100_000 {
			continue
		}
		h := newHelpBench(b, rows)
		for name, limit := range map[string]time.Duration{"": time.Minute, "/limited": assist.DefaultTime} {
			h.config.AssistTime = limit
			b.Run(fmt.Sprintf("prompt/rows=%d%s", rows, name), func(b *testing.B) { h.measure(b, h.nextPrompt) })
			b.Run(fmt.Sprintf("tool/rows=%d%s", rows, name), func(b *testing.B) { h.measure(b, h.nextCall) })
		}
	}
}

type helpBench struct {
	path     string
	load     *workload.Workload
	config   observation.Config
	sessions int
}

func newHelpBench(b *testing.B, rows int) *helpBench {
	dir := b.TempDir()
	filter, err := redact.New(redact.Options{})
	if err != nil {
		b.Fatal(err)
	}
	h := &helpBench{
		path: filepath.Join(dir, "cairn.db"), load: workload.New(filepath.Join(dir, "work"), 1).Lean(),
		config: observation.Config{Filter: filter, DedupWindow: observation.DefaultDedupWindow},
	}
	if err := h.load.MakeRepositories(); err != nil {
		b.Fatal(err)
	}
	s, err := store.Open(b.Context(), store.Config{Path: h.path, Role: store.Server})
	if err != nil {
		b.Fatal(err)
	}
	j := observation.New(s, h.config)
	importer := capture.NewImporter(j, capture.ImportOptions{})
	span := 80 * 24 * time.Hour
	for added := 0; added < rows; h.sessions++ {
		session := h.load.Session(h.sessions, time.Now().Add(-span+span*time.Duration(added)/time.Duration(rows)))
		for range 100 {
			e, err := session.Event(session.Next())
			if err != nil {
				b.Fatal(err)
			}
			ready, err := capture.NewPreparer(j).Prepare(e)
			if err == nil {
				err = importer.Add(b.Context(), ready)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
		done, err := importer.EndFile(b.Context(), capture.ImportedFile{}, false)
		if err != nil {
			b.Fatal(err)
		}
		added += done.Added
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	return h
}

func (h *helpBench) measure(b *testing.B, next func(*testing.B) observation.Event) {
	var took []time.Duration
	told, over := 0, 0
	for b.Loop() {
		b.StopTimer()
		e := next(b)
		place, err := project.Locate(e.Cwd, "")
		if err != nil {
			b.Fatal(err)
		}
		s, err := store.Open(b.Context(), store.Config{Path: h.path, Role: store.Hook})
		if err != nil {
			b.Fatal(err)
		}
		j := observation.New(s, h.config)
		done, err := capture.Record(b.Context(), j, e, place, project.Process{})
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		began := time.Now()
		help, err := assist.Help(b.Context(), j, e, place, done)
		d := time.Since(began)
		b.StopTimer()
		if err != nil {
			b.Fatal(err)
		}
		if took = append(took, d); d > assist.DefaultTime {
			over++
		}
		if help.Text != "" {
			told++
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	slices.Sort(took)
	ms := func(share float64) float64 { return float64(took[int(share*float64(len(took)-1))]) / 1e6 }
	b.ReportMetric(ms(0.5), "p50-ms")
	b.ReportMetric(ms(0.99), "p99-ms")
	b.ReportMetric(100*float64(over)/float64(len(took)), "%over15ms")
	b.ReportMetric(100*float64(told)/float64(len(took)), "%told")
}

// next returns the next event of a new live session that wanted accepts.
func (h *helpBench) next(b *testing.B, wanted func(workload.Step) bool) observation.Event {
	h.sessions++
	session := h.load.Session(h.sessions, time.Now())
	for {
		step := session.Next()
		if !wanted(step) {
			continue
		}
		e, err := session.Event(step)
		if err != nil {
			b.Fatal(err)
		}
		e.Imported, e.At = false, time.Time{}
		return e
	}
}

func (h *helpBench) nextPrompt(b *testing.B) observation.Event {
	return h.next(b, func(s workload.Step) bool { return s.Event == "UserPromptSubmit" && len(s.Text) > 30 })
}

func (h *helpBench) nextCall(b *testing.B) observation.Event {
	e := h.next(b, func(s workload.Step) bool { return s.Tool == "Bash" || s.Tool == "Edit" || s.Tool == "Read" })
	e.Kind, e.Source = observation.Touch, "PreToolUse"
	return e
}
