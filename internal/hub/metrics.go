package hub

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"cairn/internal/replica"
)

// metrics counts the work of the hub (memories §14).
type metrics struct {
	mu      sync.Mutex
	items   map[int]uint64    // by status
	retries map[string]uint64 // by SQLSTATE
}

func (m *metrics) seen(results []replica.Result) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.items == nil {
		m.items = map[int]uint64{}
	}
	for _, r := range results {
		m.items[r.Status]++
	}
}

func (m *metrics) retried(sqlstate string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.retries == nil {
		m.retries = map[string]uint64{}
	}
	m.retries[sqlstate]++
}

// WriteMetrics writes the metrics of this process in Prometheus' text format.
func (h *Hub) WriteMetrics(w io.Writer) {
	m := &h.metrics
	m.mu.Lock()
	defer m.mu.Unlock()
	fmt.Fprintln(w, "# TYPE cairn_hub_items_total counter")
	for _, status := range slices.Sorted(maps.Keys(m.items)) {
		fmt.Fprintf(w, "cairn_hub_items_total{status=\"%d\"} %d\n", status, m.items[status])
	}
	fmt.Fprintln(w, "# TYPE cairn_hub_tx_retries_total counter")
	for _, state := range slices.Sorted(maps.Keys(m.retries)) {
		fmt.Fprintf(w, "cairn_hub_tx_retries_total{sqlstate=\"%s\"} %d\n", state, m.retries[state])
	}
	fmt.Fprintf(w, "# TYPE cairn_hub_waiting_pulls gauge\ncairn_hub_waiting_pulls %d\n", len(h.gate.pulls))
	fmt.Fprintf(w, "# TYPE cairn_hub_pool_in_use gauge\ncairn_hub_pool_in_use %d\n", h.db.InUse())
}
