package main

import (
	"context"
	"maps"
	"slices"
	"strings"
)

// pastLimit is the time limit of a query about a past moment, in milliseconds.
const pastLimit = 50

// past measures inboxes and reservations as of past moments in a long log, and a current inbox
// for comparison. It runs the benchmark of internal/mail/service in process.
func (b *bench) past(ctx context.Context) error {
	b.say("  benchmarks of internal/mail/service")
	times := "20x"
	if b.quick {
		times = "5x"
	}
	m, err := goBenchmarks(ctx, "cairn/internal/mail/service", "Past|AmongManyMessages", times)
	if err != nil {
		return err
	}
	const now = "AmongManyMessages/inbox"
	if err := m.missing(now); err != nil {
		return err
	}
	t := newTable("past", "as of a moment: the first hundredth, the middle and the end of 100,000 changes", "mean ms", "calls")
	t.add("limit: an inbox as it is now", m[now].figures["p50-ms"], m[now].calls)
	for _, name := range slices.Sorted(maps.Keys(m)) {
		what, ok := strings.CutPrefix(name, "Past/")
		if !ok {
			continue
		}
		took := m[name].figures["ns/op"] / 1e6
		t.add(strings.ReplaceAll(what, "_", " "), took, m[name].calls).target("≤ 50 ms", took <= pastLimit)
	}
	return b.publish(t)
}
