package replica_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cairn/internal/fault"
	"cairn/internal/hub"
	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/replication"
	"cairn/internal/memory/vaults"
	"cairn/internal/replica"
	"cairn/internal/store"
	"cairn/internal/store/follow"
)

// answered makes the front answer some pushes itself.
func answered(times int, status int, header, body string) func(http.ResponseWriter, *http.Request) bool {
	var left atomic.Int64
	left.Store(int64(times))
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != replica.PathPush || left.Add(-1) < 0 {
			return false
		}
		if k, v, ok := strings.Cut(header, ": "); ok {
			w.Header().Set(k, v)
		}
		if status == 0 {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
		return true
	}
}

// Requests that fail as a whole: what they held waits and is then taken once, in order
// (memories §10.4).
func TestARequestThatFailsIsSentAgainUntilItSucceeds(t *testing.T) {
	t.Parallel()
	envelope := func(code string) string { return `{"error":{"code":"` + code + `","message":"m"}}` }
	for name, c := range map[string]struct {
		status       int
		header, body string
	}{
		"connection cut":      {},
		"408 of a proxy":      {408, "", ""},
		"425":                 {425, "", envelope("too_early")},
		"429":                 {429, "Retry-After: 0", envelope("rate_limited")},
		"500":                 {500, "", envelope("internal_error")},
		"502 with a page":     {502, "", "<html>"},
		"503 of the hub":      {503, "", envelope("hub_unavailable")},
		"200 that is no hub":  {200, "", "hello"},
		"200 of too few":      {200, "", `{"results":[]}`},
		"redirect elsewhere":  {307, "Location: http://hub.invalid/", ""},
		"batch refused whole": {400, "", envelope("validation_error")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := open(t, "")
			d := o.desk().furnish()
			o.set(func(o *office) { o.before = answered(3, c.status, c.header, c.body) })
			if c.status == 400 { // of a batch: its changes are then sent one by one
				o.set(func(o *office) {
					o.before = func(w http.ResponseWriter, r *http.Request) bool {
						if r.URL.Path != replica.PathPush || r.ContentLength < 1000 {
							return false
						}
						w.WriteHeader(400)
						_, _ = w.Write([]byte(c.body))
						return true
					}
				})
			}
			d.add("a")
			d.add("b")
			d.start()
			d.awaits(d.memory)
			want(t, "the hub has", o.texts(d.memory), "a b")
			want(t, "inflight", d.pending(d.memory), "")
			want(t, "failures", len(d.failures()), 0)
		})
	}
}

// Items that fail for a while delay their memory alone; the order holds (P3).
func TestAnItemThatFailsForAWhileIsSentAgainAndDelaysItsMemoryAlone(t *testing.T) {
	t.Parallel()
	for _, status := range []int{408, 425, 429, 500, 502, 503, 504} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			o := open(t, "")
			d := o.desk().furnish()
			other := d.newMemory(d.vault, "other")
			d.start()
			var tries atomic.Int64
			gate := make(chan struct{})
			o.set(func(o *office) {
				o.item = func(it replica.Item) int {
					if rawOf(it) != "a" {
						return 0
					}
					tries.Add(1)
					select {
					case <-gate:
						return 0
					default:
						return status
					}
				}
			})
			for _, text := range []string{"a", "b", "c"} {
				d.add(text)
			}
			d.addTo(other, "x")
			d.awaits(other)
			eventually(t, "a second try", func() bool { return tries.Load() > 1 })
			want(t, "the hub has of the failing memory", o.texts(d.memory), "")
			want(t, "inflight", d.pending(d.memory), "a b c")
			if s := d.stream(d.memory); s.Attempts == 0 || s.LastError == "" || s.State != replication.StreamReady {
				t.Errorf("the stream is %+v", s)
			}
			close(gate)
			d.awaits(d.memory)
			want(t, "the hub has", o.texts(d.memory), "a b c")
			want(t, "tries of what is behind", o.attempts("b") >= 1, true)
			want(t, "attempts afterwards", d.stream(d.memory).Attempts, 0)
		})
	}
}

