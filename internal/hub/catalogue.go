package hub

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"cairn/internal/fault"
	"cairn/internal/hub/database"
	"cairn/internal/memory"
	"cairn/internal/replica"
)

const (
	insertVault = `INSERT INTO hub_vaults (tenant, vault_id, title, description, created_ns)
VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`
	lockVaultTitled = `UPDATE hub_vaults SET title = title WHERE tenant = $1 AND title = $2
RETURNING vault_id, title, description, created_ns`
	lockVault = `UPDATE hub_vaults SET title = title WHERE tenant = $1 AND vault_id = $2
RETURNING vault_id, title, description, created_ns`
	deleteVault    = `DELETE FROM hub_vaults WHERE tenant = $1 AND vault_id = $2`
	selectInVault  = `SELECT memory_id FROM hub_memories WHERE tenant = $1 AND vault_id = $2 LIMIT 1`
	selectDeletion = `SELECT deleted_ns FROM hub_heads WHERE memory_id = $1 AND tenant = $2`
	insertMemory   = `INSERT INTO hub_memories (tenant, memory_id, vault_id, memory_type, title, description, created_ns, put_seq)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING`
	selectMemory = `SELECT vault_id, title, put_seq FROM hub_memories WHERE tenant = $1 AND memory_id = $2`
	selectTitled = `SELECT memory_id FROM hub_memories WHERE tenant = $1 AND vault_id = $2 AND title = $3`
	deleteMemory = `DELETE FROM hub_memories WHERE tenant = $1 AND memory_id = $2`

	raiseMeta = `INSERT INTO hub_meta (name, value) VALUES ($1, '2')
ON CONFLICT (name) DO UPDATE SET value = CAST(CAST(hub_meta.value AS BIGINT) + 1 AS TEXT)`
)

// raiseCatalogue raises the version of the user's catalogue if the new items change it.
func (st *stream) raiseCatalogue(ctx context.Context) error {
	if !slices.ContainsFunc(st.fresh, func(l logged) bool { return isCatalogued(l.kind) }) {
		return nil
	}
	_, err := st.s.Exec(ctx, raiseMeta, database.MetaCatalogue+st.tenant)
	return err
}

// isCatalogued reports whether items of a kind change the catalogue.
func isCatalogued(kind string) bool {
	return kind == replica.KindVault || kind == replica.KindMemory
}

// catalogueVersion returns the version of a user's catalogue, from 1 on.
func catalogueVersion(ctx context.Context, s database.Statements, tenant string) (int64, error) {
	n, err := s.Number(ctx, database.MetaCatalogue+tenant)
	return max(1, n), err
}

// errDeleted reports that a vault was deleted after the given one was created.
var errDeleted = errors.New("the vault was deleted")

func (st *stream) applyVault(ctx context.Context, in incoming) (replica.Result, error) {
	if in.op == replica.OpDelete {
		return st.deleteVault(ctx, in)
	}
	v, err := st.vault(ctx, *in.doc.Vault, in.at)
	if errors.Is(err, errDeleted) {
		return refused(in.seq, missing("vault any more")), nil
	}
	if err != nil {
		return replica.Result{}, err
	}
	if v.VaultID != st.id || v.Title != in.doc.Title {
		return refused(in.seq, exists("title", v.VaultID)), nil
	}
	if st.head.seq > 0 && st.head.isGone == 0 {
		return replica.Result{Seq: in.seq, Status: http.StatusOK, HubSeq: st.head.seq}, nil
	}
	st.head.isGone = 0
	l, err := st.log(in, st.id, 0, 0, document{
		VaultID: v.VaultID, Title: v.Title, Description: &v.Description, CreationTime: v.CreationTime, Traceparent: in.doc.Traceparent,
	})
	return done(in, l), err
}

// isBeforeDeletion reports whether a memory created at a given time was deleted with the
// stream. A memory created after the deletion is a new memory with the old id: the ids of
// default vaults and memories never change.
func (st *stream) isBeforeDeletion(made time.Time) bool {
	return st.head.isGone != 0 && made.UnixNano() <= st.head.deletedNs
}

// vault returns the vault with this title. A missing vault is created. It locks the vault
// until the transaction ends, so that no other transaction deletes it. If the vault was
// deleted after this one was created, it returns errDeleted.
func (st *stream) vault(ctx context.Context, v replica.Vault, made time.Time) (replica.Vault, error) {
	is, found, err := st.heldVault(ctx, v)
	if found || err != nil {
		return is, err
	}
	var deletedNs int64
	if _, err := st.s.One(ctx, selectDeletion, []any{v.VaultID, st.tenant}, &deletedNs); err != nil {
		return is, err
	}
	if made.UnixNano() <= deletedNs {
		return is, errDeleted
	}
	if _, err := st.s.Exec(ctx, insertVault, st.tenant, v.VaultID, v.Title, v.Description, made.UnixNano()); err != nil {
		return is, err
	}
	if is, found, err = st.heldVault(ctx, v); err == nil && !found {
		err = database.ErrMeanwhile
	}
	return is, err
}

