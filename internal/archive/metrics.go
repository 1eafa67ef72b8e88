package archive

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"cairn/internal/archive/repository"
	"cairn/internal/fault"
	"cairn/internal/measure"
)

// Metrics are the metrics of the archive (mail §10.5). Counters count since the start of
// the process; gauges are current values.
type Metrics struct {
	Depth         int64 `json:"wbq_depth"`                   // changes not yet written as files
	WriteErrors   int64 `json:"wbq_errors_total"`            // batches whose files could not be written
	CommitErrors  int64 `json:"commit_errors_total"`         // commits that failed after all attempts
	SyncFallbacks int64 `json:"commit_sync_fallbacks_total"` // commits made without a worker, because it made no progress
	NeedsReindex  int64 `json:"needs_reindex_total"`         // changes and entities known to lack a current file

	Files   Queue `json:"-"` // changes on their way to files
	Commits Queue `json:"-"` // batches of them on their way to a commit

	Backpressure int64 `json:"backpressure_total"` // how often reading paused to let the commits catch up
	Level        Level `json:"disk_level"`
}

// Queue contains the metrics of one of the archive's queues. Its capacity is not a limit,
// because waiting changes are in the change log.
type Queue struct {
	measure.Usage
	Entered, Left int64                // since the start of the process; a failed item enters again and does not leave
	Latency       measure.Distribution // from a change's time to its files, and from a batch to its commit
}

// Capacity is the reference for the depth of a queue (mail §10.5).
const Capacity = 8192

// counters are the counters of Metrics.
type counters struct {
	writeErrors, commitErrors, fallbacks, backpressure atomic.Int64

	files, commits queue
	sampled        atomic.Int64 // time of the last sample of the depth, in Unix nanoseconds
}

// queue contains the counters of Queue.
type queue struct {
	load          measure.UsageGauge
	entered, left atomic.Int64
	latency       measure.Histogram
}

func (q *queue) read() Queue {
	return Queue{Usage: q.load.Read(), Entered: q.entered.Load(), Left: q.left.Load(), Latency: q.latency.Read()}
}

// Metrics returns the current metrics. Errors: those of store.Read.
func (a *Archiver) Metrics(ctx context.Context) (Metrics, error) {
	m := Metrics{
		WriteErrors: a.counts.writeErrors.Load(), CommitErrors: a.counts.commitErrors.Load(), SyncFallbacks: a.counts.fallbacks.Load(),
		Backpressure: a.counts.backpressure.Load(), Level: a.level(),
	}
	withheld := m.Level == LevelCritical || m.Level == LevelFatal
	statuses, err := a.Status(ctx, "")
	for _, s := range statuses {
		m.NeedsReindex += int64(len(s.Aside))
		l := a.worker(s.Project)
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

// sample measures the depth, at most once per second.
func (a *Archiver) sample(ctx context.Context) {
	now, last := time.Now().UnixNano(), a.counts.sampled.Load()
	if now-last < int64(time.Second) || !a.counts.sampled.CompareAndSwap(last, now) {
		return
	}
	if _, err := a.Metrics(ctx); err != nil && ctx.Err() == nil {
		a.Log.Warn("cannot read the depth of the archive's queue", "error", err)
	}
}

// count counts a failure to archive a project.
func (a *Archiver) count(err error) {
	switch {
	case errors.Is(err, errFull), errors.Is(err, context.Canceled):
	case fault.HasCode(err, repository.CodeFiles), fault.HasCode(err, repository.CodeGone):
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
