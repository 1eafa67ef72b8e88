package project

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/internal/fault"
	"cairn/internal/store"
)

// CodeExists is the error code for an id that Create cannot use.
const CodeExists = "ALREADY_EXISTS"

const maxDescription = 2000 // characters (records §1)

// New describes a project that is created by a user, not by a place.
type New struct {
	ID          string // "" for "p-" and a ULID
	Name        string // 1 to 200 characters, one line
	Description string // at most 2,000 characters
}

// Create creates a project without a place (records §2, create_project). Later
// repositories of that name get another id.
//
// Errors: Invalid with "INVALID_ARGUMENT" and details.field; Conflict with CodeExists for
// an id that is reserved or used by a project or an alias.
func Create(ctx context.Context, tx *store.Tx, n New) (Project, error) {
	if n.ID == "" {
		n.ID = "p-" + store.NewID()
	}
	n.Name = strings.TrimSpace(n.Name)
	if err := n.check(); err != nil {
		return Project{}, err
	}
	_, taken, err := Find(ctx, tx, n.ID)
	switch {
	case err != nil:
		return Project{}, err
	case taken || isReserved(n.ID):
		return Project{}, fault.Newf(fault.Conflict, CodeExists, "there is a project %q already", n.ID).
			WithHint("use get_project or choose another id")
	}
	q := Project{ID: n.ID, Name: n.Name}
	res, err := tx.Exec(ctx, insertCreated, q.ID, q.Name, null(n.Description), tx.Now().Unix(), tx.Now().UnixNano())
	if err != nil {
		return Project{}, err
	}
	if q.Key, err = res.LastInsertId(); err != nil {
		return Project{}, err
	}
	return logProject(ctx, tx, q.Key)
}

func (n *New) check() error {
	switch {
	case checkID(n.ID) != nil:
		return invalidField("id", "a project id has 1 to 64 characters of a-z, 0-9, dot, underscore and hyphen, the first a letter or digit")
	case !isText(n.Name, maxName) || n.Name == "" || strings.ContainsFunc(n.Name, unicode.IsControl):
		return invalidField("name", "a project's name is one line of 1 to 200 characters")
	case !isText(n.Description, maxDescription):
		return invalidField("description", "a project's description has at most 2,000 characters")
	}
	return nil
}

func isText(s string, limit int) bool {
	return utf8.ValidString(s) && !strings.ContainsRune(s, 0) && utf8.RuneCountInString(s) <= limit
}

func invalidField(field, message string) error {
	e := fault.New(fault.Invalid, "INVALID_ARGUMENT", message).WithHint("correct " + field + " and call again")
	e.Details = map[string]any{"field": field}
	return e
}
