package main

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// mailBar is what mail §11 asks of a benchmark of the room mail.
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

// mailCalls measures calls one by one, in process, by the benchmarks of the room.
func (b *bench) mailCalls(ctx context.Context) error {
	b.say("  benchmarks of internal/mail")
	times := 200
	if b.quick {
		times = 100
	}
	measured, err := mailBenchmarks(ctx, times)
	if err != nil {
		return err
	}
	t := newTable("mail-calls", "one call at a time, in process, 100,000 messages or 10,000 active reservations", "p50 ms", "p99 ms", "calls")
	for _, bar := range mailBars() {
		m, ok := measured[bar.benchmark]
		if !ok {
			return fmt.Errorf("there is no benchmark %s", bar.benchmark)
		}
		t.add(bar.name, m.p50, m.p99, m.calls).target(fmt.Sprintf("p99 ≤ %.0f ms", bar.p99), m.p99 <= bar.p99)
	}
	return b.publish(t)
}

// benchmarked is what one benchmark reported.
type benchmarked struct {
	calls    int
	p50, p99 float64 // ms
}

// mailBenchmarks runs those of the room mail, each so many times; by their names
// without Benchmark.
func mailBenchmarks(ctx context.Context, times int) (map[string]benchmarked, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-tags", "sqlite_fts5,sqlite_math_functions", "-run", "^$",
		"-bench", "^Benchmark(AmongManyMessages|Reserve|Guard)$", "-benchtime", fmt.Sprint(times, "x"), "cairn/internal/mail")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("go test -bench: %w: %s", err, out)
	}
	return readBenchmarks(string(out))
}

// readBenchmarks reads what go test prints of benchmarks that report percentiles.
func readBenchmarks(out string) (map[string]benchmarked, error) {
	found := map[string]benchmarked{}
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		name, ok := strings.CutPrefix(line, "Benchmark")
		if !ok || len(fields) < 4 {
			continue
		}
		name = strings.Fields(name)[0]
		if i := strings.LastIndexByte(name, '-'); i >= 0 {
			if _, err := strconv.Atoi(name[i+1:]); err == nil {
				name = name[:i] // the number of processors
			}
		}
		var m benchmarked
		var err error
		m.calls, err = strconv.Atoi(fields[1])
		for i := 2; i+1 < len(fields) && err == nil; i += 2 {
			switch fields[i+1] {
			case "p50-ms":
				m.p50, err = strconv.ParseFloat(fields[i], 64)
			case "p99-ms":
				m.p99, err = strconv.ParseFloat(fields[i], 64)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		found[name] = m
	}
	return found, nil
}
