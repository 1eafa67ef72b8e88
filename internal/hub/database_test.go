package hub_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"cairn/internal/fault"
	"cairn/internal/hub"
	"cairn/internal/hub/database"
	"cairn/internal/hub/pgtest"
	"cairn/internal/replica"
	"cairn/internal/store"
)

// behind opens a hub's database directly, without the hub.
func behind(tb testing.TB, address string) *sql.DB {
	tb.Helper()
	var db *sql.DB
	if path, ok := strings.CutPrefix(address, "sqlite:"); ok {
		bare := store.OpenRawDB(path, 1, 5*time.Second)
		db = bare.Write
	} else {
		var err error
		if db, err = sql.Open("pgx", address); err != nil {
			tb.Fatal(err)
		}
	}
	tb.Cleanup(func() {
		if err := db.Close(); err != nil {
			tb.Error(err)
		}
	})
	return db
}

func run(tb testing.TB, db *sql.DB, query string) {
	tb.Helper()
	if _, err := db.ExecContext(tb.Context(), query); err != nil {
		tb.Fatal(err)
	}
}

func tryOpen(address string) error {
	h, err := hub.Open(context.Background(), hub.Config{Database: address, Log: slog.New(slog.DiscardHandler), Pool: 2})
	if err != nil {
		return err
	}
	return h.Close()
}

func TestManyHubsThatStartTogetherMakeOneSchema(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() {
				if err := tryOpen(address); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		d := open(t, address).device("new", hub.LevelAdmin)
		d.want([]int{201}, entryPut(d.memory(), "x"))
	})
}

func TestASchemaOfANewerCairnIsRefused(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		if err := tryOpen(address); err != nil {
			t.Fatal(err)
		}
		run(t, behind(t, address), "UPDATE hub_meta SET value = '99' WHERE name = 'schema'")
		if err := tryOpen(address); !fault.HasCode(err, database.CodeTooNew) || fault.KindOf(err) != fault.Unavailable {
			t.Errorf("opened with %v", err)
		}
	})
}

func TestAHubWaitsForTheOneThatMigratesAndTakesOverWhenItDied(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		db := behind(t, address)
		run(t, db, "CREATE TABLE hub_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
		claim := func(until time.Time) string { return fmt.Sprintf("'%d another'", until.UnixNano()) }
		run(t, db, "INSERT INTO hub_meta (name, value) VALUES ('migrating', "+claim(time.Now().Add(time.Minute))+")")
		opened := make(chan error, 1)
		go func() { opened <- tryOpen(address) }()
		select {
		case err := <-opened:
			t.Fatalf("opened while another process migrates: %v", err)
		case <-time.After(300 * time.Millisecond):
		}
		run(t, db, "UPDATE hub_meta SET value = "+claim(time.Now().Add(-time.Second))+" WHERE name = 'migrating'")
		if err := <-opened; err != nil {
			t.Fatal(err)
		}
		var left int
		if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM hub_meta WHERE name = 'migrating'").Scan(&left); err != nil || left != 0 {
			t.Errorf("%d claims are left, %v", left, err)
		}
	})
}

func TestPartitionsAreChosenOnce(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	if err := database.Init(ctx, "sqlite:"+t.TempDir()+"/hub.db", 2); fault.KindOf(err) != fault.Invalid {
		t.Errorf("SQLite in two partitions: %v", err)
	}
	address := postgres.Database(t)
	for _, n := range []int{0, -1, 1025} {
		if err := database.Init(ctx, address, n); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%d partitions: %v", n, err)
		}
	}
	for range 2 {
		if err := database.Init(ctx, address, 4); err != nil {
			t.Fatal(err)
		}
	}
	if err := database.Init(ctx, address, 8); !fault.HasCode(err, "hub_partitions") {
		t.Errorf("another number: %v", err)
	}
	d := open(t, address).device("new", hub.LevelAdmin)
	for range 20 {
		memory := d.memory()
		r := d.want([]int{201, 201}, entryPut(memory, "x"), contextPut(memory, "y", noon))
		d.want([]int{200, 204}, entryPatch(memory, r[0].EntryID, object{"summary": "z"}), entryDelete(memory, r[0].EntryID))
		if n := len(d.all(memory)); n != 3 {
			t.Errorf("%d items", n)
		}
	}
	db := behind(t, address)
	for _, table := range []string{"hub_items", "hub_entries", "hub_heads"} {
		var used, wide int
		query := fmt.Sprintf("SELECT count(DISTINCT tableoid), count(DISTINCT memory_id) FROM %s", table)
		if err := db.QueryRowContext(ctx, query).Scan(&used, &wide); err != nil || used < 2 || used > 4 || wide < 20 {
			t.Errorf("%s uses %d partitions for %d memories, %v", table, used, wide, err)
		}
	}
}

