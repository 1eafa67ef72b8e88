package record

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"cairn/internal/project"
	"cairn/internal/store"
)

const (
	selectDetails = `SELECT id, name, ifnull(description, ''), ifnull(created_ns, created_at * 1000000000), tick FROM projects WHERE key = ?`

	// A project's last change is the latest of its creation, its sessions' events, and
	// the newest changes of its records and of itself.
	selectProjects = `SELECT p.id, p.name, ifnull(p.description, ''), p.tick,
(SELECT count(*) FROM record_sessions r WHERE r.project_key = p.key AND r.closed = 0),
(SELECT count(*) FROM records r WHERE r.project_key = p.key AND r.state = 'OPEN'),
max(ifnull(p.created_ns, p.created_at * 1000000000),
    ifnull((SELECT max(s.last_seen) * 1000000000 FROM sessions s WHERE s.project_id = p.id), 0),
    ifnull((SELECT c.at FROM changes c WHERE c.stream = (SELECT id FROM symbols WHERE text = ifnull(p.records_stream, 'records/' || p.id))
        AND c.doc IS NOT NULL ORDER BY c.seq DESC LIMIT 1), 0),
    ifnull((SELECT c.at FROM changes c WHERE c.stream = (SELECT id FROM symbols WHERE text = 'project/' || p.id)
        AND c.doc IS NOT NULL ORDER BY c.seq DESC LIMIT 1), 0)) AS changed
FROM projects p WHERE NOT EXISTS (SELECT 1 FROM project_aliases a WHERE a.alias = p.id)
ORDER BY changed DESC, p.key DESC`
)

// CreateProject creates a project (records §2, create_project). Its tick is 0.
//
// Errors: CodeExists for an id that is reserved or in use, as an alias too; CodeInvalid
// for an invalid id, name or description.
func (b *Service) CreateProject(ctx context.Context, a CreateProjectArgs) (p Project, err error) {
	a.Name = strings.TrimSpace(a.Name)
	if err := errors.Join(checkText("name", a.Name, maxTitle), checkText("description", a.Description, maxDescription)); err != nil {
		return p, err
	}
	err = b.change(ctx, func(ctx context.Context, tx *store.Tx) error {
		q, err := project.Create(ctx, tx, project.New{
			ID: a.ID, Name: b.line(a.Name, maxTitle), Description: b.line(a.Description, maxDescription),
		})
		if err != nil {
			return err
		}
		s, err := b.scopeOf(ctx, tx, q)
		if err == nil {
			p, err = s.details(ctx)
		}
		return err
	})
	return p, err
}

// ListProjects returns all projects except merged ones, most recently changed first
// (records §7). Without projects the list is empty.
func (b *Service) ListProjects(ctx context.Context) ([]ProjectSummary, error) {
	list := []ProjectSummary{}
	if b.store == nil {
		return list, nil
	}
	err := toFault(b.store.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Each(ctx, func(rows *sql.Rows) error {
			var p ProjectSummary
			var changed int64
			err := rows.Scan(&p.ID, &p.Name, &p.Description, &p.Tick, &p.OpenSessions, &p.OpenRecords, &changed)
			list = append(list, p)
			return err
		}, selectProjects)
	}))
	if err != nil {
		return nil, err
	}
	return list, nil
}

// GetProject returns a project, with its tick at the requested moment. A current project
// without a row has tick 0 and the time of the call as its creation; the first write
// creates it.
//
// Errors: CodeProjectNotFound for an unknown ProjectID, CodeInvalid for at.
func (b *Service) GetProject(ctx context.Context, a GetProjectArgs) (p Project, err error) {
	err = b.read(ctx, a.Caller, a.At, func(ctx context.Context, s *callTx) (err error) {
		p, err = s.details(ctx)
		p.At = s.then
		return err
	})
	return p, err
}

func (s *callTx) details(ctx context.Context) (p Project, err error) {
	if s.p.Key == 0 {
		return Project{ID: s.p.ID, Name: s.p.Name, Created: Time(s.tx.Now().UnixNano())}, nil
	}
	err = s.tx.Get(ctx, []any{&p.ID, &p.Name, &p.Description, &p.Created, &p.Tick}, selectDetails, s.p.Key)
	return p, err
}
