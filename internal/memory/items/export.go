package items

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"

	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/project"
	"cairn/internal/store"
)

// exportedMemory is a memory without its vault, which has its own line. ProjectUID is the uid of
// the project whose default memory it was before the project was merged into another one.
type exportedMemory struct {
	MemoryID     string      `json:"memoryId"`
	VaultID      string      `json:"vaultId"`
	MemoryType   string      `json:"memoryType"`
	Title        string      `json:"title"`
	Description  string      `json:"description"`
	CreationTime memory.Time `json:"creationTime"`
	ProjectUID   string      `json:"projectUid,omitempty"`
}

func (m *exportedMemory) doc() *memory.MemoryDoc {
	d := &memory.MemoryDoc{MemoryID: m.MemoryID, VaultID: m.VaultID, MemoryType: m.MemoryType, Title: m.Title, Description: m.Description, CreationTime: m.CreationTime}
	if m.ProjectUID != "" {
		d.ProjectUIDs = []string{m.ProjectUID}
	}
	return d
}

// tombstoneDoc names something deleted that must not come back: the id of an entry, its key, or
// the id of the memory.
type tombstoneDoc struct {
	ID string      `json:"id"`
	At memory.Time `json:"deletedTime"`
}

const (
	// The memories of one project: its default memories, the former default memories of
	// projects that were merged into it, and the other memories of their vaults. ?3 selects
	// all memories. A memory that is being deleted is not selected.
	memoriesInScope = `WITH own AS (SELECT vault_id FROM memories WHERE project_key = ?1
OR project_key IS NULL AND project_uid IN (SELECT value FROM json_each(?2))),
scope AS (SELECT memory_id FROM memories WHERE deleting_seq IS NULL
AND (?3 OR project_key = ?1 OR vault_id IN own AND (project_key IS NULL OR project_key = ?1))) `

	selectExportedVaults = memoriesInScope + `SELECT vault_id, user_id, title, description, creation_ns FROM memory_vaults
WHERE deleting_seq IS NULL AND (?3 OR vault_id IN (SELECT vault_id FROM memories WHERE memory_id IN scope)) ORDER BY creation_ns, vault_id`
	selectExportedMemories = memoriesInScope + `SELECT m.memory_id, m.vault_id, m.memory_type, m.title, m.description, m.creation_ns,
ifnull(p.id, ''), CASE WHEN p.id IS NULL THEN ifnull(m.project_uid, '') ELSE '' END
FROM memories m LEFT JOIN projects p ON p.key = m.project_key WHERE m.memory_id IN scope ORDER BY m.creation_ns, m.memory_id`
	selectExportedEntries = contents.EntryColumns + `WHERE e.memory_id = ? AND e.deleting_seq IS NULL
ORDER BY ifnull(e.canonical_ns, e.creation_ns), e.synced DESC, e.key`
	selectExportedContexts = `SELECT ifnull(hub_key, ''), context_id, session_id, markdown, updated_ns, ifnull(trace_id, ''), base_id, ifnull(conflict_with, '')
FROM memory_contexts c WHERE memory_id = ? ORDER BY updated_ns, ` + contents.NumberOfContext + `, seq`
	selectExportedTombstones = `SELECT memory_id, id, deleted_ns FROM memory_tombstones WHERE memory_id = ? ORDER BY id`
	selectHomelessTombstones = `SELECT memory_id, id, deleted_ns FROM memory_tombstones WHERE memory_id NOT IN (SELECT memory_id FROM memories)
ORDER BY memory_id, id`

	countExported = memoriesInScope + `SELECT (SELECT count(*) FROM memory_vaults WHERE deleting_seq IS NULL
AND (?3 OR vault_id IN (SELECT vault_id FROM memories WHERE memory_id IN scope))), (SELECT count(*) FROM scope),
(SELECT count(*) FROM memory_entries WHERE memory_id IN scope AND deleting_seq IS NULL),
(SELECT count(*) FROM memory_contexts WHERE memory_id IN scope),
(SELECT count(*) FROM memory_tombstones WHERE memory_id IN scope OR ?3 AND memory_id NOT IN (SELECT memory_id FROM memories))`
)

// scopeArgs returns the arguments of memoriesInScope.
func scopeArgs(ctx context.Context, tx *store.Tx, of project.Scope) ([]any, error) {
	uids := []string{}
	if of.ID != "" {
		q, ok, err := project.Find(ctx, tx, of.ID)
		if err != nil || !ok {
			return nil, err
		}
		keys, err := project.KeysOf(ctx, tx, q)
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			uids = append(uids, key.UID)
		}
	}
	list, err := json.Marshal(uids)
	return []any{of.Key, string(list), of.ID == ""}, err
}

