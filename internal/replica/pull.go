package replica

import (
	"context"
	"encoding/json"
	"time"

	"cairn/internal/backoff"
	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/items"
	"cairn/internal/memory/replication"
)

// catalogueEvery is how often the list of the user's streams is read. It also bounds how old
// the content of a stream may be that the pull does not wait for (memories §13.3).
const catalogueEvery = 30 * time.Second

// Subscribed ends a waiting pull, so that the next one includes new subscriptions.
func (r *Replicator) Subscribed() {
	select {
	case r.asked <- struct{}{}:
	default:
	}
}

// pull fetches the changes of other devices. It waits at the hub for changes of the
// subscribed streams, and reads the catalogue of streams from time to time.
func (r *Replicator) pull(ctx context.Context) {
	var catalogued time.Time
	for ctx.Err() == nil {
		if r.isStale() {
			catalogued = time.Time{}
		}
		if r.waits(ctx) || !r.mayPull() {
			backoff.Pause(ctx, pollEvery/4, nil)
			continue
		}
		err := r.verify(ctx)
		if err == nil {
			err = r.catalogue(ctx, &catalogued)
		}
		if err == nil {
			err = r.restore(ctx)
		}
		if err == nil {
			err = r.pullOnce(ctx, time.Until(catalogued.Add(catalogueEvery)))
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		r.handle(ctx, err)
		backoff.Pause(ctx, pollEvery/4, nil)
	}
}

// isStale reports whether the hub has a newer catalogue than the one that was read, and
// clears that note.
func (r *Replicator) isStale() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	stale := r.stale
	r.stale = false
	return stale
}

// mayPull reports whether a pull may be made. While the hub accepts nothing, one is made
// from time to time as a probe.
func (r *Replicator) mayPull() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	may := r.freeRequests(1) > 0
	if may {
		r.cause = min(r.cause, causeSilent) // a refused push has been tried
		r.noteProbe()
	}
	return may
}

// pullAll pulls until there is nothing more now.
func (r *Replicator) pullAll(ctx context.Context) error {
	for range 2 { // deletions may have made room for new memories
		var never time.Time
		if err := r.catalogue(ctx, &never); err != nil {
			return err
		}
		if err := r.pullOnce(ctx, 0); err != nil {
			return err
		}
	}
	return nil
}

// pullOnce pulls all subscribed streams, page by page. With up to a thousand streams it
// waits for the first change, at most for wait. More streams are pulled in turn, without
// waiting.
func (r *Replicator) pullOnce(ctx context.Context, wait time.Duration) error {
	cursors, again, err := r.cursors(ctx)
	if err != nil {
		return err
	}
	if !again.IsZero() { // a suspended stream joins the next pull
		wait = min(wait, max(time.Until(again), time.Millisecond))
	}
	if len(cursors) == 0 && r.catalogueVersion() == 0 {
		if wait > 0 {
			backoff.Pause(ctx, min(wait, pollEvery), nil)
		}
		return nil
	}
	wait = max(0, min(wait, MaxWaitMillis*time.Millisecond))
	if len(cursors) > MaxCursors {
		wait = 0
	}
	for first := 0; first == 0 || first < len(cursors); first += MaxCursors {
		if err := r.pullPages(ctx, cursors[first:min(first+MaxCursors, len(cursors))], wait); err != nil {
			return err
		}
	}
	if len(cursors) > MaxCursors {
		backoff.Pause(ctx, pollEvery, nil)
	}
	return nil
}

func (r *Replicator) catalogueVersion() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.catalog
}

// cursors returns the pull cursors of the subscribed streams, and when the first of those
// that wait after a failed pull is due, the zero time if none waits.
func (r *Replicator) cursors(ctx context.Context) (out []Cursor, again time.Time, err error) {
	select {
	case <-r.asked:
	default:
	}
	return r.cursorsOf(ctx, func(s replication.Stream) int64 { return s.PullCursor })
}

