package hub_test

import (
	"context"
	"database/sql"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"cairn/internal/hub"
	"cairn/internal/hub/database"
	"cairn/internal/replica"
)

// wire is a proxy between a hub and PostgreSQL that inspects the hub's messages.
type wire struct {
	listener net.Listener
	server   string       // PostgreSQL's socket
	breaks   atomic.Int64 // requests to cancel a session's statement
	ends     atomic.Int64 // sessions that the hub has closed
}

// tap starts a wire and returns it with the database's address through it.
func tap(t *testing.T, address string) (*wire, *url.URL) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	w := &wire{server: filepath.Join(query.Get("host"), ".s.PGSQL.5432")}
	if w.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.listener.Close() })
	go func() {
		for {
			client, err := w.listener.Accept()
			if err != nil {
				return
			}
			go w.carry(client)
		}
	}()
	query.Del("host")
	query.Set("sslmode", "disable")
	u.Host, u.RawQuery = w.listener.Addr().String(), query.Encode()
	return w, u
}

// carry forwards one connection, whose first message has no type.
func (w *wire) carry(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("unix", w.server)
	if err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	}()
	defer server.Close()
	for first := true; ; first = false {
		head := make([]byte, 5)
		if first {
			head = head[1:]
		}
		if _, err := io.ReadFull(client, head); err != nil {
			return
		}
		message := make([]byte, binary.BigEndian.Uint32(head[len(head)-4:])-4)
		if _, err := io.ReadFull(client, message); err != nil {
			return
		}
		if first && binary.BigEndian.Uint32(message) == 80877102 { // CancelRequest
			w.breaks.Add(1)
		}
		if _, err := server.Write(append(head, message...)); err != nil {
			return
		}
		if !first && head[0] == 'X' { // Terminate, which the server reads when the session is idle
			w.ends.Add(1)
		}
	}
}

// waiting waits until the given number of an application's sessions wait for an event.
func waiting(t *testing.T, db *sql.DB, application, event string, want int) {
	t.Helper()
	const count = `SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND $2 IN (wait_event, wait_event_type)`
	eventually(t, func() bool {
		var n int
		if err := db.QueryRowContext(t.Context(), count, application, event).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n == want
	})
}

func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	for until := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("it does not come to that")
		}
	}
}

// A hub whose PostgreSQL has lost its synchronous standby, and a hub that does not wait for a
// standby. An item that the first hub refuses must be invisible: it may be on this server
// only. If another process cancels the commit and so makes it visible, a second attempt must
// not be acknowledged.
func TestWhatIsNotReplicatedIsNeitherShownNorAcknowledged(t *testing.T) {
	t.Parallel()
	address := postgres.Database(t)
	o, db := open(t, address), behind(t, address)
	d := o.device("new", hub.LevelAdmin)
	memory := d.memory()
	w, u := tap(t, address)
	name := "w" + uuid()[:8]
	alone := open(t, u.String()+"&synchronous_commit=on&application_name="+name)
	it := entryPut(memory, "x")
	it.Seq = 1
	// pushAndLeave pushes the item and disconnects when the commit waits.
	pushAndLeave := func(ends int64) {
		t.Helper()
		ctx, leave := context.WithCancel(t.Context())
		results := make(chan replica.Result, 1)
		go func() {
			who := hub.Identity{UserID: d.user, Level: hub.LevelAdmin}
			r, err := alone.hub.Push(ctx, who, replica.PushRequest{DeviceID: "d", Items: []replica.Item{it}})
			if err != nil || len(r) != 1 {
				t.Errorf("%v %v", r, err)
				r = make([]replica.Result, 1)
			}
			results <- r[0]
		}()
		waiting(t, db, name, "SyncRep", 1)
		leave()
		if r := <-results; r.Status != 503 || r.Error.Code != database.CodeUnavailable {
			t.Errorf("not replicated and answered %d %+v", r.Status, r.Error)
		}
		eventually(t, func() bool { return w.ends.Load() >= ends }) // the hub has sent all its messages
		if n := w.breaks.Load(); n != 0 {
			t.Errorf("%d commits are broken off", n)
		}
		waiting(t, db, name, "SyncRep", 1)
	}
	isShown := func() bool {
		all := d.all(memory)
		return all[len(all)-1].Key == it.Key
	}
	breakOff := func() {
		t.Helper()
		run(t, db, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name = '"+name+"'")
		waiting(t, db, name, "SyncRep", 0)
	}
	pushAndLeave(1)
	if isShown() {
		t.Error("a pull shows what this server alone has")
	}
	breakOff()
	eventually(t, isShown)
	pushAndLeave(2)
	breakOff()
	it.Seq = 0
	d.want([]int{200}, it)
}

// Otherwise the sessions of all attempts would wait for the lock.
func TestAStatementThatWaitsForALockIsBrokenOff(t *testing.T) {
	t.Parallel()
	address := postgres.Database(t)
	db := behind(t, address)
	w, u := tap(t, address)
	name := "w" + uuid()[:8]
	o := open(t, u.String()+"&application_name="+name)
	d := o.device("new", hub.LevelAdmin)
	memory := d.memory()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(t.Context(), "UPDATE hub_heads SET kind = kind WHERE memory_id = $1", memory); err != nil {
		t.Fatal(err)
	}
	it := entryPut(memory, "x")
	it.Seq = 1
	ctx, leave := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		who := hub.Identity{UserID: d.user, Level: hub.LevelAdmin}
		r, err := o.hub.Push(ctx, who, replica.PushRequest{DeviceID: "d", Items: []replica.Item{it}})
		if err != nil || len(r) != 1 || r[0].Status != 503 {
			t.Errorf("%v %v", r, err)
		}
	}()
	behindIt := behind(t, address) // db's connection may be in use by the transaction
	waiting(t, behindIt, name, "Lock", 1)
	leave()
	<-done
	waiting(t, behindIt, name, "Lock", 0)
	if n := w.breaks.Load(); n != 1 {
		t.Errorf("%d statements are broken off, want 1", n)
	}
}
