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

// response is an answer of which each part must be taken in time: streams may last,
// a client that does not read may not.
type response struct {
	http.ResponseWriter
	status   int // 0 until there is one
	patience time.Duration
	problem  func(refusal) // how a refusal is told, if not as JSON
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

// FlushError is what [http.ResponseController] calls.
func (w *response) FlushError() error {
	w.extend()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap is for [http.ResponseController] too.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// extend gives the client time for what is written next. Where deadlines cannot be
// set, as in a test without a connection, there is none.
func (w *response) extend() {
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(w.patience))
}

// refusal is an error of the listener itself.
type refusal struct {
	status              int
	code, message, hint string
	details             map[string]any
	retry               time.Duration // when it may go better; 0 for never
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

// setRetry says in whole seconds, at least one, when to try again.
func setRetry(w http.ResponseWriter, wait time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(int(max(1, (wait+time.Second-1)/time.Second))))
}

// writeJSON writes v. That a client is gone is nobody's error.
func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
}

// surviving answers a panic. Its text may hold a user's data, so only a runtime
// error's is logged.
func (s *Server) surviving(w *response, r *http.Request, defect any) {
	if defect == nil || defect == http.ErrAbortHandler {
		return
	}
	what := fmt.Sprintf("%T", defect)
	if e, ok := defect.(runtime.Error); ok {
		what = e.Error()
	}
	s.log.ErrorContext(r.Context(), "panic while answering", "panic", what, "stack", string(debug.Stack()))
	if w.status == 0 {
		refuse(w, refusal{status: http.StatusInternalServerError, code: "internal", message: "internal error", hint: "see what the server logged"})
	}
}
