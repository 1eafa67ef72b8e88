package memory

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
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
	selectMemoryOf = `SELECT ` + MemoryColumns + `WHERE m.user_id = ? AND m.project_key = ? AND m.deleting_seq IS NULL
ORDER BY m.creation_ns, m.memory_id LIMIT 1`
	selectMemoryFree = selectMemory + ` AND m.project_key IS NULL`

	// It reads all memories of the user, but runs only for a project without a link.
	selectMemoryOfUID = `SELECT ` + MemoryColumns + `WHERE m.user_id = ? AND m.project_uid = ? AND m.project_key IS NULL AND m.deleting_seq IS NULL
ORDER BY m.creation_ns, m.memory_id LIMIT 1`
	selectMemoryTitled = `SELECT ` + MemoryColumns + `JOIN memory_vaults v ON v.vault_id = m.vault_id
WHERE v.user_id = ? AND v.title = ? AND m.title = 'main' AND m.project_key IS NULL AND m.deleting_seq IS NULL`

	linkMemory   = `UPDATE memories SET project_key = ?2 WHERE memory_id = ?1`
	unlinkMemory = `UPDATE memories SET project_key = NULL WHERE memory_id = ?1`
	updateUID    = `UPDATE memories SET project_uid = ?2 WHERE memory_id = ?1`
)

// UIDDigits is the length of a project's uid. nameLength is the maximum length of the name before
// it in a title.
const (
	UIDDigits  = 20
	nameLength = rules.MaxTitle - UIDDigits - 1
)

// OpenDefault finds the default memory of the current project, or sets the id that it will have. A
// default memory belongs to the key of the project, not to its name (amendments §C.3). It is the
// first of these: the memory that
//
//   - is linked with the project on this device,
//   - has the id that is derived from one of the project's keys,
//   - the hub or another device assigned to the project's uid,
//   - has the title that follows from the project's strongest key,
//   - has the title by which an earlier release found it, if the project and the memory
//     are from that time.
func (s *CallTx) OpenDefault(ctx context.Context) error {
	s.Memory, s.keys = MemoryRow{}, nil
	q, known, err := s.currentProject(ctx)
	if err != nil || s.User.UserID == "" {
		return err
	}
	if known {
		found, err := s.FindDefault(ctx, q)
		s.at = q
		if err != nil || found {
			return err
		}
		s.keys, err = project.KeysOf(ctx, s.Tx, q)
		if err != nil {
			return err
		}
	} else if s.Caller.ProjectID == "" {
		key, err := project.KeyAt(ctx, s.Tx, s.Caller.Place)
		if err != nil || key.UID == "" {
			return err
		}
		s.keys = []project.KeyUID{key}
	}
	found, err := s.FindFree(ctx, s.keys)
	if err == nil && !found && known {
		found, err = s.FindTitled(ctx, q)
	}
	if err != nil || found || !known {
		return err
	}
	_, memory := defaultIDs(s.User.UserID, s.keys[0])
	taken, err := s.MemoryExists(ctx, memory) // by a memory that now belongs to another project
	if err == nil && !taken {
		s.Memory.MemoryID, s.Memory.ActorID = memory, s.User.UserID
	}
	return err
}

// FindDefault finds the memory that is linked with a project as its default memory.
func (s *CallTx) FindDefault(ctx context.Context, q project.Project) (found bool, err error) {
	return s.find(ctx, selectMemoryOf, s.User.UserID, q.Key)
}

// FindFree finds the default memory that belongs to one of the keys and is linked with
// no project here.
func (s *CallTx) FindFree(ctx context.Context, keys []project.KeyUID) (found bool, err error) {
	for _, key := range keys {
		_, memory := defaultIDs(s.User.UserID, key)
		if found, err = s.findOf(ctx, keys, selectMemoryFree, memory); found || err != nil {
			return found, err
		}
	}
	if len(keys) == 0 {
		return false, nil
	}
	if found, err = s.find(ctx, selectMemoryOfUID, s.User.UserID, keys[0].UID); found || err != nil {
		return found, err
	}
	return s.findOf(ctx, keys, selectMemoryTitled, s.User.UserID, defaultTitle(keys[0]))
}

