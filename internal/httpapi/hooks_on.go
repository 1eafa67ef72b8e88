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

// passAfterAck returns the handler of a listener. It passes the crash point after_ack when the
// client has the complete response to a write of a memory. Responses of tools do not show
// whether they wrote. A tool call therefore counts as a write if anything was written during the
// call.
func passAfterAck(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || !slices.ContainsFunc(crashpoint.Armed(), func(p crashpoint.Point) bool { return p.At == crashpoint.AfterAck }) {
			h.ServeHTTP(w, r)
			return
		}
		isTool := r.URL.Path == "/mcp" || r.URL.Path == "/api" || strings.HasPrefix(r.URL.Path, "/v1/projects/")
		before := crashpoint.Writes()
		whole := &bufferedResponse{ResponseWriter: w, status: http.StatusOK}
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

// bufferedResponse keeps a response until it is complete.
type bufferedResponse struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (w *bufferedResponse) WriteHeader(status int)         { w.status = status }
func (w *bufferedResponse) Write(data []byte) (int, error) { return w.body.Write(data) }
func (w *bufferedResponse) FlushError() error              { return nil }
func (w *bufferedResponse) Unwrap() http.ResponseWriter    { return w.ResponseWriter }
