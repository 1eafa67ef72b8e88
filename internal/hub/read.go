package hub

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"cairn/internal/fault"
	"cairn/internal/hub/database"
	"cairn/internal/memory"
	"cairn/internal/replica"
)

const (
	selectVaults = `SELECT v.vault_id, v.title, v.description, v.created_ns, coalesce(h.head_seq, 0)
FROM hub_vaults v LEFT JOIN hub_heads h ON h.memory_id = v.vault_id AND h.tenant = v.tenant
WHERE v.tenant = $1 AND v.vault_id > $2 ORDER BY v.vault_id LIMIT $3`
	selectMemories = `SELECT m.memory_id, m.vault_id, m.memory_type, m.title, m.description, m.created_ns, h.head_seq
FROM hub_memories m JOIN hub_heads h ON h.memory_id = m.memory_id AND h.tenant = m.tenant
WHERE m.tenant = $1 AND m.memory_id > $2 ORDER BY m.memory_id LIMIT $3`
	entryColumns = `SELECT e.canonical_ns, e.doc FROM hub_entries e
JOIN hub_heads h ON h.memory_id = e.memory_id AND h.tenant = e.tenant
WHERE e.memory_id = $1 AND e.tenant = $2 AND e.deleted_ns = 0 AND e.put_seq > h.deleted_seq AND `
	selectEntry       = entryColumns + `e.entry_id = $3`
	selectEntriesDown = entryColumns + `e.canonical_ns < $3 ORDER BY e.canonical_ns DESC LIMIT $4`
	selectEntriesUp   = entryColumns + `e.canonical_ns > $3 ORDER BY e.canonical_ns LIMIT $4`
)

// A page of heads lists the vaults first, then the memories. A cursor is one of these letters
// followed by the id of the last listed one.
const (
	pageVaults   = "v"
	pageMemories = "m"
)

// Heads lists a user's vaults and memories after a cursor: "" or Next of an earlier response.
// Limit 0 means the maximum. Errors: Invalid with code validation_error for an invalid cursor.
func (h *Hub) Heads(ctx context.Context, who Identity, after string, limit int) (replica.HeadsResponse, error) {
	answer := replica.HeadsResponse{Heads: []replica.Head{}}
	part, id := pageVaults, ""
	if after != "" {
		part, id = after[:1], after[1:]
		if (part != pageVaults && part != pageMemories) || id != "" && validateID("", id) != nil {
			return answer, invalid("after", "after is not what an earlier answer gave as next")
		}
	}
	if limit <= 0 || limit > replica.MaxHeads {
		limit = replica.MaxHeads
	}
	s := h.db.Reading()
	var err error
	if answer.HubEpoch, err = s.Number(ctx, database.MetaEpoch); err != nil {
		return answer, err
	}
	if answer.Catalogue, err = catalogueVersion(ctx, s, who.UserID); err != nil { // read before the list, which may then be newer
		return answer, err
	}
	if part == pageVaults {
		if err := vaultHeads(ctx, s, who.UserID, id, limit, &answer.Heads); err != nil {
			return answer, err
		}
		if len(answer.Heads) == limit {
			answer.Next = pageVaults + answer.Heads[limit-1].Stream
			return answer, nil
		}
		id = ""
	}
	vaults := len(answer.Heads)
	if err := memoryHeads(ctx, s, who.UserID, id, limit-vaults, &answer.Heads); err != nil {
		return answer, err
	}
	if len(answer.Heads) == limit {
		answer.Next = pageMemories + answer.Heads[limit-1].Stream
	}
	return answer, nil
}

func vaultHeads(ctx context.Context, s database.Statements, tenant, after string, limit int, out *[]replica.Head) error {
	return s.Each(ctx, selectVaults, []any{tenant, after, limit}, func(scan func(...any) error) (bool, error) {
		var v replica.Vault
		var ns, seq int64
		err := scan(&v.VaultID, &v.Title, &v.Description, &ns, &seq)
		v.CreationTime = timeText(ns)
		*out = append(*out, replica.Head{Stream: v.VaultID, HeadSeq: seq, Vault: &v})
		return true, err
	})
}

