package pgtest

import (
	"errors"
	"sync"
	"testing"
)

// Shared is the cluster of all tests of a binary, started when the first of them wants
// it. The zero value is ready for use; Stop belongs into TestMain.
type Shared struct {
	once    sync.Once
	cluster *Cluster
	err     error
}

// Database is the URL of a new database. Where PostgreSQL is missing it skips the test.
func (s *Shared) Database(tb testing.TB) string {
	tb.Helper()
	s.once.Do(func() { s.cluster, s.err = Start() })
	if errors.Is(s.err, ErrMissing) {
		tb.Skip(s.err)
	}
	if s.err != nil {
		tb.Fatal(s.err)
	}
	return s.cluster.Database(tb)
}

// Stop stops the cluster if one was started.
func (s *Shared) Stop() error {
	if s.cluster == nil {
		return nil
	}
	return s.cluster.Stop()
}
