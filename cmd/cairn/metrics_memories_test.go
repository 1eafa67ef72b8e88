package main

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// metric is a metric of memories §14: its name, its type, and its label other than le.
type metric struct{ name, kind, label string }

// metricsOfDevices returns the metrics of serve --http, without the prefix cairn_.
func metricsOfDevices() []metric {
	return []metric{
		{"shard_submissions_total", "counter", "shard"}, {"shard_queue_full_total", "counter", "shard"},
		{"shard_run_duration_seconds", "histogram", "shard"}, {"shard_queue_depth", "gauge", "shard"},
		{"memory_ack_seconds", "histogram", ""}, {"memory_inflight_reads_total", "counter", ""},
		{"memory_inflight_read_seconds", "histogram", ""}, {"memory_pending_rows", "gauge", ""}, {"memory_failed_rows", "gauge", ""},
		{"memory_oldest_pending_seconds", "gauge", ""}, {"memory_sync_latency_seconds", "histogram", ""}, {"memory_purged_rows_total", "counter", ""},
		{"replication_attempts_total", "counter", "result"}, {"replication_batch_items", "summary", ""}, {"replication_paused", "gauge", "reason"},
		{"replication_lease_losses_total", "counter", ""}, {"pull_items_total", "counter", ""}, {"pull_lag_seconds", "gauge", ""},
		{"store_size_bytes", "gauge", "file"}, {"store_integrity_errors_total", "counter", ""},
		{"search_seconds", "histogram", "mode"}, {"search_fallback_total", "counter", "reason"},
	}
}

// metricsOfHubs returns the metrics of cairn hub. The counter of retries has no line before
// the first retry.
func metricsOfHubs() []metric {
	return []metric{{"hub_items_total", "counter", "status"}, {"hub_tx_retries_total", "counter", "sqlstate"}, {"hub_pool_in_use", "gauge", ""}}
}

// lackOf returns the metrics that are missing or wrong.
func lackOf(text string, all []metric) (lacking []string) {
	for _, m := range all {
		name := "cairn_" + m.name
		suffix := ""
		switch m.kind {
		case "histogram":
			suffix = "_bucket"
		case "summary":
			suffix = "_sum"
		}
		label := ""
		if m.label != "" {
			label = `\{` + m.label + `="[^"]+"`
		}
		typed := strings.Count(text, "# TYPE "+name+" "+m.kind+"\n") == 1
		line := regexp.MustCompile(`(?m)^` + name + suffix + label).MatchString(text)
		if !typed || !line && m.name != "hub_tx_retries_total" {
			lacking = append(lacking, m.name)
		}
	}
	return lacking
}

func TestMetricsHaveEveryNameThatIsPromised(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.setting("[memory]\nembed_url = \"http://127.0.0.1:1/v1/embeddings\"\n")
	token := strings.TrimSpace(h.cairn("hub", "token", "create", "--user", "new"))
	p := h.hub()
	if e := h.run(h.command("hub", "join", p.url), []byte(token)); e.code != 0 {
		t.Fatal(e.stderr)
	}
	w := h.listenUntil()
	w.wants(http.StatusAccepted, "", "POST", "/v1/memories/default/entries?project=shop", `{"rawEntry":"one"}`)
	w.wants(http.StatusOK, "", "POST", "/v1/memories/default:await_consistency?project=shop", `{"timeout_ms":20000}`)
	w.wants(http.StatusOK, "", "POST", "/v1/search?project=shop", `{"memoryId":"default","query":"one"}`)
	var text string
	h.soon("the first pull", func() bool {
		text = w.do(http.MethodGet, "/metrics", "").body
		return strings.Contains(text, "cairn_pull_lag_seconds")
	})
	if lacking := lackOf(text, metricsOfDevices()); lacking != nil {
		t.Errorf("%v are missing in\n%s", lacking, text)
	}
	if n := w.number("cairn_store_integrity_errors_total"); n != 0 {
		t.Errorf("%d errors in a sound store", n)
	}
	if status, text := p.call("GET", "/metrics", token, ""); status != 200 || lackOf(text, metricsOfHubs()) != nil {
		t.Errorf("%d: %v are missing in\n%s", status, lackOf(text, metricsOfHubs()), text)
	}
	w.stop()
	p.stop()
}
