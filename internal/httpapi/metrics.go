package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"cairn"
	"cairn/internal/fault"
	"cairn/internal/measure"
)

// ToolMetrics counts tool calls and HTTP responses. Its zero value is ready for use, and it
// is safe for concurrent use.
type ToolMetrics struct {
	mu        sync.Mutex
	calls     map[outcome]uint64
	took      map[string]*measure.Histogram // by tool
	responses map[int]uint64                // by status
}

// outcome is the result of a tool call: ok, cancelled, or the kind of its fault.
type outcome struct{ tool, result string }

// Seen counts a completed call; err is nil on success.
func (m *ToolMetrics) Seen(tool string, took time.Duration, err error) {
	result := "ok"
	if errors.Is(err, context.Canceled) {
		result = "cancelled"
	} else if err != nil {
		result = strings.ReplaceAll(fault.KindOf(err).String(), " ", "_")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.calls == nil {
		m.calls, m.took = map[outcome]uint64{}, map[string]*measure.Histogram{}
	}
	m.calls[outcome{tool, result}]++
	if m.took[tool] == nil {
		m.took[tool] = &measure.Histogram{Bounds: toolBounds[:]}
	}
	m.took[tool].Add(took)
}

// Calls returns the number of completed calls by tool. Tools without a call are missing.
func (m *ToolMetrics) Calls() map[string]int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	calls := map[string]int64{}
	for o, n := range m.calls {
		calls[o.tool] += int64(n)
	}
	return calls
}

func (m *ToolMetrics) answered(status int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.responses == nil {
		m.responses = map[int]uint64{}
	}
	m.responses[status]++
}

// toolBounds are the upper bounds of the buckets for tool calls.
var toolBounds = [...]time.Duration{
	500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond,
	50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond,
	5 * time.Second, 10 * time.Second, 30 * time.Second,
}

// write writes the metrics in a fixed order.
func (m *ToolMetrics) write(n *MetricsWriter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, o := range slices.SortedFunc(maps.Keys(m.calls), func(a, b outcome) int {
		return cmp.Or(strings.Compare(a.tool, b.tool), strings.Compare(a.result, b.result))
	}) {
		n.Counter("cairn_tool_calls_total", float64(m.calls[o]), "tool", o.tool, "result", o.result)
	}
	for _, tool := range slices.Sorted(maps.Keys(m.took)) {
		n.Histogram("cairn_tool_seconds", m.took[tool].Read(), time.Second, "tool", tool)
	}
	for _, status := range slices.Sorted(maps.Keys(m.responses)) {
		n.Counter("cairn_http_responses_total", float64(m.responses[status]), "status", strconv.Itoa(status))
	}
}

// MetricsWriter writes metrics in Prometheus' text format. Samples of one name must be
// written one after the other.
type MetricsWriter struct {
	out  io.Writer
	last string // the last written name
}

// Gauge writes a gauge; labels are alternating names and values.
func (n *MetricsWriter) Gauge(name string, value float64, labels ...string) {
	n.put(name, "gauge", "", value, labels...)
}

// Counter writes a counter.
func (n *MetricsWriter) Counter(name string, value float64, labels ...string) {
	n.put(name, "counter", "", value, labels...)
}

// Histogram writes a histogram of durations in a unit: the buckets, smallest first, then
// the count and the sum.
func (n *MetricsWriter) Histogram(name string, d measure.Distribution, unit time.Duration, labels ...string) {
	ends, upto := d.Buckets()
	for i, end := range ends {
		le := strconv.FormatFloat(float64(end)/float64(unit), 'g', -1, 64)
		n.put(name, "histogram", "_bucket", float64(upto[i]), append(slices.Clip(labels), "le", le)...)
	}
	n.put(name, "histogram", "_bucket", float64(d.Count), append(slices.Clip(labels), "le", "+Inf")...)
	n.put(name, "histogram", "_sum", float64(d.Sum)/float64(unit), labels...)
	n.put(name, "histogram", "_count", float64(d.Count), labels...)
}

func (n *MetricsWriter) put(name, kind, suffix string, value float64, labels ...string) {
	if n.last != name {
		fmt.Fprintf(n.out, "# TYPE %s %s\n", name, kind)
		n.last = name
	}
	var told []string
	for pair := range slices.Chunk(labels, 2) {
		text := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(pair[1])
		told = append(told, pair[0]+`="`+strings.ToValidUTF8(text, "?")+`"`)
	}
	name += suffix
	if len(told) > 0 {
		name += "{" + strings.Join(told, ",") + "}"
	}
	fmt.Fprintln(n.out, name, strconv.FormatFloat(value, 'g', -1, 64))
}

// metrics sends all metrics. Metrics that cannot be read are omitted, and the failure is
// counted as cairn_metrics_failed.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	if !checkMethod(w, r, http.MethodGet, http.MethodHead) {
		return
	}
	var text bytes.Buffer
	n := &MetricsWriter{out: &text}
	s.meter.write(n)
	n.Gauge("cairn_http_running_calls", float64(len(s.gate.calls)))
	n.Gauge("cairn_http_open_streams", float64(len(s.gate.streams)))
	n.Gauge("cairn_http_body_bytes", float64(s.gate.bodies.Load()))
	n.Gauge("cairn_uptime_seconds", time.Since(s.began).Seconds())
	n.Gauge("cairn_goroutines", float64(runtime.NumGoroutine()))
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	n.Gauge("cairn_heap_bytes", float64(memory.HeapAlloc))
	n.Gauge("cairn_memory_bytes", float64(memory.Sys))
	failed := 0.0
	more := s.config.Numbers
	if more == nil {
		more = func(context.Context, *MetricsWriter) error { return nil }
	}
	err := more(r.Context(), n)
	if s.config.Cairn != nil {
		err = errors.Join(err, n.Memories(r.Context(), s.config.Cairn))
	}
	if err != nil {
		failed = 1
		s.log.WarnContext(r.Context(), "metrics of the store cannot be read", "error", err)
	}
	n.Gauge("cairn_metrics_failed", failed)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(text.Bytes()) // a disconnected client is not an error
}

// Health is the health of the store for /health.
type Health struct {
	Version string // of the program
	Schema  int    // of the store, 0 without a store
	Err     error  // the reason why the store cannot be read

	Hub         string // the hub's URL, "" without one
	Replication cairn.ReplicationHealth
}

// healthLimit is the time limit for reading the store in /health.
const healthLimit = time.Second

// health responds without a token, always with 200 (memories §3).
func (s *Server) health(w http.ResponseWriter, r *http.Request) {
	if !checkMethod(w, r, http.MethodGet, http.MethodHead) {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), healthLimit)
	defer cancel()
	h := s.config.Health(ctx)
	told := struct {
		Status    string  `json:"status"`
		Cause     string  `json:"cause,omitempty"` // a code
		Timestamp string  `json:"timestamp"`
		Version   string  `json:"version"`
		Schema    int     `json:"schema"`
		Uptime    float64 `json:"uptime_s"`

		Hub         string                  `json:"hub"`
		Replication cairn.ReplicationHealth `json:"replication"`
	}{
		"healthy", "", time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), h.Version, h.Schema,
		time.Since(s.began).Round(time.Millisecond).Seconds(), h.Hub, h.Replication,
	}
	if h.Err != nil {
		told.Status, told.Cause = "unhealthy", fault.As(h.Err).Code
	}
	writeJSON(w, http.StatusOK, told)
}
