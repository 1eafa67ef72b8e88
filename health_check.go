package cairn

import (
	"context"
	"math"
	"path/filepath"
	"runtime"
	"time"

	"cairn/internal/archive"
	"cairn/internal/mail"
	"cairn/internal/measure"
	"cairn/internal/store"
)

// HealthCheck is the result of health_check (mail §10.5): the load of this process, its store
// and its archive. MemoryHealth reports whether memories can be used. Counters and latencies
// cover the lifetime of this process. Waits for a connection cover the last five to ten
// minutes.
type HealthCheck struct {
	Status      string      `json:"status"`       // ok; degraded at red, or if the disk is full or the store damaged
	Level       HealthLevel `json:"health_level"` // of pool and queues
	Environment string      `json:"environment"`  // system and processor
	Host        *string     `json:"http_host"`    // null unless it serves HTTP
	Port        *int        `json:"http_port"`
	Database    string      `json:"database_url"` // only the name of the file

	Pool   PoolHealth `json:"pool_utilization"`
	Queues struct {
		Files   FileQueueHealth   `json:"wbq"`
		Commits CommitQueueHealth `json:"commit_coalescer"`
	} `json:"queues"`
	Disk struct {
		Level       archive.Level `json:"level"`
		StorageFree *int64        `json:"storage_free_mb"` // on the archive's volume; null if unknown
		DBFree      *int64        `json:"db_free_mb"`
	} `json:"disk"`
	Integrity struct {
		LastCheck mail.Time `json:"last_check_ts"` // null before the end of the first check
		OK        *bool     `json:"ok"`            // the result of that check
	} `json:"integrity"`
	Metrics HealthMetrics `json:"metrics"`

	Device string `json:"device_note,omitempty"` // why the store is a new device incarnation, shown for 30 days
}

// HealthLevel is green, yellow or red.
type HealthLevel string

// The levels.
const (
	Green  HealthLevel = "green"
	Yellow HealthLevel = "yellow"
	Red    HealthLevel = "red"
)

// PoolHealth is the use of the store's connections. Total is the maximum number, readers
// and the writer together. Idle is the number of unused connections.
type PoolHealth struct {
	Active      int64   `json:"active"`
	Idle        int64   `json:"idle"`
	Total       int64   `json:"total"`
	Pending     int     `json:"pending"`
	Peak        int64   `json:"peak_active"`
	Utilization float64 `json:"utilization_pct"`
	P50         float64 `json:"acquire_p50_ms"`
	P95         float64 `json:"acquire_p95_ms"`
	P99         float64 `json:"acquire_p99_ms"`
	High        int64   `json:"over_80_for_s"`
	Warning     bool    `json:"warning"` // true if it is the reason for a level other than green
}

// FileQueueHealth is the state of the queue of changes that wait to be written to files.
type FileQueueHealth struct {
	Depth        int64   `json:"depth"`
	Capacity     int64   `json:"capacity"`
	Utilization  float64 `json:"utilization_pct"`
	Peak         int64   `json:"peak_depth"`
	Entered      int64   `json:"enqueued_total"`
	Left         int64   `json:"drained_total"`
	Errors       int64   `json:"errors_total"`
	Backpressure int64   `json:"backpressure_total"` // pauses of reading
	P50          float64 `json:"latency_p50_ms"`
	P95          float64 `json:"latency_p95_ms"`
	P99          float64 `json:"latency_p99_ms"`
	High         int64   `json:"over_80_for_s"`
	Warning      bool    `json:"warning"`
}

// CommitQueueHealth is the state of the queue of batches that wait for a commit.
type CommitQueueHealth struct {
	Pending       int64   `json:"pending_requests"`
	Capacity      int64   `json:"soft_cap"`
	Utilization   float64 `json:"utilization_pct"`
	Peak          int64   `json:"peak_depth"`
	Entered       int64   `json:"enqueued_total"`
	Left          int64   `json:"drained_total"`
	Errors        int64   `json:"errors_total"`
	SyncFallbacks int64   `json:"sync_fallbacks_total"`
	P50           float64 `json:"latency_p50_ms"`
	P95           float64 `json:"latency_p95_ms"`
	P99           float64 `json:"latency_p99_ms"`
	High          int64   `json:"over_80_for_s"`
	Warning       bool    `json:"warning"`
}

// HealthMetrics are the six metrics of mail §10.5.
type HealthMetrics struct {
	Depth         int64   `json:"wbq_depth"`
	WriteErrors   int64   `json:"wbq_errors_total"`
	CommitErrors  int64   `json:"commit_errors_total"`
	SyncFallbacks int64   `json:"commit_sync_fallbacks_total"`
	NeedsReindex  int64   `json:"needs_reindex_total"`
	Acquire       Latency `json:"pool_acquire_latency_us"`
}

// Latency is a distribution in microseconds.
type Latency struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
}

// limits are the values from which a level is yellow and red. With above set, the values
// themselves do not count, only greater ones.
type limits struct {
	yellow, red float64
	above       bool
}

func (l limits) level(v float64) HealthLevel {
	reached := func(limit float64) bool { return v > limit || v == limit && !l.above }
	switch {
	case reached(l.red):
		return Red
	case reached(l.yellow):
		return Yellow
	}
	return Green
}

// worstLevel returns the worst of the levels.
func worstLevel(levels ...HealthLevel) HealthLevel {
	out := Green
	for _, l := range levels {
		if l == Red || out == Green {
			out = l
		}
	}
	return out
}

