package main

import (
	"context"
	"fmt"
)

// mailBar is the limit that mail §11 sets for a benchmark of package mail.
type mailBar struct {
	benchmark, name string
	p99             float64 // ms
}

func mailBars() []mailBar {
	const many = "AmongManyMessages/"
	bars := []mailBar{
		{many + "inbox", "fetch_inbox", 5}, {many + "inbox-unread", "fetch_inbox, unread", 5}, {many + "inbox-urgent", "fetch_inbox, urgent", 5},
		{many + "inbox-bodies", "fetch_inbox, bodies", 5}, {many + "read", "mark_message_read", 5},
	}
	for _, kind := range []string{"rare", "two", "two-common", "common", "common-sender", "common-thread", "common-recency", "prefix", "nothing", "substring"} {
		bars = append(bars, mailBar{many + "search-" + kind, "search_messages, " + kind, 50})
	}
	return append(bars,
		mailBar{"Reserve", "reserve 20 paths beside 10,000 active", 10},
		mailBar{"Guard/file", "guard of a file beside 10,000 active, in process", 4},
		mailBar{"Guard/patch", "guard of 5,000 files beside 10,000 active, in process", 50},
	)
}

// mailCalls measures single calls in this process, with the package's benchmarks.
func (b *bench) mailCalls(ctx context.Context) error {
	b.say("  benchmarks of internal/mail/service")
	times := 200
	if b.quick {
		times = 100
	}
	measured, err := goBenchmarks(ctx, "cairn/internal/mail/service", "AmongManyMessages|Reserve|Guard", fmt.Sprint(times, "x"))
	if err != nil {
		return err
	}
	t := newTable("mail-calls", "one call at a time, in process, 100,000 messages or 10,000 active reservations", "p50 ms", "p99 ms", "calls")
	for _, bar := range mailBars() {
		if err := measured.missing(bar.benchmark); err != nil {
			return err
		}
		m := measured[bar.benchmark]
		p99 := m.figures["p99-ms"]
		t.add(bar.name, m.figures["p50-ms"], p99, m.calls).target(fmt.Sprintf("p99 ≤ %.0f ms", bar.p99), p99 <= bar.p99)
	}
	return b.publish(t)
}
