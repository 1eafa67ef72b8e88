package backoff_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"cairn/internal/backoff"
)

func TestBackoffDoublesUpToItsMaximumWithinItsJitter(t *testing.T) {
	t.Parallel()
	b := backoff.Policy{First: 100 * time.Millisecond, Max: 20 * time.Second, Jitter: .5}
	for n, want := range map[int]time.Duration{
		-1: 100 * time.Millisecond, 0: 100 * time.Millisecond, 1: 100 * time.Millisecond, 2: 200 * time.Millisecond,
		8: 12800 * time.Millisecond, 9: 20 * time.Second, 63: 20 * time.Second, 1 << 40: 20 * time.Second,
	} {
		least, most := want*2, time.Duration(0)
		for range 500 {
			d := b.Delay(n)
			least, most = min(least, d), max(most, d)
		}
		if least < want/2 || most > want*3/2 {
			t.Errorf("after %d failures it waits %v to %v, want %v ± 50 %%", n, least, most, want)
		}
		if most-least < want/2 { // 500 random values that are all this close are practically impossible
			t.Errorf("after %d failures all waits are within %v to %v", n, least, most)
		}
	}
	b.Jitter = 0
	if d := b.Delay(3); d != 400*time.Millisecond {
		t.Errorf("without jitter it waits %v", d)
	}
}

func TestPauseEndsByTimeByWakeUpOrWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		wake := make(chan struct{}, 1)
		began := time.Now()
		if !backoff.Pause(t.Context(), time.Hour, nil) || time.Since(began) != time.Hour {
			t.Errorf("it took %v", time.Since(began))
		}
		wake <- struct{}{}
		began = time.Now()
		if !backoff.Pause(t.Context(), time.Hour, wake) || time.Since(began) != 0 {
			t.Errorf("woken, it took %v", time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if backoff.Pause(ctx, time.Hour, wake) || time.Since(began) != time.Minute {
			t.Errorf("with its context it took %v", time.Since(began))
		}
	})
}