// The same hubs at the strictest isolation, where concurrent writers of a memory fail with
// 40001, as with CockroachDB.
func TestWritersThatCollideAreTriedAgain(t *testing.T) {
	t.Parallel()
	address := postgres.Database(t) + "&default_transaction_isolation=serializable"
	hubs := []*office{open(t, address), open(t, address)}
	d := hubs[0].device("new", hub.LevelAdmin)
	memory := d.memory()
	var all sync.WaitGroup
	var taken sync.Map
	for i := range 4 {
		all.Go(func() {
			w := d.other(hubs[i%2])
			for range 15 {
				it := entryPut(memory, "x")
				for try := 0; ; try++ {
					if r := w.push(it)[0]; r.Status == 201 || r.Status == 200 {
						taken.Store(it.Key, r.HubSeq)
						break
					} else if r.Status != 503 || try > 50 {
						t.Errorf("%d %+v", r.Status, r.Error)
						return
					}
				}
			}
		})
	}
	all.Wait()
	items := d.all(memory)
	if len(items) != 61 {
		t.Errorf("%d items, want 61", len(items))
	}
	for i, it := range items {
		if seq, ok := taken.Load(it.Key); i > 0 && (!ok || seq != it.HubSeq) || it.HubSeq != int64(i+1) {
			t.Errorf("item %d has number %d, acknowledged as %v", i, it.HubSeq, seq)
		}
	}
	var text bytes.Buffer
	for _, o := range hubs {
		o.hub.WriteMetrics(&text)
	}
	if !strings.Contains(text.String(), `cairn_hub_tx_retries_total{sqlstate="40001"}`) {
		t.Errorf("nothing collided:\n%s", &text)
	}
}