// Items that are refused permanently: one attempt, a failure, and the rest goes on, or
// halts if that is wanted; by hand they are tried again or given up.
func TestAnItemRefusedForGoodIsTriedOnceAndTheRestGoesOn(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 404, 409, 413, 422} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			o := open(t, "")
			d := o.desk().furnish()
			o.set(func(o *office) {
				o.item = func(it replica.Item) int {
					if rawOf(it) == "b" {
						return status
					}
					return 0
				}
			})
			d.add("a")
			bad := d.add("b")
			d.add("c")
			d.start()
			eventually(t, "the rest is there", func() bool { return o.texts(d.memory) == "a c" })
			err := d.AwaitConsistency(t.Context(), memory.Caller{}, d.memory, 30*time.Second)
			if f := fault.As(err); f.Code != memory.CodeReplicationFailed || fmt.Sprint(f.Details["failed"]) != "["+bad.LocalID+"]" {
				t.Errorf("await: %v %v", err, f.Details)
			}
			want(t, "attempts", o.attempts("b"), 1)
			eventually(t, "only b is inflight", func() bool { return d.pending(d.memory) == "b" })
			if all := d.failures(); len(all) != 1 || all[0].LocalID != bad.LocalID || all[0].Status != status || all[0].Stream != d.memory {
				t.Errorf("failures: %+v", all)
			}
			o.set(func(o *office) { o.item = nil })
			if n, err := d.Retry(t.Context(), memory.Caller{}, []string{bad.LocalID}); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			d.awaits(d.memory)
			want(t, "the hub has", o.texts(d.memory), "a c b")
			want(t, "failures", len(d.failures()), 0)
		})
	}
}

func TestARefusalHaltsTheMemoryIfThatIsWantedAndDiscardingLetsItGoOn(t *testing.T) {
	t.Parallel()
	o := open(t, "")
	d := o.desk(func(c *replica.Config) { c.Halt = true }).furnish()
	o.set(func(o *office) {
		o.item = func(it replica.Item) int {
			if rawOf(it) == "b" {
				return 422
			}
			return 0
		}
	})
	d.add("a")
	bad := d.add("b")
	d.add("c")
	d.start()
	eventually(t, "it halts", func() bool { return d.stream(d.memory).State == replication.StreamHalted })
	want(t, "the hub has", o.texts(d.memory), "a")
	want(t, "inflight", d.pending(d.memory), "b c")
	if n, err := d.Discard(t.Context(), memory.Caller{}, []string{bad.LocalID}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	d.awaits(d.memory)
	want(t, "the hub has", o.texts(d.memory), "a c")
}

func TestAMemoryRefusedForGoodHaltsItsStreamAlone(t *testing.T) {
	t.Parallel()
	o := open(t, "")
	d := o.desk().furnish()
	other := d.newMemory(d.vault, "other")
	o.set(func(o *office) {
		o.item = func(it replica.Item) int {
			if it.Kind == replica.KindMemory && it.Stream == d.memory {
				return 400
			}
			return 0
		}
	})
	d.add("a")
	d.addTo(other, "x")
	d.start()
	d.awaits(other)
	eventually(t, "it halts", func() bool { return d.stream(d.memory).State == replication.StreamHalted })
	want(t, "attempts of what is behind", o.attempts("a") <= 1, true)
	o.set(func(o *office) { o.item = nil })
	if n, err := d.Retry(t.Context(), memory.Caller{}, nil); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	d.awaits(d.memory)
	want(t, "the hub has", o.texts(d.memory), "a")
}

// A refused token pauses its user alone; no attempt is counted; a new token is used.
func TestARefusedTokenPausesItsUserAloneAndANewOneIsUsedAtOnce(t *testing.T) {
	t.Parallel()
	for _, status := range []int{401, 403} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			o := open(t, "")
			d := o.desk().furnish()
			var asked atomic.Int64
			o.set(func(o *office) {
				o.before = func(w http.ResponseWriter, r *http.Request) bool {
					if r.Header.Get("Authorization") != "Bearer "+d.office.secret {
						return false
					}
					asked.Add(1)
					w.WriteHeader(status)
					_, _ = w.Write([]byte(`{"error":{"code":"unauthorized","message":"who are you"}}`))
					return true
				}
			})
			// Another user of the same device, whose memory is in the same lane as likely as not.
			them, second := o.token("new", hub.LevelAdmin)
			u, err := d.AddUser(t.Context())
			if err == nil {
				err = d.Join(t.Context(), u.UserID, o.url, them, true)
			}
			if err != nil {
				t.Fatal(err)
			}
			leases := d.leases(time.Minute)
			d.equip(func(c *replica.Config) { c.Leases = leases })
			twin := &desk{TB: t, Service: d.Service, store: d.store, office: &office{url: o.url, secret: second}, me: u.UserID}
			twin.equip(func(c *replica.Config) { c.Leases = leases })
			d.add("a")
			who := memory.Caller{User: u.UserID}
			v, _, err := d.CreateVault(t.Context(), who, vaults.NewVault{Title: "v"})
			if err != nil {
				t.Fatal(err)
			}
			m, _, err := d.CreateMemory(t.Context(), who, vaults.NewMemory{VaultID: v.VaultID, Title: "m"})
			if err != nil {
				t.Fatal(err)
			}
			d.start()
			twin.start()
			t.Cleanup(func() { twin.end() })
			t.Cleanup(func() { d.end() })
			eventually(t, "the pause", func() bool { state, _ := d.one.State(); return state == replica.StateUnauthorized })
			if _, _, err := d.AddEntry(t.Context(), who, contents.NewEntry{MemoryID: m.MemoryID, RawEntry: "x"}); err != nil {
				t.Fatal(err)
			}
			if err := d.AwaitConsistency(t.Context(), who, m.MemoryID, 30*time.Second); err != nil {
				t.Error(err)
			}
			if n := asked.Load(); n > 5 { // all that may be underway at once, and none after it
				t.Errorf("the token was tried %d times", n)
			}
			want(t, "attempts counted", d.stream(d.memory).Attempts, 0)
			_, fresh := o.token(o.user, hub.LevelAdmin)
			want(t, "it is another", d.one.Client.SetToken(fresh), true)
			d.one.Renewed(t.Context())
			d.awaits(d.memory)
			state, _ := d.one.State()
			want(t, "state", state, replica.StateRunning)
		})
	}
}