func memoryHeads(ctx context.Context, s database.Statements, tenant, after string, limit int, out *[]replica.Head) error {
	from := len(*out)
	err := s.Each(ctx, selectMemories, []any{tenant, after, limit}, func(scan func(...any) error) (bool, error) {
		m := replica.Memory{ProjectUIDs: []string{}}
		var ns, seq int64
		err := scan(&m.MemoryID, &m.VaultID, &m.MemoryType, &m.Title, &m.Description, &ns, &seq)
		m.CreationTime = timeText(ns)
		*out = append(*out, replica.Head{Stream: m.MemoryID, HeadSeq: seq, Memory: &m})
		return true, err
	})
	if err != nil {
		return err
	}
	return projectHeads(ctx, s, tenant, (*out)[from:])
}

// EntriesArgs select entries of a memory: a single one, those before or after a time, or the
// newest. A session and tags narrow the selection.
type EntriesArgs struct {
	Memory, Entry string
	Before, After time.Time // zero for no limit
	Tags          map[string]string
	Session       string
	Limit         int // 0 means 50
}

// Entries returns current entries of a memory (memories §10.7). Errors: NotFound for a memory
// or entry that is unknown, deleted or owned by another user.
func (h *Hub) Entries(ctx context.Context, who Identity, a EntriesArgs) (replica.EntriesResponse, error) {
	answer := replica.EntriesResponse{Entries: []json.RawMessage{}}
	s := h.db.Reading()
	var vaultID, title string
	var put int64
	found, err := s.One(ctx, selectMemory, []any{who.UserID, a.Memory}, &vaultID, &title, &put)
	if err == nil && !found {
		err = fault.New(fault.NotFound, memory.CodeNotFound, "there is no such memory")
	}
	if err != nil {
		return answer, err
	}
	if a.Entry != "" {
		var ns int64
		var doc string
		found, err := s.One(ctx, selectEntry, []any{a.Memory, who.UserID, a.Entry}, &ns, &doc)
		if err == nil && !found {
			err = fault.New(fault.NotFound, memory.CodeNotFound, "there is no such entry")
		}
		answer.Entries = append(answer.Entries, json.RawMessage(doc))
		return answer, err
	}
	return answer, h.page(ctx, s, who.UserID, a, &answer)
}

// farFuture is later than any canonical time.
const farFuture = 1<<63 - 1

// page adds the selected entries to the response, newest first.
func (h *Hub) page(ctx context.Context, s database.Statements, tenant string, a EntriesArgs, answer *replica.EntriesResponse) error {
	if a.Limit <= 0 {
		a.Limit = 50
	}
	a.Limit = min(a.Limit, replica.MaxEntries)
	query, from := selectEntriesDown, int64(farFuture)
	if !a.Before.IsZero() {
		from = a.Before.UnixNano()
	}
	if !a.After.IsZero() {
		query, from = selectEntriesUp, a.After.UnixNano()
	}
	filtered := len(a.Tags) > 0 || a.Session != ""
	chunk, size := a.Limit+1, 0
	for rows := chunk; rows == chunk && !answer.More; {
		rows = 0
		err := s.Each(ctx, query, []any{a.Memory, tenant, from, chunk}, func(scan func(...any) error) (bool, error) {
			var doc string
			if err := scan(&from, &doc); err != nil {
				return false, err
			}
			rows++
			if filtered {
				var d document
				if err := json.Unmarshal([]byte(doc), &d); err != nil || !d.has(a.Tags, a.Session) {
					return true, err
				}
			}
			if len(answer.Entries) == a.Limit || size > 0 && size+len(doc) > replica.MaxPullBytes {
				answer.More = true
				return false, nil
			}
			answer.Entries, size = append(answer.Entries, json.RawMessage(doc)), size+len(doc)
			return true, nil
		})
		if err != nil {
			return err
		}
	}
	if query == selectEntriesUp {
		for i, j := 0, len(answer.Entries)-1; i < j; i, j = i+1, j-1 {
			answer.Entries[i], answer.Entries[j] = answer.Entries[j], answer.Entries[i]
		}
	}
	return nil
}

// tagsOf parses tag=KEY:VALUE parameters.
func tagsOf(all []string) (map[string]string, bool) {
	tags := map[string]string{}
	for _, one := range all {
		k, v, ok := strings.Cut(one, ":")
		if _, twice := tags[k]; !ok || twice {
			return nil, false
		}
		tags[k] = v
	}
	return tags, true
}
