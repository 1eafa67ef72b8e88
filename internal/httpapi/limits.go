package httpapi

import (
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// What one server works on at a time. Callers beyond it are refused at once, so that
// whoever is let in gets an answer and memory stays bounded.
const (
	maxCalls   = 1024
	maxStreams = 4096
	maxBody    = 16 << 20  // bytes of one request
	maxBodies  = 256 << 20 // bytes of all calls at once
	maxOpening = 64 << 10  // bytes of a request that opens a stream; they stay as long as it does
)

// busyFor is when a server that has no room may have some again.
const busyFor = time.Second

// gate lets so many requests in.
type gate struct {
	calls, streams chan struct{}
	bodies         atomic.Int64
}

func newGate() *gate {
	return &gate{calls: make(chan struct{}, maxCalls), streams: make(chan struct{}, maxStreams)}
}

// pass answers by next if there is room for a call or a stream.
func (g *gate) pass(w http.ResponseWriter, r *http.Request, stream bool, next http.HandlerFunc) {
	places, most := g.calls, int64(maxBody)
	if stream {
		places, most = g.streams, maxOpening
	}
	g.admit(w, r, places, most, func() { next(w, r) })
}

// admit answers by next if there is a place and room for a body of at most so many
// bytes. One of unknown length counts as one of the longest, that of a stream as none.
func (g *gate) admit(w http.ResponseWriter, r *http.Request, places chan struct{}, most int64, next func()) {
	size := r.ContentLength
	if size > most {
		tooLong(w, most, size)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, most)
	switch {
	case most == maxOpening:
		size = 0
	case size < 0:
		size = most
	}
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
	default:
		busy(w)
		return
	}
	defer g.bodies.Add(-size)
	if g.bodies.Add(size) > maxBodies {
		busy(w)
		return
	}
	next()
}

// isStream reports whether a request to MCP stays open for notices.
func isStream(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Header.Get("Mcp-Method") == "subscriptions/listen"
}

func busy(w http.ResponseWriter) {
	refuse(w, refusal{
		status: http.StatusServiceUnavailable, code: "resource_busy", message: "the server has too much to do",
		hint: "try again", retry: busyFor,
	})
}

// tooLong refuses a body of more than most bytes; actual is how many there are at least.
func tooLong(w http.ResponseWriter, most, actual int64) {
	w.Header().Set("Connection", "close") // instead of reading it all
	refuse(w, refusal{
		status: http.StatusRequestEntityTooLarge, code: "body_too_large", message: "the body is too long",
		hint: "send less", details: map[string]any{"limit": most, "actual": actual},
	})
}

// rate bounds the calls of each client address. An address that has not called for
// a minute leaves nothing behind.
type rate struct {
	mu    sync.Mutex
	every time.Duration        // between calls, on average
	due   map[string]time.Time // when an address would be through with its calls at that pace
}

func newRate(perMinute int) *rate {
	return &rate{every: time.Minute / time.Duration(perMinute), due: map[string]time.Time{}}
}

// wait lets a call pass, with 0, or says when the next one may.
func (r *rate) wait(address string, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	due, known := r.due[address]
	if due.Before(now) {
		due = now
	}
	if ahead := due.Add(r.every).Sub(now) - time.Minute; ahead > 0 {
		return ahead
	}
	if !known && len(r.due) >= 1024 {
		for other, due := range r.due {
			if !due.After(now) {
				delete(r.due, other)
			}
		}
	}
	r.due[address] = due.Add(r.every)
	return 0
}

// addressOf is the address that a request comes from, without the port.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