func TestAHubThatIsTooOldKeepsTheStreamWaitingAndSaysSo(t *testing.T) {
	t.Parallel()
	o := open(t, "")
	d := o.desk().furnish()
	o.set(func(o *office) { o.before = answered(1, 404, "", "404 page not found") })
	d.add("a")
	err := d.one.Drain(t.Context())
	if state, _ := d.one.State(); state != replica.StateTooOld || fault.As(err).Code != replica.StateTooOld {
		t.Errorf("state %s, drain: %v", state, err)
	}
	want(t, "inflight", d.pending(d.memory), "a")
	want(t, "failures", len(d.failures()), 0)
	d.equip()
	d.drain()
	want(t, "the hub has", o.texts(d.memory), "a")
}

// While another process sends, what is left is counted; a store that cannot say how much
// that is ends the wait with its error.
func TestDrainTellsThatTheStoreCannotBeRead(t *testing.T) {
	t.Parallel()
	d := open(t, "").desk().furnish()
	d.add("a")
	other := d.leases(time.Hour)
	want(t, "leases of another process", len(other.Held()), 1)
	change := func(query string) {
		t.Helper()
		err := d.store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, query)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	change(`ALTER TABLE set_aside RENAME TO away`)
	if err := d.one.Drain(t.Context()); !fault.HasCode(err, memory.CodeInternal) {
		t.Errorf("drain: %v", err)
	}
	change(`ALTER TABLE away RENAME TO set_aside`)
	d.equip()
	other.Close()
	d.drain()
}

