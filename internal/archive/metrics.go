package archive

import (
	"context"
	"errors"
	"sync/atomic"

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

	Enqueued     int64 `json:"enqueued_total"`     // changes that were read to be written
	Drained      int64 `json:"drained_total"`      // changes whose files were written
	Backpressure int64 `json:"backpressure_total"` // how often reading paused for the commits to come along
	Pending      int64 `json:"pending_requests"`   // batches that wait to be committed
	Level        Level `json:"disk_level"`
}

// counters are the counters of Metrics.
type counters struct {
	writeErrors, commitErrors, fallbacks, enqueued, drained, backpressure atomic.Int64
}

// Metrics reads them. Errors: those of store.Read.
func (a *Archivist) Metrics(ctx context.Context) (Metrics, error) {
	m := Metrics{
		WriteErrors: a.counts.writeErrors.Load(), CommitErrors: a.counts.commitErrors.Load(), SyncFallbacks: a.counts.fallbacks.Load(),
		Enqueued: a.counts.enqueued.Load(), Drained: a.counts.drained.Load(), Backpressure: a.counts.backpressure.Load(),
		Level: a.level(),
	}
	for _, s := range a.shards {
		m.Pending += s.pending()
	}
	statuses, err := a.Status(ctx, "")
	for _, s := range statuses {
		m.NeedsReindex += int64(len(s.Aside))
		l := a.line(s.Project)
		if written := l.written.Load(); written > s.Written {
			s.Unwritten, err = a.unwritten(ctx, s.Project, written, err)
		}
		m.Depth += s.Unwritten
		if l.failing.Load() {
			m.NeedsReindex += s.Lag
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, n := range a.missing {
		m.NeedsReindex += int64(n)
	}
	return m, err
}

func (a *Archivist) unwritten(ctx context.Context, project string, after int64, err error) (n int64, _ error) {
	return n, errors.Join(err, a.Store.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		n, err = a.changesAfter(ctx, tx, project, after)
		return err
	}))
}

// count counts why a project could not be archived.
func (a *Archivist) count(err error) {
	switch {
	case errors.Is(err, errFull), errors.Is(err, context.Canceled):
	case fault.HasCode(err, CodeFiles), fault.HasCode(err, CodeGone):
		a.counts.writeErrors.Add(1)
	default:
		a.counts.commitErrors.Add(1)
	}
}

func (a *Archivist) setMissing(project string, n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n == 0 {
		delete(a.missing, project)
		return
	}
	a.missing[project] = n
}
