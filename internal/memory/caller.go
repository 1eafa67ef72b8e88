package memory

import (
	"cairn/internal/fault"
	"cairn/internal/memory/rules"
	"cairn/internal/project"
)

// Level is the permission of a token (memories §3).
type Level uint8

// The levels, from the highest, which the local user has.
const (
	Admin Level = iota // may also delete, import, and command the replication
	Write              // may also create and change
	Read
)

// Caller identifies who acts, from where, and under which key. The zero value is the device's own
// user outside any project.
type Caller struct {
	User   string // the acting user's local id; "" for the device's own
	UserID string // the argument user_id as given: the acting user's local or hub id; "" for none
	Level  Level

	Key       string // Idempotency-Key of a writing call; "" for a generated key
	Trace     string // traceparent of the operation, stored with the row; "" for none
	ProjectID string // --project, ?project= or the argument project: the project of `default`; "" for Place's
	Place     project.Location
	Remote    bool   // Place is not where the caller works: its connection's project counts, without one it cannot write to default (amendments §B.5)
	Transport string // the session of the connection; "" if there is none
	Session   string // the product session that causes a change; "" if unknown
	Agent     string // likewise
}

// WriteInfo describes how a writing call was executed. It is also valid with an error.
type WriteInfo struct {
	Key      string // the idempotency key, the caller's or a generated one
	Replayed bool   // an earlier call's result was returned again, and nothing was done
}

// isNowhere reports whether a caller named no project and Place is not where it works.
func (c Caller) isNowhere() bool { return c.Remote && c.ProjectID == "" }

// CheckArgs checks what does not need the store.
func (c Caller) CheckArgs() error {
	if c.UserID != "" {
		if _, err := rules.UUIDArg("user_id", c.UserID); err != nil {
			return err
		}
	}
	return rules.CheckKey(c.Key)
}

// May refuses a caller whose level is too low. It is called after the object was found to be the
// caller's own (memories §9).
func (c Caller) May(needed Level) error {
	if c.Level <= needed {
		return nil
	}
	return rules.Failure(fault.Denied, CodeForbidden, "use a token of a higher level", "the token's level is too low for this")
}
