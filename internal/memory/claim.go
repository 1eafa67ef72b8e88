package memory

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"cairn/internal/project"
	"cairn/internal/store"
)

// maxUIDs is the maximum number of uids in a memory's document.
const maxUIDs = 8

const (
	selectLinked = `SELECT m.memory_id FROM memories m WHERE m.user_id = ? AND m.project_key = ? AND m.deleting_seq IS NULL
ORDER BY m.creation_ns, m.memory_id LIMIT 1`
	countClaims = `SELECT count(*) FROM changes c JOIN symbols o ON o.id = c.op
WHERE c.kind = (SELECT id FROM symbols WHERE text = 'memory') AND c.id = ? AND c.doc IS NOT NULL AND o.text = 'put'`
	subscribeMemory = `UPDATE memory_streams SET subscribed = 1 WHERE stream = ?`
)

// projectUID returns the uid by the strongest key in a memory's document, "" if it has none.
func (d *memoryDoc) projectUID() string {
	if len(d.ProjectUIDs) == 0 || len(d.ProjectUIDs[0]) != uidDigits {
		return ""
	}
	return d.ProjectUIDs[0]
}

// projectUIDs returns the uids of the project of the scope's memory; nil without one.
func (s *callTx) projectUIDs(ctx context.Context) ([]string, error) {
	if s.m.project == "" {
		return nil, nil
	}
	q, ok, err := project.Find(ctx, s.tx, s.m.project)
	if err != nil || !ok {
		return nil, err
	}
	keys, err := project.KeysOf(ctx, s.tx, q)
	if err != nil {
		return nil, err
	}
	return uidsOf(keys), nil
}

// projectOf returns the project here with a uid, and the id of its default memory, ""
// if it has none.
func (s *callTx) projectOf(ctx context.Context, uid string) (q project.Project, memory string, ok bool, err error) {
	if uid == "" {
		return q, "", false, nil
	}
	q, ok, err = project.FindKey(ctx, s.tx, uid)
	if err != nil || !ok || q.UID != uid {
		return q, "", false, err
	}
	err = ignoreNone(s.tx.Get(ctx, []any{&memory}, selectLinked, s.u.ID, q.Key))
	if err == nil && memory == "" { // another device may have created it with an earlier release
		other := *s
		if found, err := other.findTitled(ctx, q); err != nil || found {
			return q, other.m.MemoryID, true, err
		}
	}
	return q, memory, true, err
}

// meet handles a memory of the hub that is new here and belongs to a project. If the project here
// has a default memory that was never sent, that memory becomes the hub's memory: met is true, and
// both devices write to the same memory. Otherwise the caller stores the memory; q is the project
// to link it with, if that has no default memory yet.
func (s *callTx) meet(ctx context.Context, d *memoryDoc) (q project.Project, met bool, err error) {
	q, own, ok, err := s.projectOf(ctx, d.projectUID())
	if err != nil || !ok {
		return project.Project{}, false, err
	}
	if own == "" {
		return q, false, nil
	}
	res, err := s.tx.Exec(ctx, updateNewRemote, own, d.MemoryID)
	if err != nil {
		return project.Project{}, false, err
	}
	n, err := res.RowsAffected()
	return project.Project{}, n > 0, err
}

// claimed updates a memory with its project at the hub. A memory that belongs to another project
// at the hub was shared by name. It stays, but is no longer the default memory of the project
// here, which gets its own with the next write. The hub keeps the first project that a device
// names, so at most one device's project keeps a memory that was shared by name.
func (s *callTx) claimed(ctx context.Context, uids []string) error {
	uid := (&memoryDoc{ProjectUIDs: uids}).projectUID()
	if s.m.project == "" {
		return s.claimedFree(ctx, uid)
	}
	q, ok, err := project.Find(ctx, s.tx, s.m.project)
	if err != nil || !ok || q.UID == "" {
		return err
	}
	keys, err := project.KeysOf(ctx, s.tx, q)
	switch {
	case err != nil || keys[0].UID == uid:
		return err
	case uid == "" || slices.Contains(uidsOf(keys), uid):
		return s.claimAgain(ctx, keys)
	}
	if _, err = s.tx.Exec(ctx, unlinkMemory, s.m.MemoryID); err == nil {
		_, err = s.tx.Exec(ctx, updateUID, s.m.MemoryID, uid)
	}
	if err == nil {
		err = s.noteUnlinked(ctx, q)
	}
	return err
}

