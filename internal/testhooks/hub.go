//go:build testhooks

package testhooks

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"cairn/internal/crashpoint"
	"cairn/internal/hub"
	"cairn/internal/memory/rules"
)

// Hub is the control of one `cairn hub`.
type Hub struct {
	kept *kept

	mu   sync.Mutex
	hub  *hub.Hub // nil until it is open
	door *door
}

// NewHub reads what an earlier process has left beside the database at a path.
func NewHub(path string) (*Hub, error) {
	k, err := open(path)
	return &Hub{kept: k}, err
}

// Now is the time by the test's clock.
func (c *Hub) Now() time.Time { return c.kept.Now() }

// Listen opens the control listener on addr until ctx ends, and says on w where.
func (c *Hub) Listen(ctx context.Context, addr string, w io.Writer) error {
	return serve(ctx, addr, w, c.verbs())
}

// Opened reports which hub is served, and returns the listener for it, in the place of l.
func (c *Hub) Opened(h *hub.Hub, l net.Listener) net.Listener {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hub, c.door = h, newDoor(l)
	return c.door
}

func (c *Hub) opened() (*hub.Hub, *door, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hub == nil {
		return nil, nil, notServing()
	}
	return c.hub, c.door, nil
}

func (c *Hub) verbs() http.Handler {
	_, names := crashpoint.Names()
	mux := newMux(c.kept, names, func() []string { return []string{} })
	post(mux, "/test/reset", c.reset)
	post(mux, "/test/backend", c.backend)
	get(mux, "/test/backend/attempts", func(context.Context, url.Values) (any, error) {
		h, _, err := c.opened()
		if err != nil {
			return nil, err
		}
		_, attempts := h.Mode()
		return map[string]int{"attempts": attempts}, nil
	})
	listing := func(name string, list func(ctx context.Context, h *hub.Hub, memory string, q url.Values) ([]string, error)) {
		get(mux, "/test/backend/"+name, func(ctx context.Context, q url.Values) (any, error) {
			h, _, err := c.opened()
			if err != nil {
				return nil, err
			}
			id, ok := rules.ParseID(q.Get("memory"))
			if !ok {
				return nil, invalid("memory", "memory is no UUID")
			}
			all, err := list(ctx, h, id, q)
			return map[string][]string{name: all}, err
		})
	}
	listing("entries", func(ctx context.Context, h *hub.Hub, id string, _ url.Values) ([]string, error) {
		return h.RawEntries(ctx, id)
	})
	listing("ops", func(ctx context.Context, h *hub.Hub, id string, q url.Values) ([]string, error) {
		return h.Ops(ctx, id, q.Get("all") == "1")
	})
	return mux
}

// reset empties the hub and makes tokens of level admin. Points and clock are as at the
// start.
func (c *Hub) reset(ctx context.Context, a struct {
	Users []string `json:"users"`
},
) (any, error) {
	h, d, err := c.opened()
	if err != nil {
		return nil, err
	}
	for _, user := range a.Users {
		if _, ok := rules.ParseID(user); !ok {
			return nil, invalid("users", fmt.Sprintf("%.80q is no UUID", user))
		}
	}
	crashpoint.Disarm(func(string) bool { return true })
	if err := c.kept.clear(); err != nil {
		return nil, err
	}
	h.SetBackend(hub.Backend{Mode: hub.ModeUp})
	if err := d.open(ctx); err != nil {
		return nil, err
	}
	if err := h.Empty(ctx); err != nil {
		return nil, err
	}
	tokens := map[string]string{}
	for _, user := range a.Users {
		if _, tokens[user], err = h.CreateToken(ctx, hub.TokenArgs{UserID: user}); err != nil {
			return nil, err
		}
	}
	return map[string]any{"tokens": tokens}, nil
}

type backendArgs struct {
	Mode     string `json:"mode"`
	DelayMS  int64  `json:"delay_ms"`
	Statuses []int  `json:"statuses"`
	Memory   string `json:"memory"`
	Status   int    `json:"status"`
}

// backend changes how the hub takes what is sent.
func (c *Hub) backend(ctx context.Context, a backendArgs) (any, error) {
	h, d, err := c.opened()
	if err != nil {
		return nil, err
	}
	id, isID := rules.ParseID(a.Memory)
	isStatus := func(n int) bool { return n >= 200 && n <= 599 }
	sound := map[string]bool{hub.ModeUp: true, hub.ModeDown: true, hub.ModeSlow: a.DelayMS >= 0, hub.ModeFailMemory: isID && isStatus(a.Status)}[a.Mode]
	if a.Mode == hub.ModeScript {
		sound = true
		for _, n := range a.Statuses {
			sound = sound && isStatus(n)
		}
	}
	if !sound {
		return nil, invalid("mode", "there is no such mode, or what it needs is missing")
	}
	h.SetBackend(hub.Backend{Mode: a.Mode, Delay: time.Duration(a.DelayMS) * time.Millisecond, Statuses: a.Statuses, Memory: id, Status: a.Status})
	if a.Mode == hub.ModeDown {
		return nil, d.shut()
	}
	return nil, d.open(ctx)
}

// door is a listener that can be shut: then its address refuses connections, and those
// that there were are cut.
type door struct {
	at net.Addr

	mu      sync.Mutex
	l       net.Listener // nil while it is shut
	guests  map[net.Conn]bool
	changed chan struct{} // closed when l changes
	closed  bool          // for good
}

func newDoor(l net.Listener) *door {
	return &door{at: l.Addr(), l: l, guests: map[net.Conn]bool{}, changed: make(chan struct{})}
}

func (d *door) Addr() net.Addr { return d.at }

// Accept waits while the door is shut.
func (d *door) Accept() (net.Conn, error) {
	for {
		d.mu.Lock()
		l, changed, closed := d.l, d.changed, d.closed
		d.mu.Unlock()
		if closed {
			return nil, net.ErrClosed
		}
		if l == nil {
			<-changed
			continue
		}
		conn, err := l.Accept()
		d.mu.Lock()
		same := d.l == l
		if same && err == nil {
			d.guests[conn] = true
		}
		d.mu.Unlock()
		switch {
		case same && err == nil:
			return guest{conn, d}, nil
		case same:
			return nil, err
		case err == nil:
			_ = conn.Close() // it came too late
		}
	}
}

// guest is a connection that the door knows of.
type guest struct {
	net.Conn
	door *door
}

func (g guest) Close() error {
	g.door.mu.Lock()
	delete(g.door.guests, g.Conn)
	g.door.mu.Unlock()
	return g.Conn.Close()
}

// turn puts another listener in the place of l, nil for none.
func (d *door) turn(l net.Listener) {
	d.l = l
	close(d.changed)
	d.changed = make(chan struct{})
}

// shut closes the door; repeating it is harmless.
func (d *door) shut() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.l
	if l == nil {
		return nil
	}
	d.turn(nil)
	for conn := range d.guests {
		_ = conn.Close() // it is cut, whatever it thinks of that
	}
	clear(d.guests)
	return l.Close()
}

// open opens the door at the address of before; repeating it is harmless.
func (d *door) open(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.l != nil || d.closed {
		return nil
	}
	l, err := new(net.ListenConfig).Listen(ctx, d.at.Network(), d.at.String())
	if err == nil {
		d.turn(l)
	}
	return err
}

// Close ends the listener permanently.
func (d *door) Close() error {
	err := d.shut()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	d.turn(nil)
	return err
}
