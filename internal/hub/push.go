package hub

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"cairn/internal/hub/database"
	"cairn/internal/replica"
)

// memoryLimit is the time limit for the transaction of one stream. Beyond it the response is
// 503, so that one stream does not delay others (memories §13.1).
const memoryLimit = 2 * time.Second

// pushLimit is the time limit of a push, less than the timeout of devices (hub.timeout_s).
// Streams that were not processed by then get the response 503.
const pushLimit = 20 * time.Second

// batch contains the items of one stream in a push.
type batch struct {
	stream string
	at     []int // their positions in the request
	items  []incoming
	bad    error // why the item after items is refused; later items are not tried
}

// Push stores changes of one device of a user and returns a result for each item. It is safe
// to retry at any time, in any process. Errors: Invalid with code validation_error if the
// request as a whole is invalid.
func (h *Hub) Push(ctx context.Context, who Identity, req replica.PushRequest) ([]replica.Result, error) {
	batches, err := h.divide(req)
	if err != nil {
		return nil, err
	}
	results := make([]replica.Result, len(req.Items))
	if h.db.Postgres {
		h.eachStream(ctx, who, req, batches, results)
		if err := saveDevice(ctx, h.db.Writing(), who.UserID, req); err != nil {
			return nil, err
		}
	} else {
		h.pushInOneTx(ctx, who, req, batches, results)
	}
	h.metrics.seen(results)
	for _, b := range batches {
		if results[b.at[0]].Status >= 300 {
			continue
		}
		h.signals.wake(who.UserID, b.stream)
		if slices.ContainsFunc(b.items, func(in incoming) bool { return isCatalogued(in.kind) }) {
			h.signals.wake(who.UserID, wholeCatalogue)
		}
	}
	return results, nil
}

// divide groups the items by stream and runs the checks that do not need the database.
func (h *Hub) divide(req replica.PushRequest) ([]*batch, error) {
	switch {
	case !isToken(req.DeviceID, replica.MaxDeviceID):
		return nil, invalid("device_id", "device_id must be 1 to 64 printable ASCII characters")
	case len(req.Items) == 0 || len(req.Items) > replica.MaxPushItems:
		return nil, invalid("items", "there must be 1 to 1000 items")
	}
	var all []*batch
	byStream := map[string]*batch{}
	for i, item := range req.Items {
		b := byStream[item.Stream]
		switch {
		case b == nil:
			b = &batch{stream: item.Stream}
			byStream[item.Stream] = b
			all = append(all, b)
		case item.Seq <= req.Items[b.at[len(b.at)-1]].Seq:
			return nil, invalid("seq", "the seq of a stream's items must ascend")
		}
		if item.Seq <= 0 {
			return nil, invalid("seq", "seq must be above 0")
		}
		b.at = append(b.at, i)
		if b.bad != nil {
			continue
		}
		in, err := h.parse(item)
		if err != nil {
			b.bad = err
			continue
		}
		b.items = append(b.items, in)
	}
	return all, nil
}

// eachStream commits every stream in a separate transaction, several concurrently.
func (h *Hub) eachStream(ctx context.Context, who Identity, req replica.PushRequest, batches []*batch, results []replica.Result) {
	var all sync.WaitGroup
	var log sync.Once // a failure of the database affects all streams, so log it once
	ctx, cancel := context.WithTimeout(ctx, pushLimit)
	defer cancel()
	for _, b := range batches {
		select {
		case h.workers <- struct{}{}:
		case <-ctx.Done():
			b.spread(nil, ctx.Err(), req, results)
			continue
		}
		all.Go(func() {
			defer func() { <-h.workers }()
			answer, err := h.pushInChunks(ctx, who, req.DeviceID, b)
			if err != nil {
				log.Do(func() { h.log.WarnContext(ctx, "a stream could not be written", "error", err) })
			}
			b.spread(answer, err, req, results)
		})
	}
	all.Wait()
}

// partBytes is the maximum size of a stream's items in one transaction; the first item may
// exceed it. So a slow database accepts a long stream in several pushes.
const partBytes = 256 << 10

