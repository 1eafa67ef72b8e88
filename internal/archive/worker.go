package archive

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"cairn/internal/archive/repository"
	"cairn/internal/backoff"
	"cairn/internal/crashpoint"
	"cairn/internal/fault"
	"cairn/internal/store"
	"cairn/internal/store/follow"
)

// projectWorker archives one project.
type projectWorker struct {
	*Archiver
	project string
	dir     string
	shard   *shard

	written atomic.Int64 // seq up to which files are written
	failing atomic.Bool  // the last attempt failed, or the archive pauses
	heals   atomic.Bool  // an archive had to be written again, so others may be missing too

	// Fields of the holder of the project's lock:
	repo   *repository.Repository // nil until it is needed
	healed Rebuilt                // files that open had to write again
}

// drop forgets the repository, which may have been deleted or replaced.
func (l *projectWorker) drop() {
	if l.repo != nil {
		_ = l.repo.Close()
		l.repo = nil
	}
}

// run is one run that catches up with a project.
type run struct {
	cursor         // position; owned by the goroutine that commits
	begin   string // the head at the start
	line    *projectWorker
	ctx     context.Context
	woken   <-chan struct{} // signals commits to the store; may be nil
	flooded bool            // there was a full batch of changes
	gone    bool            // archived files are missing
	waiting []*request      // requests not yet committed, oldest first
	failed  bool            // a request failed; owned by the goroutine that commits
}

// catchUp archives a project's changes since the last commit and continues while there
// are more. Only committed changes are acknowledged; after an error the next call repeats
// everything since the last commit. woken signals new changes; it may be nil.
func (l *projectWorker) catchUp(ctx context.Context, woken <-chan struct{}) (follow.Turned, error) {
	l.sample(ctx)
	r := &run{line: l, ctx: ctx, woken: woken}
	err := l.paused()
	if err == nil {
		err = l.locked(ctx, r.all)
	}
	l.failing.Store(err != nil && ctx.Err() == nil)
	if err != nil && ctx.Err() == nil {
		l.count(err)
	}
	return follow.Turned{Full: r.flooded, Others: err == nil && l.heals.Swap(false)}, err
}

// all archives all pending changes.
func (r *run) all() (err error) {
	l := r.line
	defer func() {
		for len(r.waiting) > 0 {
			err = errors.Join(err, r.finishOldest())
		}
		if err != nil {
			l.drop()
		}
	}()
	if err := r.place(); err != nil {
		return err
	}
	if r.gone {
		if err := r.renew(); err != nil {
			return err
		}
	}
	for {
		more, err := r.step()
		switch {
		case err != nil:
			return err
		case more:
			r.flooded = true
		case len(r.waiting) == 0:
			return nil
		default:
			if err := r.await(true); err != nil {
				return err
			}
		}
	}
}

// renew writes missing archived files again.
func (r *run) renew() error {
	l := r.line
	l.drop()
	before := l.healed
	if err := l.open(r.ctx, r.begin); err != nil || l.healed != before {
		return err
	}
	l.heals.Store(true)
	did, err := l.rebuild(r.ctx, false)
	l.healed.add(did)
	return err
}

// place reads the position of the archive.
func (r *run) place() error {
	err := r.line.Store.Read(r.ctx, func(ctx context.Context, tx *store.Tx) error {
		c, ok, err := cursorOf(ctx, tx, r.line.project)
		if err == nil && !ok {
			err = fault.Newf(fault.NotFound, "not_found", "there is no project %q", r.line.project)
		}
		r.cursor, r.begin = c, c.head
		r.line.written.Store(c.committed)
		if err == nil {
			r.gone, err = r.line.isGone(ctx, tx, r.line.project, c)
		}
		return err
	})
	if err == nil {
		r.line.follow(r.begin)
	}
	return err
}

// follow forgets a repository that has not seen the last stored commit, because another
// process made that commit. Otherwise the repository would treat it as a commit that
// reverts archived files.
func (l *projectWorker) follow(head string) {
	if l.repo != nil && head != "" && !l.repo.IsLast(head) {
		l.drop()
	}
}

