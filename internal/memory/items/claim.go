package items

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"cairn/internal/memory"
	"cairn/internal/memory/rules"
	"cairn/internal/project"
)

const countClaims = `SELECT count(*) FROM changes c JOIN symbols o ON o.id = c.op
WHERE c.kind = (SELECT id FROM symbols WHERE text = 'memory') AND c.id = ? AND c.doc IS NOT NULL AND o.text = 'put'`

// projectOf returns the project here with a uid, and the id of its default memory, ""
// if it has none.
func projectOf(ctx context.Context, s *memory.CallTx, uid string) (q project.Project, memoryID string, ok bool, err error) {
	if uid == "" {
		return q, "", false, nil
	}
	q, ok, err = project.FindKey(ctx, s.Tx, uid)
	if err != nil || !ok || q.UID != uid {
		return q, "", false, err
	}
	other := *s
	found, err := other.FindDefault(ctx, q)
	if err == nil && !found { // another device may have created it with an earlier release
		found, err = other.FindTitled(ctx, q)
	}
	if err != nil || !found {
		return q, "", true, err
	}
	return q, other.Memory.MemoryID, true, nil
}

// meet handles a memory of the hub that is new here and belongs to a project. If the project here
// has a default memory that was never sent, that memory becomes the hub's memory: met is true, and
// both devices write to the same memory. Otherwise the caller stores the memory; q is the project
// to link it with, if that has no default memory yet.
func meet(ctx context.Context, s *memory.CallTx, d *memory.MemoryDoc) (q project.Project, met bool, err error) {
	q, own, ok, err := projectOf(ctx, s, d.ProjectUID())
	if err != nil || !ok {
		return project.Project{}, false, err
	}
	if own == "" {
		return q, false, nil
	}
	res, err := s.Tx.Exec(ctx, updateNewRemote, own, d.MemoryID)
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
func (d *Documents) claimed(ctx context.Context, s *memory.CallTx, uids []string) error {
	uid := (&memory.MemoryDoc{ProjectUIDs: uids}).ProjectUID()
	if s.Memory.Project == "" {
		return claimedFree(ctx, s, uid)
	}
	q, ok, err := project.Find(ctx, s.Tx, s.Memory.Project)
	if err != nil || !ok || q.UID == "" {
		return err
	}
	keys, err := project.KeysOf(ctx, s.Tx, q)
	switch {
	case err != nil || keys[0].UID == uid:
		return err
	case uid == "" || slices.Contains(memory.UIDsOf(keys), uid):
		return d.claimAgain(ctx, s, keys)
	}
	if err = s.Unlink(ctx); err == nil {
		err = s.SetProjectUID(ctx, s.Memory.MemoryID, uid)
	}
	if err == nil {
		err = noteUnlinked(ctx, s, q)
	}
	return err
}

// claimAgain sends the project of a memory to a hub that does not know it, unless changes of the
// memory still wait to be sent, or the hub has another memory for the project.
func (d *Documents) claimAgain(ctx context.Context, s *memory.CallTx, keys []project.KeyUID) error {
	uids := memory.UIDsOf(keys)
	if uids == nil || d.given[uids[0]] || s.Memory.HeadSeq > s.Memory.AckedSeq {
		return nil
	}
	var round int
	if err := s.Tx.Get(ctx, []any{&round}, countClaims, s.Memory.MemoryID); err != nil {
		return err
	}
	if err := s.SetProjectUID(ctx, s.Memory.MemoryID, uids[0]); err != nil {
		return err
	}
	return s.Announce(ctx, uids, "/"+strconv.Itoa(round))
}

// claimedFree is claimed for a memory without a project here.
func claimedFree(ctx context.Context, s *memory.CallTx, uid string) error {
	if uid == "" {
		return nil
	}
	if uid != s.Memory.ProjectUID {
		titled, found, err := titledProject(ctx, s)
		if err == nil && found && titled.UID != uid {
			err = noteUnlinked(ctx, s, titled)
		}
		if err != nil {
			return err
		}
		if err := s.SetProjectUID(ctx, s.Memory.MemoryID, uid); err != nil {
			return err
		}
	}
	q, own, ok, err := projectOf(ctx, s, uid)
	if err != nil || !ok || own != "" {
		return err
	}
	return cmp.Or(s.Link(ctx, q), s.Subscribe(ctx, s.Memory.MemoryID))
}

// titledProject returns the project that found the scope's memory by its title in an earlier
// release.
func titledProject(ctx context.Context, s *memory.CallTx) (q project.Project, found bool, err error) {
	memoryID := s.Memory.MemoryID
	ids, err := s.Tx.Texts(ctx, selectTitles)
	for _, id := range ids {
		if err != nil || found {
			break
		}
		if q, found, err = project.Find(ctx, s.Tx, id); err != nil || !found {
			continue
		}
		other := *s
		if found, err = other.FindTitled(ctx, q); found {
			found = other.Memory.MemoryID == memoryID
		}
	}
	return q, found, err
}

// cataloguedHere updates a memory with its project in the hub's catalogue. A hub of an earlier
// release sends no project.
func (d *Documents) cataloguedHere(ctx context.Context, s *memory.CallTx, doc *Item) error {
	if doc.Kind != memory.KindMemory {
		return nil
	}
	var m memory.MemoryDoc
	if err := json.Unmarshal(doc.Doc, &m); err != nil {
		return rules.Invalid("doc", "the hub's catalogue is not readable")
	}
	if m.ProjectUIDs == nil {
		return nil
	}
	found, err := s.FindRemote(ctx, doc.ID)
	if err == nil && !found {
		found, err = s.FindMemory(ctx, doc.ID)
	}
	if err != nil || !found {
		return err
	}
	return d.claimed(ctx, s, m.ProjectUIDs)
}
