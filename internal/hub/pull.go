package hub

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"cairn/internal/hub/database"
	"cairn/internal/replica"
)

const (
	selectHeads = `SELECT memory_id, head_seq, deleted_seq FROM hub_heads WHERE tenant = $1 AND memory_id IN `
	selectItems = `SELECT hub_seq, kind, op, id, key, doc, device_id FROM hub_items
WHERE memory_id = $1 AND tenant = $2 AND hub_seq > $3 AND doc <> '' ORDER BY hub_seq LIMIT $4`
)

// headCheck is how often a waiting pull checks for items from other processes.
const headCheck = 500 * time.Millisecond

// Pull returns the items after the cursors, the cursors that are beyond the head, and a newer
// version of the catalogue. If there are no results, it waits until the request's timeout or
// until the hub stops. It changes nothing. Errors: Invalid with code validation_error for an
// invalid request.
func (h *Hub) Pull(ctx context.Context, who Identity, req replica.PullRequest) (replica.PullResponse, error) {
	answer := replica.PullResponse{Streams: []replica.StreamItems{}}
	limit, err := validatePull(&req)
	if err != nil {
		return answer, err
	}
	until := time.Now().Add(time.Duration(req.WaitMillis) * time.Millisecond)
	awaited := req.Cursors
	if req.Catalogue > 0 {
		awaited = append(slices.Clone(awaited), replica.Cursor{Stream: wholeCatalogue})
	}
	news, forget := h.signals.listen(who.UserID, awaited)
	defer forget()
	for {
		found, err := h.look(ctx, who.UserID, req, limit, &answer)
		if err != nil {
			return answer, err
		}
		left := time.Until(until)
		if found || left <= 0 || !h.wait(ctx, news, min(left, headCheck)) {
			break
		}
	}
	answer.HubEpoch, err = h.db.Reading().Number(ctx, database.MetaEpoch)
	return answer, err
}

// look reads the current results of a pull, and reports whether there are any.
func (h *Hub) look(ctx context.Context, tenant string, req replica.PullRequest, limit int, answer *replica.PullResponse) (found bool, err error) {
	ahead, beyond, err := h.ahead(ctx, tenant, req.Cursors)
	if err == nil && len(beyond) > 0 {
		answer.Behind, err = h.behindOf(ctx, tenant, beyond)
	}
	if err == nil && req.Catalogue > 0 {
		answer.Catalogue, err = h.newerCatalogue(ctx, tenant, req.Catalogue)
	}
	if err == nil && len(ahead) > 0 {
		answer.Streams, err = h.collect(ctx, tenant, ahead, limit)
	}
	return len(answer.Streams) > 0 || len(answer.Behind) > 0 || answer.Catalogue > 0, err
}

func validatePull(req *replica.PullRequest) (limit int, err error) {
	if len(req.Cursors) == 0 && req.Catalogue <= 0 || len(req.Cursors) > replica.MaxCursors {
		return 0, invalid("cursors", "there must be 1 to 1000 cursors")
	}
	seen := map[string]bool{}
	for _, c := range req.Cursors {
		if validateID("", c.Stream) != nil || c.After < 0 || seen[c.Stream] {
			return 0, invalid("cursors", "a cursor must have a stream, each named once, and a number of at least 0")
		}
		seen[c.Stream] = true
	}
	if req.Limit < 0 || req.WaitMillis < 0 {
		return 0, invalid("limit", "limit and wait_ms must not be negative")
	}
	req.WaitMillis = min(req.WaitMillis, replica.MaxWaitMillis)
	if req.Limit == 0 {
		return replica.MaxPullItems, nil
	}
	return min(req.Limit, replica.MaxPullItems), nil
}

// wait returns after d, or immediately on a signal. It returns false at the timeout of the
// pull.
func (h *Hub) wait(ctx context.Context, news <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-news:
	case <-timer.C:
	case <-h.stopping:
		return false
	case <-ctx.Done():
		return false
	}
	return true
}

// behind is a stream with items after the cursor.
type behind struct {
	stream string
	after  int64
}

// ahead compares cursors with the heads. It returns the streams with newer items, and the
// cursors beyond the head.
func (h *Hub) ahead(ctx context.Context, tenant string, cursors []replica.Cursor) (out []behind, beyond []replica.Cursor, err error) {
	heads, err := h.headsOf(ctx, h.db.Reading(), tenant, cursors)
	for _, c := range cursors {
		switch head := heads[c.Stream]; {
		case head[0] > c.After:
			out = append(out, behind{c.Stream, max(c.After, head[1])})
		case head[0] < c.After:
			beyond = append(beyond, c)
		}
	}
	return out, beyond, err
}

