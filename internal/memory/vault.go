package memory

import (
	"context"
	"database/sql"

	"cairn/internal/memory/rules"
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

// Vaults and Memories are lists; the arrays are never nil.
type (
	Vaults struct {
		Vaults []Vault `json:"vaults"`
		Count  int     `json:"count"`
	}
	Memories struct {
		Memories []Memory `json:"memories"`
		Count    int      `json:"count"`
	}
)

// NewVault contains the arguments of CreateVault.
type NewVault struct {
	Title       string `json:"title" arg:"title,required"`
	Description string `json:"description" arg:"description"`
}

// NewMemory contains the arguments of CreateMemory.
type NewMemory struct {
	VaultID     string `json:"vaultId" arg:"vault_id,required,nonempty"`
	Title       string `json:"title" arg:"title,required"`
	MemoryType  string `json:"memoryType" arg:"memory_type,default=chat" about:"The kind of memory, one word: lower-case letters, digits, hyphens, underscores."`
	Description string `json:"description" arg:"description"`
}

// The documents of changes of vaults and memories.
type (
	vaultDoc struct {
		Key          string `json:"key,omitempty"`
		VaultID      string `json:"vaultId"`
		Title        string `json:"title"`
		Description  string `json:"description"`
		CreationTime Time   `json:"creationTime"`
	}
	memoryDoc struct {
		Key          string   `json:"key,omitempty"`
		MemoryID     string   `json:"memoryId"`
		VaultID      string   `json:"vaultId"`
		MemoryType   string   `json:"memoryType"`
		Title        string   `json:"title"`
		Description  string   `json:"description"`
		CreationTime Time     `json:"creationTime"`
		Vault        vaultDoc `json:"vault"`

		// Of a default memory: the uids of its project, the one by the strongest key first.
		ProjectUIDs []string `json:"projectUids,omitempty"`
	}
	keyDoc struct {
		Key string `json:"key"`
	}
)

const (
	vaultColumns      = `SELECT vault_id, user_id, title, description, creation_ns FROM memory_vaults `
	selectVault       = vaultColumns + `WHERE vault_id = ? AND user_id = ? AND deleting_seq IS NULL`
	selectVaultTitled = vaultColumns + `WHERE user_id = ? AND title = ?`
	selectVaults      = vaultColumns + `WHERE user_id = ? AND deleting_seq IS NULL ORDER BY creation_ns, vault_id`
	insertVault       = `INSERT INTO memory_vaults (vault_id, user_id, title, description, creation_ns) VALUES (?, ?, ?, ?, ?)`

	selectMemories  = `SELECT ` + memoryColumns + `WHERE m.vault_id = ? AND m.deleting_seq IS NULL ORDER BY m.creation_ns, m.memory_id`
	selectTitled    = `SELECT memory_id FROM memories WHERE vault_id = ? AND title = ?`
	deleteTombstone = `DELETE FROM memory_tombstones WHERE memory_id = ?1 AND id = ?1`
	insertMemory    = `INSERT INTO memories (memory_id, user_id, vault_id, memory_type, title, description, creation_ns, project_key, project_uid)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`
)

func (v *Vault) scan() []any {
	return []any{&v.VaultID, &v.ActorID, &v.Title, &v.Description, &v.CreationTime}
}

func (v Vault) doc(key string) vaultDoc {
	return vaultDoc{key, v.VaultID, v.Title, v.Description, v.CreationTime}
}

// doc returns the document of a memory's put.
func (m Memory) doc(key string, v Vault) memoryDoc {
	return memoryDoc{
		Key: key, MemoryID: m.MemoryID, VaultID: m.VaultID, MemoryType: m.MemoryType, Title: m.Title, Description: m.Description,
		CreationTime: m.CreationTime, Vault: v.doc(""),
	}
}

// CreateVault creates a vault. Errors: CodeInvalid for title and description,
// CodeExists (Conflict) with details.existing_id.
func (b *Service) CreateVault(ctx context.Context, c Caller, a NewVault) (Vault, WriteInfo, error) {
	a.Description = b.redact(a.Description)
	return mutate(ctx, b, c, call{body: a}, func(ctx context.Context, s *callTx) (step[Vault], error) {
		return step[Vault]{route: route{"POST", "/v1/vaults"}, do: func(n issued) (v Vault, err error) {
			old, taken, err := s.vaultTitled(ctx, a.Title)
			if err != nil {
				return v, err
			}
			if taken {
				return v, conflict(CodeExists, "use the existing one, or another title", "a vault of this title exists already", "existing_id", old.VaultID)
			}
			v = Vault{VaultID: rules.NewID(), ActorID: s.u.ID, Title: a.Title, Description: a.Description, CreationTime: Time(s.tx.Now().UnixNano())}
			return v, s.putVault(ctx, v, n.hub)
		}}, firstError(s.c.may(Write), rules.ValidateTitle(a.Title, a.Description))
	})
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Vaults lists the acting user's vaults, oldest first.
func (b *Service) Vaults(ctx context.Context, c Caller) (Vaults, error) {
	out := Vaults{Vaults: []Vault{}}
	if err := c.checkArgs(); err != nil {
		return out, err
	}
	err := b.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		s, err := b.enter(ctx, tx, c, false)
		if err != nil {
			return err
		}
		return tx.Each(ctx, func(rows *sql.Rows) error {
			var v Vault
			err := rows.Scan(v.scan()...)
			out.Vaults = append(out.Vaults, v)
			return err
		}, selectVaults, s.u.ID)
	})
	out.Count = len(out.Vaults)
	return out, err
}

