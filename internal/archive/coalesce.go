package archive

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"time"

	"cairn/internal/archive/repository"
	"cairn/internal/crashpoint"
	"cairn/internal/store"
	"cairn/internal/store/follow"
)

const (
	maxPaths    = 4096 // of a commit
	maxOps      = 50   // operations in the body of a commit message
	maxSubject  = 180  // characters of a subject before the number of a part of a commit
	silentAfter = 10 * time.Second
)

// shardOf returns the worker that commits to a repository (mail §10.4).
func shardOf(dir string, shards int) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(dir))
	return int(h.Sum32() % uint32(shards))
}

// request asks for a commit of the files of one batch of changes.
type request struct {
	run     *run
	first   int64 // seq of the first and the last change
	last    int64
	at      int64 // time of the last one, Unix nanoseconds
	files   []repository.File
	gone    []repository.DeletePattern // patterns, not yet expanded to files
	ops     []string
	refused []follow.Refusal
	since   time.Time
	done    chan error // buffered for one result
}

// shard commits for some repositories, one at a time. Requests for a repository within
// the window go into one commit. Its worker runs while there is work.
type shard struct {
	window, silence time.Duration

	mu      sync.Mutex
	queue   []*request
	busy    map[*run]bool // runs whose commits are in progress
	worker  int           // number of the current worker; a worker with another number ends; 0 for none
	workers int           // number of workers started so far
	beat    time.Time     // last time the worker started or finished something
	full    chan struct{} // signals a request that need not wait
}

func newShard(window time.Duration) *shard {
	return &shard{window: window, silence: silentAfter, busy: map[*run]bool{}, full: make(chan struct{}, 1)}
}

// add queues a request.
func (s *shard) add(r *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.since = time.Now()
	s.queue = append(s.queue, r)
	if s.worker == 0 {
		s.startWorker()
	}
	if s.paths(r.run) >= maxPaths {
		select {
		case s.full <- struct{}{}:
		default:
		}
	}
}

func (s *shard) startWorker() {
	s.workers++
	s.worker, s.beat = s.workers, time.Now()
	go s.work(s.worker)
}

func (s *shard) paths(r *run) (n int) {
	for _, q := range s.queue {
		if q.run == r {
			n += len(q.files)
		}
	}
	return n
}

func (s *shard) work(number int) {
	for {
		group, wait := s.next(number)
		switch {
		case wait > 0:
			t := time.NewTimer(wait)
			select {
			case <-t.C:
			case <-s.full:
			}
			t.Stop()
		case group == nil:
			return
		default:
			s.finish(group, commitAll(group))
		}
	}
}

// next returns the requests that a worker must commit now, or how long it must wait. If
// both are zero, the worker must end.
func (s *shard) next(number int) (group []*request, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.worker != number {
		return nil, 0
	}
	s.beat = time.Now()
	for _, r := range s.queue {
		if s.busy[r.run] {
			continue
		}
		wait := s.window - time.Since(r.since)
		if wait > 0 && s.paths(r.run) < maxPaths && r.run.ctx.Err() == nil {
			return nil, wait
		}
		return s.take(r.run), 0
	}
	s.worker = 0 // the goroutine that holds back the rest adds or takes it
	return nil, 0
}

// take removes requests of one repository from the queue, in order, up to the maximum
// number of paths of a commit.
func (s *shard) take(r *run) (group []*request) {
	paths := 0
	s.queue = slices.DeleteFunc(s.queue, func(q *request) bool {
		if q.run != r || len(group) > 0 && paths+len(q.files) > maxPaths {
			return false
		}
		paths += len(q.files)
		group = append(group, q)
		return true
	})
	s.busy[r] = true
	return group
}

// finish sends the result of a commit to the requests of its group.
func (s *shard) finish(group []*request, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beat = time.Now()
	delete(s.busy, group[0].run)
	commits := &group[0].run.line.counts.commits
	for _, q := range group {
		if err == nil {
			commits.left.Add(1)
			commits.latency.Add(s.beat.Sub(q.since))
		}
		commits.load.Add(-1)
		q.done <- err
	}
	if s.worker == 0 && len(s.queue) > 0 {
		s.startWorker()
	}
}

