package replica

import (
	"context"
	"errors"
	"net/http"

	"cairn/internal/fault"
	"cairn/internal/memory/replication"
	"cairn/internal/store/follow"
)

// comparePage is how many numbers of a stream are compared with the hub's at a time.
const comparePage = 1000

// noteEpoch stores the epoch that the hub reports. If it has risen, the hub was restored
// from a backup, and the changes that it lacks are sent again (memories §13.2).
func (r *Replicator) noteEpoch(ctx context.Context, epoch int64) error {
	r.mu.Lock()
	known := r.epoch == epoch
	r.mu.Unlock()
	if known || epoch == 0 {
		return nil
	}
	if err := r.Book.NoteEpoch(ctx, r.member(), epoch); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.epoch, r.restoring, r.stale = epoch, true, true
	return nil
}

// epochChanged is noteEpoch, and reports whether the epoch differs from the last one.
func (r *Replicator) epochChanged(ctx context.Context, epoch int64) (bool, error) {
	r.mu.Lock()
	was := r.epoch
	r.mu.Unlock()
	return epoch != was, r.noteEpoch(ctx, epoch)
}

// restore restores the streams that a restored hub lacks changes of, if this process holds
// their lanes.
func (r *Replicator) restore(ctx context.Context) error {
	r.mu.Lock()
	restoring := r.restoring
	r.mu.Unlock()
	if !restoring || r.leases == nil {
		return nil
	}
	streams, err := r.Book.Restoring(ctx, r.User)
	if err != nil {
		return err
	}
	heads := map[string]int64{}
	if len(streams) > 0 {
		r.Log.Warn("the hub was restored from a backup; changes that it lacks are sent again", "streams", len(streams))
		all, err := r.heads(ctx)
		if err != nil {
			return err
		}
		for _, h := range all {
			heads[h.Stream] = h.HeadSeq
		}
		if err := r.takeLanes(ctx, streams); err != nil {
			return err
		}
	}
	left := false
	for _, s := range streams {
		lease, ours := r.leaseOf(s.ID)
		if left = left || !ours; !ours {
			continue
		}
		if err := r.restoreStream(ctx, lease, s, heads[remoteOf(s)]); err != nil {
			return err
		}
	}
	r.mu.Lock()
	r.restoring = left
	r.mu.Unlock()
	r.nudge()
	return nil
}

func remoteOf(s replication.Stream) string {
	if s.RemoteID != "" {
		return s.RemoteID
	}
	return s.ID
}

// restoreStream sends the changes of one stream that the hub lacks. It is safe to repeat
// from its start, because the hub knows each change by its key.
func (r *Replicator) restoreStream(ctx context.Context, lease follow.Lease, s replication.Stream, head int64) error {
	first, err := r.Book.RecreateChange(ctx, s)
	if err == nil {
		_, err = r.sendAgain(ctx, first)
	}
	if err == nil {
		err = r.compare(ctx, lease, s, head)
	}
	for err == nil {
		var rows []replication.Outgoing
		if rows, err = r.Book.NextMissing(ctx, s, r.Batch); err != nil || len(rows) == 0 {
			break
		}
		var results []Result
		results, err = r.sendAgain(ctx, rows)
		for i, res := range results {
			if err == nil && res.Status != http.StatusFailedDependency {
				err = r.Book.ConfirmResent(ctx, r.member(), lease, rows[i], outcome(rows[i], res))
			}
		}
	}
	var rest []replication.Outgoing
	if err == nil {
		rest, err = r.Book.LaterChanges(ctx, s)
	}
	for err == nil && len(rest) > 0 {
		page := rest[:min(len(rest), r.Batch)]
		var results []Result
		results, err = r.sendAgain(ctx, page)
		done := 0
		for done < len(results) && results[done].Status != http.StatusFailedDependency {
			done++
		}
		rest = rest[done:]
	}
	if err != nil {
		return err
	}
	return r.Book.FinishRestore(ctx, r.member(), lease, s.ID)
}

// sendAgain pushes changes. It returns an error if the hub cannot accept one now. Permanent
// refusals, and changes not tried because of them, are in the results.
func (r *Replicator) sendAgain(ctx context.Context, batch []replication.Outgoing) ([]Result, error) {
	if len(batch) == 0 {
		return nil, nil
	}
	device, head, err := r.origin(ctx)
	if err != nil {
		return nil, err
	}
	ask, size := PushRequest{DeviceID: device, Head: head}, 0
	for _, o := range batch {
		if size += len(o.Doc); size > maxBatchBytes && len(ask.Items) > 0 {
			break
		}
		ask.Items = append(ask.Items, item(o))
	}
	if err := r.Book.CheckMember(ctx, r.member()); err != nil {
		return nil, err
	}
	answer, err := r.Client.Push(ctx, ask)
	if err != nil {
		return nil, err
	}
	for i, res := range answer.Results {
		if res.Status == http.StatusInsufficientStorage {
			r.stopPushes(ctx, StateDiskFull, "the hub cannot store anything: "+reason(res), fullEvery)
		}
		if retryable(res.Status) {
			return nil, fault.New(fault.Unavailable, CodeUnavailable, "the hub is not accepting changes: "+reason(res))
		}
		if res.Status >= 300 && res.Status != http.StatusFailedDependency {
			r.Log.Info("a restored hub does not accept a change again", "kind", batch[i].Kind, "op", batch[i].Op, "status", res.Status)
		}
	}
	return answer.Results, nil
}

// compare finds the changes of a stream that the hub lacks: page by page backwards from its
// head, until a page equals the local one.
func (r *Replicator) compare(ctx context.Context, lease follow.Lease, s replication.Stream, head int64) error {
	after := head
	have := map[string]int64{}
	for clean := false; !clean && after > 0; {
		before := after
		after = max(0, after-comparePage)
		if err := r.keysOf(ctx, remoteOf(s), after, before, have); err != nil {
			return err
		}
		ours, err := r.Book.Numbers(ctx, s.ID, after)
		if err != nil {
			return err
		}
		clean = true
		for key, seq := range ours {
			if seq <= before && have[key] != seq {
				clean = false
			}
		}
	}
	ours, err := r.Book.Numbers(ctx, s.ID, after)
	if err != nil {
		return err
	}
	var lacking []string
	for key, seq := range ours {
		if have[key] != seq {
			lacking = append(lacking, key)
		}
	}
	return r.Book.MarkMissing(ctx, r.member(), lease, s.ID, after, lacking)
}

// keysOf adds the numbers of a stream's items at the hub to have, by their keys.
func (r *Replicator) keysOf(ctx context.Context, stream string, after, until int64, have map[string]int64) error {
	for after < until {
		answer, err := r.Client.Pull(ctx, PullRequest{Cursors: []Cursor{{Stream: stream, After: after}}, Limit: MaxPullItems})
		if no, refused := errors.AsType[*Refused](err); refused && no.Status == http.StatusNotFound || err == nil && len(answer.Streams) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		page := answer.Streams[0]
		for _, it := range page.Items {
			have[it.Key] = it.HubSeq
		}
		if after = page.Next; !page.More {
			return nil
		}
	}
	return nil
}