// cursorsOf returns positions in the subscribed streams, without those that wait after a
// failed pull and those whose content a restored hub still lacks. again is when the first
// stream that waits is due.
func (r *Replicator) cursorsOf(ctx context.Context, position func(replication.Stream) int64) (out []Cursor, again time.Time, err error) {
	after, asked := "", map[string]bool{}
	for {
		page, err := r.Book.Streams(ctx, r.User, after, MaxCursors)
		if err != nil || len(page) == 0 {
			return out, again, err
		}
		for _, s := range page {
			if after = s.ID; !s.Subscribed || s.State == replication.StreamRestoring {
				continue
			}
			if s.NextPull.After(time.Now()) {
				if again.IsZero() || s.NextPull.Before(again) {
					again = s.NextPull
				}
				continue
			}
			c := Cursor{Stream: s.ID, After: position(s)}
			if s.RemoteID != "" {
				c.Stream = s.RemoteID
			}
			if !asked[c.Stream] { // another local memory may have had this id at the hub before
				asked[c.Stream] = true
				out = append(out, c)
			}
		}
	}
}

func (r *Replicator) pullPages(ctx context.Context, cursors []Cursor, wait time.Duration) error {
	for again := true; again; again = len(cursors) > 0 {
		answer, err := r.waitFor(ctx, cursors, wait)
		if err != nil {
			return err
		}
		if answer == nil { // there is a new subscription
			return nil
		}
		r.hubAnswered(ctx, causePull)
		if again, err := r.epochChanged(ctx, answer.HubEpoch); err != nil || again && len(answer.Behind) > 0 {
			return err // first the hub receives what it lacks
		}
		if err := r.compareHeads(ctx, cursors, answer.Behind); err != nil {
			return err
		}
		r.mu.Lock()
		r.stale = r.stale || answer.Catalogue > r.catalog
		r.mu.Unlock()
		more := cursors[:0:0]
		for _, s := range answer.Streams {
			if err := r.apply(ctx, s); err != nil {
				if ctx.Err() != nil || fault.HasCode(err, memory.CodeLeft) {
					return err
				}
				r.delayPull(ctx, s.Stream, err)
				continue
			}
			if s.More {
				more = append(more, Cursor{Stream: s.Stream, After: s.Next})
			}
		}
		cursors, wait = more, 0
	}
	r.meter.CurrentAt.Store(time.Now().UnixNano())
	return nil
}

// waitFor makes one pull. The response is nil if a new subscription has ended it.
func (r *Replicator) waitFor(ctx context.Context, cursors []Cursor, wait time.Duration) (*PullResponse, error) {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	if wait > 0 {
		go func() {
			select {
			case <-r.asked:
				cancel()
			case <-waiting.Done():
			}
		}()
	}
	answer, err := r.Client.Pull(waiting, PullRequest{
		Cursors: cursors, Limit: MaxPullItems, WaitMillis: int(wait / time.Millisecond), Catalogue: r.catalogueVersion(),
	})
	if err != nil && waiting.Err() != nil && ctx.Err() == nil {
		return nil, nil
	}
	return &answer, err
}

// delayPull does not pull a stream for a while: what the hub sends of it cannot be stored.
// The account of followers shows why.
func (r *Replicator) delayPull(ctx context.Context, stream string, err error) {
	r.Log.Error("changes that the hub sends of a memory cannot be stored", "stream", stream, "error", err)
	why := "what the hub sends cannot be stored here: " + err.Error()
	if err := r.Book.DelayPulls(ctx, r.member(), stream, why); err != nil {
		r.Log.Debug("that cannot be stored either", "error", err)
	}
}

// apply stores the items of a stream.
func (r *Replicator) apply(ctx context.Context, s StreamItems) error {
	pulled := make([]items.Item, len(s.Items))
	for i, p := range s.Items {
		pulled[i] = items.Item{HubSeq: p.HubSeq, Kind: p.Kind, ID: p.ID, Op: p.Op, Key: p.Key, Doc: p.Doc, Device: p.Device}
	}
	err := r.Book.Apply(ctx, r.member(), s.Stream, pulled, s.Next)
	if err == nil {
		r.meter.Pulled.Add(int64(len(pulled)))
	}
	return err
}

