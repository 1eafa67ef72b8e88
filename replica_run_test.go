package cairn

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cairn/internal/memory"
	"cairn/internal/memory/memories"
	"cairn/internal/memory/rules"
	"cairn/internal/store"
)

// Before a user has joined a hub, replication creates no lock file and removes none. After
// a user has joined by another process, replication starts.
func TestReplicationHoldsNothingUntilAUserHasJoined(t *testing.T) {
	t.Parallel()
	c, s := servingWithOneReader(t)
	b, _, err := c.Memories().service(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	left := s.Path() + "-replicator-" + store.NewID()
	put(t, left, "", 0o600)
	files := func() []string {
		t.Helper()
		found, err := filepath.Glob(s.Path() + "-replicator-*")
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	ctx, cancel := context.WithCancel(t.Context())
	run := replicatorPool{Replication: c.Replication(), store: s, book: b, log: slog.New(slog.DiscardHandler), running: map[memory.Membership]context.CancelFunc{}}
	look := func() {
		t.Helper()
		if err := run.update(ctx); err != nil {
			t.Fatal(err)
		}
	}
	look()
	if found := files(); len(found) != 1 || found[0] != left {
		t.Errorf("before anybody joined: %v", found)
	}
	looked := run.looked
	if look(); run.looked != looked {
		t.Error("it read a store that nobody had written to")
	}

	other, err := Open(Config{Dir: c.Config.Dir, Home: c.Config.Home})
	if err != nil {
		t.Fatal(err)
	}
	err = other.Memories().Write(t.Context(), memory.Caller{}, func(ctx context.Context, b *memories.Service, who memory.Caller) error {
		u, err := b.Whoami(ctx, who)
		if err == nil {
			err = b.Join(ctx, u.UserID, "http://127.0.0.1:1", rules.NewID(), true)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	look()
	if found := files(); len(found) != 1 || found[0] == left || len(run.running) != 1 {
		t.Errorf("after one joined: %v, %d run", found, len(run.running))
	}
	cancel()
	run.stop()
	if found := files(); len(found) != 0 {
		t.Errorf("after the end: %v", found)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
}

// Without a token, replication is retried every second. The reason is logged once, until it
// changes.
func TestAReplicatorWithoutATokenSaysSoOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		c, err := Open(Config{Dir: dir, Home: dir})
		if err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		run := replicatorPool{Replication: c.Replication(), book: memories.New(nil, memory.Config{}), log: slog.New(slog.NewTextHandler(&said, nil))}
		u := memory.User{UserID: rules.NewID(), HubURL: "http://127.0.0.1:1"}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			run.runOne(ctx, u, nil)
		}()
		time.Sleep(time.Hour) // in the bubble's time
		if err := os.Mkdir(run.tokenFile(u.UserID), 0o700); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		cancel()
		<-ended
		gone, all := strings.Count(said.String(), "the token of the hub is missing"), strings.Count(said.String(), "\n")
		if gone != 1 || all != 2 {
			t.Errorf("%d sentences, %d that the token is gone:\n%.1000s", all, gone, said.String())
		}
	})
}