// heldVault finds and locks a vault by its title, else by its id.
func (st *stream) heldVault(ctx context.Context, v replica.Vault) (is replica.Vault, found bool, err error) {
	var ns int64
	for _, by := range [][2]string{{lockVaultTitled, v.Title}, {lockVault, v.VaultID}} {
		found, err = st.s.One(ctx, by[0], []any{st.tenant, by[1]}, &is.VaultID, &is.Title, &is.Description, &ns)
		if found || err != nil {
			break
		}
	}
	is.CreationTime = timeText(ns)
	return is, found, err
}

func (st *stream) deleteVault(ctx context.Context, in incoming) (replica.Result, error) {
	var v replica.Vault
	var ns int64
	found, err := st.s.One(ctx, lockVault, []any{st.tenant, st.id}, &v.VaultID, &v.Title, &v.Description, &ns)
	if err != nil {
		return replica.Result{}, err
	}
	if !found {
		if st.head.isGone != 0 {
			return replica.Result{Seq: in.seq, Status: http.StatusNoContent}, nil
		}
		return refused(in.seq, missing("vault")), nil
	}
	var inside string
	if found, err = st.s.One(ctx, selectInVault, []any{st.tenant, st.id}, &inside); err != nil {
		return replica.Result{}, err
	}
	if found {
		return refused(in.seq, fault.New(fault.Conflict, memory.CodeVaultNotEmpty, "the vault has memories")), nil
	}
	if _, err := st.s.Exec(ctx, deleteVault, st.tenant, st.id); err != nil {
		return replica.Result{}, err
	}
	return st.end(in)
}

// end logs the deletion of the stream itself.
func (st *stream) end(in incoming) (replica.Result, error) {
	l, err := st.log(in, st.id, 0, 0, document{Traceparent: in.doc.Traceparent})
	st.head.deletedSeq, st.head.deletedNs, st.head.isGone, st.sweep = l.seq-1, st.now, 1, true
	return done(in, l), err
}

func (st *stream) applyMemory(ctx context.Context, in incoming) (replica.Result, error) {
	if in.op == replica.OpDelete {
		if st.head.isGone != 0 {
			return replica.Result{Seq: in.seq, Status: http.StatusNoContent}, nil
		}
		for _, query := range [...]string{deleteMemory, deleteProjectsOf} {
			if _, err := st.s.Exec(ctx, query, st.tenant, st.id); err != nil {
				return replica.Result{}, err
			}
		}
		for _, e := range st.entries { // so that later items do not find them
			if e.deletedNs == 0 {
				e.deletedNs, e.doc = st.now, ""
			}
		}
		return st.end(in)
	}
	if st.isBeforeDeletion(in.at) {
		return refused(in.seq, missing("memory any more")), nil
	}
	var vaultID, title string
	var put int64
	found, err := st.s.One(ctx, selectMemory, []any{st.tenant, st.id}, &vaultID, &title, &put)
	if err != nil {
		return replica.Result{}, err
	}
	if found {
		if title != in.doc.Title {
			return refused(in.seq, exists("the memory's id", st.id)), nil
		}
		r := replica.Result{Seq: in.seq, Status: http.StatusOK, VaultID: vaultID, HubSeq: put}
		isNew, err := st.setProject(ctx, in.doc.ProjectUIDs)
		if err == nil && isNew { // devices that have the memory pull the change
			in.doc.MemoryID, in.doc.VaultID, in.doc.Vault.VaultID = st.id, vaultID, vaultID
			_, err = st.log(in, st.id, 0, 0, in.doc)
		}
		return r, err
	}
	return st.putMemory(ctx, in)
}

func (st *stream) putMemory(ctx context.Context, in incoming) (replica.Result, error) {
	d := in.doc
	made, _ := time.Parse(time.RFC3339Nano, d.Vault.CreationTime) // parse has checked it
	v, err := st.vault(ctx, *d.Vault, made)
	if errors.Is(err, errDeleted) {
		return refused(in.seq, missing("vault any more")), nil
	}
	if err != nil {
		return replica.Result{}, err
	}
	if other, err := st.memoryOfProject(ctx, d.ProjectUIDs); err != nil || other != "" {
		return refused(in.seq, exists("the project's default memory", other)), err
	}
	n, err := st.s.Exec(ctx, insertMemory, st.tenant, st.id, v.VaultID, d.MemoryType, d.Title, *d.Description, in.at.UnixNano(), st.head.seq+1)
	if err != nil {
		return replica.Result{}, err
	}
	if n == 0 {
		var id string
		found, err := st.s.One(ctx, selectTitled, []any{st.tenant, v.VaultID, d.Title}, &id)
		if err == nil && !found {
			err = database.ErrMeanwhile
		}
		return refused(in.seq, exists("title", id)), err
	}
	if _, err := st.setProject(ctx, d.ProjectUIDs); err != nil {
		return replica.Result{}, err
	}
	st.head.isGone = 0
	l, err := st.log(in, st.id, 0, 0, document{
		MemoryID: st.id, VaultID: v.VaultID, MemoryType: d.MemoryType, Title: d.Title, Description: d.Description,
		CreationTime: timeText(in.at.UnixNano()), Vault: &v, ProjectUIDs: d.ProjectUIDs, Traceparent: d.Traceparent,
	})
	r := done(in, l)
	r.VaultID = v.VaultID
	return r, err
}
