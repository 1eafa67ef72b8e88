package store

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"cairn/internal/measure"
)

// gauges measures the use of a store's connections.
type gauges struct {
	acquired measure.Histogram  // wait times for a reader or for the writer
	load     measure.UsageGauge // connections in use
	waiting  atomic.Int64       // number of readers that wait for another to end
}

// waited records a wait that started at the given time.
func (g *gauges) waited(began time.Time) { g.acquired.Add(time.Since(began)) }

// Pool describes the use of a store's connections (mail §10.5): one writing connection, and
// reading ones up to the limit of Config.
type Pool struct {
	measure.Usage
	Open     int                  // open connections
	Pending  int                  // callers that wait for a connection
	Acquired measure.Distribution // wait times since the store was opened, including cancelled waits
}

// Pool returns the present use of the connections.
func (s *Store) Pool() Pool {
	s.writer.mu.Lock()
	writes := len(s.writer.queue)
	s.writer.mu.Unlock()
	return Pool{
		Usage: s.gauges.load.Read(), Open: s.db.Stats().OpenConnections + s.readDB.Stats().OpenConnections,
		Pending: int(s.gauges.waiting.Load()) + writes, Acquired: s.gauges.acquired.Read(),
	}
}

// CloseIdle closes idle reading connections, down to Config.MinReaders. It is idempotent.
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

// idleSessions contains idle connections. The most recently used one is reused first, because
// it has pages and statements in memory.
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

// take removes the connection used last, or returns nil if there is none.
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

// beyond removes and returns all connections except the given number, least recently used
// first.
func (i *idleSessions) beyond(kept int) []*session {
	i.mu.Lock()
	defer i.mu.Unlock()
	n := max(0, len(i.all)-kept)
	out := slices.Clone(i.all[:n])
	i.all = slices.Delete(i.all, 0, n)
	return out
}
