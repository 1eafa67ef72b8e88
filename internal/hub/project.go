package hub

import (
	"context"
	"slices"

	"cairn/internal/hub/database"
	"cairn/internal/replica"
)

const (
	selectOfProject  = `SELECT memory_id FROM hub_projects WHERE tenant = $1 AND project_uid = $2`
	selectProjectsOf = `SELECT project_uid FROM hub_projects WHERE tenant = $1 AND memory_id = $2 LIMIT 1`
	deleteProjectsOf = `DELETE FROM hub_projects WHERE tenant = $1 AND memory_id = $2`
	insertProject    = `INSERT INTO hub_projects (tenant, project_uid, memory_id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`
	selectProjects   = `SELECT memory_id, project_uid FROM hub_projects WHERE tenant = $1 AND memory_id >= $2 AND memory_id <= $3 ORDER BY memory_id`
)

// memoryOfProject returns the existing default memory of the project with the first of the
// given uids. It returns "" if that is this memory or there is none.
func (st *stream) memoryOfProject(ctx context.Context, uids []string) (id string, err error) {
	if len(uids) == 0 {
		return "", nil
	}
	_, err = st.s.One(ctx, selectOfProject, []any{st.tenant, uids[0]}, &id)
	if id == st.id {
		id = ""
	}
	return id, err
}

// setProject records the memory as the default memory of the project with the first of the
// given uids. The other uids are former uids of that project. It changes nothing if the memory
// belongs to another project, or the project has another memory. It is idempotent; isNew
// reports whether it changed something.
func (st *stream) setProject(ctx context.Context, uids []string) (isNew bool, err error) {
	other, err := st.memoryOfProject(ctx, uids)
	if len(uids) == 0 || other != "" || err != nil {
		return false, err
	}
	var has string
	found, err := st.s.One(ctx, selectProjectsOf, []any{st.tenant, st.id}, &has)
	if err != nil || found && (has == uids[0] || !slices.Contains(uids, has)) {
		return false, err
	}
	if _, err := st.s.Exec(ctx, deleteProjectsOf, st.tenant, st.id); err != nil {
		return false, err
	}
	n, err := st.s.Exec(ctx, insertProject, st.tenant, uids[0], st.id)
	return n > 0, err
}

// projectHeads adds the uids of their projects to a page of memories.
func projectHeads(ctx context.Context, s database.Statements, tenant string, heads []replica.Head) error {
	if len(heads) == 0 {
		return nil
	}
	at := make(map[string]*replica.Memory, len(heads))
	for _, h := range heads {
		at[h.Stream] = h.Memory
	}
	first, last := heads[0].Stream, heads[len(heads)-1].Stream
	return s.Each(ctx, selectProjects, []any{tenant, first, last}, func(scan func(...any) error) (bool, error) {
		var id, uid string
		err := scan(&id, &uid)
		if m := at[id]; m != nil {
			m.ProjectUIDs = []string{uid}
		}
		return true, err
	})
}