// Vault returns one vault of the acting user. CodeNotFound for any other.
func (b *Service) Vault(ctx context.Context, c Caller, id string) (v Vault, err error) {
	err = b.readVault(ctx, c, id, func(_ context.Context, _ *callTx, found Vault) error {
		v = found
		return nil
	})
	return v, err
}

// Memories lists the memories of a vault, oldest first. CodeNotFound for a vault that is missing
// or another user's.
func (b *Service) Memories(ctx context.Context, c Caller, vault string) (Memories, error) {
	out := Memories{Memories: []Memory{}}
	err := b.readVault(ctx, c, vault, func(ctx context.Context, s *callTx, v Vault) error {
		return s.tx.Each(ctx, func(rows *sql.Rows) error {
			var m memoryRow
			err := rows.Scan(m.scan()...)
			out.Memories = append(out.Memories, m.Memory)
			return err
		}, selectMemories, v.VaultID)
	})
	out.Count = len(out.Memories)
	return out, err
}

func (b *Service) readVault(ctx context.Context, c Caller, id string, fn func(context.Context, *callTx, Vault) error) error {
	id, err := rules.UUIDArg("vault_id", id)
	if err = firstError(err, c.checkArgs()); err != nil {
		return err
	}
	return b.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		s, err := b.enter(ctx, tx, c, false)
		if err != nil {
			return err
		}
		v, err := s.vault(ctx, id)
		if err != nil {
			return err
		}
		return fn(ctx, s, v)
	})
}

// vault returns a vault of the acting user. CodeNotFound for any other.
func (s *callTx) vault(ctx context.Context, id string) (v Vault, err error) {
	err = s.tx.Get(ctx, v.scan(), selectVault, id, s.u.ID)
	if ignoreNone(err) == nil && err != nil {
		return v, notFound("vault")
	}
	return v, err
}

// vaultTitled finds a vault by its title, also one that is being deleted, because its title is
// still in use.
func (s *callTx) vaultTitled(ctx context.Context, title string) (v Vault, found bool, err error) {
	err = s.tx.Get(ctx, v.scan(), selectVaultTitled, s.u.ID, title)
	return v, err == nil, ignoreNone(err)
}

