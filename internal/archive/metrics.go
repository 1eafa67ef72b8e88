package archive

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"cairn/internal/fault"
	"cairn/internal/store"
)

// Metrics say how the archive does (mail §10.5). Counters count since the process
// began; the gauges are those of now.
type Metrics struct {
	Depth         int64 `json:"wbq_depth"`                   // changes not yet written as files
	WriteErrors   int64 `json:"wbq_errors_total"`            // batches whose files could not be written
	CommitErrors  int64 `json:"commit_errors_total"`         // commits that failed for good, until they are tried afresh
	SyncFallbacks int64 `json:"commit_sync_fallbacks_total"` // commits made without a worker, which was silent
	NeedsReindex  int64 `json:"needs_reindex_total"`         // changes and entities known to lack a current file

	Files   Queue `json:"-"` // changes on their way to files
	Commits Queue `json:"-"` // batches of them on their way to a commit

	Backpressure int64 `json:"backpressure_total"` // how often reading paused for the commits to come along
	Level        Level `json:"disk_level"`
}

// Queue is how one of the archive's queues does. Its capacity is no limit: what waits
// stands in the change log.
type Queue struct {
	store.Usage
	Entered, Left int64              // since the process began; what failed enters again and does not leave
	Latency       store.Distribution // from a change's time to its files, and from a batch to its commit
}

// Capacity is what the depth of a queue is compared with (mail §10.5).
const Capacity = 8192

// counters are the counters of Metrics.
type counters struct {
	writeErrors, commitErrors, fallbacks, backpressure atomic.Int64

	files, commits queue
	sampled        atomic.Int64 // when the depth was looked at last, in Unix nanoseconds
}

// queue counts what Queue tells.
type queue struct {
	load          store.UsageGauge
	entered, left atomic.Int64
	latency       store.Histogram
}

func (q *queue) read() Queue {
	return Queue{Usage: q.load.Read(), Entered: q.entered.Load(), Left: q.left.Load(), Latency: q.latency.Read()}
}

// Metrics reads them. Errors: those of store.Read.
func (a *Archiver) Metrics(ctx context.Context) (Metrics, error) {
	m := Metrics{
		WriteErrors: a.counts.writeErrors.Load(), CommitErrors: a.counts.commitErrors.Load(), SyncFallbacks: a.counts.fallbacks.Load(),
		Backpressure: a.counts.backpressure.Load(), Level: a.level(),
	}
	withheld := m.Level == LevelCritical || m.Level == LevelFatal
	statuses, err := a.Status(ctx, "")
	for _, s := range statuses {
		m.NeedsReindex += int64(len(s.Aside))
		l := a.line(s.Project)
		m.Depth += s.Unwritten
		if withheld || l.failing.Load() {
			m.NeedsReindex += s.Lag
		}
	}
	a.counts.files.load.Set(m.Depth)
	m.Files, m.Commits = a.counts.files.read(), a.counts.commits.read()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, n := range a.missing {
		m.NeedsReindex += int64(n)
	}
	return m, err
}

// sample looks at the depth if nobody has done so for a second.
func (a *Archiver) sample(ctx context.Context) {
	now, last := time.Now().UnixNano(), a.counts.sampled.Load()
	if now-last < int64(time.Second) || !a.counts.sampled.CompareAndSwap(last, now) {
		return
	}
	if _, err := a.Metrics(ctx); err != nil && ctx.Err() == nil {
		a.Log.Warn("the depth of the archive's queue could not be read", "error", err)
	}
}

// count counts why a project could not be archived.
func (a *Archiver) count(err error) {
	switch {
	case errors.Is(err, errFull), errors.Is(err, context.Canceled):
	case fault.HasCode(err, CodeFiles), fault.HasCode(err, CodeGone):
		a.counts.writeErrors.Add(1)
	default:
		a.counts.commitErrors.Add(1)
	}
}

func (a *Archiver) setMissing(project string, n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n == 0 {
		delete(a.missing, project)
		return
	}
	a.missing[project] = n
}
