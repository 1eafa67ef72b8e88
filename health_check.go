package cairn

import (
	"context"
	"math"
	"path/filepath"
	"runtime"
	"time"

	"cairn/internal/archive"
	"cairn/internal/mail"
	"cairn/internal/store"
)

// HealthCheck is what health_check answers (mail §10.5): how busy this process is, its
// store and its archive. Whether memories can be used is MemoryHealth. Counters and
// latencies are those of this process since it began, but the waits for a connection
// those of the last five to ten minutes.
type HealthCheck struct {
	Status      string      `json:"status"`       // ok; degraded at red, or if the disk is full or the store damaged
	Level       HealthLevel `json:"health_level"` // by pool and queues
	Environment string      `json:"environment"`  // system and processor
	Host        *string     `json:"http_host"`    // null unless it answers over HTTP
	Port        *int        `json:"http_port"`
	Database    string      `json:"database_url"` // the file's name alone

	Pool   PoolHealth `json:"pool_utilization"`
	Queues struct {
		Files   FileQueueHealth   `json:"wbq"`
		Commits CommitQueueHealth `json:"commit_coalescer"`
	} `json:"queues"`
	Disk struct {
		Level       archive.Level `json:"level"`
		StorageFree *int64        `json:"storage_free_mb"` // of the archive's volume; null where the system does not tell
		DBFree      *int64        `json:"db_free_mb"`
	} `json:"disk"`
	Integrity struct {
		LastCheck mail.Time `json:"last_check_ts"` // null before the first check has ended
		OK        *bool     `json:"ok"`            // what it found
	} `json:"integrity"`
	Metrics HealthMetrics `json:"metrics"`

	Device string `json:"device_note,omitempty"` // why the store goes on as a new device incarnation, for 30 days
}

// HealthLevel is green, yellow or red.
type HealthLevel string

// The levels.
const (
	Green  HealthLevel = "green"
	Yellow HealthLevel = "yellow"
	Red    HealthLevel = "red"
)

// PoolHealth is how the store's connections are used: Total is how many there may be,
// those that read and the one that writes, and Idle are those that nobody uses.
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
	Warning     bool    `json:"warning"` // it is why the level is not green
}

// FileQueueHealth is how the changes do that are to become files.
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

// CommitQueueHealth is how the batches do that are to be committed.
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

// HealthMetrics are the six numbers of mail §10.5.
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

// limits are where a level is no longer green, and where it is red; above says that
// the limits themselves still are not.
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

// worse is the worst of some levels.
func worse(levels ...HealthLevel) HealthLevel {
	out := Green
	for _, l := range levels {
		if l == Red || out == Green {
			out = l
		}
	}
	return out
}

// When pool and queues are no longer green (mail §10.5).
func poolLimits() limits    { return limits{yellow: 70, red: 90} }              // percent
func queueLimits() limits   { return limits{yellow: 50, red: 80} }              // percent
func highLimits() limits    { return limits{yellow: 30, red: 300} }             // seconds over 80 %
func acquireLimits() limits { return limits{yellow: 10, red: 50, above: true} } // milliseconds, p95

// fewWaits are so few that their p95 is a matter of chance, as it is right after a
// start.
const fewWaits = 100

