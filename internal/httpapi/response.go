package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"cairn/internal/fault"
)

// response is a response with a time limit for each part. Streams may last long, but a
// client must read each part in time.
type response struct {
	http.ResponseWriter
	status   int // 0 until it is sent
	patience time.Duration
	problem  func(refusal) // sends a refusal, if not as JSON
}

func (w *response) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status = status
	}
	w.extend()
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) Write(data []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	w.extend()
	return w.ResponseWriter.Write(data)
}

// FlushError implements flushing for [http.ResponseController].
func (w *response) FlushError() error {
	w.extend()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap is also for [http.ResponseController].
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// extend sets the deadline for the next part. Without a connection, as in some tests, there
// are no deadlines.
func (w *response) extend() {
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(w.patience))
}

// refusal is an error of the listener.
type refusal struct {
	status              int
	code, message, hint string
	details             map[string]any
	retry               time.Duration // when to retry; 0 for never
}

func refuse(w http.ResponseWriter, r refusal) {
	if r.retry > 0 {
		setRetry(w, r.retry)
	}
	if out, ok := w.(*response); ok && out.problem != nil {
		out.problem(r)
		return
	}
	e := fault.New(fault.Invalid, r.code, r.message).WithHint(r.hint)
	e.Details = r.details
	writeJSON(w, r.status, fault.EnvelopeOf(e))
}

// setRetry sets Retry-After in whole seconds, at least one.
func setRetry(w http.ResponseWriter, wait time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(int(max(1, (wait+time.Second-1)/time.Second))))
}

// writeJSON writes v. A disconnected client is not an error.
func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
}

// recoverPanic responds to a panic. The panic's text may contain user data, so it is logged
// only for runtime errors.
func (s *Server) recoverPanic(w *response, r *http.Request, defect any) {
	if defect == nil || defect == http.ErrAbortHandler {
		return
	}
	what := fmt.Sprintf("%T", defect)
	if e, ok := defect.(runtime.Error); ok {
		what = e.Error()
	}
	s.log.ErrorContext(r.Context(), "panic while answering", "panic", what, "stack", string(debug.Stack()))
	if w.status == 0 {
		refuse(w, refusal{status: http.StatusInternalServerError, code: "internal", message: "internal error", hint: "see the server's log"})
	}
}