// The limits of pool and queues (mail §10.5).
func poolLimits() limits    { return limits{yellow: 70, red: 90} }              // percent
func queueLimits() limits   { return limits{yellow: 50, red: 80} }              // percent
func highLimits() limits    { return limits{yellow: 30, red: 300} }             // seconds over 80 %
func acquireLimits() limits { return limits{yellow: 10, red: 50, above: true} } // milliseconds, p95

// minWaits is the minimum number of waits for a meaningful p95. Directly after a start there
// are fewer.
const minWaits = 100

// HealthCheck returns the health of this process. Without a store all numbers are 0.
//
// Errors: those of store.Read, and of a store that cannot be opened.
func (c *Cairn) HealthCheck(ctx context.Context) (h HealthCheck, err error) {
	h.Environment, h.Database = runtime.GOOS+"/"+runtime.GOARCH, filepath.Base(c.Config.DB)
	g, err := c.Gauges(ctx)
	if err != nil {
		return h, err
	}
	at, m := c.readServerState(), g.Archive
	h.Host, h.Port = at.host, at.port
	h.Pool = poolHealth(g.Pool, g.Recent)
	files, filesLevel := queueHealth(m.Files)
	files.Errors, files.Backpressure = m.WriteErrors, m.Backpressure
	commits, commitsLevel := queueHealth(m.Commits)
	h.Queues.Files = files
	h.Queues.Commits = CommitQueueHealth{
		commits.Depth, commits.Capacity, commits.Utilization, commits.Peak, commits.Entered, commits.Left, m.CommitErrors, m.SyncFallbacks,
		commits.P50, commits.P95, commits.P99, commits.High, commits.Warning,
	}
	poolLevel := worstLevel(poolLimits().level(h.Pool.Utilization), highLimits().level(float64(h.Pool.High)))
	if g.Recent.Count >= minWaits {
		poolLevel = worstLevel(poolLevel, acquireLimits().level(h.Pool.P95))
	}
	h.Pool.Warning = poolLevel != Green
	h.Level = worstLevel(poolLevel, filesLevel, commitsLevel)
	space := c.Settings.Work.Disk.Space()
	h.Disk.Level, _ = space.Level(c.Config.DB, c.ArchiveDir())
	h.Disk.StorageFree, h.Disk.DBFree = freeMiB(space, c.ArchiveDir()), freeMiB(space, c.Config.DB)
	if !at.checked.IsZero() {
		h.Integrity.LastCheck, h.Integrity.OK = mail.Time(at.checked.Truncate(time.Microsecond).UnixNano()), new(at.damage == nil)
	}
	h.Metrics = HealthMetrics{m.Depth, m.WriteErrors, m.CommitErrors, m.SyncFallbacks, m.NeedsReindex, g.Latency()}
	h.Status = "ok"
	if h.Level == Red || at.damage != nil || h.Disk.Level == archive.LevelCritical || h.Disk.Level == archive.LevelFatal {
		h.Status = "degraded"
	}
	if h.Level == Red {
		return h, nil // a read would wait
	}
	device, err := c.Device(ctx)
	h.Device = device.Note
	return h, err
}

// Gauges are the metrics of the archive and of the store's connections. Without a store,
// and before FollowArchive runs, all are zero except the capacities.
type Gauges struct {
	Archive archive.Metrics
	Pool    store.Pool
	Recent  measure.Distribution // waits for a connection in the last five to ten minutes
}

// Latency returns the recent waits for a connection.
func (g *Gauges) Latency() Latency {
	us := func(share float64) float64 {
		return rounded(float64(g.Recent.Quantile(share)) / float64(time.Microsecond))
	}
	return Latency{us(.5), us(.95), us(.99)}
}

// Gauges reads the gauges.
//
// Errors: those of store.Read, and of a store that cannot be opened.
func (c *Cairn) Gauges(ctx context.Context) (g Gauges, err error) {
	s, err := c.Opened(ctx, false)
	if err != nil {
		return g, err
	}
	g.Pool.Capacity = int64(c.Settings.Work.DB.MaxOpen()) + 1
	if s != nil {
		g.Pool = s.Pool()
		g.Recent = g.Pool.Acquired.Since(c.readServerState().waits[0])
	}
	g.Archive, err = c.ArchiveMetrics(ctx)
	return g, err
}

func poolHealth(p store.Pool, waits measure.Distribution) PoolHealth {
	return PoolHealth{
		Active: p.Now, Idle: p.Capacity - p.Now, Total: p.Capacity, Pending: p.Pending, Peak: p.Peak, Utilization: rounded(p.Percent()),
		P50: milliseconds(&waits, .5), P95: milliseconds(&waits, .95), P99: milliseconds(&waits, .99), High: int64(p.High.Seconds()),
	}
}

func queueHealth(q archive.Queue) (FileQueueHealth, HealthLevel) {
	level := worstLevel(queueLimits().level(q.Percent()), highLimits().level(q.High.Seconds()))
	return FileQueueHealth{
		Depth: q.Now, Capacity: q.Capacity, Utilization: rounded(q.Percent()), Peak: q.Peak, Entered: q.Entered, Left: q.Left,
		P50: milliseconds(&q.Latency, .5), P95: milliseconds(&q.Latency, .95), P99: milliseconds(&q.Latency, .99),
		High: int64(q.High.Seconds()), Warning: level != Green,
	}, level
}

func milliseconds(d *measure.Distribution, share float64) float64 {
	return rounded(float64(d.Quantile(share)) / float64(time.Millisecond))
}

// rounded returns v with three decimals.
func rounded(v float64) float64 { return math.Round(v*1000) / 1000 }

// freeMiB returns the free space on the volume of a path, nil if it is unknown.
func freeMiB(space archive.Space, path string) *int64 {
	if _, free := space.Level(path); free >= 0 {
		return new(free >> 20)
	}
	return nil
}
