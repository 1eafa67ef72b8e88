package archive

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"cairn/internal/crashpoint"
	"cairn/internal/fault"
	"cairn/internal/store"
)

// line archives one project.
type line struct {
	*Archiver
	project string
	dir     string
	shard   *shard

	written atomic.Int64 // the seq up to which files are written
	failing atomic.Bool  // the last try failed, or the archive pauses
	heals   atomic.Bool  // an archive had to be written again: others may be gone too

	// Of whoever holds the project's lock:
	repo   *Repository // nil until it is needed
	healed Rebuilt     // what open had to write again
}

// drop forgets the repository, which may have been deleted or replaced.
func (l *line) drop() {
	if l.repo != nil {
		_ = l.repo.Close()
		l.repo = nil
	}
}

// run is one turn at which a project is caught up with.
type run struct {
	cursor         // how far it is; of whoever makes the commits
	begin   string // the head at the beginning
	line    *line
	ctx     context.Context
	woken   <-chan struct{} // something was committed to the store; nil if nobody tells
	flooded bool            // there was a whole batch of changes to do
	gone    bool            // what was archived is not there any more
	waiting []*request      // not yet known to be committed, oldest first
	failed  bool            // one of them; of whoever makes the commits
}

// catchUp archives what a project's changes since the last commit come to, and goes
// on while there are more. Nothing is acknowledged that is not in a commit; after an
// error everything since the last one is done again by the next call. woken tells that
// there is more; it may be nil.
func (l *line) catchUp(ctx context.Context, woken <-chan struct{}) (store.Turned, error) {
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
	return store.Turned{Full: r.flooded, Others: err == nil && l.heals.Swap(false)}, err
}

// all does all that there is to do.
func (r *run) all() (err error) {
	l := r.line
	defer func() {
		for len(r.waiting) > 0 {
			err = errors.Join(err, r.settle())
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

// renew writes what was archived and is not there any more.
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

// place reads how far the archive is.
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

// follow forgets a repository that does not know the last commit that was stored: another
// process made it. By what it knows, that one has taken back what was archived before.
func (l *line) follow(head string) {
	if l.repo != nil && head != "" && !l.repo.stands(head) {
		l.drop()
	}
}

// step writes the files of one batch and asks for its commit; more says that there is
// surely another one. A small batch is followed by none: what comes meanwhile wakes the
// project, and after the commit one looks again.
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

// prepare renders the next batch and writes its files, while few other projects do so:
// callers want the processors too. It returns nil if there is none; came are the times
// of its changes.
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
	doomed, err := l.repo.matching(r.ctx, q.gone)
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

// read renders the next batch, nil if there is none; came are the times of its changes.
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

// open opens the repository if it is not open. One that does not hold the last
// commit that was stored was deleted, replaced or set back: then every file of the
// project is compared, and what is missing is written.
func (l *line) open(ctx context.Context, head string) (err error) {
	if l.repo != nil {
		return nil
	}
	if head == "" {
		if err := l.makeRoom(ctx); err != nil {
			return err
		}
	}
	if l.repo, err = open(ctx, git{program: "git", dir: l.dir, stale: l.Stale}, head); err != nil {
		return err
	}
	if l.keepIdentity(ctx); head == "" {
		return nil
	}
	held, err := l.repo.Contains(ctx, head)
	if err != nil || held {
		return err
	}
	l.Log.Warn("an archive does not hold its last commit; it is compared with the store", "archive", l.dir, "commit", head)
	l.heals.Store(true)
	did, err := l.rebuild(ctx, false)
	l.healed.add(did)
	return err
}

// writeBackoff separates the tries to write files.
var writeBackoff = store.Backoff{First: 100 * time.Millisecond, Max: time.Second}

// write writes files to the work tree, and tries that three times.
func (l *line) write(ctx context.Context, files []File) error {
	for try := 1; ; try++ {
		_, err := l.repo.WriteFiles(ctx, files)
		if err == nil || try == 3 || l.repo.pause(ctx, writeBackoff.Delay(try)) != nil {
			return err
		}
	}
}

// await waits until the oldest request is committed. A wake-up ends it too, and with
// wake a signal that there is more to read.
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
		return r.settle()
	case <-signal:
	case <-t.C:
		if group := r.line.shard.takeOver(r); group != nil {
			r.line.counts.fallbacks.Add(1)
			r.line.shard.finish(group, commitAll(group))
		}
	}
	return nil
}

// settle waits for the oldest request, and returns how it went.
func (r *run) settle() error {
	q := r.waiting[0]
	for {
		t := time.NewTimer(r.line.shard.silence)
		select {
		case err := <-q.done:
			t.Stop()
			r.waiting = r.waiting[1:]
			if errors.Is(err, errBefore) {
				err = nil // the one before says why
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

// render makes the files of changes. A change at which the rendering breaks down, or
// of which a file cannot be archived, is refused alone.
func render(ctx context.Context, tx *store.Tx, p partChanges) (RenderedFiles, error) {
	pages, err := renderSome(ctx, tx, p.part, p.changes)
	if !errors.Is(err, errUnfit) {
		return pages, err
	}
	var refused []store.Refusal
	var fit []store.Change
	for _, c := range p.changes {
		if _, err := renderSome(ctx, tx, p.part, []store.Change{c}); errors.Is(err, errUnfit) {
			refused = append(refused, store.Refusal{Seq: c.Seq, Err: err})
			continue
		} else if err != nil {
			return RenderedFiles{}, err
		}
		fit = append(fit, c)
	}
	if len(refused) == 0 {
		return RenderedFiles{}, err // only together; it is tried again
	}
	pages, err = renderSome(ctx, tx, p.part, fit)
	pages.Refused = append(pages.Refused, refused...)
	return pages, err
}

// errUnfit says that changes cannot become files of an archive.
var errUnfit = errors.New("cannot be archived")

func renderSome(ctx context.Context, tx *store.Tx, p *Part, changes []store.Change) (pages RenderedFiles, err error) {
	defer func() {
		if defect := recover(); defect != nil {
			err = fmt.Errorf("%w: panic: %v", errUnfit, defect)
		}
	}()
	pages, err = p.Render(ctx, tx, changes)
	for _, f := range pages.Files {
		if bad := checkPath(f.Path); bad != nil && err == nil {
			err = fmt.Errorf("%w: %w", errUnfit, bad)
		}
	}
	return pages, err
}

// rest is for when a project has been quiet: Git's index comes along, packs are
// consolidated, and the git processes end. If another process has archived meanwhile,
// that is its affair.
func (l *line) rest(ctx context.Context) {
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
		l.Log.Warn("an archive could not be tidied", "archive", l.dir, "error", err)
		l.drop()
		return
	}
	if l.repo != nil {
		_ = l.repo.Close()
	}
}

// head is the last commit that was stored, "" if there is none.
func (l *line) head(ctx context.Context) (head string, err error) {
	err = l.Store.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		c, _, err := cursorOf(ctx, tx, l.project)
		head = c.head
		return err
	})
	return head, err
}
