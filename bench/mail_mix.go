package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// mailCaller is one of the callers. It acts for the agents whose numbers are equal to its own,
// modulo the number of callers.
type mailCaller struct {
	*rand.Rand
	world  *mailWorld
	number int
	call   mailCall

	took   map[string]sample // by tool
	failed []error
	ledger mailLedger
}

// callers creates the callers. They alternate between an MCP session and the mirror.
func (w *mailWorld) callers(ctx context.Context, m *mailServer) (all []*mailCaller, err error) {
	for i := range mailCallers {
		c := &mailCaller{Rand: rand.New(rand.NewPCG(7, uint64(i))), world: w, number: i, call: m.mirror, took: map[string]sample{}}
		if i%2 == 0 {
			if c.call, err = m.session(ctx); err != nil {
				return nil, err
			}
		}
		all = append(all, c)
	}
	return all, nil
}

// step makes one call of the mix in mail §11.
func (c *mailCaller) step(ctx context.Context) (tool string, err error) {
	i := (c.number + c.IntN(mailAgents/mailCallers)*mailCallers) % mailAgents
	me := c.world.agents[i]
	switch n := c.IntN(100); {
	case n < 40:
		return "fetch_inbox", c.call(ctx, "fetch_inbox", args{
			"project_key": me.project, "agent_name": me.name, "limit": 20, "unread_only": n%2 == 0, "include_bodies": n%4 == 0,
		}, nil)
	case n < 65:
		return "search_messages", c.call(ctx, "search_messages", args{"project_key": me.project, "query": c.world.question(c.Rand)}, nil)
	case n < 80:
		return "send_message", c.send(ctx, me, c.world.other(c.Rand, i))
	case n < 85:
		if id, ok := me.take(); ok {
			return "acknowledge_message", c.acknowledge(ctx, me, id)
		}
		fallthrough
	case n < 90:
		return "file_reservation_paths", c.reserve(ctx, me)
	case n < 93:
		return "register_agent", c.call(ctx, "register_agent", args{
			"project_key": me.project, "program": "codex", "model": "m1", "name": me.name, "task_description": c.world.question(c.Rand),
		}, nil)
	case n < 97:
		return "whois", c.call(ctx, "whois", args{"project_key": me.project, "agent_name": me.name}, nil)
	}
	return "list_agents", c.call(ctx, "list_agents", args{"project_key": me.project}, nil)
}

// send writes a message with a unique subject.
func (c *mailCaller) send(ctx context.Context, from, to *mailAgent) error {
	subject := fmt.Sprintf("%s %d-%d", c.world.question(c.Rand), c.number, c.Uint64())
	var sent struct {
		Deliveries []struct{ Payload struct{ ID int64 } }
	}
	err := c.call(ctx, "send_message", args{
		"project_key": from.project, "sender_name": from.name, "to": []string{to.name}, "subject": subject, "body_md": c.world.text(c.Rand),
		"thread_id": fmt.Sprintf("T-%d", c.IntN(200)), "ack_required": true,
	}, &sent)
	if err != nil {
		return err
	}
	if len(sent.Deliveries) != 1 {
		return fmt.Errorf("%d deliveries of one message", len(sent.Deliveries))
	}
	id := sent.Deliveries[0].Payload.ID
	c.ledger.messages = append(c.ledger.messages, ledgerMessage{id, subject})
	to.expect(id)
	return nil
}

func (c *mailCaller) acknowledge(ctx context.Context, me *mailAgent, id int64) error {
	err := c.call(ctx, "acknowledge_message", args{"project_key": me.project, "agent_name": me.name, "message_id": id}, nil)
	if err == nil {
		c.ledger.acknowledged = append(c.ledger.acknowledged, id)
	}
	return err
}

func (c *mailCaller) reserve(ctx context.Context, me *mailAgent) error {
	var granted struct{ Granted []struct{ ID int64 } }
	err := c.call(ctx, "file_reservation_paths", args{
		"project_key": me.project, "agent_name": me.name, "ttl_seconds": 60 + c.IntN(600),
		"paths": []string{fmt.Sprintf("src/pkg%d/f%d.go", c.IntN(40), c.IntN(100)), fmt.Sprintf("docs/%d/*.md", c.IntN(300))},
	}, &granted)
	for _, g := range granted.Granted {
		c.ledger.reserved = append(c.ledger.reserved, g.ID)
	}
	return err
}

