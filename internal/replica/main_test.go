package replica_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/internal/hub"
	"cairn/internal/hub/pgtest"
	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/entries"
	"cairn/internal/memory/memories"
	"cairn/internal/memory/memorytest"
	"cairn/internal/memory/replication"
	"cairn/internal/memory/vaults"
	"cairn/internal/replica"
	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

// postgres is PostgreSQL for the tests that want one.
var postgres pgtest.Shared

func TestMain(m *testing.M) {
	if childMain() {
		return
	}
	code := m.Run()
	if err := postgres.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// office is a real hub with a front that does to requests what a test wants.
type office struct {
	testing.TB
	hub    *hub.Hub
	inner  http.Handler
	url    string
	user   string
	secret string

	mu     sync.Mutex
	before func(w http.ResponseWriter, r *http.Request) (done bool) // instead of the hub
	after  func(w http.ResponseWriter, r *http.Request) (lost bool) // the hub has answered
	item   func(it replica.Item) int                                // the status of an item, 0 for the hub's
	sent   []replica.Item                                           // all items that came, in order
	direct bool                                                     // nothing of this: to the hub
	old    bool                                                     // answers lack what older hubs do not send
}

func open(tb testing.TB, address string) *office {
	tb.Helper()
	if address == "" {
		address = "sqlite:" + filepath.Join(tb.TempDir(), "hub.db")
	}
	h, err := hub.Open(context.Background(), hub.Config{Database: address, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		tb.Fatal(err)
	}
	o := &office{TB: tb, hub: h, inner: h.Handler("test")}
	server := httptest.NewServer(o)
	o.url = server.URL
	tb.Cleanup(func() {
		h.Stop()
		server.CloseClientConnections()
		server.Close()
		if err := h.Close(); err != nil {
			tb.Error(err)
		}
	})
	o.user, o.secret = o.token("new", hub.LevelAdmin)
	return o
}

func (o *office) token(user string, level hub.Level) (id, secret string) {
	o.Helper()
	t, secret, err := o.hub.CreateToken(context.Background(), hub.TokenArgs{UserID: user, Device: "desk", Level: level})
	if err != nil {
		o.Fatal(err)
	}
	return t.UserID, secret
}

// set changes how the front behaves.
func (o *office) set(change func(*office)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change(o)
}

func (o *office) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	before, after, item, direct, old := o.before, o.after, o.item, o.direct, o.old
	o.mu.Unlock()
	if direct {
		o.inner.ServeHTTP(w, r)
		return
	}
	if before != nil && before(w, r) {
		return
	}
	answer := httptest.NewRecorder()
	if r.URL.Path == replica.PathPush {
		o.push(answer, r, item)
	} else {
		o.inner.ServeHTTP(answer, r)
	}
	if after != nil && after(w, r) {
		return
	}
	for k, v := range answer.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(answer.Code)
	if old {
		answer.Body = aged(answer.Body)
	}
	_, _ = w.Write(answer.Body.Bytes())
}

// aged is an answer without what older hubs do not send.
func aged(body *bytes.Buffer) *bytes.Buffer {
	var answer map[string]json.RawMessage
	if json.Unmarshal(body.Bytes(), &answer) != nil {
		return body
	}
	delete(answer, "behind")
	delete(answer, "catalogue")
	text, _ := json.Marshal(answer)
	return bytes.NewBuffer(text)
}

// push passes a push on, but for the items that are to get a status of the test's own
// and those behind them.
func (o *office) push(w http.ResponseWriter, r *http.Request, status func(replica.Item) int) {
	var ask, rest replica.PushRequest
	body, err := io.ReadAll(r.Body)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return // the device was killed while it sent
	}
	if err == nil {
		err = json.Unmarshal(body, &ask)
	}
	if err != nil {
		o.Error(err)
	}
	o.set(func(o *office) { o.sent = append(o.sent, ask.Items...) })
	results := make([]replica.Result, len(ask.Items))
	failed := map[string]bool{}
	var at []int
	rest.DeviceID = ask.DeviceID
	for i, it := range ask.Items {
		code := 0
		if status != nil && !failed[it.Stream] {
			code = status(it)
		}
		switch {
		case failed[it.Stream]:
			code = http.StatusFailedDependency
		case code == 0:
			rest.Items, at = append(rest.Items, it), append(at, i)
			continue
		}
		failed[it.Stream] = true
		results[i] = replica.Result{Seq: it.Seq, Status: code, Error: &replica.Error{Code: fmt.Sprint("scripted_", code), Message: "as the test wants"}}
	}
	if len(at) > 0 {
		body, _ = json.Marshal(rest)
		inner := r.Clone(r.Context())
		inner.Body, inner.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		answer := httptest.NewRecorder()
		o.inner.ServeHTTP(answer, inner)
		var taken replica.PushResponse
		if answer.Code != http.StatusOK || json.Unmarshal(answer.Body.Bytes(), &taken) != nil {
			for k, v := range answer.Header() {
				w.Header()[k] = v
			}
			w.WriteHeader(answer.Code)
			_, _ = w.Write(answer.Body.Bytes())
			return
		}
		for i, res := range taken.Results {
			results[at[i]] = res
		}
	}
	_ = json.NewEncoder(w).Encode(replica.PushResponse{Results: results})
}