// findOf is find, but does not find a memory that belongs to a project without one of the keys.
func (s *CallTx) findOf(ctx context.Context, keys []project.KeyUID, query string, args ...any) (bool, error) {
	found, err := s.find(ctx, query, args...)
	if err != nil || !found || s.Memory.ProjectUID == "" ||
		slices.ContainsFunc(keys, func(key project.KeyUID) bool { return key.UID == s.Memory.ProjectUID }) {
		return found, err
	}
	s.Memory = MemoryRow{}
	return false, nil
}

// FindTitled finds the default memory of a project of an earlier release by its title.
func (s *CallTx) FindTitled(ctx context.Context, q project.Project) (bool, error) {
	text, found, err := s.Tx.Meta(ctx, metaTitled)
	if err != nil || !found {
		return false, err
	}
	if newest, err := strconv.ParseInt(text, 10, 64); err != nil || newest < q.Key {
		return false, nil
	}
	return s.findOf(ctx, nil, selectMemoryTitled, s.User.UserID, TitleOf(q.ID))
}

// OpenToWrite is open, and creates a default memory that was never written. It calls
// check first, so that a refused write creates nothing.
func (s *CallTx) OpenToWrite(ctx context.Context, memory string, check func() error) error {
	if err := s.Open(ctx, memory); err != nil {
		return err
	}
	if err := check(); err != nil {
		return err
	}
	if memory == DefaultMemory && s.Caller.isNowhere() {
		return project.Required(ctx, s.Tx)
	}
	switch {
	case !s.Memory.Exists:
		return s.makeDefault(ctx)
	case memory == DefaultMemory && (s.Memory.Project == "" || s.at.UID != "" && s.Memory.ProjectUID != s.at.UID):
		return s.adopt(ctx)
	}
	return nil
}

// resolveProject returns the current project and creates its row if it has none.
func (s *CallTx) resolveProject(ctx context.Context) (project.Project, error) {
	if s.Caller.ProjectID != "" {
		return project.Ensure(ctx, s.Tx, s.Caller.ProjectID)
	}
	return project.Resolve(ctx, s.Tx, s.Caller.Place)
}

// adopt links a default memory with the current project and logs the project.
func (s *CallTx) adopt(ctx context.Context) error {
	q, err := s.resolveProject(ctx)
	if err != nil {
		return err
	}
	if s.Memory.Project == "" {
		if err := s.Link(ctx, q); err != nil {
			return err
		}
	}
	return s.claim(ctx, q)
}

// Link makes the scope's memory the default memory of a project.
func (s *CallTx) Link(ctx context.Context, q project.Project) error {
	err := s.Exec(ctx, linkMemory, s.Memory.MemoryID, q.Key)
	s.Memory.Project = q.ID
	return err
}

// Unlink ends that the scope's memory is the default memory of a project.
func (s *CallTx) Unlink(ctx context.Context) error {
	return s.Exec(ctx, unlinkMemory, s.Memory.MemoryID)
}

// SetProjectUID stores the uid of the project of a memory.
func (s *CallTx) SetProjectUID(ctx context.Context, memory, uid string) error {
	return s.Exec(ctx, updateUID, memory, uid)
}

// claim logs the scope's memory again with the uids of its project, so that other devices with
// the project find it. It does so once for each uid.
func (s *CallTx) claim(ctx context.Context, q project.Project) error {
	keys, err := project.KeysOf(ctx, s.Tx, q)
	if err != nil || s.Memory.ProjectUID == keys[0].UID {
		return err
	}
	if err := s.SetProjectUID(ctx, s.Memory.MemoryID, keys[0].UID); err != nil {
		return err
	}
	s.Memory.ProjectUID = keys[0].UID
	if !keys[0].Portable {
		return nil
	}
	return s.Announce(ctx, UIDsOf(keys), "")
}