// ExportLines calls put with the lines of the memories of a scope, each after the lines that it
// refers to: vaults, memories, then for each memory its entries by time, its contexts by time and
// its deletions. It omits what waits for a hub to confirm its deletion. The memories of one
// project are its default memory and the other memories of the same vault.
func ExportLines(ctx context.Context, tx *store.Tx, of project.Scope, put func(kind string, v any) error) error {
	args, err := scopeArgs(ctx, tx, of)
	if err != nil || args == nil {
		return err
	}
	x := exporting{tx: tx, put: put}
	if x.own, err = memory.OwnUser(ctx, tx, false); err != nil {
		return err
	}
	if err := x.each(ctx, x.vault, selectExportedVaults, args...); err != nil {
		return err
	}
	if err := x.each(ctx, x.memory, selectExportedMemories, args...); err != nil {
		return err
	}
	for _, memoryID := range x.memories {
		err := cmp.Or(x.each(ctx, x.entry, selectExportedEntries, memoryID), x.each(ctx, x.context(memoryID), selectExportedContexts, memoryID),
			x.each(ctx, x.tombstone, selectExportedTombstones, memoryID))
		if err != nil {
			return err
		}
	}
	if of.ID != "" {
		return nil
	}
	return x.each(ctx, x.tombstone, selectHomelessTombstones)
}

// CountLines returns the number of lines of ExportLines by kind, without kinds that have none.
func CountLines(ctx context.Context, tx *store.Tx, of project.Scope) (map[string]int, error) {
	out := map[string]int{}
	args, err := scopeArgs(ctx, tx, of)
	if err != nil || args == nil {
		return out, err
	}
	kinds := []string{LineVault, LineMemory, LineEntry, LineContext, LineTombstone}
	counts := make([]int, len(kinds))
	dest := make([]any, len(kinds))
	for i := range counts {
		dest[i] = &counts[i]
	}
	err = tx.Get(ctx, dest, countExported, args...)
	for i, n := range counts {
		if n > 0 {
			out[kinds[i]] = n
		}
	}
	return out, err
}

// exporting writes the lines of an export.
type exporting struct {
	tx       *store.Tx
	own      string // the device's own user
	memories []string
	put      func(kind string, v any) error
}

func (x *exporting) each(ctx context.Context, do func(*sql.Rows) error, query string, args ...any) error {
	return x.tx.Each(ctx, do, query, args...)
}

func (x *exporting) line(kind string, l Item, doc any) (err error) {
	if l.Doc, err = memory.DocumentText(doc); err != nil {
		return err
	}
	return x.put(kind, l)
}

func (x *exporting) vault(r *sql.Rows) error {
	var v memory.Vault
	if err := r.Scan(v.Scan()...); err != nil {
		return err
	}
	var l Item
	if v.ActorID != x.own {
		l.Owner = v.ActorID
	}
	return x.line(LineVault, l, v.Doc(""))
}

func (x *exporting) memory(r *sql.Rows) error {
	var m memory.Memory
	var l Item
	var uid string
	if err := r.Scan(&m.MemoryID, &m.VaultID, &m.MemoryType, &m.Title, &m.Description, &m.CreationTime, &l.Project, &uid); err != nil {
		return err
	}
	x.memories = append(x.memories, m.MemoryID)
	d := exportedMemory{m.MemoryID, m.VaultID, m.MemoryType, m.Title, m.Description, m.CreationTime, uid}
	return x.line(LineMemory, l, d)
}

func (x *exporting) entry(r *sql.Rows) error {
	e, err := contents.ScanEntry(r.Scan)
	if err != nil {
		return err
	}
	d := e.Doc()
	d.LocalID, d.CreationTime = "", e.CreationTime
	return x.line(LineEntry, Item{Memory: e.MemoryID}, d)
}

func (x *exporting) context(memory string) func(*sql.Rows) error {
	return func(r *sql.Rows) error {
		var d contents.ContextDoc
		if err := r.Scan(&d.Key, &d.ContextID, &d.SessionID, &d.Markdown, &d.UpdatedAt, &d.Trace, &d.BaseID, &d.ConflictWith); err != nil {
			return err
		}
		return x.line(LineContext, Item{Memory: memory}, d)
	}
}

func (x *exporting) tombstone(r *sql.Rows) error {
	var l Item
	var d tombstoneDoc
	if err := r.Scan(&l.Memory, &d.ID, &d.At); err != nil {
		return err
	}
	return x.line(LineTombstone, l, d)
}
