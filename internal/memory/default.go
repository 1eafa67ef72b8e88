package memory

import (
	"context"
	"database/sql"
	"errors"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"cairn/internal/memory/rules"
	"cairn/internal/project"
	"cairn/internal/store"
)

// metaTitled is the name of the note of the newest project of an earlier release.
const metaTitled = "memory.titled"

const (
	selectMemoryOf = `SELECT ` + memoryColumns + `WHERE m.user_id = ? AND m.project_key = ? AND m.deleting_seq IS NULL
ORDER BY m.creation_ns, m.memory_id LIMIT 1`
	selectMemoryFree = selectMemory + ` AND m.project_key IS NULL`

	// It reads all memories of the user, but runs only for a project without a link.
	selectMemoryOfUID = `SELECT ` + memoryColumns + `WHERE m.user_id = ? AND m.project_uid = ? AND m.project_key IS NULL AND m.deleting_seq IS NULL
ORDER BY m.creation_ns, m.memory_id LIMIT 1`
	selectMemoryTitled = `SELECT ` + memoryColumns + `JOIN memory_vaults v ON v.vault_id = m.vault_id
WHERE v.user_id = ? AND v.title = ? AND m.title = 'main' AND m.project_key IS NULL AND m.deleting_seq IS NULL`

	linkMemory   = `UPDATE memories SET project_key = ?2 WHERE memory_id = ?1`
	unlinkMemory = `UPDATE memories SET project_key = NULL WHERE memory_id = ?1`
	updateUID    = `UPDATE memories SET project_uid = ?2 WHERE memory_id = ?1`
)

// uidDigits is the length of a project's uid. nameLength is the maximum length of the name before
// it in a title.
const (
	uidDigits  = 20
	nameLength = rules.MaxTitle - uidDigits - 1
)

// openDefault finds the default memory of the current project, or sets the id that it will have. A
// default memory belongs to the key of the project, not to its name (amendments §C.3). It is the
// first of these: the memory that
//
//   - is linked with the project on this device,
//   - has the id that is derived from one of the project's keys,
//   - the hub or another device assigned to the project's uid,
//   - has the title that follows from the project's strongest key,
//   - has the title by which an earlier release found it, if the project and the memory
//     are from that time.
func (s *callTx) openDefault(ctx context.Context) error {
	s.m, s.keys = memoryRow{}, nil
	q, known, err := s.currentProject(ctx)
	if err != nil || s.u.ID == "" {
		return err
	}
	if known {
		found, err := s.find(ctx, selectMemoryOf, s.u.ID, q.Key)
		s.at = q
		if err != nil || found {
			return err
		}
		s.keys, err = project.KeysOf(ctx, s.tx, q)
		if err != nil {
			return err
		}
	} else if s.c.ProjectID == "" {
		key, err := project.KeyAt(ctx, s.tx, s.c.Place)
		if err != nil || key.UID == "" {
			return err
		}
		s.keys = []project.KeyUID{key}
	}
	found, err := s.findFree(ctx, s.keys)
	if err == nil && !found && known {
		found, err = s.findTitled(ctx, q)
	}
	if err != nil || found || !known {
		return err
	}
	_, memory := defaultIDs(s.u.ID, s.keys[0])
	var taken bool // by a memory that now belongs to another project
	if err = s.tx.Get(ctx, []any{&taken}, selectMemoryExists, memory); err == nil && !taken {
		s.m.MemoryID, s.m.ActorID = memory, s.u.ID
	}
	return err
}

// findFree finds the default memory that belongs to one of the keys and is linked with
// no project here.
func (s *callTx) findFree(ctx context.Context, keys []project.KeyUID) (found bool, err error) {
	for _, key := range keys {
		_, memory := defaultIDs(s.u.ID, key)
		if found, err = s.findOf(ctx, keys, selectMemoryFree, memory); found || err != nil {
			return found, err
		}
	}
	if len(keys) == 0 {
		return false, nil
	}
	if found, err = s.find(ctx, selectMemoryOfUID, s.u.ID, keys[0].UID); found || err != nil {
		return found, err
	}
	return s.findOf(ctx, keys, selectMemoryTitled, s.u.ID, defaultTitle(keys[0]))
}

