package store

import "sync"

// wakeups notifies the followers of this process of commits. A lost signal delays a change by
// one Poll and never loses it.
type wakeups struct {
	mu    sync.Mutex
	chans map[chan struct{}]bool
}

func (w *wakeups) join() chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.chans == nil {
		w.chans = map[chan struct{}]bool{}
	}
	c := make(chan struct{}, 1)
	w.chans[c] = true
	return c
}

func (w *wakeups) leave(c chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.chans, c)
}

func (w *wakeups) signal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.chans {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}
