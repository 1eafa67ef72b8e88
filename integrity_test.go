package cairn

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"cairn/internal/archive"
	"cairn/internal/fault"
	"cairn/internal/measure"
	"cairn/internal/store"
)

// servingWithOneReader opens a cairn with one reader, as servers do, over a store of
// several pages.
func servingWithOneReader(t *testing.T) (*Cairn, *store.Store) {
	t.Helper()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "config.toml"), "[db]\nreaders_max = 1\n", 0o600)
	c, err := Open(Config{Dir: dir, Home: dir, Role: store.Server})
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Store(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, s
}

// TestAServerIsToldOfDamageWithinADay damages the store while the server runs.
func TestAServerIsToldOfDamageWithinADay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := servingWithOneReader(t)
		if err := s.Checkpoint(t.Context()); err != nil {
			t.Fatal(err)
		}
		w, err := c.StartIntegrityMonitor(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if at := c.readServerState(); at.checked.IsZero() || at.damage != nil || c.IntegrityErrors() != 0 {
			t.Errorf("at the start: %+v, %d", at, c.IntegrityErrors())
		}
		ended := make(chan error, 1)
		go func() { ended <- w.Run(t.Context()) }()
		time.Sleep(25 * time.Hour) // in the bubble's time
		if at := c.readServerState(); time.Since(at.checked) > 2*time.Hour {
			t.Errorf("after a day it was last checked %v ago", time.Since(at.checked))
		}
		damageEveryPage(t, c.Path())
		time.Sleep(24 * time.Hour)
		err = <-ended
		if f := fault.As(err); f.Code != store.CodeCorrupt || f.Hint == "" {
			t.Errorf("after the damage: %v", err)
		}
		met := c.IntegrityErrors()
		if met == 0 {
			t.Error("the damage is not counted")
		}
		if err := c.reopen(); err != nil || c.IntegrityErrors() != met {
			t.Errorf("%d are left of %d, %v", c.IntegrityErrors(), met, err)
		}
		if h, err := c.HealthCheck(t.Context()); err == nil && (h.Status != "degraded" || h.Integrity.OK == nil || *h.Integrity.OK) {
			t.Errorf("health: %+v", h)
		}
	})
}

// damageEveryPage overwrites all pages except the first, in the log too.
func damageEveryPage(t *testing.T, path string) {
	t.Helper()
	for _, file := range []string{path, path + "-wal"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i := range text {
			if i >= 4096+1024 {
				text[i] ^= 0x5a
			}
		}
		f, err := os.OpenFile(file, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(text, 0); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestALongCheckDoesNotHoldUpAStart checks that a start waits at most two seconds. Here the
// check waits for the only reader.
func TestALongCheckDoesNotHoldUpAStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := servingWithOneReader(t)
		release, ended := make(chan struct{}), make(chan error, 2)
		go func() {
			ended <- s.Read(t.Context(), func(context.Context, *store.Tx) error { <-release; return nil })
		}()
		synctest.Wait()
		began := time.Now()
		w, err := c.StartIntegrityMonitor(t.Context())
		if took := time.Since(began); err != nil || took != startLimit || !c.readServerState().checked.IsZero() {
			t.Errorf("it began after %v: %v", took, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { ended <- w.Run(ctx) }()
		close(release)
		time.Sleep(time.Second) // in the bubble's time
		if c.readServerState().checked.IsZero() {
			t.Error("the check was given up")
		}
		cancel()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
}

// TestLongWaitsMakeTheLevelRedUntilTheyAreOld checks this although the histogram counts the
// waits permanently.
func TestLongWaitsMakeTheLevelRedUntilTheyAreOld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := servingWithOneReader(t)
		ctx, cancel := context.WithCancel(t.Context())
		tended := make(chan error)
		go func() { tended <- c.Maintain(ctx) }()
		time.Sleep(time.Hour) // in the bubble's time
		health := func() HealthCheck {
			h, err := c.HealthCheck(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return h
		}
		if h := health(); h.Level != Green || h.Pool.Warning {
			t.Errorf("at first: %+v", h.Pool)
		}
		release, read := make(chan struct{}), make(chan error)
		const callers = 2 * minWaits
		for range callers {
			go func() {
				read <- s.Read(t.Context(), func(context.Context, *store.Tx) error { <-release; return nil })
			}()
		}
		synctest.Wait()
		time.Sleep(time.Second)
		close(release)
		for range callers {
			if err := <-read; err != nil {
				t.Error(err)
			}
		}
		if h := health(); h.Level != Red || h.Status != "degraded" || !h.Pool.Warning || h.Pool.P95 < 750 || h.Metrics.Acquire.P95 < 750_000 {
			t.Errorf("after long waits: %s, %+v", h.Level, h.Pool)
		}
		time.Sleep(recentFor - time.Minute)
		if h := health(); h.Level != Red {
			t.Errorf("a little later: %s, %+v", h.Level, h.Pool)
		}
		time.Sleep(recentFor + 2*time.Minute)
		if h := health(); h.Level != Green || h.Status != "ok" || h.Pool.P95 > 10 {
			t.Errorf("long after: %s, %+v", h.Level, h.Pool)
		}
		if all := s.Pool().Acquired; all.Count < callers || all.Quantile(.95) < 750*time.Millisecond {
			t.Errorf("the histogram has forgotten: %v", all.Quantile(.95))
		}
		cancel()
		if err := <-tended; err != nil {
			t.Error(err)
		}
	})
}

func TestLevelsOfHealthAreThoseOfTheContract(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limits limits
		v      float64
		want   HealthLevel
	}{
		{poolLimits(), 69, Green}, {poolLimits(), 70, Yellow}, {poolLimits(), 90, Red},
		{queueLimits(), 49, Green}, {queueLimits(), 50, Yellow}, {queueLimits(), 80, Red},
		{highLimits(), 29, Green}, {highLimits(), 30, Yellow}, {highLimits(), 300, Red},
		{acquireLimits(), 10, Green}, {acquireLimits(), 10.1, Yellow}, {acquireLimits(), 50, Yellow}, {acquireLimits(), 50.1, Red},
	} {
		if got := c.limits.level(c.v); got != c.want {
			t.Errorf("%v is %s, not %s", c.v, got, c.want)
		}
	}
	if worstLevel() != Green || worstLevel(Green, Yellow) != Yellow || worstLevel(Yellow, Red, Green) != Red || worstLevel(Red, Yellow) != Red {
		t.Error("the worst is not the worst")
	}
	q := archive.Queue{Usage: measure.Usage{Now: 4096, Capacity: 8192, High: time.Minute}}
	if h, level := queueHealth(q); level != Yellow || !h.Warning || h.Utilization != 50 || h.High != 60 {
		t.Errorf("%s, %+v", level, h)
	}
}
