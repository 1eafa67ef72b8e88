package hub_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"cairn/internal/hub"
	"cairn/internal/hub/pgtest"
	"cairn/internal/replica"
)

// postgres is the PostgreSQL server for tests that need one.
var postgres pgtest.Shared

func TestMain(m *testing.M) {
	if address := os.Getenv(childVar); address != "" {
		serveAsChild(address)
		return
	}
	code := m.Run()
	if err := postgres.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// eachDatabase runs a test with both databases, which must behave the same.
func eachDatabase(t *testing.T, test func(t *testing.T, address string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, "sqlite:"+filepath.Join(t.TempDir(), "hub.db"))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, postgres.Database(t))
	})
}

// clock is a wall clock that tests can set.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = t
}

// office is a listening hub with helpers for tests.
type office struct {
	testing.TB
	hub   *hub.Hub
	url   string
	clock *clock
}

var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

func open(tb testing.TB, address string) *office {
	tb.Helper()
	o := &office{TB: tb, clock: &clock{at: noon}}
	var err error
	o.hub, err = hub.Open(context.Background(), hub.Config{Database: address, Clock: o.clock.now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		tb.Fatal(err)
	}
	o.hub.LimitMemory(time.Minute)
	server := httptest.NewServer(o.hub.Handler("test"))
	o.url = server.URL
	tb.Cleanup(func() {
		o.hub.Stop()
		server.Close()
		if err := o.hub.Close(); err != nil {
			tb.Error(err)
		}
	})
	return o
}

// device is one device of a user, as the hub sees it.
type device struct {
	*office
	name, user, token string
	seq               int64
}

func (o *office) device(user string, level hub.Level) *device {
	o.Helper()
	t, secret, err := o.hub.CreateToken(context.Background(), hub.TokenArgs{UserID: user, Device: "desk", Level: level})
	if err != nil {
		o.Fatal(err)
	}
	return &device{office: o, name: "device-" + t.ID, user: t.UserID, token: secret}
}

// other returns another device of the same user, which may use another hub process.
func (d *device) other(o *office) *device {
	twin := o.device(d.user, hub.LevelAdmin)
	return twin
}

func (d *device) request(method, path string, body, into any) (int, http.Header) {
	d.Helper()
	return ask(d.TB, method, d.url+path, d.token, body, into)
}

func (d *device) push(items ...replica.Item) []replica.Result {
	d.Helper()
	var answer replica.PushResponse
	for i := range items {
		if items[i].Seq == 0 {
			d.seq++
			items[i].Seq = d.seq
		}
	}
	if status, _ := d.request("POST", replica.PathPush, replica.PushRequest{DeviceID: d.name, Items: items}, &answer); status != 200 {
		d.Fatalf("push: %d", status)
	}
	if len(answer.Results) != len(items) {
		d.Fatalf("%d results for %d items", len(answer.Results), len(items))
	}
	return answer.Results
}

// want pushes items and expects these statuses.
func (d *device) want(statuses []int, items ...replica.Item) []replica.Result {
	d.Helper()
	results := d.push(items...)
	for i, r := range results {
		if r.Status != statuses[i] {
			d.Fatalf("item %d (%s %s): %d, want %d: %+v", i, items[i].Kind, items[i].Op, r.Status, statuses[i], r.Error)
		}
		if r.Seq != items[i].Seq {
			d.Fatalf("result %d is of seq %d, not %d", i, r.Seq, items[i].Seq)
		}
		if (r.Error != nil) != (r.Status >= 300) {
			d.Fatalf("result %d has status %d and error %v", i, r.Status, r.Error)
		}
	}
	return results
}

func (d *device) pull(cursors ...replica.Cursor) replica.PullResponse {
	d.Helper()
	var answer replica.PullResponse
	if status, _ := d.request("POST", replica.PathPull, replica.PullRequest{Cursors: cursors}, &answer); status != 200 {
		d.Fatalf("pull: %d", status)
	}
	return answer
}

// all pulls a whole stream.
func (d *device) all(stream string) []replica.PulledItem {
	d.Helper()
	var items []replica.PulledItem
	for after := int64(0); ; {
		answer := d.pull(replica.Cursor{Stream: stream, After: after})
		if len(answer.Streams) == 0 {
			return items
		}
		s := answer.Streams[0]
		items, after = append(items, s.Items...), s.Next
		if !s.More {
			return items
		}
	}
}
