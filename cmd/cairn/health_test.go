package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn"
	"cairn/internal/doctor"
	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/service"
)

// healthShape is the shape of the result of health_check (mail §10.5), with the type of each value.
const healthShape = `{"status":"","health_level":"","environment":"","http_host":"","http_port":0,"database_url":"",
"pool_utilization":{"active":0,"idle":0,"total":0,"pending":0,"peak_active":0,"utilization_pct":0,
"acquire_p50_ms":0,"acquire_p95_ms":0,"acquire_p99_ms":0,"over_80_for_s":0,"warning":false},
"queues":{"wbq":{"depth":0,"capacity":0,"utilization_pct":0,"peak_depth":0,"enqueued_total":0,"drained_total":0,"errors_total":0,"backpressure_total":0,
"latency_p50_ms":0,"latency_p95_ms":0,"latency_p99_ms":0,"over_80_for_s":0,"warning":false},
"commit_coalescer":{"pending_requests":0,"soft_cap":0,"utilization_pct":0,"peak_depth":0,"enqueued_total":0,"drained_total":0,"errors_total":0,"sync_fallbacks_total":0,
"latency_p50_ms":0,"latency_p95_ms":0,"latency_p99_ms":0,"over_80_for_s":0,"warning":false}},
"disk":{"level":"","storage_free_mb":0,"db_free_mb":0},"integrity":{"last_check_ts":"","ok":false},
"metrics":{"wbq_depth":0,"wbq_errors_total":0,"commit_errors_total":0,"commit_sync_fallbacks_total":0,"needs_reindex_total":0,
"pool_acquire_latency_us":{"p50":0,"p95":0,"p99":0}}}`

// shapeOf returns the names in a JSON object in order, with the types of the values.
func shapeOf(t *testing.T, text string) (shape []string) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	name := false // the next token is a name
	for {
		token, err := d.Token()
		if err == io.EOF {
			return shape
		}
		if err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		switch delim, ok := token.(json.Delim); {
		case ok:
			shape, name = append(shape, delim.String()), true
		case name:
			shape, name = append(shape, fmt.Sprint(token)), false
		default:
			shape, name = append(shape, fmt.Sprintf("%T", token)), true
		}
	}
}

func healthOf(t *testing.T, text string) (h cairn.HealthCheck) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &h); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return h
}

// TestHealthCheckHasOneShapeEverywhere compares stdio, HTTP and JSON, in the profiles that contain
// the tool.
func TestHealthCheckHasOneShapeEverywhere(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.recorded(h.shell("t1", "make"))
	h.vars["CAIRN_DB_READERS_MAX"] = "7"
	w := h.listen("--profile", "core")
	want := shapeOf(t, healthShape)
	asJSON := w.do(http.MethodGet, "/v1/projects/*/mail/health_check", "").body
	overHTTP, isError, err := w.connect("/mcp", "", nil).answer("health_check", nil)
	if err != nil || isError {
		t.Fatal(err, overHTTP)
	}
	for _, text := range []string{asJSON, overHTTP} {
		if got := shapeOf(t, text); !slices.Equal(got, want) {
			t.Errorf("the shape is\n%v, not\n%v", got, want)
		}
		got := healthOf(t, text)
		if got.Status != "ok" || got.Level != cairn.Green || got.Database != "cairn.db" || got.Host == nil || *got.Host != "127.0.0.1" ||
			!strings.HasSuffix(w.url, fmt.Sprintf(":%d", *got.Port)) {
			t.Errorf("%+v", got)
		}
		if p := got.Pool; p.Total != 8 || p.Active+p.Idle != 8 || p.Peak < 1 || p.P95 > p.P99 {
			t.Errorf("the pool: %+v", p)
		}
		if i := got.Integrity; i.OK == nil || !*i.OK || i.LastCheck == 0 {
			t.Errorf("%+v in %s", i, text)
		}
		if q := got.Queues; q.Files.Capacity != 8192 || q.Commits.Capacity != 8192 {
			t.Errorf("the queues: %+v", q)
		}
		if d := got.Disk; d.StorageFree == nil || d.DBFree == nil || *d.DBFree <= 0 {
			t.Errorf("the disk: %+v", d)
		}
	}
	text, isError, err := h.dialTo(h.command("serve", "--profile", "minimal"), "", nil).answer("health_check", fields{"format": "json"})
	if err != nil || isError {
		t.Fatal(err, text)
	}
	stdio := slices.Clone(want)
	for i, name := range want {
		if name == "http_host" || name == "http_port" {
			stdio[i+1] = "<nil>"
		}
	}
	if got := shapeOf(t, text); !slices.Equal(got, stdio) {
		t.Errorf("over stdio the shape is\n%v, not\n%v", got, stdio)
	}
}

