package store

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// gauges are what a store knows of the use of its connections.
type gauges struct {
	acquired Histogram    // the waits for a reader or for the writer
	load     UsageGauge   // connections in use
	waiting  atomic.Int64 // readers that wait for another to end
}

// waited counts a wait that began at a time.
func (g *gauges) waited(began time.Time) { g.acquired.Add(time.Since(began)) }

// Pool is how a store's connections are used (mail §10.5): one that writes, and as
// many that read as the Config allows.
type Pool struct {
	Usage
	Open     int          // connections that are open
	Pending  int          // callers that wait for one
	Acquired Distribution // how long callers waited, since the store was opened; also those that gave up
}

// Pool reports how the connections are used now.
func (s *Store) Pool() Pool {
	s.writer.mu.Lock()
	writes := len(s.writer.queue)
	s.writer.mu.Unlock()
	return Pool{
		Usage: s.gauges.load.Read(), Open: s.db.Stats().OpenConnections + s.readDB.Stats().OpenConnections,
		Pending: int(s.gauges.waiting.Load()) + writes, Acquired: s.gauges.acquired.Read(),
	}
}

// CloseIdle closes the connections that nobody reads with, down to Config.Kept. Repeating
// it is harmless.
func (s *Store) CloseIdle(ctx context.Context) (err error) {
	release, err := s.reserve(ctx)
	if err != nil {
		return err
	}
	defer release()
	for _, ses := range s.idle.beyond(cap(s.limit)) {
		err = errors.Join(err, ses.discard())
	}
	return err
}

// idleSessions are connections that nobody uses. The one that was used last goes first:
// it has pages and statements in memory, and what is seldom needed takes up little.
type idleSessions struct {
	mu  sync.Mutex
	all []*session
}

// give adds a connection.
func (i *idleSessions) give(ses *session) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.all = append(i.all, ses)
}

// take removes the one that was used last; nil if there is none.
func (i *idleSessions) take() *session {
	i.mu.Lock()
	defer i.mu.Unlock()
	last := len(i.all) - 1
	if last < 0 {
		return nil
	}
	ses := i.all[last]
	i.all = i.all[:last]
	return ses
}

// beyond removes all but so many, those that were not used for longest.
func (i *idleSessions) beyond(kept int) []*session {
	i.mu.Lock()
	defer i.mu.Unlock()
	n := max(0, len(i.all)-kept)
	out := slices.Clone(i.all[:n])
	i.all = slices.Delete(i.all, 0, n)
	return out
}
