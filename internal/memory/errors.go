package memory

import (
	"context"
	"database/sql"
	"errors"
	"net/http"

	"cairn/internal/fault"
	"cairn/internal/memory/rules"
	"cairn/internal/memory/shards"
	"cairn/internal/store"
	"cairn/internal/store/follow"
)

// Codes of the errors of this package (memories §9).
const (
	CodeInvalid           = rules.CodeInvalid
	CodeLocalID           = "invalid_local_id"
	CodeForbidden         = "forbidden"
	CodeNotFound          = "not_found"
	CodeCommitted         = "already_committed"
	CodeExists            = "already_exists"
	CodeVaultNotEmpty     = "vault_not_empty"
	CodeMismatch          = "idempotency_mismatch"
	CodeImmutable         = "immutability_violation"
	CodeNotCommitted      = "not_committed"
	CodeReplicationFailed = "replication_failed"
	CodeEntryTooLarge     = rules.CodeEntryTooLarge
	CodeContextTooLarge   = rules.CodeContextTooLarge
	CodeQueueFull         = shards.CodeQueueFull
	CodeInternal          = shards.CodeInternal
	CodeHubUnavailable    = "hub_unavailable"
	CodeSearchUnavailable = "search_unavailable"
	CodeStopping          = shards.CodeStopping
	CodeAwaitTimeout      = "await_timeout"

	// Used only inside cairn: for a lost lease, and for commands that are not possible now.
	CodeLeaseLost = follow.CodeLeaseLost
	CodeLeft      = "hub_left" // a membership has ended
	CodeInflight  = "rows_inflight"
	CodeJoined    = "already_joined"
)

// Status returns the HTTP status of an error of this package or of the store (memories §9), 500 for
// any other error, and 200 for nil. MCP results contain it as `status`.
func Status(err error) int {
	f := fault.As(err)
	if f == nil {
		return http.StatusOK
	}
	switch f.Code {
	case CodeEntryTooLarge, CodeContextTooLarge, "body_too_large":
		return http.StatusRequestEntityTooLarge
	case "unauthorized":
		return http.StatusUnauthorized
	case "method_not_allowed":
		return http.StatusMethodNotAllowed
	case "unsupported_media_type":
		return http.StatusUnsupportedMediaType
	case CodeQueueFull, "rate_limited":
		return http.StatusTooManyRequests
	case CodeAwaitTimeout:
		return http.StatusGatewayTimeout
	case store.CodeFull:
		return http.StatusInsufficientStorage
	}
	switch f.Kind {
	case fault.Invalid:
		return http.StatusBadRequest
	case fault.Denied:
		return http.StatusForbidden
	case fault.NotFound:
		return http.StatusNotFound
	case fault.Conflict:
		return http.StatusConflict
	case fault.Unavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// NotFound returns the error for an object that is missing or another user's (memories P9).
func NotFound(what string) *fault.Error {
	return rules.Failure(fault.NotFound, CodeNotFound, "check the id, and that it is this user's", what+" not found")
}

// Conflict returns an error (Conflict) with details, as rules.Failure.
func Conflict(code, hint, message string, details ...any) *fault.Error {
	return rules.Failure(fault.Conflict, code, hint, message, details...)
}

// HubUnavailable returns the error (Unavailable, CodeHubUnavailable) of a call that a hub did not
// answer in time.
func HubUnavailable() error {
	return rules.Failure(fault.Unavailable, CodeHubUnavailable, "try again when the hub can be reached; see `cairn replication status`",
		"the hub did not confirm in time; nothing was deleted")
}

// IgnoreNone returns an error unless it means that a query has found no row.
func IgnoreNone(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return err
}

// ToFault maps errors of the store to the codes of this package, and hides internal texts from
// callers (memories P11).
func ToFault(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	f := fault.As(err)
	code, message, kind := f.Code, f.Message, f.Kind
	switch f.Code {
	case store.CodeBusy:
		message = "another process is writing to the store"
	case store.CodeOverloaded:
		code, message = store.CodeBusy, "too many writes are waiting"
	case store.CodeIO:
		code, message = store.CodeReadOnly, "the volume failed"
	case store.CodeReplaced, store.CodeNewer, store.CodeMissing:
		code, kind = store.CodeReadOnly, fault.Unavailable
	case "database_error", store.CodeCorrupt, CodeInternal:
		code, message, kind = CodeInternal, "the store could not do this", fault.Internal
	default:
		return withDetails(f)
	}
	e := fault.Wrap(err, kind, code, message).WithHint(f.Hint)
	if e.Hint == "" {
		e = e.WithHint("nothing was stored; call again, and if it stays, run `cairn doctor`")
	}
	return withDetails(e)
}

// withDetails returns an error whose details are an object.
func withDetails(f *fault.Error) *fault.Error {
	if f.Details != nil {
		return f
	}
	e := *f
	e.Details = map[string]any{}
	return &e
}
