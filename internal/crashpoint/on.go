//go:build testhooks

// Package crashpoint marks the places at which a test may have a process kill itself
// (memories §15). Without the build tag testhooks its functions do nothing, and the
// compiler leaves nothing of their calls.
package crashpoint

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
)

// The points that are passed here, or mean something to a reset.
const (
	AfterAck     = "after_ack"
	MidMigration = "mid_migration"
)

// Names are the points of a device and of a hub.
func Names() (device, hub []string) {
	return []string{
		"before_local_commit", "after_local_commit", AfterAck, "after_lease", "before_hub_send", "after_hub_201",
		"before_flip_commit", "after_flip_commit", "mid_pull", "mid_purge", MidMigration,
	}, []string{"hub_before_commit", "hub_after_commit"}
}

// Point is an armed point: the process dies at the passing after the next Skip ones.
type Point struct {
	At   string `json:"at"` // as it was named when it was armed
	Skip int    `json:"skip"`
}

// armed are the armed points of this process. They belong to the process as the death
// does that they bring, and a call at a point has nothing else to find them by.
var armed struct {
	mu     sync.Mutex
	points []Point
	writes int // of memories that were stored: passings of after_local_commit
}

// canonical is a point's name without aliases.
func canonical(name string) string {
	if name == "after_backend_201" {
		return "after_hub_201"
	}
	return name
}

// Arm arms a point, in the place of what was armed there.
func Arm(p Point) {
	Disarm(func(name string) bool { return canonical(name) == canonical(p.At) })
	armed.mu.Lock()
	defer armed.mu.Unlock()
	armed.points = append(armed.points, p)
}

// Disarm takes points away.
func Disarm(which func(name string) bool) {
	armed.mu.Lock()
	defer armed.mu.Unlock()
	armed.points = slices.DeleteFunc(armed.points, func(p Point) bool { return which(p.At) })
}

// Known reports whether one of some points has that name, or alias.
func Known(names []string, name string) bool { return slices.Contains(names, canonical(name)) }

// Armed lists the armed points, never nil; Skip is what is left of it.
func Armed() []Point {
	armed.mu.Lock()
	defer armed.mu.Unlock()
	return append([]Point{}, armed.points...)
}

// Pass is called at the point of that name.
func Pass(name string) {
	armed.mu.Lock()
	defer armed.mu.Unlock() // if this returns: nobody passes anything while the process dies
	if name == "after_local_commit" {
		armed.writes++
	}
	for i := range armed.points {
		p := &armed.points[i]
		if canonical(p.At) != name {
			continue
		}
		if p.Skip--; p.Skip < 0 {
			fmt.Fprintln(os.Stderr, "crash-point "+p.At)
			Die()
		}
	}
}

// Die kills the process as kill -9 does.
func Die() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {} // the signal is underway
}

// Answering is what a listener serves instead of h, so that AfterAck is passed: behind
// the answer to a write of a memory, whose client has all of it then. Calls of tools do
// not say in their answer that they wrote; such a call is taken for a writer if
// something was written meanwhile.
func Answering(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || !slices.ContainsFunc(Armed(), func(p Point) bool { return p.At == AfterAck }) {
			h.ServeHTTP(w, r)
			return
		}
		isTool := r.URL.Path == "/mcp" || r.URL.Path == "/api" || strings.HasPrefix(r.URL.Path, "/v1/projects/")
		before := writes()
		whole := &held{ResponseWriter: w, status: http.StatusOK}
		h.ServeHTTP(whole, r)
		if whole.status != http.StatusNoContent {
			w.Header().Set("Content-Length", fmt.Sprint(whole.body.Len()))
		}
		w.WriteHeader(whole.status)
		_, _ = w.Write(whole.body.Bytes())
		_ = http.NewResponseController(w).Flush()
		says := w.Header().Get("Idempotency-Key") != "" && w.Header().Get("Idempotency-Replayed") == ""
		if whole.status < 300 && (says || isTool && writes() > before) {
			Pass(AfterAck)
		}
	})
}

func writes() int {
	armed.mu.Lock()
	defer armed.mu.Unlock()
	return armed.writes
}

// held keeps an answer until it is whole.
type held struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (w *held) WriteHeader(status int)         { w.status = status }
func (w *held) Write(data []byte) (int, error) { return w.body.Write(data) }
func (w *held) FlushError() error              { return nil }
func (w *held) Unwrap() http.ResponseWriter    { return w.ResponseWriter }
