package record

// Codes of the errors that this room makes (seed, error codes; records §2, §6).
const (
	CodeInvalid            = "INVALID_ARGUMENT"     // details.field names it
	CodeNotFound           = "RECORD_NOT_FOUND"     // details.missing where ids in a list are meant
	CodeNotActivated       = "NOT_ACTIVATED"        // the session has not loaded the record
	CodeInvalidTransition  = "INVALID_TRANSITION"   // details from, to, allowed
	CodeParentNotActivated = "PARENT_NOT_ACTIVATED" //
	CodeConflict           = "CONFLICT"             // details from_state, by_session
	CodeSessionNotFound    = "SESSION_NOT_FOUND"    //
	CodeDepth              = "DEPTH_EXCEEDED"       //
	CodeExists             = "ALREADY_EXISTS"       // a project id
	CodeProjectNotFound    = "PROJECT_NOT_FOUND"    //
	CodeUnavailable        = "STORAGE_UNAVAILABLE"  // busy, full, read-only, broken
)
