package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"time"

	"cairn/internal/store"
)

// floodCallers is the number of callers in the overload of mail §11.
const floodCallers = 4000

// flooded is the response to one call of a flood.
type flooded struct {
	took   time.Duration
	err    error
	ledger mailLedger
}

// flood holds the store's lock for a second while thousands of callers each send a message.
// Then only refusals can be quick, the admitted calls must succeed, and the server must
// recover. It returns the acknowledged messages.
func (b *bench) flood(ctx context.Context, m *mailServer, w *mailWorld) (*mailLedger, error) {
	release, err := holdStore(ctx, filepath.Join(m.home, "cairn.db"))
	if err != nil {
		return nil, err
	}
	answers := make(chan flooded, floodCallers)
	began := time.Now()
	for i := range floodCallers {
		go func() {
			c := &mailCaller{Rand: rand.New(rand.NewPCG(11, uint64(i))), world: w, number: 1000 + i, call: m.mirror}
			start, n := time.Now(), i%mailAgents
			err := c.send(ctx, w.agents[n], w.other(c.Rand, n))
			answers <- flooded{time.Since(start), err, c.ledger}
		}()
	}
	var served, refused sample
	var failed []error
	ledger := &mailLedger{}
	take := func(a flooded) {
		said, isRefusal := errors.AsType[*mailRefusal](a.err)
		switch {
		case a.err == nil:
			served = append(served, a.took)
			ledger.add(a.ledger)
		case isRefusal && (said.status == http.StatusServiceUnavailable || said.status == http.StatusTooManyRequests):
			refused = append(refused, a.took)
		default:
			failed = append(failed, a.err)
		}
	}
	hold := time.After(time.Second)
	for left := floodCallers; left > 0; {
		select {
		case a := <-answers:
			take(a)
			left--
			continue
		case <-hold:
		}
		hold = nil
		if err := release(); err != nil {
			return nil, err
		}
	}
	whole := time.Since(began)
	recovered, err := m.recovered(ctx, w)
	if err != nil {
		return nil, err
	}
	t := newTable("mail", fmt.Sprintf("%s callers at once while the store is locked for a second", grouped(floodCallers)), "calls", "p50 ms", "p99 ms", "max ms")
	t.add("refused with 429 or 503", len(refused), refused.median(), refused.at(0.99), refused.at(1)).target("p99 ≤ 1 s", refused.at(0.99) <= time.Second)
	t.add("served", len(served), served.median(), served.at(0.99), served.at(1))
	t.add("neither", len(failed)).target("none", len(failed) == 0)
	t.add("until all had an answer", nil, nil, nil, whole).target("≤ 30 s", whole <= 30*time.Second)
	t.add("then until a write took 50 ms at most", nil, nil, nil, recovered).target("≤ 5 s", recovered <= 5*time.Second)
	if err := b.publish(t); err != nil {
		return nil, err
	}
	if len(failed) > 0 {
		return nil, fmt.Errorf("%d calls were neither served nor refused: %w", len(failed), failed[0])
	}
	return ledger, nil
}

// recovered returns the time until a write is quick again.
func (m *mailServer) recovered(ctx context.Context, w *mailWorld) (time.Duration, error) {
	const quick, patience = 50 * time.Millisecond, 30 * time.Second
	began := time.Now()
	for {
		start := time.Now()
		err := m.mirror(ctx, "register_agent", args{"project_key": w.agents[0].project, "program": "codex", "model": "m1", "name": w.agents[0].name}, nil)
		if err != nil {
			return 0, err
		}
		if time.Since(start) <= quick || time.Since(began) > patience {
			return time.Since(began), nil
		}
	}
}

// holdStore takes the lock for which writers of the store at path queue, and holds it until
// release.
func holdStore(ctx context.Context, path string) (release func() error, err error) {
	s, err := store.Open(ctx, store.Config{Path: path, Role: store.Server})
	if err != nil {
		return nil, err
	}
	held, let, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- s.Write(ctx, store.Normal, func(context.Context, *store.Tx) error {
			close(held)
			<-let
			return nil
		})
	}()
	select {
	case <-held:
		return func() error { close(let); return errors.Join(<-done, s.Close()) }, nil
	case err := <-done:
		return nil, errors.Join(err, s.Close())
	}
}
