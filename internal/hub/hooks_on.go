//go:build testhooks

package hub

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"cairn/internal/fault"
	"cairn/internal/hub/database"
	"cairn/internal/memory"
	"cairn/internal/replica"
)

// The modes of a backend (memories §15).
const (
	ModeUp         = "up"
	ModeDown       = "down"
	ModeSlow       = "slow"
	ModeScript     = "script"
	ModeFailMemory = "fail_memory"
)

// Backend configures how a test changes the responses to pushes.
type Backend struct {
	Mode     string
	Delay    time.Duration // slow: before each push
	Statuses []int         // script: for entry items in the order of delivery; a 2xx means the hub's own result
	Memory   string        // fail_memory: the memory whose items fail
	Status   int           // fail_memory
}

// hooks contains a test's changes of a hub's behaviour (memories §15).
type hooks struct {
	turn sync.RWMutex // pushes hold it for reading, pushes of a script for writing

	mu       sync.Mutex
	backend  Backend
	changed  chan struct{} // closed when the backend changes
	attempts int
}

// SetBackend changes the responses to pushes and resets the count of attempts. It returns when
// all earlier pushes have ended.
func (h *Hub) SetBackend(b Backend) {
	k := &h.hooks
	k.mu.Lock()
	if k.backend, k.attempts = b, 0; k.changed != nil {
		close(k.changed)
	}
	k.changed = make(chan struct{})
	k.mu.Unlock()
	k.turn.Lock()
	defer k.turn.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.attempts = 0 // attempts of pushes that have ended meanwhile
}

// Mode returns the backend's mode and the number of entry items handled since it was set.
// Replays and refusals count; items answered with 424 do not.
func (h *Hub) Mode() (mode string, attempts int) {
	h.hooks.mu.Lock()
	defer h.hooks.mu.Unlock()
	if mode = h.hooks.backend.Mode; mode == "" {
		mode = ModeUp
	}
	return mode, h.hooks.attempts
}

