package hub

import (
	"context"
	"strings"

	"cairn/internal/hub/database"
)

// The items of a deleted stream are invisible immediately: reads begin after deleted_seq. Their
// documents are deleted later, in batches, so that deleting a memory of a million entries
// delays no other request. A row in hub_meta records the pending work, so the next process
// completes it after a crash.
const (
	selectSweeps = `SELECT name, value FROM hub_meta WHERE name LIKE $1`
	selectFloor  = `SELECT deleted_seq, deleted_ns FROM hub_heads WHERE memory_id = $1 AND tenant = $2`
	sweepItems   = `UPDATE hub_items SET doc = '', body_hash = ''
WHERE memory_id = $1 AND tenant = $2 AND hub_seq > $3 AND hub_seq <= $4`
	selectSwept = `SELECT entry_id FROM hub_entries
WHERE memory_id = $1 AND tenant = $2 AND deleted_ns = 0 AND put_seq <= $3 AND entry_id > $4 ORDER BY entry_id LIMIT $5`
	sweepEntry = `UPDATE hub_entries SET doc = '', deleted_ns = $3 WHERE memory_id = $1 AND tenant = $2 AND entry_id IN `

	sweepChunk = 500
)

// Sweep deletes the documents of deleted streams. Only one sweep runs at a time in a process;
// sweeps of several processes do not disturb each other.
func (h *Hub) Sweep(ctx context.Context) error {
	select {
	case h.sweeps <- struct{}{}:
		defer func() { <-h.sweeps }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		var jobs [][2]string
		err := h.db.Writing().Each(ctx, selectSweeps, []any{database.MetaSweep + "%"}, func(scan func(...any) error) (bool, error) {
			var name, value string
			err := scan(&name, &value)
			jobs = append(jobs, [2]string{name, value})
			return true, err
		})
		if err != nil || len(jobs) == 0 {
			return err
		}
		for _, job := range jobs {
			stream, tenant, _ := strings.Cut(strings.TrimPrefix(job[0], database.MetaSweep), ":")
			if err := h.sweepStream(ctx, stream, tenant); err != nil {
				return err
			}
			if _, err := h.db.Writing().Exec(ctx, database.DeleteMeta, job[0], job[1]); err != nil {
				return err
			}
		}
	}
}

func (h *Hub) sweepStream(ctx context.Context, stream, tenant string) error {
	var floor, ns int64
	if _, err := h.db.Writing().One(ctx, selectFloor, []any{stream, tenant}, &floor, &ns); err != nil {
		return err
	}
	for from := int64(0); from < floor; from += sweepChunk {
		err := h.db.Write(ctx, func(s database.Statements) error {
			_, err := s.Exec(ctx, sweepItems, stream, tenant, from, min(from+sweepChunk, floor))
			return err
		})
		if err != nil {
			return err
		}
	}
	for after, more := "", true; more; {
		err := h.db.Write(ctx, func(s database.Statements) error {
			var ids []any
			err := s.Each(ctx, selectSwept, []any{stream, tenant, floor, after, sweepChunk}, func(scan func(...any) error) (bool, error) {
				var id string
				err := scan(&id)
				ids = append(ids, id)
				return true, err
			})
			if more = len(ids) == sweepChunk; err != nil || len(ids) == 0 {
				return err
			}
			after = ids[len(ids)-1].(string)
			return s.ExecOf(ctx, sweepEntry, []any{stream, tenant, ns}, ids)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sweepSoon sweeps in the background.
func (h *Hub) sweepSoon() {
	h.sweeping.Go(func() {
		if err := h.Sweep(h.life); err != nil && h.life.Err() == nil {
			h.log.Warn("deleted documents are still in the database", "error", err)
		}
	})
}
