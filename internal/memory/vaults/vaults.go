package vaults

import (
	"cmp"
	"context"
	"database/sql"

	"cairn/internal/memory"
	"cairn/internal/memory/rules"
	"cairn/internal/store"
)

// Vaults and Memories are lists; the arrays are never nil.
type (
	Vaults struct {
		Vaults []memory.Vault `json:"vaults"`
		Count  int            `json:"count"`
	}
	Memories struct {
		Memories []memory.Memory `json:"memories"`
		Count    int             `json:"count"`
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

const (
	selectVaults = memory.VaultColumns + `WHERE user_id = ? AND deleting_seq IS NULL ORDER BY creation_ns, vault_id`

	selectMemories = `SELECT ` + memory.MemoryColumns + `WHERE m.vault_id = ? AND m.deleting_seq IS NULL ORDER BY m.creation_ns, m.memory_id`
)

// CreateVault creates a vault. Errors: CodeInvalid for title and description,
// CodeExists (Conflict) with details.existing_id.
func (b *Calls) CreateVault(ctx context.Context, c memory.Caller, a NewVault) (memory.Vault, memory.WriteInfo, error) {
	a.Description = b.Redact(a.Description)
	return memory.Mutate(ctx, b.Kernel, c, memory.Call{Body: a}, func(ctx context.Context, s *memory.CallTx) (memory.Step[memory.Vault], error) {
		return memory.Step[memory.Vault]{Route: memory.Route{Method: "POST", Path: "/v1/vaults"}, Do: func(n memory.Issued) (v memory.Vault, err error) {
			old, taken, err := s.VaultTitled(ctx, a.Title)
			if err != nil {
				return v, err
			}
			if taken {
				return v, memory.Conflict(memory.CodeExists, "use the existing one, or another title", "a vault of this title exists already", "existing_id", old.VaultID)
			}
			v = memory.Vault{VaultID: rules.NewID(), ActorID: s.User.UserID, Title: a.Title, Description: a.Description, CreationTime: memory.Time(s.Tx.Now().UnixNano())}
			return v, s.PutVault(ctx, v, n.Hub)
		}}, cmp.Or(s.Caller.May(memory.Write), rules.ValidateTitle(a.Title, a.Description))
	})
}

// Vaults lists the acting user's vaults, oldest first.
func (b *Calls) Vaults(ctx context.Context, c memory.Caller) (Vaults, error) {
	out := Vaults{Vaults: []memory.Vault{}}
	if err := c.CheckArgs(); err != nil {
		return out, err
	}
	err := b.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		s, err := b.Enter(ctx, tx, c, false)
		if err != nil {
			return err
		}
		return tx.Each(ctx, func(rows *sql.Rows) error {
			var v memory.Vault
			err := rows.Scan(v.Scan()...)
			out.Vaults = append(out.Vaults, v)
			return err
		}, selectVaults, s.User.UserID)
	})
	out.Count = len(out.Vaults)
	return out, err
}

// Vault returns one vault of the acting user. CodeNotFound for any other.
func (b *Calls) Vault(ctx context.Context, c memory.Caller, id string) (v memory.Vault, err error) {
	err = b.readVault(ctx, c, id, func(_ context.Context, _ *memory.CallTx, found memory.Vault) error {
		v = found
		return nil
	})
	return v, err
}

// Memories lists the memories of a vault, oldest first. CodeNotFound for a vault that is missing
// or another user's.
func (b *Calls) Memories(ctx context.Context, c memory.Caller, vault string) (Memories, error) {
	out := Memories{Memories: []memory.Memory{}}
	err := b.readVault(ctx, c, vault, func(ctx context.Context, s *memory.CallTx, v memory.Vault) error {
		return s.Tx.Each(ctx, func(rows *sql.Rows) error {
			var m memory.MemoryRow
			err := rows.Scan(m.Scan()...)
			out.Memories = append(out.Memories, m.Memory)
			return err
		}, selectMemories, v.VaultID)
	})
	out.Count = len(out.Memories)
	return out, err
}

func (b *Calls) readVault(ctx context.Context, c memory.Caller, id string, fn func(context.Context, *memory.CallTx, memory.Vault) error) error {
	id, err := rules.UUIDArg("vault_id", id)
	if err = cmp.Or(err, c.CheckArgs()); err != nil {
		return err
	}
	return b.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		s, err := b.Enter(ctx, tx, c, false)
		if err != nil {
			return err
		}
		v, err := s.Vault(ctx, id)
		if err != nil {
			return err
		}
		return fn(ctx, s, v)
	})
}

// CreateMemory creates a memory in a vault. Errors: CodeNotFound for a vault that is missing or
// another user's, CodeInvalid, CodeExists (Conflict) with details.existing_id.
func (b *Calls) CreateMemory(ctx context.Context, c memory.Caller, a NewMemory) (memory.Memory, memory.WriteInfo, error) {
	vault, err := rules.UUIDArg("vault_id", a.VaultID)
	if err != nil {
		return memory.Memory{}, memory.WriteInfo{}, err
	}
	a.VaultID, a.Description = vault, b.Redact(a.Description)
	if a.MemoryType == "" {
		a.MemoryType = "chat"
	}
	return memory.Mutate(ctx, b.Kernel, c, memory.Call{Body: a}, func(ctx context.Context, s *memory.CallTx) (memory.Step[memory.Memory], error) {
		v, err := s.Vault(ctx, vault)
		if err != nil {
			return memory.Step[memory.Memory]{}, err
		}
		at := memory.Route{Method: "POST", Path: "/v1/vaults/" + vault + "/memories"}
		return memory.Step[memory.Memory]{Route: at, Do: func(n memory.Issued) (m memory.Memory, err error) {
				existing, err := s.MemoryTitled(ctx, v.VaultID, a.Title)
				if err != nil {
					return m, err
				}
				if existing != "" {
					return m, memory.Conflict(memory.CodeExists, "use the existing one, or another title", "a memory of this title exists already in the vault",
						"existing_id", existing)
				}
				m = memory.Memory{MemoryID: rules.NewID(), ActorID: s.User.UserID, VaultID: v.VaultID, MemoryType: a.MemoryType, Title: a.Title,
					Description: a.Description, CreationTime: memory.Time(s.Tx.Now().UnixNano())}
				return m, s.PutMemory(ctx, m, v, nil, n.Hub)
			}}, cmp.Or(s.Caller.May(memory.Write), rules.CheckTitle(a.Title), rules.ValidateType(a.MemoryType),
				rules.CheckLength("description", a.Description, rules.MaxDescription))
	})
}

// Memory returns one memory of the acting user. `default` is the current project's. If that was
// never written, it has only an id, or nothing if the project does not exist yet. CodeNotFound
// for any other memory.
func (b *Calls) Memory(ctx context.Context, c memory.Caller, id string) (m memory.Memory, err error) {
	if id, err = memory.MemoryArg(id); err != nil {
		return m, err
	}
	if err = c.CheckArgs(); err != nil {
		return m, err
	}
	err = b.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		s, err := b.Enter(ctx, tx, c, false)
		if err == nil {
			err = s.Open(ctx, id)
			m = s.Memory.Memory
		}
		return err
	})
	return m, err
}
