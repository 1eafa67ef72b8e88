package cairn_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cairn"
	"cairn/internal/fault"
	"cairn/internal/hub"
	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/entries"
	"cairn/internal/memory/memories"
	"cairn/internal/memory/rules"
	"cairn/internal/memory/vaults"
	"cairn/internal/replica"
)

// remote starts a real hub that listens.
func remote(t *testing.T) (url, secret string, away func()) {
	t.Helper()
	h, err := hub.Open(context.Background(), hub.Config{Database: "sqlite:" + t.TempDir() + "/hub.db", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h.Handler("test"))
	t.Cleanup(func() {
		h.Stop()
		server.Close()
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	_, secret, err = h.CreateToken(t.Context(), hub.TokenArgs{UserID: "new", Device: "d", Level: hub.LevelAdmin})
	if err != nil {
		t.Fatal(err)
	}
	return server.URL, secret, func() { server.CloseClientConnections(); server.Close() }
}

// device returns a cairn with its own store, and its data directory.
func device(t *testing.T) (c *cairn.Cairn, dir string) {
	t.Helper()
	home := t.TempDir()
	dir = filepath.Join(home, "data")
	c, err := cairn.Open(cairn.Config{Home: home, Dir: dir, Setting: func(key string) string {
		return map[string]string{"memory.delete_timeout_ms": "5000"}[key]
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := c.Store(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c, dir
}

// A device has joined a hub. Joining another hub is refused. The first hub's token is kept,
// and that hub still accepts it.
func TestARefusedJoinLeavesTheTokenOfTheHubThatWasJoined(t *testing.T) {
	t.Parallel()
	first, secret, _ := remote(t)
	second, foreign, _ := remote(t)
	c, dir := device(t)
	u, _, err := c.Replication().Join(t.Context(), cairn.JoinArgs{URL: first, Token: secret})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = c.Replication().Join(t.Context(), cairn.JoinArgs{URL: second, Token: foreign})
	if got := fault.As(err); got == nil || got.Code != memory.CodeJoined {
		t.Fatalf("the second hub: %v, want %s", err, memory.CodeJoined)
	}
	text, err := os.ReadFile(filepath.Join(dir, "hub-token-"+u.UserID))
	if err != nil || strings.TrimSpace(string(text)) != secret {
		t.Errorf("the first hub's token is no longer there: %v", err)
	}
	if err := c.Replication().Drain(t.Context(), memory.Caller{}, nil); err != nil {
		t.Errorf("the first hub refuses: %v", err)
	}
}

// A token that cannot be stored is reported. Joining again then stores it.
func TestJoiningAgainKeepsATokenThatCouldNotBeKept(t *testing.T) {
	t.Parallel()
	url, secret, _ := remote(t)
	c, dir := device(t)
	args := cairn.JoinArgs{URL: url, Token: secret}
	u, _, err := c.Replication().Join(t.Context(), args)
	if err == nil {
		_, err = c.Replication().Leave(t.Context(), memory.Caller{}, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	inTheWay := filepath.Join(dir, "hub-token-"+u.UserID)
	if err := os.MkdirAll(filepath.Join(inTheWay, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, _, err = c.Replication().Join(t.Context(), args)
	if got := fault.As(err); got == nil || got.Code != cairn.CodeTokenNotKept || !strings.Contains(got.Hint, "again") {
		t.Fatalf("without a place for the token: %v", err)
	}
	status, err := c.Replication().Status(t.Context(), memory.Caller{}, false)
	if err != nil || status.HubURL != url || status.State != replica.StateUnauthorized {
		t.Errorf("the hub was joined, without a token: %+v %v", status, err)
	}
	if err := os.RemoveAll(inTheWay); err != nil {
		t.Fatal(err)
	}
	if _, _, err = c.Replication().Join(t.Context(), args); err != nil {
		t.Fatalf("again: %v", err)
	}
	if err := c.Replication().Drain(t.Context(), memory.Caller{}, nil); err != nil {
		t.Errorf("after joining again: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".cairn-new-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// A process that does not replicate, such as a command, still sends deletions to the hub.
// It reads locally purged entries from the hub. Without the hub it reports that entries are
// missing.
func TestACommandDeletesAtTheHubAndReadsThroughToIt(t *testing.T) {
	t.Parallel()
	url, secret, away := remote(t)
	c, _ := device(t)
	if _, _, err := c.Replication().Join(t.Context(), cairn.JoinArgs{URL: url, Token: secret, Upload: true}); err != nil {
		t.Fatal(err)
	}
	with := func(do func(ctx context.Context, b *memories.Service, who memory.Caller) error) error {
		return c.Memories().Write(t.Context(), memory.Caller{}, do)
	}
	var m memory.Memory
	err := with(func(ctx context.Context, b *memories.Service, who memory.Caller) error {
		v, _, err := b.CreateVault(ctx, who, vaults.NewVault{Title: "v"})
		if err == nil {
			m, _, err = b.CreateMemory(ctx, who, vaults.NewMemory{VaultID: v.VaultID, Title: "m"})
		}
		for i := 0; i < 12 && err == nil; i++ {
			_, _, err = b.AddEntry(ctx, who, contents.NewEntry{MemoryID: m.MemoryID, RawEntry: fmt.Sprint("e", i), Tags: map[string]string{"odd": fmt.Sprint(i % 2)}})
		}
		return err
	})
	if err == nil {
		err = c.Replication().Drain(t.Context(), memory.Caller{}, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	list := func(a entries.ListArgs) (out entries.Listed) {
		t.Helper()
		a.MemoryID = m.MemoryID
		err := with(func(ctx context.Context, b *memories.Service, who memory.Caller) (err error) {
			out, err = b.ListEntries(ctx, who, a)
			return err
		})
		if err != nil {
			t.Fatalf("list %+v: %v", a, err)
		}
		return out
	}
	texts := func(l entries.Listed) string {
		var out []string
		for _, e := range l.Entries {
			out = append(out, e.RawEntry)
		}
		return strings.Join(out, " ")
	}
	want := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	before := list(entries.ListArgs{})
	err = with(func(ctx context.Context, b *memories.Service, who memory.Caller) error {
		_, err := b.DeleteEntry(ctx, who, m.MemoryID, before.Entries[5].EntryID) // e6
		return err
	})
	if err != nil {
		t.Fatalf("delete: %v", err)
	}

	// All entries are purged locally. Two more are written.
	err = with(func(ctx context.Context, b *memories.Service, who memory.Caller) error {
		n, err := b.Purge(ctx, true)
		if err == nil && n.Entries != 11 {
			err = fmt.Errorf("%d were purged", n.Entries)
		}
		for i := 12; i < 14 && err == nil; i++ {
			_, _, err = b.AddEntry(ctx, who, contents.NewEntry{MemoryID: m.MemoryID, RawEntry: fmt.Sprint("e", i), Tags: map[string]string{"odd": fmt.Sprint(i % 2)}})
		}
		return err
	})
	if err == nil {
		err = c.Replication().Drain(t.Context(), memory.Caller{}, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	page := list(entries.ListArgs{Limit: 4})
	want("the newest", texts(page), "e13 e12 e11 e10")
	old := page.Entries[3]
	page = list(entries.ListArgs{Limit: 4, Before: old.EntryID})
	want("before one that was purged", texts(page), "e9 e8 e7 e5")
	want("its memory", page.Entries[0].MemoryID, m.MemoryID)
	want("after a time", texts(list(entries.ListArgs{Limit: 3, After: page.NextBefore.String()})), "e9 e8 e7")
	want("by tag", texts(list(entries.ListArgs{Tags: []string{"odd:0"}})), "e12 e10 e8 e4 e2 e0")
	get := func(id string) (out contents.Entry, err error) {
		return out, with(func(ctx context.Context, b *memories.Service, who memory.Caller) (err error) {
			out, err = b.GetEntry(ctx, who, m.MemoryID, id)
			return err
		})
	}
	one, err := get(old.EntryID)
	if err != nil || one.RawEntry != "e10" || one.CreationTime != old.CreationTime {
		t.Errorf("get: %+v %v", one, err)
	}
	_, err = get(rules.NewID())
	want("one that is nowhere", fault.As(err).Code, memory.CodeNotFound)

	away()
	page = list(entries.ListArgs{Limit: 4})
	want("without the hub", texts(page)+" "+page.Reason+fmt.Sprint(page.Truncated), "e13 e12 "+entries.Unreachable+"true")
	want("what is here alone is whole", fmt.Sprint(list(entries.ListArgs{Limit: 2}).Truncated), "false")
	_, err = get(old.EntryID)
	want("get without the hub", fmt.Sprint(fault.As(err).Code, memory.Status(err)), fmt.Sprint(memory.CodeHubUnavailable, 503))
	err = with(func(ctx context.Context, b *memories.Service, who memory.Caller) error {
		_, err := b.DeleteEntry(ctx, who, m.MemoryID, page.Entries[0].EntryID)
		return err
	})
	want("delete without the hub", fault.As(err).Code, memory.CodeHubUnavailable)
	want("it is as it was", texts(list(entries.ListArgs{Limit: 2})), "e13 e12")
}
