package httpapi

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"cairn"
	"cairn/internal/memory"
	"cairn/internal/memory/memories"
	"cairn/internal/memory/replication"
	"cairn/internal/memory/shards"
	"cairn/internal/replica"
)

// summary writes the count and the sum of a measurement.
func (n *MetricsWriter) summary(name string, count, sum float64, labels ...string) {
	n.put(name, "summary", "_sum", sum, labels...)
	n.put(name, "summary", "_count", count, labels...)
}

// Memories writes the metrics of memories and of their replication (memories §14), from
// this process and from the store. No label contains an id.
func (n *MetricsWriter) Memories(ctx context.Context, c *cairn.Cairn) error {
	var backlog replication.Backlog
	err := c.Memories().Read(ctx, memory.Caller{}, func(ctx context.Context, b *memories.Service, _ memory.Caller) error {
		if !b.Exists() {
			return nil
		}
		n.shards(b.Jobs.Stats())
		n.measured(b.Measured())
		var err error
		backlog, err = backlogOfAll(ctx, b)
		return err
	})
	if err != nil {
		return err
	}
	oldest := 0.0
	if backlog.OldestPending != 0 {
		oldest = max(0, c.Now().Sub(time.Unix(0, int64(backlog.OldestPending))).Seconds())
	}
	n.Gauge("cairn_memory_pending_rows", float64(backlog.Pending))
	n.Gauge("cairn_memory_failed_rows", float64(backlog.Failed))
	n.Gauge("cairn_memory_oldest_pending_seconds", oldest)
	return n.replication(ctx, c)
}

func backlogOfAll(ctx context.Context, b *memories.Service) (all replication.Backlog, err error) {
	users, err := b.Users(ctx)
	for _, u := range users {
		if err != nil {
			break
		}
		var one replication.Backlog
		one, err = b.Backlog(ctx, u.UserID)
		all.Pending, all.Failed = all.Pending+one.Pending, all.Failed+one.Failed
		if one.OldestPending != 0 && (all.OldestPending == 0 || one.OldestPending < all.OldestPending) {
			all.OldestPending = one.OldestPending
		}
	}
	return all, err
}

// shards writes the metrics of each shard that was used.
func (n *MetricsWriter) shards(all []shards.Stats) {
	for _, s := range all {
		n.Counter("cairn_shard_submissions_total", float64(s.Submissions), "shard", strconv.Itoa(s.Shard))
	}
	for _, s := range all {
		n.Counter("cairn_shard_queue_full_total", float64(s.Full), "shard", strconv.Itoa(s.Shard))
	}
	for _, s := range all {
		n.Histogram("cairn_shard_run_duration_seconds", s.Runs, time.Second, "shard", strconv.Itoa(s.Shard))
	}
	for _, s := range all {
		n.Gauge("cairn_shard_queue_depth", float64(s.Depth), "shard", strconv.Itoa(s.Shard))
	}
}

func (n *MetricsWriter) measured(m memory.Measured) {
	n.Histogram("cairn_memory_ack_seconds", m.Acks, time.Second)
	n.Counter("cairn_memory_inflight_reads_total", float64(m.InflightReads.Count))
	n.Histogram("cairn_memory_inflight_read_seconds", m.InflightReads, time.Second)
	n.Histogram("cairn_memory_sync_latency_seconds", m.Syncs, time.Second)
	n.Counter("cairn_memory_purged_rows_total", float64(m.Purged))
	for _, mode := range slices.Sorted(maps.Keys(m.Searches)) {
		n.Histogram("cairn_search_seconds", m.Searches[mode], time.Second, "mode", mode)
	}
	for _, reason := range slices.Sorted(maps.Keys(m.Fallbacks)) {
		n.Counter("cairn_search_fallback_total", float64(m.Fallbacks[reason]), "reason", reason)
	}
}

// replication writes the metrics of this process's replicators, for all users together.
func (n *MetricsWriter) replication(ctx context.Context, c *cairn.Cairn) error {
	_, health, err := c.Replication().Health(ctx, false)
	if err != nil {
		return err
	}
	var sent, refused, retried, failed, batches, losses, pulled int64
	current := time.Time{}
	for _, one := range c.Replication().Running() {
		m := one.Meter()
		sent, refused, retried = sent+m.Sent.Load(), refused+m.Refused.Load(), retried+m.Retried.Load()
		failed, batches, losses = failed+m.Failed.Load(), batches+m.Batches.Load(), one.LeaseLosses() // lease losses are counted per process
		pulled += m.Pulled.Load()
		if at := time.Unix(0, m.CurrentAt.Load()); m.CurrentAt.Load() != 0 && (current.IsZero() || at.Before(current)) {
			current = at
		}
	}
	for _, r := range []struct {
		result string
		items  int64
	}{{"failed", failed}, {"ok", sent}, {"refused", refused}, {"retried", retried}} {
		n.Counter("cairn_replication_attempts_total", float64(r.items), "result", r.result)
	}
	n.summary("cairn_replication_batch_items", float64(batches), float64(sent+refused+retried))
	for _, reason := range []string{
		replica.StatePaused, replica.StateTooOld, replica.StateUnauthorized, replica.StateUnreachable,
		replica.StateRestored, replica.StateReadOnly, replica.StateDiskFull,
	} {
		paused := 0.0
		if health.State == reason {
			paused = 1
		}
		n.Gauge("cairn_replication_paused", paused, "reason", reason)
	}
	n.Counter("cairn_replication_lease_losses_total", float64(losses))
	n.Counter("cairn_pull_items_total", float64(pulled))
	if !current.IsZero() { // a long poll lasts up to 25 s
		n.Gauge("cairn_pull_lag_seconds", max(0, time.Since(current).Seconds()))
	}
	return nil
}