// Announce logs the put of the scope's memory again, with the uids of its project. round makes the
// key of a repeated announcement unique.
func (s *CallTx) Announce(ctx context.Context, uids []string, round string) error {
	v, err := s.Vault(ctx, s.Memory.VaultID)
	if err != nil {
		return err
	}
	doc := s.Memory.Memory.Doc(HubKey("PUT", "project/"+s.Memory.MemoryID, strings.Join(uids, " ")+round), v)
	doc.ProjectUIDs = uids
	_, err = s.Log(ctx, KindMemory, s.Memory.MemoryID, store.OpPut, doc)
	return err
}

// makeDefault creates the default memory of the current project, with its vault (memories §2).
func (s *CallTx) makeDefault(ctx context.Context) error {
	q, err := s.resolveProject(ctx)
	if err != nil {
		return err
	}
	keys, err := project.KeysOf(ctx, s.Tx, q)
	if err != nil {
		return err
	}
	vault, memory := defaultIDs(s.User.UserID, keys[0])
	s.Memory.MemoryID = memory
	deleted, err := s.WasDeleted(ctx, memory)
	var taken bool
	if err == nil && !deleted {
		taken, err = s.MemoryExists(ctx, memory)
	}
	if err != nil {
		return err
	}
	if deleted || taken {
		memory = rules.NewID() // a deleted id stays deleted, here and wherever the log is applied; its title is free
	}
	if taken, err = s.VaultExists(ctx, vault); err != nil {
		return err
	}
	if taken { // by a vault with another title; one with this title is found below
		vault = rules.NewID()
	}
	now := Time(s.Tx.Now().UnixNano())
	title := defaultTitle(keys[0])
	v, found, err := s.VaultTitled(ctx, title)
	if err == nil && !found {
		v = Vault{VaultID: vault, ActorID: s.User.UserID, Title: title, Description: s.Redact(defaultDescription(q, keys[0])), CreationTime: now}
		err = s.PutVault(ctx, v, HubKey("POST", "/v1/vaults", rules.NewID()))
	}
	if err != nil {
		return err
	}
	name, err := s.freeTitle(ctx, v)
	if err != nil {
		return err
	}
	m := Memory{MemoryID: memory, ActorID: s.User.UserID, VaultID: v.VaultID, MemoryType: "code", Title: name, CreationTime: now}
	return s.PutMemory(ctx, m, v, &Owner{q, keys}, HubKey("POST", "/v1/vaults/"+v.VaultID+"/memories", rules.NewID()))
}

const selectIsHidden = `SELECT deleting_seq IS NOT NULL FROM memories WHERE vault_id = ? AND title = ?`

// freeTitle returns the title of a new default memory in a vault: main, or main with a number if
// the memory main belongs to another project after a split.
func (s *CallTx) freeTitle(ctx context.Context, v Vault) (string, error) {
	for n := 1; ; n++ {
		title := "main"
		if n > 1 {
			title += "-" + strconv.Itoa(n)
		}
		var hidden bool
		err := s.Tx.Get(ctx, []any{&hidden}, selectIsHidden, v.VaultID, title)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return title, nil
		case err != nil:
			return "", err
		case hidden:
			return "", NotFound("memory") // it is being deleted
		}
	}
}

// Owner is the project of a default memory.
type Owner struct {
	project.Project
	Keys []project.KeyUID
}

// maxUIDs is the maximum number of uids in a memory's document.
const maxUIDs = 8

// UIDsOf returns the uids of portable keys, the strongest first; nil if the strongest key is not
// portable.
func UIDsOf(keys []project.KeyUID) (uids []string) {
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

// ProjectUID returns the uid by the strongest key in a memory's document, "" if it has none.
func (d *MemoryDoc) ProjectUID() string {
	if len(d.ProjectUIDs) == 0 || len(d.ProjectUIDs[0]) != UIDDigits {
		return ""
	}
	return d.ProjectUIDs[0]
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

// TitleOf returns the title that a project's vault had in stores of earlier releases.
func TitleOf(project string) string {
	if rules.CheckTitle(project) == nil {
		return project
	}
	title := strings.Map(func(r rune) rune {
		if rules.IsTitleRune(r) {
			return r
		}
		return '-'
	}, project)
	sum := sha256.Sum256([]byte(project))
	return title[:min(len(title), 41)] + "-" + hex.EncodeToString(sum[:4])
}
