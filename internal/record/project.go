package record

import "context"

const selectDetails = `SELECT id, name, ifnull(description, ''), ifnull(created_ns, created_at * 1000000000), tick FROM projects WHERE key = ?`

// Details returns the project as the commands show it. A project without a row has tick 0
// and the present time as its creation.
func (s *CallTx) Details(ctx context.Context) (p Project, err error) {
	if s.Project.Key == 0 {
		return Project{ID: s.Project.ID, Name: s.Project.Name, Created: Time(s.Tx.Now().UnixNano())}, nil
	}
	err = s.Tx.Get(ctx, []any{&p.ID, &p.Name, &p.Description, &p.Created, &p.Tick}, selectDetails, s.Project.Key)
	return p, err
}