// texts are the entries of a memory at the hub, oldest first.
func (o *office) texts(memory string) string {
	o.Helper()
	var out []string
	var docs []json.RawMessage
	a := hub.EntriesArgs{Memory: memory, Limit: 1000}
	for more := true; more; {
		answer, err := o.hub.Entries(context.Background(), hub.Identity{UserID: o.user, Level: hub.LevelAdmin}, a)
		if err != nil {
			return err.Error()
		}
		docs = append(docs, answer.Entries...)
		if more = answer.More; more {
			var last struct{ CreationTime time.Time }
			if err := json.Unmarshal(docs[len(docs)-1], &last); err != nil {
				o.Fatal(err)
			}
			a.Before = last.CreationTime
		}
	}
	for _, doc := range docs {
		var e struct{ RawEntry string }
		if err := json.Unmarshal(doc, &e); err != nil {
			o.Fatal(err)
		}
		out = append([]string{e.RawEntry}, out...)
	}
	return strings.Join(out, " ")
}

// attempts counts how often an entry's text came to the front.
func (o *office) attempts(text string) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, it := range o.sent {
		if it.Kind == replica.KindEntry && it.Op == replica.OpPut && rawOf(it) == text {
			n++
		}
	}
	return n
}

func rawOf(it replica.Item) string {
	var d struct{ RawEntry string }
	_ = json.Unmarshal(it.Doc, &d)
	return d.RawEntry
}

// desk is a device: a store, its book and a replicator.
type desk struct {
	testing.TB
	*memories.Service
	store         *store.Store
	office        *office
	me            string
	vault, memory string
	one           *replica.Replicator
	end           func() // of the replicator's run
}

// desk makes a device of the office's user that has joined the hub.
func (o *office) desk(change ...func(*replica.Config)) *desk {
	o.Helper()
	d := o.deskOver(storetest.Open(o.TB, store.Config{}))
	if err := d.Join(d.Context(), d.me, o.url, o.user, true); err != nil {
		o.Fatal(err)
	}
	d.equip(change...)
	return d
}

// deskOver is a device over a store, which may have joined already.
func (o *office) deskOver(s *store.Store) *desk {
	o.Helper()
	d := &desk{TB: o.TB, store: s, office: o, end: func() {}}
	settings := memory.Defaults()
	settings.DeleteTimeout = 5 * time.Second
	d.Service = memories.New(s, memory.Config{Settings: settings})
	o.Cleanup(func() {
		d.end()
		if err := d.Stop(context.Background()); err != nil {
			o.Errorf("stop: %v", err)
		}
		if found := memorytest.Findings(o, s); !o.Failed() && found != "" {
			o.Errorf("the memories are not sound: %s", found)
		}
	})
	me, err := d.Whoami(o.Context(), memory.Caller{})
	if err != nil {
		o.Fatal(err)
	}
	d.me = me.UserID
	return d
}

// Fail is the test's, not the book's.
func (d *desk) Fail() { d.TB.Fail() }

// equip gives the desk a replicator.
func (d *desk) equip(change ...func(*replica.Config)) {
	d.Helper()
	client, err := replica.NewClient(d.office.url, d.office.secret, 5*time.Second, false)
	if err != nil {
		d.Fatal(err)
	}
	c := replica.Config{Store: d.store, Book: d.Service, User: d.me, Generation: d.member().Generation, Client: client}
	for _, f := range change {
		f(&c)
	}
	d.one = replica.New(c)
}

// member is the membership of the desk's user as it is now.
func (d *desk) member() memory.Membership {
	d.Helper()
	u, err := d.Whoami(d.Context(), memory.Caller{User: d.me})
	if err != nil {
		d.Fatal(err)
	}
	return u.Membership()
}

