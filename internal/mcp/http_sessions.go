package mcp

import (
	"iter"
	"net/http"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// sessions keeps those of one endpoint few: clients may begin any number and end
// none.
type sessions struct {
	open func() iter.Seq[*sdk.ServerSession]
	most int

	mu   sync.Mutex
	used map[string]time.Time // when, by id; some may have ended

	ended map[string]bool // by their clients; they are not known again
}

// end notes that a client ends its session. When too many are noted the notes begin again:
// calls in a session that has ended are then answered, as after a restart.
func (s *sessions) end(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ended) >= s.most {
		clear(s.ended)
	}
	s.ended[id] = true
}

// hasEnded reports whether a session was ended by its client.
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

// coming notes a request of a session, or makes room for the one that it may begin.
func (s *sessions) coming(r *http.Request) {
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

// makeRoom ends the session that was used the longest ago if there are too many.
func (s *sessions) makeRoom() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var oldest *sdk.ServerSession
	n := 0
	for session := range s.open() {
		if session.ID() == "" {
			continue // lasts for one request
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
	go func() { _ = oldest.Close() }() // after its running calls; how it ends is nobody's business
}