// catalogue reads the user's vaults and memories at the hub, unless that was done recently.
// Memories in vaults named like a local project are subscribed.
func (r *Replicator) catalogue(ctx context.Context, last *time.Time) error {
	if time.Since(*last) < catalogueEvery {
		return nil
	}
	heads, err := r.heads(ctx)
	if err != nil {
		return err
	}
	r.hubAnswered(ctx, causePull)
	vaults := map[string]Vault{}
	for _, h := range heads {
		if h.Vault != nil {
			vaults[h.Vault.VaultID] = *h.Vault
		}
	}
	items, listed := make([]items.Item, 0, len(heads)), map[string]bool{}
	for _, h := range heads {
		listed[h.Stream] = true
		item, err := h.item(vaults)
		if err != nil {
			return err
		}
		items = append(items, item)
	}
	if err := r.Book.Catalogue(ctx, r.member(), items); err != nil {
		return err
	}
	if err := r.pullDeleted(ctx, listed); err != nil {
		return err
	}
	*last = time.Now()
	return nil
}

// heads returns all streams of the user at the hub.
func (r *Replicator) heads(ctx context.Context) (all []Head, err error) {
	for after := ""; ; {
		page, err := r.Client.Heads(ctx, after)
		if err != nil {
			return nil, err
		}
		if after == "" { // an addition while pages are read makes a newer version
			r.mu.Lock()
			r.catalog = page.Catalogue
			r.mu.Unlock()
		}
		if err := r.noteEpoch(ctx, page.HubEpoch); err != nil {
			return nil, err
		}
		all = append(all, page.Heads...)
		if after = page.Next; after == "" {
			return all, nil
		}
	}
}

// pullDeleted pulls local streams that are neither subscribed nor listed at the hub any
// more, to learn whether they were deleted.
func (r *Replicator) pullDeleted(ctx context.Context, listed map[string]bool) error {
	var gone []Cursor
	for after := ""; ; {
		page, err := r.Book.Streams(ctx, r.User, after, MaxCursors)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		for _, s := range page {
			id := s.ID
			if after = s.ID; s.RemoteID != "" {
				id = s.RemoteID
			}
			if !s.Subscribed && s.Acked >= s.Head && !listed[id] {
				gone = append(gone, Cursor{Stream: id, After: s.PullCursor})
			}
		}
	}
	for first := 0; first < len(gone); first += MaxCursors {
		if err := r.pullPages(ctx, gone[first:min(first+MaxCursors, len(gone))], 0); err != nil {
			return err
		}
	}
	return nil
}

// item returns a head as a put of its vault or memory.
func (h Head) item(vaults map[string]Vault) (items.Item, error) {
	item := items.Item{ID: h.Stream, Op: OpPut}
	var err error
	if h.Vault != nil {
		item.Kind = KindVault
		item.Doc, err = json.Marshal(h.Vault)
		return item, err
	}
	item.Kind = KindMemory
	item.Doc, err = json.Marshal(struct {
		*Memory
		Vault Vault `json:"vault"`
	}{h.Memory, vaults[h.Memory.VaultID]})
	return item, err
}

// PullStream pulls one stream until there are no more changes. It is idempotent. Errors:
// those of the hub and of memories.Service.Apply.
func (r *Replicator) PullStream(ctx context.Context, stream string) error {
	defer r.Client.Close()
	s, ok, err := r.Book.Stream(ctx, stream)
	if err != nil || !ok {
		return err
	}
	c := Cursor{Stream: s.ID, After: s.PullCursor}
	if s.RemoteID != "" {
		c.Stream = s.RemoteID
	}
	return r.pullPages(ctx, []Cursor{c}, 0)
}
