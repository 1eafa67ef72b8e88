package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// liveRows is the maximum number of elements that a live page may gain.
const liveRows = 200

// showPages measures the first paint of each page in Chromium, and a live page while events
// arrive. Without Chromium it reports that.
func (b *bench) showPages(ctx context.Context, m *mailServer, list []page) error {
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		b.say("  there is no Chromium, so the first paint and live pages are not measured")
		return nil
	}
	ctx, cancel := chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU)...)
	defer cancel()
	tab, cancel := chromedp.NewContext(ctx)
	defer cancel()
	if err := chromedp.Run(tab, network.Enable(), network.SetExtraHTTPHeaders(network.Headers{"Authorization": "Bearer " + m.token})); err != nil {
		return err
	}
	if err := b.paint(tab, m, list); err != nil {
		return err
	}
	return b.watchLive(tab, m)
}

// paint measures the time from the start of navigation to the first paint of each page.
func (b *bench) paint(tab context.Context, m *mailServer, list []page) error {
	const times = 8
	t := newTable("pages", fmt.Sprintf("first paint in Chromium, %d times each", times), "p50 ms", "max ms")
	for _, one := range list {
		var took sample
		for i := range times {
			var at float64
			err := chromedp.Run(tab, chromedp.Navigate(m.origin+one.paths[i%len(one.paths)]),
				chromedp.Evaluate(`new Promise(done => { const look = () => { const p = performance.getEntriesByName('first-contentful-paint')[0]; p ? done(p.startTime) : setTimeout(look, 5); }; look(); })`,
					&at, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
			if err != nil {
				return fmt.Errorf("%s: %w", one.name, err)
			}
			took = append(took, time.Duration(at*float64(time.Millisecond)))
		}
		p50 := took.median()
		t.add(one.name, p50, took.at(1)).target("p50 ≤ 300 ms", p50 <= paintLimit)
	}
	return b.publish(t)
}

// liveState is the size of a live page.
type liveState struct {
	heap     float64 // MiB, after a garbage collection
	elements int
	newest   string // id of the first row
}

func stateOf(tab context.Context) (s liveState, err error) {
	var used float64
	err = chromedp.Run(tab,
		heapprofiler.CollectGarbage(),
		chromedp.ActionFunc(func(ctx context.Context) (err error) {
			used, _, _, _, err = runtime.GetHeapUsage().Do(ctx)
			return err
		}),
		chromedp.Evaluate(`document.getElementsByTagName('*').length`, &s.elements),
		chromedp.Evaluate(`document.querySelector('.actions > li').id`, &s.newest),
	)
	s.heap = used / (1 << 20)
	return s, err
}

// watchLive keeps the timeline open while events arrive, and reports the memory growth of the
// page and the server.
func (b *bench) watchLive(tab context.Context, m *mailServer) (err error) {
	t := newTable("pages", fmt.Sprintf("a live timeline, %d events a second for %v", eventRate, b.pagesTime), "at the beginning", "after a tenth", "at the end")
	if err := chromedp.Run(tab, chromedp.Navigate(m.origin+"/timeline"), chromedp.WaitVisible(".livebar")); err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(tab, b.pagesTime)
	defer stop()
	sent := make(chan error, 1)
	events := 0
	go func() {
		n, err := b.recordEvents(ctx, filepath.Join(m.home, "cairn.db"), eventRate)
		events = n
		sent <- err
	}()
	memory := watchMemory(tab, m.cmd.Process.Pid)
	began := time.Now()
	var states [3]liveState
	for i, after := range []time.Duration{0, b.pagesTime / 10, b.pagesTime * 97 / 100} {
		err = errors.Join(err, waitUntil(tab, began.Add(after)))
		var failed error
		states[i], failed = stateOf(tab)
		err = errors.Join(err, failed)
	}
	err = errors.Join(err, <-sent)
	memory.stop()
	memory.done.Wait()
	if err != nil {
		return err
	}
	first, settled, last := states[0], states[1], states[2]
	if last.newest == settled.newest || events == 0 {
		return fmt.Errorf("the live page did not change: %s is still its first row after %d events", last.newest, events)
	}
	t.add("JavaScript heap, MiB", first.heap, settled.heap, last.heap).target("≤ 2 MiB more", last.heap-settled.heap <= 2)
	t.add("elements", first.elements, settled.elements, last.elements).target(fmt.Sprintf("≤ %d more", liveRows), last.elements-settled.elements <= liveRows)
	if n := len(memory.size); n > 10 {
		t.add("server's resident memory, MiB", memory.size[0], memory.size[n/10], memory.size[n-1]).target("≤ 32 MiB more", memory.size[n-1]-memory.size[n/10] <= 32)
	}
	t.note("%s events in all", grouped(events))
	return b.publish(t)
}
