package store

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// gauges are what a store knows of the use of its connections.
type gauges struct {
	acquired Histogram    // the waits for a reader or for the writer
	load     Load         // connections in use
	waiting  atomic.Int64 // readers that wait for another to end
}

// waited counts a wait that began at a time.
func (g *gauges) waited(began time.Time) { g.acquired.Add(time.Since(began)) }

// Pool is how a store's connections are used (mail §10.5): one that writes, and as
// many that read as the Config allows.
type Pool struct {
	Used
	Open     int          // connections that are open
	Pending  int          // callers that wait for one
	Acquired Distribution // how long callers waited, since the store was opened; also those that gave up
}

// Pool tells how the connections are used now.
func (s *Store) Pool() Pool {
	s.writer.mu.Lock()
	writes := len(s.writer.queue)
	s.writer.mu.Unlock()
	return Pool{
		Used: s.gauges.load.Read(), Open: s.db.Stats().OpenConnections + s.readDB.Stats().OpenConnections,
		Pending: int(s.gauges.waiting.Load()) + writes, Acquired: s.gauges.acquired.Read(),
	}
}

// Shed closes the connections that nobody reads with, down to Config.Kept. Repeating
// it is harmless.
func (s *Store) Shed(ctx context.Context) (err error) {
	release, err := s.reserve(ctx)
	if err != nil {
		return err
	}
	defer release()
	for len(s.readers) > cap(s.limit) {
		select {
		case ses := <-s.readers:
			err = errors.Join(err, ses.discard())
		default: // taken meanwhile
			return err
		}
	}
	return err
}
