package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"cairn"
	"cairn/internal/archive"
	"cairn/internal/mail/messages"
	"cairn/internal/mail/service"
	"cairn/internal/store"
	"cairn/internal/store/follow"
)

// archiveBatch is the batch size of mail §11, in messages of three files each.
const archiveBatch = 100

// mailArchive measures how fast messages of one project are archived in Git as the project
// grows. A git fast-import of the same files is the comparison.
func (b *bench) mailArchive(ctx context.Context) (err error) {
	home := filepath.Join(b.dir, "mail-archive")
	if err := os.RemoveAll(home); err != nil {
		return err
	}
	c, err := cairn.Open(cairn.Config{Home: home, Dir: home})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	s, err := c.Store(ctx)
	if err != nil {
		return err
	}
	g := &growing{c: c, store: s, dir: filepath.Join(home, "archive", "work")}
	if g.office, g.root, g.names, err = b.office(ctx, s, filepath.Join(home, "work"), 20); err != nil {
		return err
	}
	t := newTable("mail-archive", "messages of one project into Git: files, a commit, its objects on the disk", "p25 ms", "p50 ms", "max ms", "messages/s", "files/s", "batches")
	var first time.Duration
	for _, size := range []int{1_000, 10_000, 100_000} {
		if size > max(b.mailFiles, 1000) {
			t.note("--mail-archive %d measures %s messages too", size, grouped(size))
			continue
		}
		b.say("  %s messages", grouped(size))
		batches, err := g.reach(ctx, size, t)
		if err != nil {
			return err
		}
		if first == 0 {
			first = batches.at(0.25)
		}
		r := t.add(fmt.Sprintf("%d more beside %s", archiveBatch, grouped(size)), batches.at(0.25), batches.median(), batches.at(1), nil, nil, len(batches))
		r.target("≤ 250 ms", batches.median() <= 250*time.Millisecond)
		grown := ratio(batches.at(0.25), first) // other load on the machine slows the upper half
		t.add("  × beside 1,000", grown).target("≤ 1.50", grown <= 1.5)
	}
	if err := g.fastImport(ctx, t, home); err != nil {
		return err
	}
	check, err := c.CheckArchive(ctx, cairn.ArchiveArgs{})
	if err != nil {
		return err
	}
	t.add("reconcile --check finds all there", strconv.FormatBool(check.Consistent)).target("true", check.Consistent)
	if err := b.publish(t); err != nil || check.Consistent {
		return err
	}
	return errors.New("the archive differs from the store")
}

// growing is a project whose messages are archived repeatedly.
type growing struct {
	c      *cairn.Cairn
	store  *store.Store
	office *service.Mail
	root   string
	names  []string
	dir    string // folder of its archive
	sent   int
}

// reach makes the project as large as size and then sends some batches, which a follower
// archives, as in a server. The time of a batch is measured from its first message until all
// are committed.
func (g *growing) reach(ctx context.Context, size int, t *table) (batches sample, err error) {
	const burst = 4000
	var spent time.Duration
	before := g.sent
	for g.sent < size {
		if err := g.send(ctx, min(burst, size-g.sent)); err != nil {
			return nil, err
		}
		took, err := g.sync(ctx)
		if err != nil {
			return nil, err
		}
		spent += took
	}
	rate := float64(g.sent-before) / spent.Seconds()
	r := t.add(fmt.Sprintf("sustained, from %s to %s", grouped(before), grouped(size)), nil, nil, nil, rate, 3*rate)
	r.target("≥ 1,000 messages/s", rate >= 1000)
	follow, stop := context.WithCancel(ctx)
	var following sync.WaitGroup
	var followErr error
	following.Go(func() { followErr = g.c.FollowArchive(follow, slog.New(slog.DiscardHandler)) })
	for range 8 {
		began := time.Now()
		err = g.send(ctx, archiveBatch)
		if err == nil {
			err = g.committed(ctx)
		}
		if err != nil {
			break
		}
		batches = append(batches, time.Since(began))
		if err = waitUntil(ctx, time.Now().Add(2*time.Second)); err != nil { // after each turn, the archive pauses for the project
			break
		}
	}
	stop()
	following.Wait()
	return batches[min(1, len(batches)):], errors.Join(err, followErr) // the first batch starts git
}

// committed waits until every change is in a durable commit.
func (g *growing) committed(ctx context.Context) error {
	const patience = time.Minute
	for end := time.Now().Add(patience); time.Now().Before(end); {
		behind, err := g.behind(ctx)
		if err != nil || !behind {
			return err
		}
		if err := waitUntil(ctx, time.Now().Add(2*time.Millisecond)); err != nil {
			return err
		}
	}
	return fmt.Errorf("the archive did not catch up within %s", patience)
}

// behind reports whether the archive's lanes are behind the end of the log.
func (g *growing) behind(ctx context.Context) (bool, error) {
	var head, reached int64
	err := g.store.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		head, err = tx.Head(ctx)
		return err
	})
	if err != nil {
		return false, err
	}
	all, err := follow.Followers(ctx, g.store)
	for _, f := range all {
		if f.Follower == archive.FollowerName {
			reached = max(reached, f.Position)
		}
	}
	return reached < head, err
}

// send writes n messages concurrently, so that they share commits.
func (g *growing) send(ctx context.Context, n int) error {
	const callers = 32
	body := string(bytes.Repeat([]byte("Some words of a message. "), 20))
	errs := make([]error, callers)
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			for i := caller; i < n && errs[caller] == nil; i += callers {
				m := g.sent + i
				_, errs[caller] = g.office.SendMessage(ctx, ownerOf(g.root), messages.SendArgs{
					ProjectKey: g.root, SenderName: g.names[m%20], To: []string{g.names[(m*7+1)%20]}, Subject: fmt.Sprint("step ", m), Body: body,
				})
			}
		})
	}
	all.Wait()
	g.sent += n
	return errors.Join(errs...)
}

// sync archives all pending changes and returns the time taken.
func (g *growing) sync(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	done, err := g.c.SyncArchive(ctx, cairn.ArchiveArgs{})
	took := time.Since(began)
	if err == nil && len(done.Failed) > 0 {
		err = fmt.Errorf("%+v", done.Failed)
	}
	return took, err
}

// fastImport imports the files of the archive into a new repository and adds git's time. Git
// renders nothing, writes no work tree and has all files from the start.
func (g *growing) fastImport(ctx context.Context, t *table, home string) error {
	var stream bytes.Buffer
	fmt.Fprintf(&stream, "commit refs/heads/main\ncommitter c <c@example.org> 0 +0000\ndata 1\nx\n")
	files := 0
	err := filepath.WalkDir(g.dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.Name() == ".git":
			return filepath.SkipDir
		case e.IsDir() || e.Name()[0] == '.':
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(g.dir, path)
		files++
		fmt.Fprintf(&stream, "M 100644 inline %s\ndata %d\n%s\n", filepath.ToSlash(rel), len(text), text)
		return err
	})
	if err != nil {
		return err
	}
	bare := filepath.Join(home, "bare")
	if out, err := exec.CommandContext(ctx, "git", "init", "-q", "--bare", bare).CombinedOutput(); err != nil {
		return fmt.Errorf("git init: %w: %s", err, out)
	}
	cmd := exec.CommandContext(ctx, "git", "-C", bare, "fast-import", "--quiet")
	cmd.Stdin = &stream
	began := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git fast-import: %w: %s", err, out)
	}
	took := time.Since(began).Seconds()
	t.add(fmt.Sprintf("bare git fast-import of the %s files", grouped(files)), nil, nil, nil, float64(g.sent)/took, float64(files)/took)
	return nil
}
