package store

import "sync"

// listeners notifies goroutines of this process of commits.
type listeners struct {
	mu  sync.Mutex
	all map[chan struct{}]any // and what each listener is about
}

// Listen returns a channel that receives a value soon after a commit that appended
// changes. Commits in quick succession may cause one value. A lost signal is possible, so
// a listener must also look at the log from time to time. Listeners returns about until
// leave is called.
func (s *Store) Listen(about any) (wake <-chan struct{}, leave func()) {
	l := &s.listeners
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[chan struct{}]any{}
	}
	c := make(chan struct{}, 1)
	l.all[c] = about
	return c, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.all, c)
	}
}

// Listeners returns what the present listeners of this process gave to Listen, in any
// order.
func (s *Store) Listeners() (about []any) {
	s.listeners.mu.Lock()
	defer s.listeners.mu.Unlock()
	for _, a := range s.listeners.all {
		about = append(about, a)
	}
	return about
}

// Wake wakes the listeners of this process without a commit.
func (s *Store) Wake() {
	s.listeners.mu.Lock()
	defer s.listeners.mu.Unlock()
	for c := range s.listeners.all {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}
