package store

import "sync"

// listeners notifies goroutines of this process of commits.
type listeners struct {
	mu  sync.Mutex
	all map[chan struct{}]any // and what each listener is about
}

// Listen sends a value to wake soon after a commit that appended changes, unless wake is
// full, until leave is called. Commits of other processes are not noticed, so a listener
// must also look at the log from time to time. Meanwhile Listeners returns about.
func (s *Store) Listen(wake chan struct{}, about any) (leave func()) {
	l := &s.listeners
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[chan struct{}]any{}
	}
	l.all[wake] = about
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.all, wake)
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