// step writes the files of one batch and requests its commit. more reports whether there
// is certainly another batch. After a small batch it is false: new changes wake the
// project, and after the commit it reads again.
func (r *run) step() (more bool, err error) {
	l := r.line
	l.sample(r.ctx)
	if err := l.paused(); err != nil {
		return false, err
	}
	q, came, err := r.prepare()
	if err != nil || q == nil {
		return false, err
	}
	l.written.Store(q.last)
	l.counts.files.left.Add(int64(len(came)))
	now := l.Store.Now()
	for _, at := range came {
		l.counts.files.latency.Add(now.Sub(time.Unix(0, at)))
	}
	for r.paths() > 2*maxPaths {
		l.counts.backpressure.Add(1)
		if err := r.await(false); err != nil {
			return false, err
		}
	}
	r.waiting = append(r.waiting, q)
	l.counts.commits.load.Add(1)
	l.counts.commits.entered.Add(1)
	l.shard.add(q)
	return len(came) >= maxChanges, nil
}

// prepare renders the next batch and writes its files. Only few projects do so
// concurrently, because callers need the processors too. It returns nil if there is no
// batch. came contains the times of its changes.
func (r *run) prepare() (q *request, came []int64, err error) {
	l := r.line
	select {
	case l.turns <- struct{}{}:
	case <-r.ctx.Done():
		return nil, nil, r.ctx.Err()
	}
	defer func() { <-l.turns }()
	q, ids, came, err := r.read()
	if err != nil || q == nil {
		return nil, nil, err
	}
	crashpoint.Pass("archive_rendered")
	l.counts.files.entered.Add(int64(len(came)))
	if len(q.files)+len(q.gone) == 0 {
		return q, came, nil
	}
	if err := l.open(r.ctx, r.begin); err != nil {
		return nil, nil, err
	}
	if err := l.keepNumbers(r.ctx, ids); err != nil {
		return nil, nil, err
	}
	doomed, err := l.repo.Matching(r.ctx, q.gone)
	if err != nil {
		return nil, nil, err
	}
	q.files = newest(append(doomed, q.files...))
	if err := l.write(r.ctx, q.files); err != nil {
		return nil, nil, err
	}
	crashpoint.Pass("archive_written")
	return q, came, nil
}

func (r *run) paths() (n int) {
	for _, q := range r.waiting {
		n += len(q.files)
	}
	return n
}

// read renders the next batch, nil if there is none. came contains the times of its
// changes.
func (r *run) read() (q *request, ids map[string]int64, came []int64, err error) {
	l := r.line
	err = l.Store.Read(r.ctx, func(ctx context.Context, tx *store.Tx) error {
		q, ids, came = nil, map[string]int64{}, nil
		parts, last, err := l.changesOf(ctx, tx, l.project, l.written.Load())
		if err != nil || len(parts) == 0 {
			return err
		}
		q = &request{run: r, last: last, done: make(chan error, 1)}
		for _, p := range parts {
			pages, err := render(ctx, tx, p)
			if err != nil {
				return err
			}
			q.files, q.ops, q.refused = append(q.files, pages.Files...), append(q.ops, pages.Ops...), append(q.refused, pages.Refused...)
			q.gone = append(q.gone, pages.Gone...)
			if first := p.changes[0].Seq; q.first == 0 || first < q.first {
				q.first = first
			}
			q.at = max(q.at, p.changes[len(p.changes)-1].At)
			for _, c := range p.changes {
				came = append(came, c.At)
			}
		}
		return l.numbers(ctx, tx, ids)
	})
	return q, ids, came, err
}

// open opens the repository if it is not open. If it does not contain the last stored
// commit, it was deleted, replaced or reset. Then open compares every file of the project
// and writes missing ones.
func (l *projectWorker) open(ctx context.Context, head string) (err error) {
	if l.repo != nil {
		return nil
	}
	if head == "" {
		if err := l.makeRoom(ctx); err != nil {
			return err
		}
	}
	if l.repo, err = repository.Open(ctx, l.dir, head, l.Stale); err != nil {
		return err
	}
	if l.keepIdentity(ctx); head == "" {
		return nil
	}
	held, err := l.repo.Contains(ctx, head)
	if err != nil || held {
		return err
	}
	l.Log.Warn("an archive does not contain its last commit; comparing it with the store", "archive", l.dir, "commit", head)
	l.heals.Store(true)
	did, err := l.rebuild(ctx, false)
	l.healed.add(did)
	return err
}

// writeBackoff separates the attempts to write files.
var writeBackoff = backoff.Policy{First: 100 * time.Millisecond, Max: time.Second}

