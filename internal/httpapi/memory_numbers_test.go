package httpapi

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestMetricsCountWhatMemoriesDid(t *testing.T) {
	t.Parallel()
	d := newDesk(t, map[string]string{"memory.shards": "1"})
	d.made("POST", "/v1/memories/{m}/entries", `{"rawEntry":"one"}`, "entryId")
	d.wants(http.StatusBadRequest, "validation_error", "POST", "/v1/memories/{m}/entries", `{"rawEntry":" "}`)
	d.made("PUT", "/v1/memories/{m}/context", `{"session_id":"`+absent+`","markdown":"x"}`, "memory_id")
	d.wants(http.StatusOK, "", "POST", "/v1/search", `{"memoryId":"`+d.memory+`","query":"one"}`)
	d.wants(http.StatusOK, "", "GET", "/v1/memories/{m}/top?query=one", ``)
	d.joined()
	d.wants(http.StatusAccepted, "", "POST", "/v1/memories/{m}/entries", `{"rawEntry":"two"}`)
	d.wants(http.StatusOK, "", "GET", "/v1/memories/{m}/inflight", ``)
	d.wants(http.StatusOK, "", "GET", "/v1/memories/{m}/inflight/pending-2", ``)
	d.wants(http.StatusOK, "", "POST", "/v1/replication:pause", ``)

	text := d.send("GET", "/metrics", ``).Body.String()
	for _, want := range []string{
		`cairn_memory_ack_seconds_count 3`, `cairn_memory_ack_seconds_bucket{le="+Inf"} 3`, `cairn_memory_inflight_reads_total 2`,
		`cairn_memory_inflight_read_seconds_count 2`, `cairn_memory_pending_rows 1`, `cairn_memory_failed_rows 0`,
		`cairn_memory_sync_latency_seconds_count 0`, `cairn_memory_purged_rows_total 0`, `cairn_search_seconds_count{mode="lexical"} 2`,
		`cairn_replication_paused{reason="paused"} 1`, `cairn_replication_paused{reason="unreachable"} 0`, `cairn_replication_lease_losses_total 0`,
		`cairn_replication_attempts_total{result="ok"} 0`, `cairn_replication_batch_items_count 0`, `cairn_pull_items_total 0`,
		`cairn_shard_queue_full_total{shard="0"} 0`, `cairn_shard_queue_depth{shard="0"} 0`, `cairn_metrics_failed 0`,
	} {
		if strings.Count(text, want+"\n") != 1 {
			t.Errorf("%q is not once in\n%s", want, text)
		}
	}
	for _, name := range []string{`cairn_shard_submissions_total{shard="0"}`, `cairn_shard_run_duration_seconds_count{shard="0"}`, `cairn_memory_oldest_pending_seconds`} {
		m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (\S+)$`).FindStringSubmatch(text)
		if m == nil {
			t.Errorf("%s is missing", name)
			continue
		}
		if n, err := strconv.ParseFloat(m[1], 64); err != nil || n <= 0 || n > 1000 {
			t.Errorf("%s is %s", name, m[1])
		}
	}
	if regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-`).MatchString(text) || strings.Contains(text, d.me()) {
		t.Errorf("an id is in\n%s", text)
	}
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if !strings.HasPrefix(line, "cairn_") && !strings.HasPrefix(line, "# TYPE cairn_") {
			t.Errorf("%q", line)
		}
	}
}
