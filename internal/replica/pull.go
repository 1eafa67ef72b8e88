package replica

import (
	"context"
	"encoding/json"
	"time"

	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/store"
)

// catalogueEvery is how often the list of the user's streams is read again, and how old
// what a stream that is not waited for holds may get (memories §13.3).
const catalogueEvery = 30 * time.Second

// pullBackoff is how long a stream is not pulled whose items could not be applied, so
// that it does not delay others.
var pullBackoff = store.Backoff{First: 20 * time.Second, Max: 20 * time.Second}

// Subscribed ends a pull that waits, so that the next one asks for a stream that was
// subscribed meanwhile.
func (r *Replicator) Subscribed() {
	select {
	case r.asked <- struct{}{}:
	default:
	}
}

// pull brings back what other devices sent: it waits at the hub for news of the
// subscribed streams, and looks now and then which streams there are.
func (r *Replicator) pull(ctx context.Context) {
	var catalogued time.Time
	for ctx.Err() == nil {
		if r.isStale() {
			catalogued = time.Time{}
		}
		if r.waits(ctx) || !r.mayPull() {
			store.Pause(ctx, pollEvery/4, nil)
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
		store.Pause(ctx, pollEvery/4, nil)
	}
}

// isStale reports whether the hub has a newer catalogue than the one that was read, once.
func (r *Replicator) isStale() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	stale := r.stale
	r.stale = false
	return stale
}

// mayPull reports whether a pull may be made: if the hub takes nothing, now and then one
// to find out whether that has changed.
func (r *Replicator) mayPull() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	may := r.places(1) > 0
	if may {
		r.cause = min(r.cause, causeSilent) // a push that was refused has had its turn
		r.probing()
	}
	return may
}

// pullAll pulls until there is nothing more now.
func (r *Replicator) pullAll(ctx context.Context) error {
	for range 2 { // what was deleted may have made room for what is new
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

// pullOnce asks for news of all subscribed streams and applies them, page by page. Of
// up to a thousand streams it waits for as long as given for the first news; more are
// asked in turn.
func (r *Replicator) pullOnce(ctx context.Context, wait time.Duration) error {
	cursors, err := r.cursors(ctx)
	if err != nil {
		return err
	}
	if len(cursors) == 0 && r.catalogueVersion() == 0 {
		if wait > 0 {
			store.Pause(ctx, min(wait, pollEvery), nil)
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
		store.Pause(ctx, pollEvery, nil)
	}
	return nil
}

func (r *Replicator) catalogueVersion() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.catalog
}

// cursors are how far the subscribed streams have been pulled.
func (r *Replicator) cursors(ctx context.Context) (out []Cursor, err error) {
	select {
	case <-r.asked:
	default:
	}
	return r.cursorsOf(ctx, func(s memory.Stream) int64 { return s.PullCursor })
}

// cursorsOf are positions in the subscribed streams. Streams whose content a restored
// hub still lacks have none.
func (r *Replicator) cursorsOf(ctx context.Context, position func(memory.Stream) int64) (out []Cursor, err error) {
	after, asked := "", map[string]bool{}
	for {
		page, err := r.Book.Streams(ctx, r.User, after, MaxCursors)
		if err != nil || len(page) == 0 {
			return out, err
		}
		for _, s := range page {
			if after = s.ID; !s.Subscribed || s.NextPull.After(time.Now()) || s.State == memory.StreamRestoring {
				continue
			}
			c := Cursor{Stream: s.ID, After: position(s)}
			if s.RemoteID != "" {
				c.Stream = s.RemoteID
			}
			if !asked[c.Stream] { // a memory that had this id here before it became another's
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
		if answer == nil { // something new is to be asked for
			return nil
		}
		r.answered(ctx, causePull)
		if again, err := r.risen(ctx, answer.HubEpoch); err != nil || again && len(answer.Behind) > 0 {
			return err // what the hub lacks is sent first
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

// waitFor is one pull; nil if it was ended because of a new subscription.
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
	if err := r.Book.DelayPulls(ctx, r.member(), stream, time.Now().Add(pullBackoff.Delay(1)), why); err != nil {
		r.Log.Debug("that cannot be stored either", "error", err)
	}
}

// apply brings the items of a stream to the rows.
func (r *Replicator) apply(ctx context.Context, s StreamItems) error {
	items := make([]memory.Item, len(s.Items))
	for i, p := range s.Items {
		items[i] = memory.Item{HubSeq: p.HubSeq, Kind: p.Kind, ID: p.ID, Op: p.Op, Key: p.Key, Doc: p.Doc, Device: p.Device}
	}
	err := r.Book.Apply(ctx, r.member(), s.Stream, items, s.Next)
	if err == nil {
		r.meter.Pulled.Add(int64(len(items)))
	}
	return err
}

// catalogue reads which vaults and memories the user has at the hub, if that was not
// done lately. Those of vaults named like a project here are subscribed.
func (r *Replicator) catalogue(ctx context.Context, last *time.Time) error {
	if time.Since(*last) < catalogueEvery {
		return nil
	}
	heads, err := r.heads(ctx)
	if err != nil {
		return err
	}
	r.answered(ctx, causePull)
	vaults := map[string]Vault{}
	for _, h := range heads {
		if h.Vault != nil {
			vaults[h.Vault.VaultID] = *h.Vault
		}
	}
	items, listed := make([]memory.Item, 0, len(heads)), map[string]bool{}
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
	if err := r.missing(ctx, listed); err != nil {
		return err
	}
	*last = time.Now()
	return nil
}

// heads are all streams of the user at the hub.
func (r *Replicator) heads(ctx context.Context) (all []Head, err error) {
	for after := ""; ; {
		page, err := r.Client.Heads(ctx, after)
		if err != nil {
			return nil, err
		}
		if after == "" { // what is added while pages are read makes a newer one
			r.mu.Lock()
			r.catalog = page.Catalogue
			r.mu.Unlock()
		}
		if err := r.seen(ctx, page.HubEpoch); err != nil {
			return nil, err
		}
		all = append(all, page.Heads...)
		if after = page.Next; after == "" {
			return all, nil
		}
	}
}

// missing asks after streams that are here, not subscribed, and not listed any more:
// those that were deleted say so.
func (r *Replicator) missing(ctx context.Context, listed map[string]bool) error {
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

// item is a head as a change of its stream.
func (h Head) item(vaults map[string]Vault) (memory.Item, error) {
	item := memory.Item{ID: h.Stream, Op: OpPut}
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

// PullStream pulls one stream until there is nothing more now. Errors are the hub's,
// and those of memory.Service.Apply; repeating is safe.
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
