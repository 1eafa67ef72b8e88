package commands

import (
	"context"
	"errors"
	"strings"

	"cairn/internal/project"
	"cairn/internal/record"
	"cairn/internal/store"
)

// CreateProject creates a project (records §2, create_project). Its tick is 0.
//
// Errors: CodeExists for an id that is reserved or in use, as an alias too; CodeInvalid
// for an invalid id, name or description.
func (b *Commands) CreateProject(ctx context.Context, a record.CreateProjectArgs) (p record.Project, err error) {
	a.Name = strings.TrimSpace(a.Name)
	if err := errors.Join(checkText("name", a.Name, maxTitle), checkText("description", a.Description, maxDescription)); err != nil {
		return p, err
	}
	err = b.Change(ctx, func(ctx context.Context, tx *store.Tx) error {
		q, err := project.Create(ctx, tx, project.New{
			ID: a.ID, Name: b.Line(a.Name, maxTitle), Description: b.Line(a.Description, maxDescription),
		})
		if err != nil {
			return err
		}
		s, err := b.ScopeOf(ctx, tx, q)
		if err == nil {
			p, err = s.Details(ctx)
		}
		return err
	})
	return p, err
}