// findOf is find, but does not find a memory that belongs to a project without one of the keys.
func (s *callTx) findOf(ctx context.Context, keys []project.KeyUID, query string, args ...any) (bool, error) {
	found, err := s.find(ctx, query, args...)
	if err != nil || !found || s.m.projectUID == "" ||
		slices.ContainsFunc(keys, func(key project.KeyUID) bool { return key.UID == s.m.projectUID }) {
		return found, err
	}
	s.m = memoryRow{}
	return false, nil
}

// findTitled finds the default memory of a project of an earlier release by its title.
func (s *callTx) findTitled(ctx context.Context, q project.Project) (bool, error) {
	text, found, err := s.tx.Meta(ctx, metaTitled)
	if err != nil || !found {
		return false, err
	}
	if newest, err := strconv.ParseInt(text, 10, 64); err != nil || newest < q.Key {
		return false, nil
	}
	return s.findOf(ctx, nil, selectMemoryTitled, s.u.ID, titleOf(q.ID))
}

// openToWrite is open, and creates a default memory that was never written. It calls
// check first, so that a refused write creates nothing.
func (s *callTx) openToWrite(ctx context.Context, memory string, check func() error) error {
	if err := s.open(ctx, memory); err != nil {
		return err
	}
	if err := check(); err != nil {
		return err
	}
	if memory == DefaultMemory && s.c.isNowhere() {
		return project.Required(ctx, s.tx)
	}
	switch {
	case !s.m.exists:
		return s.makeDefault(ctx)
	case memory == DefaultMemory && (s.m.project == "" || s.at.UID != "" && s.m.projectUID != s.at.UID):
		return s.adopt(ctx)
	}
	return nil
}

// resolveProject returns the current project and creates its row if it has none.
func (s *callTx) resolveProject(ctx context.Context) (project.Project, error) {
	if s.c.ProjectID != "" {
		return project.Ensure(ctx, s.tx, s.c.ProjectID)
	}
	return project.Resolve(ctx, s.tx, s.c.Place)
}

// adopt links a default memory with the current project and logs the project.
func (s *callTx) adopt(ctx context.Context) error {
	q, err := s.resolveProject(ctx)
	if err != nil {
		return err
	}
	if s.m.project == "" {
		if err := s.link(ctx, q); err != nil {
			return err
		}
	}
	return s.claim(ctx, q)
}

// link makes the scope's memory the default memory of a project.
func (s *callTx) link(ctx context.Context, q project.Project) error {
	_, err := s.tx.Exec(ctx, linkMemory, s.m.MemoryID, q.Key)
	s.m.project = q.ID
	return err
}

// claim logs the scope's memory again with the uids of its project, so that other devices with
// the project find it. It does so once for each uid.
func (s *callTx) claim(ctx context.Context, q project.Project) error {
	keys, err := project.KeysOf(ctx, s.tx, q)
	if err != nil || s.m.projectUID == keys[0].UID {
		return err
	}
	if _, err := s.tx.Exec(ctx, updateUID, s.m.MemoryID, keys[0].UID); err != nil {
		return err
	}
	s.m.projectUID = keys[0].UID
	if !keys[0].Portable {
		return nil
	}
	return s.announce(ctx, uidsOf(keys), "")
}

// announce logs the put of the scope's memory again, with the uids of its project. round makes the
// key of a repeated announcement unique.
func (s *callTx) announce(ctx context.Context, uids []string, round string) error {
	v, err := s.vault(ctx, s.m.VaultID)
	if err != nil {
		return err
	}
	doc := s.m.Memory.doc(hubKey("PUT", "project/"+s.m.MemoryID, strings.Join(uids, " ")+round), v)
	doc.ProjectUIDs = uids
	_, err = s.log(ctx, KindMemory, s.m.MemoryID, store.OpPut, doc)
	return err
}

