package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// memories measures the targets of memories §14 with the benchmarks of three packages. They
// cover the time to acknowledge a write whatever the hub does, and the delivery rate to a hub
// over SQLite and PostgreSQL. They also cover the growth of delivery and search.
func (b *bench) memories(ctx context.Context) error {
	return errors.Join(b.memoryCalls(ctx), b.memoryRates(ctx), b.memoryGrowth(ctx))
}

func (b *bench) memoryCalls(ctx context.Context) error {
	b.say("  acknowledgement, inflight lists, a blocked memory")
	lasting := "2000x"
	if b.quick {
		lasting = "300x"
	}
	m, err := goBenchmarks(ctx, "cairn/internal/replica", "Ack|InflightList|OneMemoryBlocked", lasting)
	if err == nil {
		err = m.missing("Ack/up", "Ack/slow_by_500_ms", "Ack/gone", "InflightList", "OneMemoryBlocked/blocked=false", "OneMemoryBlocked/blocked=true")
	}
	if err != nil {
		return err
	}
	t := newTable("memories", "one call at a time, in process", "p50 ms", "p95 ms", "p99 ms", "calls")
	add := func(name, benchmark string) (*row, map[string]float64) {
		f := m[benchmark].figures
		return t.add(name, f["p50-ms"], f["p95-ms"], f["p99-ms"], m[benchmark].calls), f
	}
	for _, hub := range []string{"up", "slow by 500 ms", "gone"} {
		r, f := add("acknowledged, the hub is "+hub, "Ack/"+underscored(hub))
		r.target("p95 < 5 ms, p99 < 10 ms", f["p95-ms"] < 5 && f["p99-ms"] < 10)
	}
	r, f := add("25 inflight entries listed", "InflightList")
	r.target("p50 < 0.2 ms", f["p50-ms"] < 0.2)
	_, free := add("until the hub has it, 100 memories", "OneMemoryBlocked/blocked=false")
	r, f = add("the same beside one that is blocked", "OneMemoryBlocked/blocked=true")
	r.target("p95 ≤ 2 × that", f["p95-ms"] <= 2*free["p95-ms"])
	return b.publish(t)
}

func (b *bench) memoryRates(ctx context.Context) error {
	b.say("  entries to hubs")
	t := newTable("memories", "a second: jobs of the executor, entries to a hub; beside it the bare statement", "per s", "bare per s", "× bare")
	jobs, err := goBenchmarks(ctx, "cairn/internal/memory", "ShardsOfNoopJobs", "1s")
	if err = errors.Join(err, jobs.missing("ShardsOfNoopJobs")); err != nil {
		return err
	}
	rate := jobs["ShardsOfNoopJobs"].figures["jobs/s"]
	t.add("jobs that do nothing", rate, nil, nil).target("≥ 50,000/s", rate >= 50_000)
	m, err := goBenchmarks(ctx, "cairn/internal/hub", "Push", "2s")
	if err != nil {
		return err
	}
	bare, ok := m["Push/bare/postgres"]
	if !ok {
		t.note("there is no PostgreSQL here")
	}
	for _, memories := range []int{1, 10, 100} {
		if got, ok := m[fmt.Sprintf("Push/postgres/memories=%d", memories)]; ok {
			rate, most := got.figures["entries/s"], bare.figures["entries/s"]
			r := t.add(fmt.Sprintf("pushed to PostgreSQL, %d memories a request", memories), rate, most, rate/most)
			r.target("≥ 5,000/s", rate >= 5000)
		}
	}
	return b.publish(t)
}

// memoryGrowth drains backlogs and searches stores of increasing size.
func (b *bench) memoryGrowth(ctx context.Context) error {
	t := newTable("memories", "written offline, then sent by one device to one hub; the bare figure is the hub's own push",
		"per s", "bare per s", "× bare", "s")
	for n := 1000; n <= max(b.entries, 1000); n *= 10 {
		b.say("  %s entries", grouped(n))
		m, err := goBenchmarks(ctx, "cairn/internal/replica", "Drain", "1x", "CAIRN_BENCH_ENTRIES="+strconv.Itoa(n))
		if err = errors.Join(err, m.missing("Drain/sqlite,_1_memories", "Drain/sqlite,_20_memories")); err != nil {
			return err
		}
		for _, hub := range []string{"sqlite, 1 memories", "sqlite, 20 memories", "postgres, 1 memories", "postgres, 20 memories"} {
			got, ok := m["Drain/"+underscored(hub)]
			if !ok {
				continue
			}
			rate, bare := got.figures["entries/s"], got.figures["bare-entries/s"]
			r := t.add(fmt.Sprintf("%s entries, %s", grouped(n), hub), rate, bare, rate/bare, float64(n)/rate)
			switch {
			case n == 100_000:
				r.target("drained in < 60 s", float64(n)/rate < 60)
			case hub == "postgres, 20 memories":
				r.target("≥ 5,000/s", rate >= 5000)
			}
		}
	}
	if err := b.publish(t); err != nil {
		return err
	}
	b.say("  searches")
	m, err := goBenchmarks(ctx, "cairn/internal/memory", "Search", "200x", "CAIRN_SEARCH_BENCH="+strconv.Itoa(b.entries))
	if err != nil {
		return err
	}
	t = newTable("memories", "a search of one memory of 1,000 entries, in stores with more of them", "p95 ms", "× the first")
	first := m["Search/1000_entries"].figures["p95-ms"]
	for n := 1000; n <= max(b.entries, 1000); n *= 10 {
		if err := m.missing(fmt.Sprintf("Search/%d_entries", n)); err != nil {
			return err
		}
		p95 := m[fmt.Sprintf("Search/%d_entries", n)].figures["p95-ms"]
		t.add(grouped(n)+" entries in the store", p95, p95/first)
	}
	if b.entries < 1_000_000 {
		t.note("--memory-entries 1000000 measures up to a million entries")
	}
	return b.publish(t)
}

// underscored returns a name as go test prints it.
func underscored(name string) string { return strings.ReplaceAll(name, " ", "_") }
