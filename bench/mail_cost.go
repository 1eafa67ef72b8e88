package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"cairn/internal/store"
)

// costTime is the time spent on the calls of one kind.
const costTime = 4 * time.Second

// mailCost measures the CPU time of a server per call of each tool. On a shared machine, CPU
// time is more meaningful than duration. It measures until the responses arrive, and until the
// writes are archived.
func (b *bench) mailCost(ctx context.Context) (err error) {
	home := filepath.Join(b.dir, "mail-cost")
	if err := os.RemoveAll(home); err != nil {
		return err
	}
	m, err := b.startMail(ctx, home)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.stop()) }()
	world, err := b.populate(ctx, m)
	if err != nil {
		return err
	}
	s, err := store.Open(ctx, store.Config{Path: filepath.Join(home, "cairn.db"), Role: store.Server})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	g := &growing{store: s}
	t := newTable("mail-cost", fmt.Sprintf("CPU time of the server for a call, %d callers", mailCallers), "µs", "µs, archived", "calls", "per s", "p50 ms", "p99 ms")
	for _, k := range costs() {
		if err := g.committed(ctx); err != nil {
			return err
		}
		if err := m.cost(ctx, world, k, g, t); err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
	}
	return b.publish(t)
}

// costly is a kind of call.
type costly struct {
	name string
	mcp  bool // in an MCP session, else by the mirror
	do   func(ctx context.Context, c *mailCaller, me *mailAgent) error
}

func costs() []costly {
	send := func(ctx context.Context, c *mailCaller, me *mailAgent) error {
		return c.send(ctx, me, c.world.other(c.Rand, c.number))
	}
	inbox := func(ctx context.Context, c *mailCaller, me *mailAgent) error {
		return c.call(ctx, "fetch_inbox", args{"project_key": me.project, "agent_name": me.name, "limit": 20}, nil)
	}
	reserve := func(ctx context.Context, c *mailCaller, me *mailAgent) error { return c.reserve(ctx, me) }
	return []costly{
		{"send_message, mirror", false, send},
		{"send_message, MCP", true, send},
		{"fetch_inbox, mirror", false, inbox},
		{"fetch_inbox, MCP", true, inbox},
		{"file_reservation_paths, mirror", false, reserve},
		{"file_reservation_paths, MCP", true, reserve},
		{"whois, mirror", false, func(ctx context.Context, c *mailCaller, me *mailAgent) error {
			return c.call(ctx, "whois", args{"project_key": me.project, "agent_name": me.name}, nil)
		}},
		{"search_messages, mirror", false, func(ctx context.Context, c *mailCaller, me *mailAgent) error {
			return c.call(ctx, "search_messages", args{"project_key": me.project, "query": c.world.question(c.Rand)}, nil)
		}},
	}
}

// cost lets every caller make calls of one kind for a while.
func (m *mailServer) cost(ctx context.Context, w *mailWorld, k costly, g *growing, t *table) (err error) {
	callers := make([]*mailCaller, mailCallers)
	for i := range callers {
		callers[i] = &mailCaller{Rand: rand.New(rand.NewPCG(13, uint64(i))), world: w, number: i, call: m.mirror}
		if k.mcp {
			if callers[i].call, err = m.session(ctx); err != nil {
				return err
			}
		}
	}
	before, err := cpuOf(m.cmd.Process.Pid)
	if err != nil {
		return err
	}
	began := time.Now()
	took, errs := make([]sample, len(callers)), make([]error, len(callers))
	var all sync.WaitGroup
	for i, c := range callers {
		all.Go(func() {
			for errs[i] == nil && time.Since(began) < costTime {
				start := time.Now()
				errs[i] = k.do(ctx, c, w.agents[i])
				took[i] = append(took[i], time.Since(start))
			}
		})
	}
	all.Wait()
	lasted := time.Since(began)
	answered, err := cpuOf(m.cmd.Process.Pid)
	if err := errors.Join(append(errs, err, g.committed(ctx))...); err != nil {
		return err
	}
	archived, err := cpuOf(m.cmd.Process.Pid)
	if err != nil {
		return err
	}
	var every sample
	for _, s := range took {
		every = append(every, s...)
	}
	each := func(cpu time.Duration) float64 { return float64((cpu - before).Microseconds()) / float64(len(every)) }
	t.add(k.name, each(answered), each(archived), len(every), float64(len(every))/lasted.Seconds(), every.median(), every.at(0.99))
	return nil
}