// takeOver returns a repository's requests to the goroutine that waits for them if the
// worker has made no progress for too long. It starts another worker for the other
// requests. It returns none while a commit for the repository is in progress.
func (s *shard) takeOver(r *run) []*request {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[r] || time.Since(s.beat) < s.silence || s.paths(r) == 0 && !s.waits(r) {
		return nil
	}
	group := s.take(r)
	s.startWorker()
	return group
}

func (s *shard) waits(r *run) bool {
	return slices.ContainsFunc(s.queue, func(q *request) bool { return q.run == r })
}

// errBefore is the error of a request after a failed one.
var errBefore = errors.New("an earlier batch was not committed")

// commitAll commits the files of a group of requests of one repository and stores the new
// position of its archive. After a failure nothing more of the run is committed.
func commitAll(group []*request) (err error) {
	r := group[0].run
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
		r.failed = r.failed || err != nil
	}()
	if r.failed {
		return errBefore
	}
	last := group[len(group)-1]
	got := committedBatch{cursor: r.cursor, project: r.line.project, first: group[0].first, at: last.at}
	var files []repository.File
	var ops []string
	for _, q := range group {
		files, ops = append(files, q.files...), append(ops, q.ops...)
		got.refused = append(got.refused, q.refused...)
	}
	message := commitMessage(ops)
	got.committed = last.last
	got.summary, _, _ = strings.Cut(message, "\n")
	if got.hashes, err = r.line.commit(r.ctx, files, message, time.Unix(0, last.at)); err != nil {
		return err
	}
	crashpoint.Pass("archive_committed")
	if len(got.hashes) > 0 {
		got.head = got.hashes[len(got.hashes)-1]
	}
	if err := r.line.Store.Write(context.WithoutCancel(r.ctx), store.Normal, got.store); err != nil {
		return err
	}
	crashpoint.Pass("archive_advanced")
	r.cursor = got.cursor
	return nil
}

// commit commits files, each path once, at most 4,096 at a time.
func (l *projectWorker) commit(ctx context.Context, files []repository.File, message string, when time.Time) (hashes []string, err error) {
	files = newest(files)
	n := (len(files) + maxPaths - 1) / maxPaths
	for i := range n {
		said := message
		if n > 1 {
			subject, body, _ := strings.Cut(message, "\n")
			said = fmt.Sprintf("%.180s (%d/%d)\n%s", subject, i+1, n, body)
		}
		hash, err := l.repo.Commit(ctx, files[i*maxPaths:min((i+1)*maxPaths, len(files))], said, when)
		if err != nil {
			return hashes, err
		}
		hashes = append(hashes, hash)
	}
	return hashes, nil
}

// newest returns the last state of each path.
func newest(files []repository.File) []repository.File {
	at := make(map[string]int, len(files))
	out := make([]repository.File, 0, len(files))
	for _, f := range files {
		if i, ok := at[f.Path]; ok {
			out[i] = f
			continue
		}
		at[f.Path] = len(out)
		out = append(out, f)
	}
	return out
}

// soughtOps are prefixes of operations that people look for in a history, most wanted
// first. Those in one row rank equally; all other operations rank below them.
var soughtOps = [...][]string{{"mail: ", "record: "}, {"purge: "}, {"file_reservation: "}, {"contact: "}, {"session: "}}

// rankOf returns the row of soughtOps for an operation, or the number of rows if there is
// none.
func rankOf(op string) int {
	for rank, prefixes := range soughtOps {
		for _, p := range prefixes {
			if strings.HasPrefix(op, p) {
				return rank
			}
		}
	}
	return len(soughtOps)
}

// commitMessage returns the message of a commit of some operations (mail §10.2,
// amendments §F). The subject is the first operation of the best rank, with the number of
// the others. The body lists at most maxOps others.
func commitMessage(ops []string) string {
	switch len(ops) {
	case 0:
		return "chore: update"
	case 1:
		return ops[0]
	}
	best := 0
	for i, op := range ops {
		if rankOf(op) < rankOf(ops[best]) {
			best = i
		}
	}
	count := fmt.Sprintf(" (+%d)", len(ops)-1)
	subject := []rune(ops[best])
	if most := maxSubject - len(count); len(subject) > most {
		subject = append(subject[:most-1:most-1], '…')
	}
	others := slices.Concat(ops[:best], ops[best+1:])
	return string(subject) + count + "\n\n" + strings.Join(others[:min(len(others), maxOps)], "\n")
}