// TestHealthCheckMakesNoStore checks that health_check works without a store and creates none.
func TestHealthCheckMakesNoStore(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	c := h.connect("", nil)
	text, isError, err := c.answer("health_check", nil)
	if got := healthOf(t, text); err != nil || isError || got.Status != "ok" || got.Integrity.OK != nil || got.Pool.Total != 101 {
		t.Errorf("%v, %s", err, text)
	}
	if _, err := os.Stat(h.db()); err == nil {
		t.Error("there is a store")
	}
}

// metricsOfMail returns the metrics of mail §10.5 with their types in /metrics.
func metricsOfMail() map[string]string {
	return map[string]string{
		"wbq_depth": "gauge", "wbq_errors_total": "counter", "commit_errors_total": "counter", "commit_sync_fallbacks_total": "counter",
		"needs_reindex_total": "gauge", "pool_acquire_latency_us": "histogram",
		"pool_acquire_latency_us_p50": "gauge", "pool_acquire_latency_us_p95": "gauge", "pool_acquire_latency_us_p99": "gauge",
	}
}

// TestMetricsOfTheArchiveRiseWithATroubleAndFallAfterItsRepair reads the metrics from outside, in
// /metrics and in health_check.
func TestMetricsOfTheArchiveRiseWithATroubleAndFallAfterItsRepair(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	p := newPosting(t)
	w := p.listenUntil()
	health := func() cairn.HealthCheck {
		return healthOf(t, w.do(http.MethodGet, "/v1/projects/*/mail/health_check", "").body)
	}
	p.post("before")
	p.soon("the first message is archived", func() bool {
		out, err := p.git("log", "--format=%B", "main")
		return err == nil && strings.Contains(out, "| before") && w.number("wbq_depth") == 0
	})
	text := w.do(http.MethodGet, "/metrics", "").body
	for name, kind := range metricsOfMail() {
		if strings.Count(text, "# TYPE "+name+" "+kind+"\n") != 1 {
			t.Errorf("no %s %s in\n%s", kind, name, text)
		}
	}
	buckets, last := 0, -1
	for line := range strings.Lines(text) {
		var le string
		var n int
		if _, err := fmt.Sscanf(line, "pool_acquire_latency_us_bucket{le=%q} %d", &le, &n); err == nil {
			if buckets++; n < last {
				t.Errorf("the buckets fall: %s", line)
			}
			last = n
		}
	}
	if last < 1 || buckets < 20 || w.number("pool_acquire_latency_us_count") < last || w.number("pool_acquire_latency_us_sum") < 1 {
		t.Errorf("%d buckets, the last %d", buckets, last)
	}
	if q := health().Queues; q.Files.Peak < 1 || q.Files.Left < 3 || q.Files.Entered < q.Files.Left || q.Files.P99 <= 0 || q.Commits.Peak < 1 || q.Commits.Left < 1 ||
		q.Commits.P50 <= 0 || q.Commits.Pending != 0 {
		t.Errorf("the queues: %+v", q)
	}

	aside := filepath.Join(p.dir, "aside")
	if err := os.Rename(p.archive(), aside); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.archive(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.post("meanwhile")
	p.soon("the trouble is counted", func() bool {
		return w.number("needs_reindex_total") > 0 && w.number("wbq_errors_total")+w.number("commit_errors_total") > 0
	})
	if m := health().Metrics; m.NeedsReindex < 1 || m.WriteErrors+m.CommitErrors < 1 {
		t.Errorf("%+v", m)
	}
	if err := os.Remove(p.archive()); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(aside, p.archive()); err != nil {
		t.Fatal(err)
	}
	p.soon("all is well again", func() bool { return w.number("needs_reindex_total") == 0 && w.number("wbq_depth") == 0 })
	if m := health().Metrics; m.NeedsReindex != 0 || m.WriteErrors+m.CommitErrors < 1 {
		t.Errorf("%+v", m)
	}
	w.stop()
	p.wantAgreement()
}

// TestWhatDiskPressureWithholdsIsCounted counts withheld files until there is space, also in a
// server that does not follow the archive.
func TestWhatDiskPressureWithholdsIsCounted(t *testing.T) {
	t.Parallel()
	p := newPosting(t)
	p.vars["CAIRN_DISK_CRITICAL_MB"] = "1073741824"
	full, second := p.listenUntil(), p.listenUntil()
	p.post("withheld")
	for _, w := range []*web{full, second} {
		p.soon("it is counted", func() bool { return w.number("needs_reindex_total") > 0 && w.number("wbq_depth") > 0 })
		got := healthOf(t, w.do(http.MethodGet, "/v1/projects/*/mail/health_check", "").body)
		if got.Disk.Level != "critical" || got.Status != "degraded" || got.Level != cairn.Green || got.Metrics.WriteErrors != 0 {
			t.Errorf("%+v", got)
		}
		w.stop()
	}
	delete(p.vars, "CAIRN_DISK_CRITICAL_MB")
	w := p.listenUntil()
	p.soon("with room it is archived", func() bool { return w.number("needs_reindex_total") == 0 && w.number("wbq_depth") == 0 })
	w.stop()
	p.wantAgreement()
}

// damagings returns several ways to damage a store.
func damagings() map[string]func(file []byte) []byte {
	return map[string]func(file []byte) []byte{
		"one page of rows": func(f []byte) []byte {
			return noise(f, len(f)/2/pageSize*pageSize, len(f)/2/pageSize*pageSize+pageSize)
		},
		"its head": func(f []byte) []byte { return noise(f, 0, 4096) },
	}
}

// repairs returns the texts that a refusal contains: the problem and the repair commands.
func repairs() []string {
	return []string{"cairn: serve: the store is damaged: ", "cairn doctor --salvage", "cairn restore", "cairn reconcile --reindex"}
}

// TestServersRefuseADamagedStore checks that servers refuse to start, name the repair commands, and
// leave the store unchanged. With --auto-restore a server restores the newest intact backup.
func TestServersRefuseADamagedStore(t *testing.T) {
	t.Parallel()
	file, _ := written(t)
	for name, damage := range damagings() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			h.putStore(file)
			h.cairn("mark", "in the backup")
			h.cairn("backup")
			h.cairn("mark", "in the newest backup")
			h.cairn("backup")
			backups, err := filepath.Glob(filepath.Join(h.dataDir(), "backups", "*.tar.gz"))
			if err != nil || len(backups) != 2 {
				t.Fatal(backups, err)
			}
			sound := h.storeFile()
			broken := damage(sound)
			h.putStore(broken)
			for _, args := range [][]string{{"serve"}, {"serve", "--http", ":0"}} {
				h.fails("serve", h.run(h.command(args...), nil), 2, repairs()...)
			}
			if now, err := os.ReadFile(h.db()); err != nil || !bytes.Equal(now, broken) {
				t.Errorf("the store was changed (%v)", err)
			}

			torn, err := os.ReadFile(backups[1])
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(backups[1], torn[:len(torn)/2], 0o600); err != nil {
				t.Fatal(err)
			}
			e := h.run(h.command("serve", "--auto-restore"), nil) // with a client that disconnects immediately
			if e.code != 0 || !strings.Contains(e.stderr, "a backup is damaged") || !strings.Contains(e.stderr, "; restored "+backups[0]) {
				t.Errorf("exit %d, %s", e.code, e.stderr)
			}
			if n := h.rows(`SELECT count(*) FROM observations WHERE content LIKE 'in the %backup'`)[0]; n != "1" {
				t.Errorf("%s of the marks are there", n)
			}
			if kept, err := filepath.Glob(h.db() + ".backup-*"); err != nil || len(kept) == 0 {
				t.Errorf("the damaged store was not kept: %v", err)
			}
			h.check()
			h.connect("", nil).leave()

			h.putStore(broken)
			if err := os.RemoveAll(filepath.Dir(backups[0])); err != nil {
				t.Fatal(err)
			}
			h.fails("serve", h.run(h.command("serve", "--http", ":0", "--auto-restore"), nil), 2, "there is no intact backup in ", "cairn doctor --salvage")
		})
	}
}

