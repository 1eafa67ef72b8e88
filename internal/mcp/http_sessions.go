package mcp

import (
	"iter"
	"net/http"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// sessions limits the sessions of one endpoint. Clients can start any number of sessions
// and never end them.
type sessions struct {
	open func() iter.Seq[*sdk.ServerSession]
	most int

	mu   sync.Mutex
	used map[string]time.Time // time of the last use by id; some sessions may have ended

	ended map[string]bool // sessions that their clients ended; they must not be used again
}

// end records that a client ended its session. When there are too many records, all are
// discarded. Calls in an ended session are then served, as after a restart.
func (s *sessions) end(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ended) >= s.most {
		clear(s.ended)
	}
	s.ended[id] = true
}

// hasEnded reports whether its client ended a session.
func (s *sessions) hasEnded(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended[id]
}

// knows reports whether a session is open.
func (s *sessions) knows(id string) bool {
	if id == "" {
		return false
	}
	for session := range s.open() {
		if session.ID() == id {
			return true
		}
	}
	return false
}

// noteRequest records a request of a session. A request without a session may start one, so
// noteRequest first calls makeRoom.
func (s *sessions) noteRequest(r *http.Request) {
	if id := r.Header.Get(sessionHeader); id != "" {
		s.use(id)
	} else if r.Method == http.MethodPost {
		s.makeRoom()
	}
}

func (s *sessions) use(id string) {
	if id == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used[id] = time.Now()
	if len(s.used) <= 2*s.most {
		return
	}
	live := make(map[string]time.Time, s.most)
	for session := range s.open() {
		live[session.ID()] = s.used[session.ID()]
	}
	s.used = live
}

// makeRoom ends the least recently used session if there are too many.
func (s *sessions) makeRoom() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var oldest *sdk.ServerSession
	n := 0
	for session := range s.open() {
		if session.ID() == "" {
			continue // exists only for one request
		}
		n++
		if oldest == nil || s.used[session.ID()].Before(s.used[oldest.ID()]) {
			oldest = session
		}
	}
	if n < s.most {
		return
	}
	delete(s.used, oldest.ID())
	go func() { _ = oldest.Close() }() // waits for its running calls; the error is irrelevant
}
