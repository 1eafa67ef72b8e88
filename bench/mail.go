package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// mail measures a server under the mix of mail §11: first at a fixed pace, then at full speed,
// then with more callers than it admits. Everything that it acknowledged must be stored
// afterwards. An error of a paced call, or lost data, ends the run with an error.
func (b *bench) mail(ctx context.Context) (err error) {
	home := filepath.Join(b.dir, "mail")
	if err := os.RemoveAll(home); err != nil {
		return err
	}
	m, err := b.startMail(ctx, home)
	if err != nil {
		return err
	}
	ledger, err := b.mailLoads(ctx, m)
	if err := errors.Join(err, m.stop()); err != nil {
		return err
	}
	b.say("  comparing what was acknowledged with what is stored")
	return b.prove(ctx, m, ledger)
}

func (b *bench) mailLoads(ctx context.Context, m *mailServer) (*mailLedger, error) {
	b.say("  %d projects, %s agents", mailProjects, grouped(mailAgents))
	world, err := b.populate(ctx, m)
	if err != nil {
		return nil, err
	}
	callers, err := world.callers(ctx, m)
	if err != nil {
		return nil, err
	}
	pace := time.Duration(float64(mailCallers) / b.mailRate * float64(time.Second))
	b.say("  the mix for %s, then as fast as it goes", b.mailTime)
	memory := watchMemory(ctx, m.cmd.Process.Pid)
	paced, err := m.mix(ctx, callers, b.mailTime, pace)
	if err != nil {
		return nil, err
	}
	t := paced.table(fmt.Sprintf("%d callers over HTTP for %s, each with a call due every %s on average; times count from then",
		mailCallers, b.mailTime, pace.Round(time.Millisecond)), true)
	memory.end(t)
	if err := b.publish(t); err != nil {
		return nil, err
	}
	flat, err := m.mix(ctx, callers, min(b.mailTime, 10*time.Second), 0)
	if err != nil {
		return nil, err
	}
	t = flat.table(fmt.Sprintf("%d callers that each call again at once: what the machine can do, and a queue", mailCallers), false)
	if err := b.publish(t); err != nil {
		return nil, err
	}
	if failed := append(paced.failed, flat.failed...); len(failed) > 0 {
		return nil, fmt.Errorf("%d calls failed: %w", len(failed), failed[0])
	}
	ledger := &mailLedger{}
	for _, c := range callers {
		ledger.add(c.ledger)
	}
	b.say("  more callers than are let in")
	flooded, err := b.flood(ctx, m, world)
	if err == nil {
		ledger.add(*flooded)
	}
	return ledger, err
}