// pushInChunks commits a stream's items in several transactions. It returns the results of the
// items that were processed within the limit.
func (h *Hub) pushInChunks(ctx context.Context, who Identity, device string, b *batch) (answers []replica.Result, err error) {
	ctx, cancel := context.WithTimeout(ctx, h.memoryLimit)
	defer cancel()
	for rest := b.items; len(rest) > 0; {
		n := 1
		for size := rest[0].size; n < len(rest) && size+rest[n].size <= partBytes; n++ {
			size += rest[n].size
		}
		var answer []replica.Result
		err := h.db.Write(ctx, func(s database.Statements) (err error) {
			answer, err = h.stream(ctx, s, who, device, b.stream, rest[:n])
			return err
		})
		if err != nil {
			return answers, err
		}
		if answers = append(answers, answer...); len(answer) < n || answer[n-1].Status >= 300 {
			return answers, nil
		}
		rest = rest[n:]
	}
	return answers, nil
}

// pushInOneTx commits all streams in one transaction, each in a savepoint: SQLite has one
// writer, and the commit is the expensive part.
func (h *Hub) pushInOneTx(ctx context.Context, who Identity, req replica.PushRequest, batches []*batch, results []replica.Result) {
	answers, failures := make([][]replica.Result, len(batches)), make([]error, len(batches))
	err := h.db.Write(ctx, func(s database.Statements) error {
		outcome := database.ErrNothing
		if err := saveDevice(ctx, s, who.UserID, req); err != nil {
			return err
		}
		for i, b := range batches {
			if _, err := s.Exec(ctx, "SAVEPOINT stream"); err != nil {
				return err
			}
			answer, err := h.stream(ctx, s, who, req.DeviceID, b.stream, b.items)
			answers[i], failures[i] = answer, nil
			switch {
			case err == nil:
				outcome = nil
			case !errors.Is(err, database.ErrNothing):
				answers[i], failures[i] = nil, err
				fallthrough
			default:
				if _, err := s.Exec(ctx, "ROLLBACK TO stream"); err != nil { // for instance after a full disk, which ends the transaction
					return errors.Join(failures[i], err)
				}
			}
			if _, err := s.Exec(ctx, "RELEASE stream"); err != nil {
				return err
			}
		}
		return outcome
	})
	for i, b := range batches {
		if err != nil {
			answers[i], failures[i] = nil, err
		}
		b.spread(answers[i], failures[i], req, results)
	}
	if err = firstOf(failures...); err != nil {
		h.log.WarnContext(ctx, "a stream could not be written", "error", err)
	}
}

// stream applies one stream's items in order, up to the first refused one, and returns their
// results. It returns errNothing if the transaction has nothing to store. On PostgreSQL it
// also commits a transaction without new items, because of the lock on the head. With
// synchronous replication, a transaction whose client has stopped waiting is visible before
// another server has it. A later commit waits for both.
func (h *Hub) stream(ctx context.Context, s database.Statements, who Identity, device, id string, items []incoming) ([]replica.Result, error) {
	if len(items) == 0 {
		return nil, database.ErrNothing
	}
	st := stream{s: s, id: id, tenant: who.UserID, device: device, admin: who.Level == LevelAdmin, now: h.clock().UnixNano()}
	found, err := st.open(ctx, items)
	if err != nil {
		return nil, err
	}
	if !found {
		what := items[0].kind
		if what != replica.KindVault {
			what = replica.KindMemory
		}
		return []replica.Result{refused(items[0].seq, missing(what))}, database.ErrNothing
	}
	var answer []replica.Result
	for _, in := range items {
		r, err := st.apply(ctx, in)
		if err != nil {
			return nil, err
		}
		answer = append(answer, r)
		if r.Status >= 300 {
			break
		}
	}
	switch {
	case len(st.fresh) > 0:
		return answer, st.save(ctx)
	case s.Postgres && answer[0].Status < 300:
		return answer, nil
	}
	return answer, database.ErrNothing
}

// spread assigns the results to the positions of their items in the request.
func (b *batch) spread(answer []replica.Result, err error, req replica.PushRequest, results []replica.Result) {
	failed := false
	for i, at := range b.at {
		seq := req.Items[at].Seq
		switch {
		case i < len(answer):
			results[at] = answer[i]
		case failed:
			results[at] = replica.Result{Seq: seq, Status: http.StatusFailedDependency, Error: &replica.Error{
				Code: "failed_dependency", Message: "an earlier item of the stream was not taken",
			}}
		case err != nil && len(b.items) > 0:
			results[at] = refused(seq, database.Unavailable(err))
		default:
			results[at] = refused(seq, b.bad)
		}
		failed = failed || results[at].Status >= 300
	}
}
