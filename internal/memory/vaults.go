package memory

import (
	"context"

	"cairn/internal/store"
)

// Vault is the JSON form of a vault.
type Vault struct {
	VaultID      string `json:"vaultId"`
	ActorID      string `json:"actorId"` // its owner
	Title        string `json:"title"`   // unique per user
	Description  string `json:"description"`
	CreationTime Time   `json:"creationTime"`
}

// Memory is the JSON form of a memory.
type Memory struct {
	MemoryID     string `json:"memoryId"`
	ActorID      string `json:"actorId"`
	VaultID      string `json:"vaultId"`
	MemoryType   string `json:"memoryType"`
	Title        string `json:"title"` // unique per vault
	Description  string `json:"description"`
	CreationTime Time   `json:"creationTime"`
}

// The documents of changes of vaults and memories.
type (
	VaultDoc struct {
		Key          string `json:"key,omitempty"`
		VaultID      string `json:"vaultId"`
		Title        string `json:"title"`
		Description  string `json:"description"`
		CreationTime Time   `json:"creationTime"`
	}
	MemoryDoc struct {
		Key          string   `json:"key,omitempty"`
		MemoryID     string   `json:"memoryId"`
		VaultID      string   `json:"vaultId"`
		MemoryType   string   `json:"memoryType"`
		Title        string   `json:"title"`
		Description  string   `json:"description"`
		CreationTime Time     `json:"creationTime"`
		Vault        VaultDoc `json:"vault"`

		// Of a default memory: the uids of its project, the one by the strongest key first.
		ProjectUIDs []string `json:"projectUids,omitempty"`
	}
	KeyDoc struct {
		Key string `json:"key"`
	}
)

// VaultColumns reads a Vault: the beginning of a query.
const VaultColumns = `SELECT vault_id, user_id, title, description, creation_ns FROM memory_vaults `

const (
	selectVault        = VaultColumns + `WHERE vault_id = ? AND user_id = ? AND deleting_seq IS NULL`
	selectVaultTitled  = VaultColumns + `WHERE user_id = ? AND title = ?`
	insertVault        = `INSERT INTO memory_vaults (vault_id, user_id, title, description, creation_ns) VALUES (?, ?, ?, ?, ?)`
	selectTitled       = `SELECT memory_id FROM memories WHERE vault_id = ? AND title = ?`
	selectInVault      = `SELECT count(*) FROM memories WHERE vault_id = ?`
	deleteTombstone    = `DELETE FROM memory_tombstones WHERE memory_id = ?1 AND id = ?1`
	selectVaultExists  = `SELECT EXISTS (SELECT 1 FROM memory_vaults WHERE vault_id = ?)`
	selectMemoryExists = `SELECT EXISTS (SELECT 1 FROM memories WHERE memory_id = ?)`
	insertMemory       = `INSERT INTO memories (memory_id, user_id, vault_id, memory_type, title, description, creation_ns, project_key, project_uid)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`
)

// Scan returns the destinations of VaultColumns.
func (v *Vault) Scan() []any {
	return []any{&v.VaultID, &v.ActorID, &v.Title, &v.Description, &v.CreationTime}
}

// Doc returns the document of a vault's put.
func (v Vault) Doc(key string) VaultDoc {
	return VaultDoc{key, v.VaultID, v.Title, v.Description, v.CreationTime}
}

// Doc returns the document of a memory's put.
func (m Memory) Doc(key string, v Vault) MemoryDoc {
	return MemoryDoc{
		Key: key, MemoryID: m.MemoryID, VaultID: m.VaultID, MemoryType: m.MemoryType, Title: m.Title, Description: m.Description,
		CreationTime: m.CreationTime, Vault: v.Doc(""),
	}
}

// Vault returns a vault of the acting user. CodeNotFound for any other.
func (s *CallTx) Vault(ctx context.Context, id string) (v Vault, err error) {
	err = s.Tx.Get(ctx, v.Scan(), selectVault, id, s.User.UserID)
	if IgnoreNone(err) == nil && err != nil {
		return v, NotFound("vault")
	}
	return v, err
}

// VaultTitled finds a vault by its title, also one that is being deleted, because its title is
// still in use.
func (s *CallTx) VaultTitled(ctx context.Context, title string) (v Vault, found bool, err error) {
	err = s.Tx.Get(ctx, v.Scan(), selectVaultTitled, s.User.UserID, title)
	return v, err == nil, IgnoreNone(err)
}

// VaultExists reports whether a vault exists, also another user's.
func (s *CallTx) VaultExists(ctx context.Context, id string) (yes bool, err error) {
	err = s.Tx.Get(ctx, []any{&yes}, selectVaultExists, id)
	return yes, err
}

// MemoryExists is VaultExists for a memory.
func (s *CallTx) MemoryExists(ctx context.Context, id string) (yes bool, err error) {
	err = s.Tx.Get(ctx, []any{&yes}, selectMemoryExists, id)
	return yes, err
}

// MemoryTitled returns the id of the memory of a vault with a title, also of one that is being
// deleted; "" if there is none.
func (s *CallTx) MemoryTitled(ctx context.Context, vault, title string) (id string, err error) {
	err = IgnoreNone(s.Tx.Get(ctx, []any{&id}, selectTitled, vault, title))
	return id, err
}

// MemoriesIn counts the memories of a vault, also those that are being deleted.
func (s *CallTx) MemoriesIn(ctx context.Context, vault string) (n int64, err error) {
	err = s.Tx.Get(ctx, []any{&n}, selectInVault, vault)
	return n, err
}

// PutVault stores and logs a new vault.
func (s *CallTx) PutVault(ctx context.Context, v Vault, key string) error {
	err := s.InsertVault(ctx, v)
	if err == nil {
		_, err = s.LogOn(ctx, v.VaultID, "", KindVault, v.VaultID, store.OpPut, v.Doc(key))
	}
	return err
}

// InsertVault stores the row of a vault.
func (s *CallTx) InsertVault(ctx context.Context, v Vault) error {
	return s.Exec(ctx, insertVault, v.VaultID, v.ActorID, v.Title, v.Description, v.CreationTime)
}

// PutMemory stores and logs a new memory, which becomes the memory of s.
func (s *CallTx) PutMemory(ctx context.Context, m Memory, v Vault, q *Owner, key string) error {
	s.Memory = MemoryRow{Memory: m, Exists: true}
	var of int64
	doc := m.Doc(key, v)
	if q != nil {
		s.Memory.Project, of = q.ID, q.Key
		s.Memory.ProjectUID, doc.ProjectUIDs = q.Keys[0].UID, UIDsOf(q.Keys)
	}
	err := s.InsertMemory(ctx, m, of, s.Memory.ProjectUID)
	if err == nil && q != nil { // a memory with this id may have been deleted earlier
		err = s.Exec(ctx, deleteTombstone, m.MemoryID)
	}
	if err == nil {
		_, err = s.Log(ctx, KindMemory, m.MemoryID, store.OpPut, doc)
	}
	return err
}

// InsertMemory stores the row of a memory. projectKey is that of the project whose default memory
// it is, 0 for none.
func (s *CallTx) InsertMemory(ctx context.Context, m Memory, projectKey int64, uid string) error {
	return s.Exec(ctx, insertMemory, m.MemoryID, m.ActorID, m.VaultID, m.MemoryType, m.Title, m.Description, m.CreationTime,
		Number(projectKey), Nullable(uid))
}
