package record

import (
	"errors"
	"fmt"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/store"
)

// Error codes of this package (seed, error codes; records §2, §6).
const (
	CodeInvalid            = "INVALID_ARGUMENT"     // Invalid; details.field names it
	CodeNotFound           = "RECORD_NOT_FOUND"     // NotFound; details.missing are the ids
	CodeNotActivated       = "NOT_ACTIVATED"        // Conflict; the session has not loaded the record
	CodeInvalidTransition  = "INVALID_TRANSITION"   // Conflict; details from, to, allowed
	CodeParentNotActivated = "PARENT_NOT_ACTIVATED" // Conflict
	CodeConflict           = "CONFLICT"             // Conflict; details from_state, by_session
	CodeSessionNotFound    = "SESSION_NOT_FOUND"    // NotFound
	CodeDepth              = "DEPTH_EXCEEDED"       // Invalid; details.max_depth
	CodeExists             = "ALREADY_EXISTS"       // Conflict; a project id
	CodeProjectNotFound    = "PROJECT_NOT_FOUND"    // NotFound
	CodeUnavailable        = "STORAGE_UNAVAILABLE"  // Unavailable; details.cause is the store's code
)

// Fail returns an error with a hint and details.
func Fail(kind fault.Kind, code, message, hint string, details map[string]any) error {
	e := fault.New(kind, code, message).WithHint(hint)
	e.Details = details
	return e
}

// Invalid returns the error for an invalid argument.
func Invalid(field, message string) error {
	return Fail(fault.Invalid, CodeInvalid, message, "correct "+field+" and call again", map[string]any{"field": field})
}

// NotFound returns the error (CodeNotFound) for records that do not exist.
func NotFound(ids ...string) error {
	shown := make([]string, len(ids))
	for i, id := range ids {
		shown[i] = fmt.Sprintf("%.40q", id)
	}
	return Fail(fault.NotFound, CodeNotFound, "there is no record "+strings.Join(shown, ", "),
		"check the spelling of the id; list_records and search_records show existing records", map[string]any{"missing": ids})
}

func projectNotFound(id string) error {
	return Fail(fault.NotFound, CodeProjectNotFound, fmt.Sprintf("there is no project %.80q", id),
		"list_projects shows them; create_project creates one", map[string]any{"project_id": id})
}

// ToFault converts an error of the store to the code of the contract, with the store's
// message and hint (records §6).
func ToFault(err error) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Kind != fault.Unavailable && f.Code != store.CodeCorrupt || f.Code == CodeUnavailable {
		return err
	}
	hint := f.Hint
	if hint == "" {
		hint = "nothing was stored; run `cairn doctor` and try again"
	}
	e := fault.Wrap(err, fault.Unavailable, CodeUnavailable, "the store cannot be used: "+f.Message).WithHint(hint)
	e.Details = map[string]any{"cause": f.Code}
	return e
}