// furnish gives the desk a vault and a memory.
func (d *desk) furnish() *desk {
	d.Helper()
	v, _, err := d.CreateVault(d.Context(), memory.Caller{}, vaults.NewVault{Title: "v"})
	if err != nil {
		d.Fatal(err)
	}
	d.vault, d.memory = v.VaultID, d.newMemory(v.VaultID, "m")
	return d
}

func (d *desk) newMemory(vault, title string) string {
	d.Helper()
	m, _, err := d.CreateMemory(d.Context(), memory.Caller{}, vaults.NewMemory{VaultID: vault, Title: title})
	if err != nil {
		d.Fatal(err)
	}
	return m.MemoryID
}

// start runs the replicator until the desk or the test ends.
func (d *desk) start() *desk {
	d.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	one := d.one
	go func() { done <- one.Run(ctx) }()
	d.end = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			d.Errorf("the replicator ended: %v", err)
		}
	})
	return d
}

// drain sends and brings once.
func (d *desk) drain() *desk {
	d.Helper()
	if err := d.one.Drain(d.Context()); err != nil {
		d.Fatalf("drain: %v", err)
	}
	return d
}

func (d *desk) add(text string) entries.Added { d.Helper(); return d.addTo(d.memory, text) }

func (d *desk) addTo(m, text string) entries.Added {
	d.Helper()
	out, _, err := d.AddEntry(d.Context(), memory.Caller{}, contents.NewEntry{MemoryID: m, RawEntry: text})
	if err != nil {
		d.Fatalf("add %s: %v", text, err)
	}
	return out
}

// all are the committed entries of a memory, oldest first.
func (d *desk) all(m string) []contents.Entry {
	d.Helper()
	var out []contents.Entry
	a := entries.ListArgs{MemoryID: m, Limit: 50}
	for {
		page, err := d.ListEntries(d.Context(), memory.Caller{}, a)
		if err != nil {
			d.Fatal(err)
		}
		for _, e := range page.Entries {
			e.ActorID = "" // the device's own name of its user
			out = append(out, e)
		}
		if page.Count < 50 {
			break
		}
		a.Before = page.Entries[page.Count-1].EntryID
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}

func (d *desk) texts(m string) string {
	d.Helper()
	var out []string
	for _, e := range d.all(m) {
		out = append(out, e.RawEntry)
	}
	return strings.Join(out, " ")
}

func (d *desk) pending(m string) string {
	d.Helper()
	list, err := d.ListInflight(d.Context(), memory.Caller{}, m, 50)
	if err != nil {
		d.Fatal(err)
	}
	var out []string
	for _, e := range list.Entries {
		out = append(out, e.RawEntry)
	}
	return strings.Join(out, " ")
}

// look is how a memory looks, byte for byte.
func (d *desk) look(m string) string {
	d.Helper()
	c, err := d.GetContext(d.Context(), memory.Caller{}, m)
	if err != nil && !strings.Contains(err.Error(), "context not found") {
		d.Fatal(err)
	}
	text, err := json.Marshal(struct {
		Entries []contents.Entry
		Context contents.Document
	}{d.all(m), c})
	if err != nil {
		d.Fatal(err)
	}
	return string(text)
}

// awaits wants all that was written to a memory at the hub.
func (d *desk) awaits(m string) {
	d.Helper()
	if err := d.AwaitConsistency(d.Context(), memory.Caller{}, m, 30*time.Second); err != nil {
		d.Fatalf("await: %v", err)
	}
}

// subscribe makes a desk pull a memory of another.
func (d *desk) subscribe(m string) *desk {
	d.Helper()
	if err := d.Subscribe(d.Context(), d.me, m); err != nil {
		d.Fatal(err)
	}
	d.one.Subscribed()
	return d
}

// eventually looks until something holds.
func eventually(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(30 * time.Second); !holds(); <-tick.C {
		if time.Now().After(end) {
			tb.Fatalf("never: %s", what)
		}
	}
}

func want[T comparable](tb testing.TB, what string, got, want T) {
	tb.Helper()
	if got != want {
		tb.Errorf("%s: %v, want %v", what, got, want)
	}
}

func (d *desk) stream(m string) replication.Stream {
	d.Helper()
	s, _, err := d.Stream(d.Context(), m)
	if err != nil {
		d.Fatal(err)
	}
	return s
}

func (d *desk) failures() []replication.Failed {
	d.Helper()
	out, err := d.Failures(d.Context(), d.me)
	if err != nil {
		d.Fatal(err)
	}
	return out
}
