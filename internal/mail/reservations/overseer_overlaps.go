package reservations

import (
	"context"
	"database/sql"

	"cairn/internal/mail"
	"cairn/internal/pathpattern"
	"cairn/internal/store"
)

// Overlap is a pair of active reservations of different agents that cover the same files. At least
// one of them is exclusive.
type Overlap struct {
	Project     string    `json:"project"` // the project id of the store
	Agent       string    `json:"agent"`
	Other       string    `json:"other"`
	PathPattern string    `json:"path_pattern"` // of Agent
	Created     mail.Time `json:"created_ts"`   // of the later reservation
}

const selectHeldAnywhere = `SELECT p.id, q.id, a.name, r.path_pattern, r.exclusive, r.created_ts
FROM mail_reservations r INDEXED BY mail_reservations_ending JOIN mail_agents a ON a.id = r.agent_id
JOIN mail_projects p ON p.id = r.project_id JOIN projects q ON q.key = p.project_key
WHERE r.released_ts IS NULL AND r.expires_ts > ?1 AND (?2 = '' OR q.id = ?2) ORDER BY p.id, r.id`

// Overlaps lists the overlapping reservations, project by project. An empty projectID selects all
// projects. Each pair is listed once. The result is nil if there are none.
//
// Errors: those of reading.
func (o *Reservations) Overlaps(ctx context.Context, projectID string) (list []Overlap, err error) {
	if o.Store == nil {
		return nil, nil
	}
	err = o.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		p := overlapping{}
		err := tx.Each(ctx, func(r *sql.Rows) error {
			var id int64
			var one openReservation
			err := r.Scan(&id, &one.Project, &one.Agent, &one.PathPattern, &one.exclusive, &one.Created)
			if id != p.id {
				list = append(list, p.pairs()...)
				p = overlapping{id: id}
			}
			p.all, p.patterns = append(p.all, one), append(p.patterns, StoredPattern(one.PathPattern, false))
			return err
		}, selectHeldAnywhere, mail.TimeOf(tx.Now()), projectID)
		list = append(list, p.pairs()...)
		return err
	})
	return list, err
}

type openReservation struct {
	Overlap
	exclusive bool
}

// overlapping contains the active reservations of one project.
type overlapping struct {
	id       int64
	all      []openReservation
	patterns []pathpattern.Pattern
}

func (p *overlapping) pairs() (list []Overlap) {
	for i, k := range pathpattern.Pairs(p.patterns) {
		a, b := p.all[i], p.all[k]
		if a.Agent == b.Agent || !a.exclusive && !b.exclusive {
			continue
		}
		a.Other, a.Created = b.Agent, max(a.Created, b.Created)
		list = append(list, a.Overlap)
	}
	return list
}