// claimAgain sends the project of a memory to a hub that does not know it, unless changes of the
// memory still wait to be sent, or the hub has another memory for the project.
func (s *callTx) claimAgain(ctx context.Context, keys []project.KeyUID) error {
	uids := uidsOf(keys)
	if uids == nil || s.given[uids[0]] || s.m.headSeq > s.m.ackedSeq {
		return nil
	}
	var round int
	if err := s.tx.Get(ctx, []any{&round}, countClaims, s.m.MemoryID); err != nil {
		return err
	}
	if _, err := s.tx.Exec(ctx, updateUID, s.m.MemoryID, uids[0]); err != nil {
		return err
	}
	return s.announce(ctx, uids, "/"+strconv.Itoa(round))
}

// claimedFree is claimed for a memory without a project here.
func (s *callTx) claimedFree(ctx context.Context, uid string) error {
	if uid == "" {
		return nil
	}
	if uid != s.m.projectUID {
		titled, found, err := s.titledProject(ctx)
		if err == nil && found && titled.UID != uid {
			err = s.noteUnlinked(ctx, titled)
		}
		if err != nil {
			return err
		}
		if _, err := s.tx.Exec(ctx, updateUID, s.m.MemoryID, uid); err != nil {
			return err
		}
	}
	q, own, ok, err := s.projectOf(ctx, uid)
	if err != nil || !ok || own != "" {
		return err
	}
	if err := s.link(ctx, q); err != nil {
		return err
	}
	_, err = s.tx.Exec(ctx, subscribeMemory, s.m.MemoryID)
	return err
}

// titledProject returns the project that found the scope's memory by its title in an earlier
// release.
func (s *callTx) titledProject(ctx context.Context) (q project.Project, found bool, err error) {
	memory := s.m.MemoryID
	ids, err := s.tx.Texts(ctx, selectTitles)
	for _, id := range ids {
		if err != nil || found {
			break
		}
		if q, found, err = project.Find(ctx, s.tx, id); err != nil || !found {
			continue
		}
		other := *s
		if found, err = other.findTitled(ctx, q); found {
			found = other.m.MemoryID == memory
		}
	}
	return q, found, err
}

// cataloguedHere updates a memory with its project in the hub's catalogue. A hub of an earlier
// release sends no project.
func (s *callTx) cataloguedHere(ctx context.Context, doc *Item) error {
	if doc.Kind != KindMemory {
		return nil
	}
	var d memoryDoc
	if err := json.Unmarshal(doc.Doc, &d); err != nil {
		return invalid("doc", "the hub's catalogue is not readable")
	}
	if d.ProjectUIDs == nil {
		return nil
	}
	found, err := s.find(ctx, selectMemoryRemote, s.u.ID, doc.ID)
	if err == nil && !found {
		found, err = s.find(ctx, selectMemory, doc.ID)
	}
	if err != nil || !found {
		return err
	}
	return s.claimed(ctx, d.ProjectUIDs)
}

const (
	metaUnlinked   = "memory.unlinked." // followed by the memory's id
	selectUnlinked = `SELECT v.title, (SELECT count(*) FROM memory_entries e WHERE e.memory_id = m.memory_id)
FROM memories m JOIN memory_vaults v ON v.vault_id = m.vault_id WHERE m.memory_id = ?`
)

// Unlinked is a memory that was shared by name until the hub assigned it to another repository.
type Unlinked struct {
	MemoryID string
	Vault    string // the title of its vault
	Project  string // the id of the project whose default memory it was here
	Entries  int64  // stored here
}

// Unlinked lists the memories that were shared by name and no longer have a project here.
func (b *Service) Unlinked(ctx context.Context) (out []Unlinked, err error) {
	err = b.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		out = nil
		notes, err := tx.MetaUnder(ctx, metaUnlinked)
		for _, note := range notes {
			if err != nil {
				return err
			}
			u := Unlinked{MemoryID: strings.TrimPrefix(note.Name, metaUnlinked), Project: note.Value}
			err = tx.Each(ctx, func(rows *sql.Rows) error {
				err := rows.Scan(&u.Vault, &u.Entries)
				out = append(out, u)
				return err
			}, selectUnlinked, u.MemoryID)
		}
		return err
	})
	return out, err
}

// noteUnlinked stores for Unlinked with which project a memory was shared.
func (s *callTx) noteUnlinked(ctx context.Context, q project.Project) error {
	_, noted, err := s.tx.Meta(ctx, metaUnlinked+s.m.MemoryID)
	if err != nil || noted {
		return err
	}
	return s.tx.SetMeta(ctx, metaUnlinked+s.m.MemoryID, q.ID)
}
