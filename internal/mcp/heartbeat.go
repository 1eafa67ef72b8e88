package mcp

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// heartbeatWriter writes an SSE comment into an event stream after a period without
// events. It starts with the first event, because before that the status of the response
// can still change. Events are written in one piece, so that no comment splits one.
type heartbeatWriter struct {
	http.ResponseWriter
	every time.Duration

	mu      sync.Mutex
	begun   bool
	stopped bool
	timer   *time.Timer // set when the event stream has started
}

func newHeartbeatWriter(w http.ResponseWriter, every time.Duration) *heartbeatWriter {
	return &heartbeatWriter{ResponseWriter: w, every: every}
}

func (h *heartbeatWriter) WriteHeader(status int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begin()
	h.ResponseWriter.WriteHeader(status)
}

func (h *heartbeatWriter) Write(data []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begin()
	if h.timer != nil && !h.stopped {
		h.timer.Reset(h.every)
	}
	return h.ResponseWriter.Write(data)
}

// FlushError implements flushing for [http.ResponseController].
func (h *heartbeatWriter) FlushError() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begin()
	return http.NewResponseController(h.ResponseWriter).Flush()
}

// begin starts the timer if the response is an event stream.
func (h *heartbeatWriter) begin() {
	if h.begun || h.stopped {
		return
	}
	h.begun = true
	if strings.HasPrefix(h.Header().Get("Content-Type"), "text/event-stream") {
		h.timer = time.AfterFunc(h.every, h.beat)
	}
}

// beat writes one comment and restarts the timer, unless the client has disconnected.
func (h *heartbeatWriter) beat() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		return
	}
	if _, err := io.WriteString(h.ResponseWriter, ":\n\n"); err != nil {
		return
	}
	if err := http.NewResponseController(h.ResponseWriter).Flush(); err != nil {
		return
	}
	h.timer.Reset(h.every)
}

// stop ends the heartbeat permanently. Nothing is written after it returns.
func (h *heartbeatWriter) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopped = true
	if h.timer != nil {
		h.timer.Stop()
	}
}