// push passes a request's changes to Push.
func (k *hooks) push(ctx context.Context, h *Hub, who Identity, req replica.PushRequest) ([]replica.Result, error) {
	leave, err := k.admit(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	results := make([]replica.Result, len(req.Items))
	rest := replica.PushRequest{DeviceID: req.DeviceID, Head: req.Head}
	var at []int                // positions of the items of rest in the request
	assigned := map[int]int{}   // 2xx statuses of a script, by item
	broken := map[string]bool{} // streams in which an item was refused
	for i, item := range req.Items {
		status := k.verdict(item, broken[item.Stream])
		switch {
		case broken[item.Stream]:
			results[i] = scripted(item.Seq, http.StatusFailedDependency)
		case status != 0 && status/100 != 2:
			broken[item.Stream], results[i] = true, scripted(item.Seq, status)
		default:
			if status != 0 {
				assigned[i] = status
			}
			at, rest.Items = append(at, i), append(rest.Items, item)
		}
	}
	if len(rest.Items) > 0 {
		answers, err := h.Push(ctx, who, rest)
		if err != nil {
			return nil, err
		}
		for i, r := range answers {
			results[at[i]] = r
		}
	}
	k.handled(req.Items, results, assigned)
	return results, nil
}

// admit lets a push start, after the delay of a slow backend. Under a script it runs alone.
func (k *hooks) admit(ctx context.Context) (leave func(), err error) {
	k.mu.Lock()
	b, changed := k.backend, k.changed
	k.mu.Unlock()
	switch b.Mode {
	case ModeDown:
		return nil, fault.New(fault.Unavailable, database.CodeUnavailable, "a test has taken the hub down")
	case ModeSlow:
		timer := time.NewTimer(b.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-changed:
			return k.admit(ctx)
		}
	}
	lock, leave := k.turn.RLock, k.turn.RUnlock
	if b.Mode == ModeScript {
		lock, leave = k.turn.Lock, k.turn.Unlock
	}
	lock()
	select {
	case <-changed: // another push was faster
		leave()
		return k.admit(ctx)
	default:
		return leave, nil
	}
}

// verdict returns the status that a test has set for an item, 0 for the hub's own result. An
// item after a refused one does not use up a status of a script.
func (k *hooks) verdict(item replica.Item, behind bool) (status int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	b := &k.backend
	switch {
	case behind:
	case b.Mode == ModeFailMemory && item.Stream == b.Memory:
		return b.Status
	case b.Mode == ModeScript && item.Kind == replica.KindEntry && len(b.Statuses) > 0:
		status, b.Statuses = b.Statuses[0], b.Statuses[1:]
	}
	return status
}

// handled counts entry items. If an item was answered with 424, its script status applies to
// the next item.
func (k *hooks) handled(items []replica.Item, results []replica.Result, assigned map[int]int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var back []int
	for i, item := range items {
		switch {
		case results[i].Status != http.StatusFailedDependency:
			if item.Kind == replica.KindEntry {
				k.attempts++
			}
		case assigned[i] != 0:
			back = append(back, assigned[i])
		}
	}
	k.backend.Statuses = append(back, k.backend.Statuses...)
}

func scripted(seq int64, status int) replica.Result {
	return replica.Result{Seq: seq, Status: status, Error: &replica.Error{Code: "scripted", Message: "a test wants it so"}}
}

// Empty deletes everything in the hub except its id and its schema, in the database and in
// memory.
func (h *Hub) Empty(ctx context.Context) error {
	err := h.db.Write(ctx, func(s database.Statements) error {
		for _, table := range []string{"hub_items", "hub_entries", "hub_heads", "hub_memories", "hub_projects", "hub_vaults", "hub_tokens"} {
			if _, err := s.Exec(ctx, "DELETE FROM "+table); err != nil {
				return err
			}
		}
		for _, prefix := range []string{database.MetaSweep, metaContext, database.MetaCatalogue} {
			if _, err := s.Exec(ctx, `DELETE FROM hub_meta WHERE name LIKE $1`, prefix+"%"); err != nil {
				return err
			}
		}
		return nil
	})
	h.known.mu.Lock()
	defer h.known.mu.Unlock()
	h.known.rows = nil
	return err
}

// RawEntries returns the texts of a memory's entries of any user, oldest first; never nil.
func (h *Hub) RawEntries(ctx context.Context, memoryID string) ([]string, error) {
	out := []string{}
	const query = `SELECT e.doc FROM hub_entries e JOIN hub_heads h ON h.memory_id = e.memory_id AND h.tenant = e.tenant
WHERE e.memory_id = $1 AND e.deleted_ns = 0 AND e.put_seq > h.deleted_seq ORDER BY e.canonical_ns`
	err := h.db.Writing().Each(ctx, query, []any{memoryID}, func(scan func(...any) error) (bool, error) {
		var text string
		var d document
		err := scan(&text)
		if err == nil {
			err = json.Unmarshal([]byte(text), &d)
		}
		out = append(out, d.RawEntry)
		return true, err
	})
	return out, err
}

// Ops returns a memory's entries and contexts in the order in which the hub first accepted
// them, as entry:RAW and context:TEXT. With all it includes patch:ID and delete:ID. For a
// deleted entry it returns only the deletion.
func (h *Hub) Ops(ctx context.Context, memoryID string, all bool) ([]string, error) {
	out := []string{}
	const query = `SELECT kind, op, id, doc FROM hub_items WHERE memory_id = $1 ORDER BY hub_seq`
	err := h.db.Writing().Each(ctx, query, []any{memoryID}, func(scan func(...any) error) (bool, error) {
		var kind, op, id, text string
		if err := scan(&kind, &op, &id, &text); err != nil {
			return false, err
		}
		var d document
		switch {
		case kind != memory.KindEntry && kind != memory.KindContext:
		case op != replica.OpPut:
			if all {
				out = append(out, op+":"+id)
			}
		case text != "":
			if err := json.Unmarshal([]byte(text), &d); err != nil {
				return false, err
			}
			out = append(out, kind+":"+d.RawEntry+d.Markdown)
		}
		return true, nil
	})
	return out, err
}
