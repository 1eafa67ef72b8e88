package httpapi

import (
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Limits of the work of one server. Calls beyond them are rejected immediately, so that
// accepted calls get a response and the memory stays limited.
const (
	maxCalls   = 1024
	maxStreams = 4096
	maxBody    = 16 << 20  // bytes of one request
	maxBodies  = 256 << 20 // bytes of all concurrent calls
	maxOpening = 64 << 10  // bytes of a request that opens a stream, kept as long as the stream
)

// busyFor is the Retry-After of a server without capacity.
const busyFor = time.Second

// gate limits the number of concurrent requests.
type gate struct {
	calls, streams chan struct{}
	bodies         atomic.Int64
}

func newGate() *gate {
	return &gate{calls: make(chan struct{}, maxCalls), streams: make(chan struct{}, maxStreams)}
}

// pass calls next if there is capacity for a call or a stream.
func (g *gate) pass(w http.ResponseWriter, r *http.Request, stream bool, next http.HandlerFunc) {
	places, most := g.calls, int64(maxBody)
	if stream {
		places, most = g.streams, maxOpening
	}
	g.admit(w, r, places, most, func() { next(w, r) })
}

// admit calls next if there is a free place and memory for a body of at most most bytes. A body
// of unknown length counts as one of the maximum length. The body of a stream counts as empty.
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

// isStream reports whether an MCP request stays open for notifications.
func isStream(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Header.Get("Mcp-Method") == "subscriptions/listen"
}

func busy(w http.ResponseWriter) {
	refuse(w, refusal{
		status: http.StatusServiceUnavailable, code: "resource_busy", message: "the server is overloaded",
		hint: "try again", retry: busyFor,
	})
}

// tooLong rejects a body of more than most bytes; actual is its minimum length.
func tooLong(w http.ResponseWriter, most, actual int64) {
	w.Header().Set("Connection", "close") // instead of reading it all
	refuse(w, refusal{
		status: http.StatusRequestEntityTooLarge, code: "body_too_large", message: "the body is too long",
		hint: "send less", details: map[string]any{"limit": most, "actual": actual},
	})
}

// rate limits the calls of each client address. It forgets an address after a minute without
// calls.
type rate struct {
	mu    sync.Mutex
	every time.Duration        // between calls, on average
	due   map[string]time.Time // when the calls of an address would be complete at that rate
}

func newRate(perMinute int) *rate {
	return &rate{every: time.Minute / time.Duration(perMinute), due: map[string]time.Time{}}
}

// wait returns 0 if a call is allowed, else the time until the next one is.
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

// exceeded counts a call and rejects it if there were too many. A nil rate allows all.
func (r *rate) exceeded(w http.ResponseWriter, request *http.Request) bool {
	if r == nil {
		return false
	}
	wait := r.wait(addressOf(request), time.Now())
	if wait > 0 {
		refuse(w, refusal{http.StatusTooManyRequests, "rate_limited", "too many calls in a minute", "wait as long as Retry-After says", nil, wait})
	}
	return wait > 0
}

// addressOf returns the client address of a request, without the port.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