// HealthCheck reports how this process does. Without a store all numbers are 0.
//
// Errors: those of store.Read, and of a store that cannot be opened.
func (c *Cairn) HealthCheck(ctx context.Context) (h HealthCheck, err error) {
	h.Environment, h.Database = runtime.GOOS+"/"+runtime.GOARCH, filepath.Base(c.config.DB)
	g, err := c.Gauges(ctx)
	if err != nil {
		return h, err
	}
	at, m := c.stateOfServer(), g.Archive
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
	poolLevel := worse(poolLimits().level(h.Pool.Utilization), highLimits().level(float64(h.Pool.High)))
	if g.Recent.Count >= fewWaits {
		poolLevel = worse(poolLevel, acquireLimits().level(h.Pool.P95))
	}
	h.Pool.Warning = poolLevel != Green
	h.Level = worse(poolLevel, filesLevel, commitsLevel)
	space := c.settings.work.Disk.space()
	h.Disk.Level, _ = space.Level(c.config.DB, c.ArchiveDir())
	h.Disk.StorageFree, h.Disk.DBFree = freeMiB(space, c.ArchiveDir()), freeMiB(space, c.config.DB)
	if !at.checked.IsZero() {
		h.Integrity.LastCheck, h.Integrity.OK = mail.Time(at.checked.Truncate(time.Microsecond).UnixNano()), new(at.damage == nil)
	}
	h.Metrics = HealthMetrics{m.Depth, m.WriteErrors, m.CommitErrors, m.SyncFallbacks, m.NeedsReindex, g.Latency()}
	h.Status = "ok"
	if h.Level == Red || at.damage != nil || h.Disk.Level == archive.LevelCritical || h.Disk.Level == archive.LevelFatal {
		h.Status = "degraded"
	}
	if h.Level == Red {
		return h, nil // a read would have to wait
	}
	device, err := c.Device(ctx)
	h.Device = device.Note
	return h, err
}

// Gauges are the numbers of the archive and of the connections to the store. Without
// a store, and before the archive is followed, they are zero but for capacities.
type Gauges struct {
	Archive archive.Metrics
	Pool    store.Pool
	Recent  store.Distribution // waits for a connection in the last five to ten minutes
}

// Latency is how long callers waited for a connection lately.
func (g *Gauges) Latency() Latency {
	us := func(share float64) float64 {
		return rounded(float64(g.Recent.Quantile(share)) / float64(time.Microsecond))
	}
	return Latency{us(.5), us(.95), us(.99)}
}

// Gauges reads them.
//
// Errors: those of store.Read, and of a store that cannot be opened.
func (c *Cairn) Gauges(ctx context.Context) (g Gauges, err error) {
	s, err := c.opened(ctx, false)
	if err != nil {
		return g, err
	}
	g.Pool.Capacity = int64(c.settings.work.DB.most()) + 1
	if s != nil {
		g.Pool = s.Pool()
		g.Recent = g.Pool.Acquired.Since(c.stateOfServer().waits[0])
	}
	g.Archive, err = c.ArchiveMetrics(ctx)
	return g, err
}

func poolHealth(p store.Pool, waits store.Distribution) PoolHealth {
	return PoolHealth{
		Active: p.Now, Idle: p.Capacity - p.Now, Total: p.Capacity, Pending: p.Pending, Peak: p.Peak, Utilization: rounded(p.Percent()),
		P50: milliseconds(&waits, .5), P95: milliseconds(&waits, .95), P99: milliseconds(&waits, .99), High: int64(p.High.Seconds()),
	}
}

func queueHealth(q archive.Queue) (FileQueueHealth, HealthLevel) {
	level := worse(queueLimits().level(q.Percent()), highLimits().level(q.High.Seconds()))
	return FileQueueHealth{
		Depth: q.Now, Capacity: q.Capacity, Utilization: rounded(q.Percent()), Peak: q.Peak, Entered: q.Entered, Left: q.Left,
		P50: milliseconds(&q.Latency, .5), P95: milliseconds(&q.Latency, .95), P99: milliseconds(&q.Latency, .99),
		High: int64(q.High.Seconds()), Warning: level != Green,
	}, level
}

func milliseconds(d *store.Distribution, share float64) float64 {
	return rounded(float64(d.Quantile(share)) / float64(time.Millisecond))
}

// rounded has three decimals.
func rounded(v float64) float64 { return math.Round(v*1000) / 1000 }

// freeMiB is what is free on the volume of a path, nil where the system does not tell.
func freeMiB(space archive.Space, path string) *int64 {
	if _, free := space.Level(path); free >= 0 {
		return new(free >> 20)
	}
	return nil
}
