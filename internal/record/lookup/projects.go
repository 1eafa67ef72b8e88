package lookup

import (
	"context"
	"database/sql"

	"cairn/internal/record"
	"cairn/internal/store"
)

const (
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

// ListProjects returns all projects except merged ones, most recently changed first
// (records §7). Without projects the list is empty.
func (b *Lookup) ListProjects(ctx context.Context) ([]record.ProjectSummary, error) {
	list := []record.ProjectSummary{}
	if b.Store == nil {
		return list, nil
	}
	err := record.ToFault(b.Store.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Each(ctx, func(rows *sql.Rows) error {
			var p record.ProjectSummary
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
func (b *Lookup) GetProject(ctx context.Context, a record.GetProjectArgs) (p record.Project, err error) {
	err = b.Read(ctx, a.Caller, a.At, func(ctx context.Context, s *record.CallTx) (err error) {
		p, err = s.Details(ctx)
		p.At = s.Then
		return err
	})
	return p, err
}
