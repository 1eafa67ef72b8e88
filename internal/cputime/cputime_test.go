package cputime

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestEffortIsProcessorTimeAndHasAnEndByTheClock(t *testing.T) {
	t.Parallel()
	const limit = 20 * time.Millisecond
	began := Spent()
	ctx, stop := WithLimit(t.Context(), limit, time.Minute)
	defer stop()
	for n := uint64(0); ctx.Err() == nil; n++ {
		_ = n * n
	}
	if used := Spent() - began; used < limit || !errors.Is(ctx.Err(), context.Canceled) {
		t.Errorf("ended after %v of %v: %v", used, limit, ctx.Err())
	}
	ctx, stop = WithLimit(t.Context(), time.Hour, time.Millisecond)
	defer stop()
	if <-ctx.Done(); !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Error(ctx.Err())
	}
}