// Items that cannot be stored here delay the pulls of their memory alone. The account of
// followers says why, and since when; it ends with the first page that can be stored.
func TestItemsThatCannotBeStoredDelayTheirMemoryAloneAndAreAccountedFor(t *testing.T) {
	t.Parallel()
	o := open(t, "")
	one := o.desk().furnish()
	other := one.newMemory(one.vault, "other")
	one.add("a")
	one.addTo(other, "x")
	one.drain()
	two := o.desk()
	two.drain()
	two.subscribe(one.memory).subscribe(other)
	var broken atomic.Bool
	broken.Store(true)
	o.set(func(o *office) {
		o.before = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != replica.PathPull || !broken.Load() {
				return false
			}
			answer := httptest.NewRecorder()
			o.inner.ServeHTTP(answer, r)
			var page replica.PullResponse
			if err := json.Unmarshal(answer.Body.Bytes(), &page); err != nil {
				t.Error(err)
			}
			for i, s := range page.Streams {
				for j := range s.Items {
					if s.Stream == one.memory {
						page.Streams[i].Items[j].Doc = json.RawMessage(`"no object"`)
					}
				}
			}
			_ = json.NewEncoder(w).Encode(page)
			return true
		}
	})
	two.start()
	failing := func() (p follow.Progress) {
		all, err := follow.Followers(t.Context(), two.store)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range all {
			if one.Error != "" {
				p = one
			}
		}
		return p
	}
	eventually(t, "it is tried again", func() bool { return failing().Attempts > 1 })
	if p := failing(); p.Follower != memory.PullFollower || p.Lane != one.memory || !strings.Contains(p.Error, "cannot be stored here") || p.Since == 0 || p.NextTry == 0 {
		t.Errorf("the account is %+v", p)
	}
	eventually(t, "the other memory is here", func() bool { return two.texts(other) == "x" })
	waiting, err := two.Waiting(t.Context(), two.me)
	if err != nil || len(waiting) != 1 || waiting[0].MemoryID != one.memory || waiting[0].Error == "" {
		t.Errorf("waiting: %+v, %v", waiting, err)
	}
	broken.Store(false)
	two.one.Subscribed()
	eventually(t, "it is here", func() bool { return two.texts(one.memory) == "a" })
	want(t, "what fails", failing(), follow.Progress{})
}

func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	o := open(t, "")
	d := o.desk().furnish()
	o.set(func(o *office) {
		o.before = answered(1, 429, "Retry-After: 100", `{"error":{"code":"rate_limited","message":"m"}}`)
	})
	d.add("a")
	d.drain()
	if wait := time.Until(d.stream(d.memory).NextAttempt); wait < 90*time.Second || wait > 101*time.Second {
		t.Errorf("it waits for %s", wait)
	}
}

// The hub has taken it, but nobody hears of it: the key is sent again, and there is
// one entry (P4).
func TestALostReplySendsTheSameKeyAgainAndMakesOneEntry(t *testing.T) {
	t.Parallel()
	o := open(t, "")
	d := o.desk().furnish()
	var lost atomic.Int64
	o.set(func(o *office) {
		o.after = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != replica.PathPush || lost.Add(1) > 3 {
				return false
			}
			panic(http.ErrAbortHandler)
		}
	})
	d.add("a")
	d.start()
	d.awaits(d.memory)
	want(t, "the hub has", o.texts(d.memory), "a")
	keys := map[string]bool{}
	o.set(func(o *office) {
		for _, it := range o.sent {
			if rawOf(it) == "a" {
				keys[it.Key] = true
			}
		}
	})
	want(t, "keys", len(keys), 1)
	want(t, "here", d.texts(d.memory), "a")
}

// A hub that is away is asked again, soon at first, at most every five seconds; its
// first answer ends all waiting that it caused.
func TestAHubThatComesBackIsUsedAtOnce(t *testing.T) {
	t.Parallel()
	o := open(t, "")
	d := o.desk().furnish()
	var away atomic.Bool
	away.Store(true)
	o.set(func(o *office) {
		o.before = func(http.ResponseWriter, *http.Request) bool {
			if away.Load() {
				panic(http.ErrAbortHandler)
			}
			return false
		}
	})
	d.start()
	for i := range 20 {
		d.add(fmt.Sprint(i))
	}
	eventually(t, "it is noticed", func() bool { state, _ := d.one.State(); return state == replica.StateUnreachable })
	want(t, "attempts counted", d.stream(d.memory).Attempts, 0)
	away.Store(false)
	d.awaits(d.memory)
	want(t, "the hub has", len(strings.Fields(o.texts(d.memory))), 20)
	state, _ := d.one.State()
	want(t, "state", state, replica.StateRunning)
}