// TestAServerRestoresAndServesOverHTTP starts a server on a damaged store.
func TestAServerRestoresAndServesOverHTTP(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	file, _ := written(t)
	h.putStore(file)
	h.cairn("backup")
	h.putStore(damagings()["its head"](file))
	server := h.command("serve", "--http", ":0", "--auto-restore")
	said := &gathered{}
	server.Stderr = said
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	h.soon("it serves", func() bool { return strings.Contains(said.String(), "cairn: serving http://") })
	if !strings.Contains(said.String(), "; restored ") {
		t.Errorf("it said %s", said)
	}
	_, rest, _ := strings.Cut(said.String(), "cairn: serving ")
	url, _, _ := strings.Cut(rest, " ")
	w := &web{h: h, server: server, url: url, stderr: said, http: http.DefaultClient}
	r := w.do(http.MethodGet, "/health", "")
	if !strings.Contains(r.body, `"status":"healthy"`) {
		t.Errorf("%d %s", r.status, r.body)
	}
	w.stop()
}

// TestDoctorJudgesTheArchiveOfAnEncryptedStoreThatWantsOne checks that doctor examines the archive
// only if the settings enable it.
func TestDoctorJudgesTheArchiveOfAnEncryptedStoreThatWantsOne(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	c, err := cairn.Open(cairn.Config{Home: h.dir, Dir: h.dataDir(), Clock: func() time.Time { return time.Now().Add(-48 * time.Hour) }})
	if err != nil {
		t.Fatal(err)
	}
	err = c.Mail().Write(t.Context(), mail.Caller{}, func(ctx context.Context, o *service.Mail, caller mail.Caller) error {
		_, err := o.RegisterAgent(ctx, caller, agents.RegisterArgs{ProjectKey: h.repo, Program: "codex", Model: "m", Name: "GreenLake"})
		return err
	})
	if err := errors.Join(err, c.Close()); err != nil {
		t.Fatal(err)
	}
	h.cairn("encrypt")
	d, _ := h.diagnosed()
	wants(t, d, "followers", doctor.OK)
	h.setting("[archive]\nof_encrypted = true\n")
	d, _ = h.diagnosed()
	wants(t, d, "followers", doctor.Problem, "the archive of shop is", "changes behind", "cairn archive sync")
	h.setting("[archive]\nof_encrypted = false\n")
	h.vars["CAIRN_ARCHIVE_OF_ENCRYPTED"] = "true"
	d, _ = h.diagnosed()
	wants(t, d, "followers", doctor.Problem, "the archive of shop is")
}