// makeDefault creates the default memory of the current project, with its vault (memories §2).
func (s *callTx) makeDefault(ctx context.Context) error {
	q, err := s.resolveProject(ctx)
	if err != nil {
		return err
	}
	keys, err := project.KeysOf(ctx, s.tx, q)
	if err != nil {
		return err
	}
	vault, memory := defaultIDs(s.u.ID, keys[0])
	s.m.MemoryID = memory
	deleted, err := s.wasDeleted(ctx, memory)
	var taken bool
	if err == nil && !deleted {
		err = s.tx.Get(ctx, []any{&taken}, selectMemoryExists, memory)
	}
	if err != nil {
		return err
	}
	if deleted || taken {
		memory = rules.NewID() // a deleted id stays deleted, here and wherever the log is applied; its title is free
	}
	if err := s.tx.Get(ctx, []any{&taken}, selectVaultAny, vault); err != nil {
		return err
	}
	if taken { // by a vault with another title; one with this title is found below
		vault = rules.NewID()
	}
	now := Time(s.tx.Now().UnixNano())
	title := defaultTitle(keys[0])
	v, found, err := s.vaultTitled(ctx, title)
	if err == nil && !found {
		v = Vault{VaultID: vault, ActorID: s.u.ID, Title: title, Description: s.redact(defaultDescription(q, keys[0])), CreationTime: now}
		err = s.putVault(ctx, v, hubKey("POST", "/v1/vaults", rules.NewID()))
	}
	if err != nil {
		return err
	}
	name, err := s.freeTitle(ctx, v)
	if err != nil {
		return err
	}
	m := Memory{MemoryID: memory, ActorID: s.u.ID, VaultID: v.VaultID, MemoryType: "code", Title: name, CreationTime: now}
	return s.putMemory(ctx, m, v, &owner{q, keys}, hubKey("POST", "/v1/vaults/"+v.VaultID+"/memories", rules.NewID()))
}

const (
	selectMemoryExists = `SELECT EXISTS (SELECT 1 FROM memories WHERE memory_id = ?)`
	selectIsHidden     = `SELECT deleting_seq IS NOT NULL FROM memories WHERE vault_id = ? AND title = ?`
)

// freeTitle returns the title of a new default memory in a vault: main, or main with a number if
// the memory main belongs to another project after a split.
func (s *callTx) freeTitle(ctx context.Context, v Vault) (string, error) {
	for n := 1; ; n++ {
		title := "main"
		if n > 1 {
			title += "-" + strconv.Itoa(n)
		}
		var hidden bool
		err := s.tx.Get(ctx, []any{&hidden}, selectIsHidden, v.VaultID, title)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return title, nil
		case err != nil:
			return "", err
		case hidden:
			return "", notFound("memory") // it is being deleted
		}
	}
}

// owner is the project of a default memory.
type owner struct {
	project.Project
	keys []project.KeyUID
}

// uidsOf returns the uids of portable keys, the strongest first; nil if the strongest key is not
// portable.
func uidsOf(keys []project.KeyUID) (uids []string) {
	if !keys[0].Portable {
		return nil
	}
	for _, key := range keys {
		if key.Portable && len(uids) < maxUIDs {
			uids = append(uids, key.UID)
		}
	}
	return uids
}

// defaultIDs returns the ids of the vault and the memory of a project with a key.
func defaultIDs(user string, key project.KeyUID) (vault, memory string) {
	vault = rules.DerivedID(user, "vault:"+defaultTitle(key))
	return vault, rules.DerivedID(vault, "memory:main")
}

// defaultTitle returns the title of a project's vault: the name in its key and its uid. It depends
// only on the key, so that two devices with the same remote share a vault even if both first wrote
// offline, and two repositories of one name never do. The uid is complete, because a repository
// could be made to match a shorter part of another one's uid.
func defaultTitle(key project.KeyUID) string {
	kind, rest, ok := strings.Cut(key.Key, ":")
	name := path.Base(filepath.ToSlash(key.Key))
	switch {
	case ok && kind == "name":
		name = rest
	case ok && (kind == "root" || kind == "split"):
		name = "repository"
	}
	name = strings.Map(func(r rune) rune {
		if rules.IsTitleRune(r) {
			return r
		}
		return '-'
	}, name)
	if name = strings.Trim(name[:min(len(name), nameLength)], "-"); name == "" {
		name = "project"
	}
	return name + "-" + key.UID
}

// defaultDescription names the project of a vault.
func defaultDescription(q project.Project, key project.KeyUID) string {
	if strings.Contains(key.Key, ":") {
		return ""
	}
	text := "default memory of " + key.Key
	if len(text) > rules.MaxDescription {
		return "default memory of " + q.ID
	}
	return text
}