// write writes files to the work tree, with up to three attempts.
func (l *projectWorker) write(ctx context.Context, files []repository.File) error {
	for try := 1; ; try++ {
		_, err := l.repo.WriteFiles(ctx, files)
		if err == nil || try == 3 || !backoff.Pause(ctx, writeBackoff.Delay(try), nil) {
			return err
		}
	}
}

// await waits until the oldest request is committed. It also ends on a wake-up and, with
// wake, when there is more to read.
func (r *run) await(wake bool) error {
	signal := r.woken
	if !wake {
		signal = nil
	}
	t := time.NewTimer(r.line.shard.silence)
	defer t.Stop()
	select {
	case err := <-r.waiting[0].done:
		r.waiting[0].done <- err
		return r.finishOldest()
	case <-signal:
	case <-t.C:
		if group := r.line.shard.takeOver(r); group != nil {
			r.line.counts.fallbacks.Add(1)
			r.line.shard.finish(group, commitAll(group))
		}
	}
	return nil
}

// finishOldest waits for the oldest request and returns its error.
func (r *run) finishOldest() error {
	q := r.waiting[0]
	for {
		t := time.NewTimer(r.line.shard.silence)
		select {
		case err := <-q.done:
			t.Stop()
			r.waiting = r.waiting[1:]
			if errors.Is(err, errBefore) {
				err = nil // the earlier request has the reason
			}
			return err
		case <-t.C:
			if group := r.line.shard.takeOver(r); group != nil {
				r.line.counts.fallbacks.Add(1)
				r.line.shard.finish(group, commitAll(group))
			}
		}
	}
}

// render renders changes as files. A change is refused separately if rendering it fails
// or if one of its files cannot be archived.
func render(ctx context.Context, tx *store.Tx, p partChanges) (RenderedFiles, error) {
	pages, err := renderSome(ctx, tx, p.part, p.changes)
	if !errors.Is(err, errUnfit) {
		return pages, err
	}
	var refused []follow.Refusal
	var fit []store.Change
	for _, c := range p.changes {
		if _, err := renderSome(ctx, tx, p.part, []store.Change{c}); errors.Is(err, errUnfit) {
			refused = append(refused, follow.Refusal{Seq: c.Seq, Err: err})
			continue
		} else if err != nil {
			return RenderedFiles{}, err
		}
		fit = append(fit, c)
	}
	if len(refused) == 0 {
		return RenderedFiles{}, err // fails only together with the others; it is tried again
	}
	pages, err = renderSome(ctx, tx, p.part, fit)
	pages.Refused = append(pages.Refused, refused...)
	return pages, err
}

// errUnfit means that changes cannot become files of an archive.
var errUnfit = errors.New("cannot be archived")

func renderSome(ctx context.Context, tx *store.Tx, p *Part, changes []store.Change) (pages RenderedFiles, err error) {
	defer func() {
		if defect := recover(); defect != nil {
			err = fmt.Errorf("%w: panic: %v", errUnfit, defect)
		}
	}()
	pages, err = p.Render(ctx, tx, changes)
	for _, f := range pages.Files {
		if bad := repository.CheckPath(f.Path); bad != nil && err == nil {
			err = fmt.Errorf("%w: %w", errUnfit, bad)
		}
	}
	return pages, err
}

// rest runs after a project has been idle. It refreshes git's index, consolidates packs
// and ends the git processes. If another process has archived meanwhile, that process
// does this instead.
func (l *projectWorker) rest(ctx context.Context) {
	if l.repo == nil {
		return
	}
	err := l.locked(ctx, func() error {
		head, err := l.head(ctx)
		if err != nil {
			return err
		}
		if l.follow(head); l.repo == nil {
			return nil
		}
		return errors.Join(l.repo.RefreshIndex(ctx), l.repo.Repack(ctx))
	})
	if err != nil && ctx.Err() == nil {
		l.Log.Warn("cannot tidy an archive", "archive", l.dir, "error", err)
		l.drop()
		return
	}
	if l.repo != nil {
		_ = l.repo.Close()
	}
}

// head returns the last stored commit, "" if there is none.
func (l *projectWorker) head(ctx context.Context) (head string, err error) {
	err = l.Store.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		c, _, err := cursorOf(ctx, tx, l.project)
		head = c.head
		return err
	})
	return head, err
}