// putVault stores and logs a new vault.
func (s *callTx) putVault(ctx context.Context, v Vault, key string) error {
	_, err := s.tx.Exec(ctx, insertVault, v.VaultID, v.ActorID, v.Title, v.Description, v.CreationTime)
	if err == nil {
		_, err = s.logOn(ctx, v.VaultID, "", KindVault, v.VaultID, store.OpPut, v.doc(key))
	}
	return err
}

// CreateMemory creates a memory in a vault. Errors: CodeNotFound for a vault that is missing or
// another user's, CodeInvalid, CodeExists (Conflict) with details.existing_id.
func (b *Service) CreateMemory(ctx context.Context, c Caller, a NewMemory) (Memory, WriteInfo, error) {
	vault, err := rules.UUIDArg("vault_id", a.VaultID)
	if err != nil {
		return Memory{}, WriteInfo{}, err
	}
	a.VaultID, a.Description = vault, b.redact(a.Description)
	if a.MemoryType == "" {
		a.MemoryType = "chat"
	}
	return mutate(ctx, b, c, call{body: a}, func(ctx context.Context, s *callTx) (step[Memory], error) {
		v, err := s.vault(ctx, vault)
		if err != nil {
			return step[Memory]{}, err
		}
		return step[Memory]{route: route{"POST", "/v1/vaults/" + vault + "/memories"}, do: func(n issued) (m Memory, err error) {
			var existing string
			err = s.tx.Get(ctx, []any{&existing}, selectTitled, v.VaultID, a.Title)
			if err == nil {
				return m, conflict(CodeExists, "use the existing one, or another title", "a memory of this title exists already in the vault",
					"existing_id", existing)
			}
			if err = ignoreNone(err); err != nil {
				return m, err
			}
			m = Memory{MemoryID: rules.NewID(), ActorID: s.u.ID, VaultID: v.VaultID, MemoryType: a.MemoryType, Title: a.Title,
				Description: a.Description, CreationTime: Time(s.tx.Now().UnixNano())}
			return m, s.putMemory(ctx, m, v, nil, n.hub)
		}}, firstError(s.c.may(Write), rules.CheckTitle(a.Title), rules.ValidateType(a.MemoryType), rules.CheckLength("description", a.Description, rules.MaxDescription))
	})
}

// putMemory stores and logs a new memory, which becomes the memory of s.
func (s *callTx) putMemory(ctx context.Context, m Memory, v Vault, q *owner, key string) error {
	s.m = memoryRow{Memory: m, exists: true}
	var of sql.NullInt64
	doc := m.doc(key, v)
	if q != nil {
		s.m.project, of = q.ID, sql.NullInt64{Int64: q.Key, Valid: true}
		s.m.projectUID, doc.ProjectUIDs = q.keys[0].UID, uidsOf(q.keys)
	}
	_, err := s.tx.Exec(ctx, insertMemory, m.MemoryID, m.ActorID, m.VaultID, m.MemoryType, m.Title, m.Description, m.CreationTime, of,
		nullable(s.m.projectUID))
	if err == nil && q != nil { // a memory with this id may have been deleted earlier
		_, err = s.tx.Exec(ctx, deleteTombstone, m.MemoryID)
	}
	if err == nil {
		_, err = s.log(ctx, KindMemory, m.MemoryID, store.OpPut, doc)
	}
	return err
}

// Memory returns one memory of the acting user. `default` is the current project's. If that was
// never written, it has only an id, or nothing if the project does not exist yet. CodeNotFound
// for any other memory.
func (b *Service) Memory(ctx context.Context, c Caller, id string) (m Memory, err error) {
	if id, err = memoryArg(id); err != nil {
		return m, err
	}
	if err = c.checkArgs(); err != nil {
		return m, err
	}
	err = b.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		s, err := b.enter(ctx, tx, c, false)
		if err == nil {
			err = s.open(ctx, id)
			m = s.m.Memory
		}
		return err
	})
	return m, err
}