// used by the server
type mixed struct {
	took   map[string]sample
	lasted time.Duration
	failed []error
	cpu    time.Duration // CPU time of the server
	others float64       // share of the machine used by processes other than the server and this program
}

// mix lets the callers make calls for a time. With a pace, each caller's calls are due at times
// that do not depend on responses. The duration of such a call counts from its due time.
// Without a pace, each caller makes its next call after the previous response.
func (m *mailServer) mix(ctx context.Context, callers []*mailCaller, lasting, pace time.Duration) (*mixed, error) {
	cpu, err := cpuOf(m.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	began, own := time.Now(), ownCPU()
	used, had := machineTime()
	var all sync.WaitGroup
	errs := make([]error, len(callers))
	for i, c := range callers {
		all.Go(func() { errs[i] = c.keepCalling(ctx, began, began.Add(lasting), pace) })
	}
	all.Wait()
	out := &mixed{took: map[string]sample{}, lasted: time.Since(began)}
	after, err := cpuOf(m.cmd.Process.Pid)
	out.cpu = after - cpu
	usedNow, hadNow := machineTime()
	if hadNow > had {
		const ticks = 100 // per second
		out.others = max(0, usedNow-used-ticks*(out.cpu+ownCPU()-own).Seconds()) / (hadNow - had)
	}
	for _, c := range callers {
		for tool, s := range c.took {
			out.took[tool] = append(out.took[tool], s...)
		}
		out.failed = append(out.failed, c.failed...)
		c.took, c.failed = map[string]sample{}, nil
	}
	return out, errors.Join(append(errs, err)...)
}

func (c *mailCaller) keepCalling(ctx context.Context, began, end time.Time, pace time.Duration) error {
	due := began.Add(time.Duration(c.Int64N(int64(pace) + 1)))
	for due.Before(end) {
		if pace > 0 {
			if err := waitUntil(ctx, due); err != nil {
				return err
			}
		}
		tool, err := c.step(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.took[tool] = append(c.took[tool], time.Since(due))
		if err != nil {
			c.failed = append(c.failed, fmt.Errorf("%s: %w", tool, err))
		}
		if pace > 0 {
			due = due.Add(pace/2 + time.Duration(c.Int64N(int64(pace)))) // averages to pace
		} else {
			due = time.Now()
		}
	}
	return nil
}

// table returns the table of a mix. It includes the limits of mail §11 if they apply.
func (m *mixed) table(title string, promised bool) *table {
	t := newTable("mail", title, "p50 ms", "p95 ms", "p99 ms", "max ms", "calls", "per s")
	var every sample
	for _, tool := range slices.Sorted(maps.Keys(m.took)) {
		s := m.took[tool]
		every = append(every, s...)
		r := t.add(tool, s.median(), s.at(0.95), s.at(0.99), s.at(1), len(s), float64(len(s))/m.lasted.Seconds())
		if !promised {
			continue
		}
		bar := 50 * time.Millisecond
		if tool == "search_messages" {
			bar = 100 * time.Millisecond
		}
		r.target(fmt.Sprintf("p99 ≤ %d ms", bar.Milliseconds()), s.at(0.99) <= bar)
	}
	t.add("all", every.median(), every.at(0.95), every.at(0.99), every.at(1), len(every), float64(len(every))/m.lasted.Seconds())
	if promised {
		t.add("errors", nil, nil, nil, nil, len(m.failed)).target("none", len(m.failed) == 0)
	} else {
		t.add("errors", nil, nil, nil, nil, len(m.failed))
	}
	for _, err := range m.failed[:min(len(m.failed), 3)] {
		t.note("%v", err)
	}
	t.note("the server used %.2f ms of CPU time a call, %.0f %% of one core", milliseconds(m.cpu)/float64(max(len(every), 1)),
		100*m.cpu.Seconds()/m.lasted.Seconds())
	if m.others >= 0.05 {
		t.note("others used %.0f %% of the machine meanwhile, which the times above suffer from", 100*m.others)
	}
	return t
}
