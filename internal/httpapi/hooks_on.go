//go:build testhooks

package httpapi

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"cairn/internal/crashpoint"
)

// answering is what a listener serves instead of h, so that after_ack is passed: behind
// the answer to a write of a memory, whose client has all of it then. Calls of tools do
// not say in their answer that they wrote; such a call is taken for a writer if
// something was written meanwhile.
func answering(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || !slices.ContainsFunc(crashpoint.Armed(), func(p crashpoint.Point) bool { return p.At == crashpoint.AfterAck }) {
			h.ServeHTTP(w, r)
			return
		}
		isTool := r.URL.Path == "/mcp" || r.URL.Path == "/api" || strings.HasPrefix(r.URL.Path, "/v1/projects/")
		before := crashpoint.Writes()
		whole := &held{ResponseWriter: w, status: http.StatusOK}
		h.ServeHTTP(whole, r)
		if whole.status != http.StatusNoContent {
			w.Header().Set("Content-Length", fmt.Sprint(whole.body.Len()))
		}
		w.WriteHeader(whole.status)
		_, _ = w.Write(whole.body.Bytes())
		_ = http.NewResponseController(w).Flush()
		says := w.Header().Get("Idempotency-Key") != "" && w.Header().Get("Idempotency-Replayed") == ""
		if whole.status < 300 && (says || isTool && crashpoint.Writes() > before) {
			crashpoint.Pass(crashpoint.AfterAck)
		}
	})
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
