package project

import (
	"context"
	"database/sql"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/store"
)

// CodeRequired is the error code of a write over HTTP without a project (amendments
// §B.5).
const CodeRequired = "PROJECT_REQUIRED"

// maxNamed is the maximum number of projects in the error, most recently seen first.
const maxNamed = 50

// Required returns the error of a write over HTTP whose project is unknown: neither an
// argument, the URL nor the session's earlier calls name it. It is Invalid with code
// [CodeRequired]; details.projects are the ids of the projects seen last, at most 50,
// never nil. Other errors are those of reading the projects.
func Required(ctx context.Context, tx *store.Tx) error {
	names := []string{}
	err := tx.Each(ctx, func(r *sql.Rows) error {
		names = append(names, "")
		return r.Scan(&names[len(names)-1])
	}, selectNewest, maxNamed)
	if err != nil {
		return err
	}
	message := "this call over HTTP names no project, and its session has not started in one"
	if len(names) > 0 {
		message += "; known are " + strings.Join(names[:min(len(names), 10)], ", ")
	}
	required := fault.New(fault.Invalid, CodeRequired, message).
		WithHint("name the project in the arguments, call macro_start_session first, or add ?project= to the URL")
	required.Details = map[string]any{"projects": names}
	return required
}

// OfSession returns a session's own project; ok is false if the session is not known.
func OfSession(ctx context.Context, tx *store.Tx, id string) (q Project, ok bool, err error) {
	if id == "" {
		return q, false, nil
	}
	_, q, ok, err = findSession(ctx, tx, id)
	return q, ok, err
}

// MoveSession changes the session's own project and logs it. A session of a harness keeps
// the project that its hooks determine. It is idempotent.
func MoveSession(ctx context.Context, tx *store.Tx, s Session, q Project) error {
	if s.Harness != "" || s.ProjectID == q.ID {
		return nil
	}
	moved := s
	moved.ProjectID, moved.ProjectKey = q.ID, q.Key
	return moved.save(ctx, tx, s)
}
