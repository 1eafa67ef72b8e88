package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"cairn/internal/store"
)

const (
	eventsEvery = time.Second      // minimum time between two events of a stream
	beatEvery   = 15 * time.Second // maximum time without an event, so that disconnected clients are noticed
)

// events notifies a page of changes with server-sent events, at most once a second, with
// the number of changes. It never sends their content: the page requests itself again, with
// all checks. The stream ends with the client, the login session or the server.
func (s *Server) events(w *response, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	w.Header().Set("Content-Type", "text/event-stream")
	if send(w, "retry: 2000\n\n") != nil {
		return
	}
	var changes atomic.Int64
	failed := make(chan error, 1)
	go func() {
		failed <- s.config.Cairn.Live(ctx, "pages", func(batch []store.Change) error {
			changes.Add(int64(len(batch)))
			return nil
		})
	}()
	tick := time.NewTicker(eventsEvery)
	defer tick.Stop()
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-s.stopping:
			return
		case err := <-failed:
			s.log.WarnContext(ctx, "the changes for a page cannot be read", "error", err)
			return // the browser connects again
		case now := <-tick.C:
			n := changes.Swap(0)
			if n == 0 && now.Sub(last) < beatEvery {
				continue
			}
			if _, known := s.visitor(r); !known {
				return
			}
			text := ": nothing new\n\n"
			if n > 0 {
				text = fmt.Sprintf("event: change\ndata: {\"changes\":%d,\"at\":%d}\n\n", n, now.Unix())
			}
			if send(w, text) != nil {
				return
			}
			last = now
		}
	}
}

// send writes and flushes. An error means that the client has disconnected.
func send(w *response, text string) error {
	_, err := w.Write([]byte(text))
	return errors.Join(err, w.FlushError())
}