// behindOf checks cursors beyond the head against the writable database, because a replica may
// lag. It returns the cursors that are beyond the head there too, each with that head.
func (h *Hub) behindOf(ctx context.Context, tenant string, beyond []replica.Cursor) (out []replica.Cursor, err error) {
	heads, err := h.headsOf(ctx, h.db.Writing(), tenant, beyond)
	for _, c := range beyond {
		if head := heads[c.Stream][0]; head < c.After && err == nil {
			out = append(out, replica.Cursor{Stream: c.Stream, After: head})
		}
	}
	return out, err
}

// newerCatalogue returns the version of a user's catalogue if it is higher than the given
// version, else 0.
func (h *Hub) newerCatalogue(ctx context.Context, tenant string, than int64) (int64, error) {
	n, err := catalogueVersion(ctx, h.db.Reading(), tenant)
	if n <= than {
		return 0, err
	}
	return n, err
}

// headsOf reads the head_seq and deleted_seq of the cursors' streams.
func (h *Hub) headsOf(ctx context.Context, s database.Statements, tenant string, cursors []replica.Cursor) (map[string][2]int64, error) {
	heads := map[string][2]int64{}
	if len(cursors) == 0 {
		return heads, nil
	}
	ids := make([]any, len(cursors))
	for i, c := range cursors {
		ids[i] = c.Stream
	}
	return heads, s.EachOf(ctx, selectHeads, []any{tenant}, ids, func(scan func(...any) error) (bool, error) {
		var id string
		var seq, deleted int64
		err := scan(&id, &seq, &deleted)
		heads[id] = [2]int64{seq, deleted}
		return true, err
	})
}

// collect reads the items of streams, in order, up to the limits.
func (h *Hub) collect(ctx context.Context, tenant string, ahead []behind, limit int) ([]replica.StreamItems, error) {
	var out []replica.StreamItems
	size := 0
	for _, b := range ahead {
		if limit <= 0 || size >= replica.MaxPullBytes {
			break
		}
		page := replica.StreamItems{Stream: b.stream, Items: []replica.PulledItem{}, Next: b.after}
		err := h.db.Reading().Each(ctx, selectItems, []any{b.stream, tenant, b.after, limit + 1}, func(scan func(...any) error) (bool, error) {
			var item replica.PulledItem
			var doc string
			if err := scan(&item.HubSeq, &item.Kind, &item.Op, &item.ID, &item.Key, &doc, &item.Device); err != nil {
				return false, err
			}
			if limit == 0 || size > 0 && size+len(doc) > replica.MaxPullBytes {
				page.More = true
				return false, nil
			}
			item.Doc = json.RawMessage(doc)
			limit, size = limit-1, size+len(doc)
			page.Items, page.Next = append(page.Items, item), item.HubSeq
			return true, nil
		})
		if err != nil {
			return nil, err
		}
		if len(page.Items) > 0 || page.More { // this replica may lag behind the one that returned the heads
			out = append(out, page)
		}
	}
	return out, nil
}

// wholeCatalogue is the signal name, next to the streams, for pulls that wait for a newer
// catalogue.
const wholeCatalogue = ""

// signals wakes the pulls of this process that wait for a stream.
type signals struct {
	mu      sync.Mutex
	waiting map[[2]string]map[chan struct{}]bool // by user and stream
}

func (s *signals) listen(tenant string, cursors []replica.Cursor) (news chan struct{}, forget func()) {
	news = make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting == nil {
		s.waiting = map[[2]string]map[chan struct{}]bool{}
	}
	for _, c := range cursors {
		at := [2]string{tenant, c.Stream}
		if s.waiting[at] == nil {
			s.waiting[at] = map[chan struct{}]bool{}
		}
		s.waiting[at][news] = true
	}
	return news, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, c := range cursors {
			at := [2]string{tenant, c.Stream}
			if delete(s.waiting[at], news); len(s.waiting[at]) == 0 {
				delete(s.waiting, at)
			}
		}
	}
}

func (s *signals) wake(tenant, stream string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for news := range s.waiting[[2]string{tenant, stream}] {
		select {
		case news <- struct{}{}:
		default: // it was already signalled
		}
	}
}
