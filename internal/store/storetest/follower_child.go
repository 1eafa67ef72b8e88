package storetest

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"cairn/internal/store"
	"cairn/internal/store/follow"
)

// Environment variables of a child of RunFollower.
const (
	roleVar = "CAIRN_FOLLOWER_CHILD"
	pathVar = "CAIRN_FOLLOWER_STORE"
	dirVar  = "CAIRN_FOLLOWER_DIR"
	argVar  = "CAIRN_FOLLOWER_ARG"
)

// The roles of a child.
const (
	roleFollow       = "follow"         // run the follower
	roleDieAfterWork = "die after work" // as roleFollow, but die when a batch or a turn is done
	roleWrite        = "write"          // write three rows from the arg-th on
)

// child starts the calling test again, in a role over this store and folder.
func (b *sandbox) child(t testing.TB, role string, arg int) *Process {
	t.Helper()
	return StartProcess(t, Command(b.test, roleVar+"="+role, pathVar+"="+b.s.Path(), dirVar+"="+b.dir, argVar+"="+strconv.Itoa(arg)))
}

func runFollowerChild(t *testing.T, subject Subject, role string) {
	ctx := context.Background()
	arg, err := strconv.Atoi(os.Getenv(argVar))
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(ctx, Config(store.Config{Path: os.Getenv(pathVar), Role: store.Server}))
	if err != nil {
		t.Fatalf("open the store: %v", err)
	}
	if role == roleWrite {
		writeRows(t, s, subject, arg)
		return
	}
	work := childFollower(t, s, subject, os.Getenv(dirVar), role == roleDieAfterWork)
	Tell("start")
	if err := work(ctx); err != nil {
		t.Fatalf("follow: %v", err)
	}
}

// childFollower returns the function that runs the subject in a child.
func childFollower(t *testing.T, s *store.Store, subject Subject, dir string, dies bool) func(ctx context.Context) error {
	if subject.Start != nil {
		return subject.Start(t, s, dir, func(work func() error) error {
			if !dies {
				return work()
			}
			Tell("begin")
			err := work()
			dieUnless(err)
			return err
		})
	}
	f, _ := subject.New(t, s, dir)
	f.Limit, f.Poll = 3, 5*time.Millisecond
	if dies {
		f = dying(f)
	}
	return func(ctx context.Context) error { return follow.Run(ctx, s, f) }
}

// dying makes a follower die when its first batch or turn is done, before its caller gets the
// result.
func dying(f follow.Follower) follow.Follower {
	if f.Lanes != nil {
		turn := f.Lanes.Turn
		f.Lanes.Turn = func(ctx context.Context, lane string, woken <-chan struct{}) (follow.Turned, error) {
			Tell("begin")
			did, err := turn(ctx, lane, woken)
			dieUnless(err)
			return did, err
		}
		return f
	}
	batch := f.Batch
	f.Batch = func(ctx context.Context, changes []store.Change) ([]follow.Refusal, error) {
		Tell("begin")
		refused, err := batch(ctx, changes)
		dieUnless(err)
		return refused, err
	}
	return f
}

func dieUnless(err error) {
	if err == nil {
		Tell("end")
		Die()
	}
}

func writeRows(t *testing.T, s *store.Store, subject Subject, first int) {
	for n := first; n < first+3; n++ {
		subject.Write(t, s, n)
	}
	if err := s.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
}
