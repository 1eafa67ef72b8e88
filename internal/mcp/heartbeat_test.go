package mcp

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

func TestHeartbeatFillsOnlySilentEventStreams(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		contentType string
		want        string
	}{
		"event stream": {"text/event-stream", "data: 1\n\n" + ":\n\n" + ":\n\n" + "data: 2\n\n" + ":\n\n"},
		"with charset": {"text/event-stream; charset=utf-8", "data: 1\n\n" + ":\n\n" + ":\n\n" + "data: 2\n\n" + ":\n\n"},
		"JSON":         {"application/json", "data: 1\n\n" + "data: 2\n\n"},
		"untyped":      {"", "data: 1\n\n" + "data: 2\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				recorder := httptest.NewRecorder()
				h := newHeartbeatWriter(recorder, 30*time.Second)
				write := func(event string) {
					if _, err := h.Write([]byte(event)); err != nil {
						t.Fatal(err)
					}
					if err := http.NewResponseController(h).Flush(); err != nil {
						t.Fatal(err)
					}
				}
				h.Header().Set("Content-Type", c.contentType)
				pass(time.Hour) // the status is not sent yet, so there is no heartbeat
				write("data: 1\n\n")
				pass(65 * time.Second)
				write("data: 2\n\n")
				pass(59 * time.Second)
				h.stop()
				pass(time.Hour)
				if got := recorder.Body.String(); got != c.want {
					t.Errorf("got %q, want %q", got, c.want)
				}
			})
		})
	}
}

// pass advances the time in a bubble.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestHeartbeatStopsWhenTheClientIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gone := &goneWriter{}
		h := newHeartbeatWriter(gone, time.Second)
		h.Header().Set("Content-Type", "text/event-stream")
		h.WriteHeader(http.StatusOK)
		pass(time.Hour)
		h.stop()
		if gone.writes != 1 {
			t.Errorf("%d writes to a client that is gone", gone.writes)
		}
	})
}

type goneWriter struct {
	header http.Header
	writes int
}

func (g *goneWriter) Header() http.Header {
	if g.header == nil {
		g.header = http.Header{}
	}
	return g.header
}
func (g *goneWriter) WriteHeader(int) {}
func (g *goneWriter) Write([]byte) (int, error) {
	g.writes++
	return 0, http.ErrHandlerTimeout
}
