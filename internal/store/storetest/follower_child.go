package storetest

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"cairn/internal/store"
)

// What a child of RunFollower is told by its environment.
const (
	roleVar = "CAIRN_FOLLOWER_CHILD"
	pathVar = "CAIRN_FOLLOWER_STORE"
	dirVar  = "CAIRN_FOLLOWER_DIR"
	argVar  = "CAIRN_FOLLOWER_ARG"
)

// The roles of a child.
const (
	roleFollow        = "follow"          // run the follower and tell of each batch
	roleDieAfterBatch = "die after batch" // likewise, but die when the batch with seq arg is handled
	roleWrite         = "write"           // write three rows from the arg-th on
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
	f := subject.New(t, s, os.Getenv(dirVar))
	f.Limit, f.Poll = 3, 5*time.Millisecond
	inner := f.Batch
	f.Batch = func(ctx context.Context, changes []store.Change) ([]store.Refusal, error) {
		first, last := changes[0].Seq, changes[len(changes)-1].Seq
		Tell(fmt.Sprintf("begin %d %d", first, last))
		refused, err := inner(ctx, changes)
		if err != nil || len(refused) > 0 {
			t.Errorf("batch %d–%d: %v, refused %v", first, last, err, refused)
		}
		Tell(fmt.Sprintf("end %d %d", first, last))
		if role == roleDieAfterBatch && last >= int64(arg) {
			Die()
		}
		return refused, err
	}
	Tell("start")
	if err := s.Follow(ctx, f); err != nil {
		t.Fatalf("follow: %v", err)
	}
}

func writeRows(t *testing.T, s *store.Store, subject Subject, first int) {
	for n := first; n < first+3; n++ {
		err := s.Write(t.Context(), store.Normal, func(ctx context.Context, tx *store.Tx) error {
			return subject.Write(ctx, tx, n)
		})
		if err != nil {
			t.Fatalf("write row %d: %v", n, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
}