func TestConnectionsThatTheServerEndsAreReplaced(t *testing.T) {
	t.Parallel()
	address := postgres.Database(t) + "&application_name=victim" + uuid()[:8]
	o := open(t, address)
	d := o.device("new", hub.LevelAdmin)
	memory := d.memory()
	db := behind(t, strings.Split(address, "&application_name")[0])
	name := address[strings.LastIndex(address, "=")+1:]
	for i := range 20 {
		if i%4 == 0 {
			run(t, db, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '"+name+"'")
		}
		d.want([]int{201}, entryPut(memory, "x"))
		if n := len(d.all(memory)); n != i+2 {
			t.Fatalf("%d items after %d", n, i+1)
		}
	}
}

// A frozen leader looks like a host that accepts connections and never responds.
func TestAmongSeveralHostsASilentOneDelaysNothing(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	address := postgres.Database(t)
	_, port, _ := net.SplitHostPort(silent.Addr().String())
	address = strings.Replace(address, "host=", "port="+port+",5432&host=127.0.0.1,", 1) + "&connect_timeout=300"
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	h, err := hub.Open(ctx, hub.Config{Database: address, Log: slog.New(slog.DiscardHandler), Pool: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

func TestConnectionsToAServerThatFollowsAreReplaced(t *testing.T) {
	t.Parallel()
	address := postgres.Database(t)
	role := "r" + uuid()[:8]
	db := behind(t, address)
	run(t, db, "CREATE ROLE "+role+" SUPERUSER LOGIN")
	o := open(t, strings.Replace(address, "cairn@", role+"@", 1))
	d := o.device("new", hub.LevelAdmin)
	memory := d.memory()
	run(t, db, "ALTER ROLE "+role+" SET default_transaction_read_only = on")
	run(t, db, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '"+role+"'")
	d.want([]int{503}, entryPut(memory, "x"))
	run(t, db, "ALTER ROLE "+role+" RESET default_transaction_read_only")
	d.want([]int{201}, entryPut(memory, "x"))
	var text bytes.Buffer
	if o.hub.WriteMetrics(&text); !strings.Contains(text.String(), `cairn_hub_tx_retries_total{sqlstate="25006"}`) {
		t.Errorf("not tried again:\n%s", &text)
	}
}

func TestAMemoryThatIsBlockedDelaysNoOther(t *testing.T) {
	t.Parallel()
	address := postgres.Database(t)
	o := open(t, address)
	o.hub.LimitMemory(hub.MemoryLimit)
	d := o.device("new", hub.LevelAdmin)
	blocked, free := d.memory(), d.memory()
	db := behind(t, address)
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), "UPDATE hub_heads SET kind = kind WHERE memory_id = $1", blocked); err != nil {
		t.Fatal(err)
	}
	held := entryPut(blocked, "held")
	r := d.want([]int{503, 201, 424}, held, entryPut(free, "x"), entryPut(blocked, "behind"))
	if r[0].Error.Code != database.CodeUnavailable {
		t.Errorf("blocked: %+v", r[0].Error)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	d.want([]int{201}, held)
}

func TestAnAddressThatCannotBeOpenedIsRefusedWithoutItsPassword(t *testing.T) {
	t.Parallel()
	secret := "pw" + uuid()[:8]
	for _, address := range []string{
		"mysql://root:" + secret + "@db/x", "postgres://u:" + secret + "@127.0.0.1:1/x?connect_timeout=1", "postgres://u:" + secret + "@:x/y", "sqlite:", "", secret,
	} {
		err := tryOpen(address)
		f := fault.As(err)
		if err == nil || f.Code == "internal" || strings.Contains(f.Message+f.Hint, secret) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestTwoHubsOverOneDatabaseAreOne(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		here, there := open(t, address), open(t, address)
		desk := here.device("new", hub.LevelAdmin)
		laptop := desk.other(there)
		memory := desk.memory()
		put := entryPut(memory, "x")
		first := desk.want([]int{201}, put)[0]
		if r := laptop.want([]int{200}, put)[0]; r.EntryID != first.EntryID {
			t.Errorf("the other hub answered %+v", r)
		}
		laptop.want([]int{204}, entryDelete(memory, first.EntryID))
		desk.want([]int{404}, entryPatch(memory, first.EntryID, object{"summary": "s"}))
		if a, b := fmt.Sprint(desk.all(memory)), fmt.Sprint(laptop.all(memory)); a != b {
			t.Errorf("the hubs tell %s and %s", a, b)
		}
		var all sync.WaitGroup
		for i := range 20 { // the same key through both concurrently
			it := entryPut(memory, fmt.Sprint(i))
			ids := make([]string, 2)
			it.Seq = int64(1000 + i)
			for j, d := range []*device{desk, laptop} {
				all.Go(func() {
					results, err := tryPush(d.url, d.token, replica.PushRequest{DeviceID: "d", Items: []replica.Item{it}})
					if err != nil || results[0].Status > 201 {
						t.Errorf("%+v %v", results, err)
						return
					}
					ids[j] = results[0].EntryID
				})
			}
			all.Wait()
			if ids[0] != ids[1] || ids[0] == "" {
				t.Errorf("one key became %s and %s", ids[0], ids[1])
			}
		}
	})
}

// PostgreSQL crashes repeatedly under a hub. Acknowledged items must stay, and the hub must
// continue when the server is back.
func TestNothingAcknowledgedIsLostWhenPostgreSQLCrashes(t *testing.T) {
	t.Parallel()
	if os.Getenv("CAIRN_SOAK") == "" {
		t.Skip("starts a server of its own; make soak runs it")
	}
	c, err := pgtest.Start()
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	o := open(t, c.Database(t))
	d := o.device("new", hub.LevelAdmin)
	w := newWriter(3000, d.memory(), d.memory())
	url := d.url
	p := &process{}
	p.url.Store(&url)
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.run(t.Context(), d.token, []*process{p})
	}()
	for range 5 {
		time.Sleep(200 * time.Millisecond) // a random instant
		if err := errors.Join(c.Down("QUIT"), c.Up()); err != nil {
			t.Fatal(err)
		}
	}
	<-done
	w.check(t, d)
}

// If the database hangs, every stream must get its response in time, for any number of
// streams.
func TestAHubWhoseDatabaseIsStuckAnswersInTime(t *testing.T) {
	t.Parallel()
	if os.Getenv("CAIRN_SOAK") == "" {
		t.Skip("takes as long as a push may; make soak runs it")
	}
	address := postgres.Database(t)
	o := open(t, address)
	o.hub.LimitMemory(hub.MemoryLimit)
	d := o.device("new", hub.LevelAdmin)
	var items []replica.Item
	for range 40 {
		items = append(items, entryPut(d.memory(), "x"))
	}
	tx, err := behind(t, address).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(t.Context(), "LOCK TABLE hub_heads IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for _, r := range d.push(items...) {
		if r.Status != 503 {
			t.Fatalf("%d %+v", r.Status, r.Error)
		}
	}
	if took := time.Since(began); took > 25*time.Second {
		t.Errorf("answered after %s", took)
	}
}

func TestAMemoryThatIsDamagedDelaysNoOther(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		d := open(t, address).device("new", hub.LevelAdmin)
		one, two := d.memory(), d.memory()
		damaged := d.want([]int{201}, entryPut(one, "x"))[0].EntryID
		run(t, behind(t, address), "UPDATE hub_entries SET doc = 'damaged' WHERE entry_id = '"+damaged+"'")
		d.want([]int{201, 503, 424, 201}, entryPut(two, "a"), entryPatch(one, damaged, object{"summary": "s"}), entryPut(one, "b"), entryPut(two, "c"))
		d.want([]int{201}, entryPut(one, "b"))
		if a, b := len(d.all(one)), len(d.all(two)); a != 3 || b != 3 {
			t.Errorf("%d and %d items", a, b)
		}
	})
}
