package mail

import (
	"context"
	"database/sql"
	"encoding/json"

	"cairn/internal/store"
)

const selectSessionAgents = `SELECT s.id, a.name FROM json_each(?) j JOIN sessions s ON s.id = j.value
JOIN mail_sessions m ON m.session_key = s.key JOIN mail_agents a ON a.id = m.agent_id
ORDER BY s.id, m.bound_ts, a.name`

// AgentsOfSessions are the names under which sessions act or acted, in the order in which
// they took them, by the sessions' ids; sessions without a name are left out. nil while there
// is no store.
//
// Errors: those of reading.
func (o *Service) AgentsOfSessions(ctx context.Context, sessions []string) (names map[string][]string, err error) {
	if o.store == nil || len(sessions) == 0 {
		return nil, nil
	}
	list, err := json.Marshal(sessions)
	if err != nil {
		return nil, err
	}
	names = map[string][]string{}
	err = o.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Each(ctx, func(r *sql.Rows) error {
			var session, name string
			err := r.Scan(&session, &name)
			names[session] = append(names[session], name)
			return err
		}, selectSessionAgents, string(list))
	})
	return names, err
}
