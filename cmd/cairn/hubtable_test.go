package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Tests of a hub's failures: the output of replication status, doctor and await.

// reports runs the three commands that report the state of replication. await checks once. Each
// argument is a part of the expected output; "" expects that the command succeeds.
func (h *home) reports(status, doctor, await string) {
	h.t.Helper()
	if e := h.run(h.command("replication", "status"), nil); !strings.Contains(e.stdout, status) {
		h.t.Errorf("replication status: %s%s, want %q", e.stdout, e.stderr, status)
	}
	e := h.run(h.command("doctor"), nil)
	line := ""
	for l := range strings.Lines(e.stdout) {
		if f := strings.Fields(l); len(f) > 1 && f[1] == "replication" {
			line = l
		}
	}
	if !strings.HasPrefix(line, doctor) {
		h.t.Errorf("doctor: %q, want %q", line, doctor)
	}
	e = h.run(h.command("memory", "await", "--timeout-ms", "0", "--json"), nil)
	if await == "consistent" && e.code != 0 || await != "consistent" && (e.code == 0 || !strings.Contains(e.stderr, await)) {
		h.t.Errorf("await: exit %d, %s%s, want %q", e.code, e.stdout, e.stderr, await)
	}
	if t, ok := os.LookupEnv("CAIRN_SHOW_TABLE"); ok && t != "" {
		s := h.run(h.command("replication", "status"), nil)
		h.t.Logf("STATUS %s\nDOCTOR %s\nAWAIT %s%s", s.stdout, line, e.stdout, e.stderr)
	}
}

// copyFiles copies the regular files of a folder.
func copyFiles(t *testing.T, from, to string) {
	t.Helper()
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// device returns another device of the site's user, which has joined the hub.
func (s *site) device() *home {
	s.h.t.Helper()
	d := newClone(s.h.t)
	d.join(s, s.token)
	return d
}

// writes adds one entry per word. It also sets the context if context is not "".
func (h *home) writes(context string, words ...string) {
	h.t.Helper()
	for _, w := range words {
		h.cairn("memory", "add-entry", w)
	}
	if context != "" {
		h.cairn("memory", "update-context", context)
	}
}

// wantsOwn compares the entries of the default memory.
func (h *home) wantsOwn(want string) {
	h.t.Helper()
	if got := h.own(); got != want {
		h.t.Errorf("the device has %q, want %q", got, want)
	}
}

// TestAHubRestoredFromAnOldBackupIsRecognised restores a hub's database from an old backup. A
// running device stops, reports this and sends nothing. It continues after `cairn hub restored`. No
// data of the device is lost.
func TestAHubRestoredFromAnOldBackupIsRecognised(t *testing.T) {
	t.Parallel()
	for _, serves := range []bool{true, false} {
		t.Run(map[bool]string{true: "under a server", false: "by drain"}[serves], func(t *testing.T) {
			t.Parallel()
			h := newClone(t)
			s := h.site("new")
			h.join(s, s.token)
			other := s.device()
			h.writes("first", "one")
			h.cairn("replication", "drain")
			s.stop()
			backup := filepath.Join(h.dir, "backup")
			copyFiles(t, s.home.dataDir(), backup)
			s.again()
			h.writes("second", "two")
			h.cairn("replication", "drain")
			h.cairn("memory", "list-entries") // the memory is known on this device
			other.cairn("replication", "drain")
			other.writes("", "three")
			other.cairn("replication", "drain")
			h.cairn("replication", "drain")
			h.wantsOwn("one two three")
			h.reports("running, 0 pending", "ok ", "consistent")
			var w *web
			if serves {
				w = h.listenUntil()
				h.soon("a waiting pull", func() bool { return s.waits() })
			}

			s.stop()
			copyFiles(t, backup, s.home.dataDir())
			s.again()
			if serves {
				h.soon("the stop", func() bool { return strings.Contains(h.cairn("replication", "status"), "hub_restored") })
			} else if e := h.run(h.command("replication", "drain"), nil); e.code == 0 || !strings.Contains(e.stderr, "cairn hub restored") {
				t.Errorf("drain: exit %d, %s", e.code, e.stderr)
			}
			h.writes("", "four")
			if serves {
				h.soon("the stop in the store", func() bool {
					return strings.Contains(h.run(h.command("memory", "await", "--timeout-ms", "0", "--json"), nil).stderr, "hub_restored")
				})
			}
			h.reports("hub_restored, 1 pending", "problem ", `"state":"hub_restored"`)
			h.reports("do: at the hub, restore the newer backup, or run `cairn hub restored`", "problem ", "cairn hub restored")
			if s.got("four") {
				t.Error("a change was sent to a hub that was restored")
			}

			s.stop()
			s.home.cairn("hub", "restored")
			s.again()
			if serves {
				h.soon("the end of the stop", func() bool { return h.run(h.command("memory", "await"), nil).code == 0 })
			} else {
				h.cairn("replication", "drain")
			}
			other.cairn("replication", "drain")
			other.wantsOwn("one two three four")
			h.wantsOwn("one two three four")
			if got := s.entries(); got != "one two three four" {
				t.Errorf("the hub has %q", got)
			}
			if got := other.cairn("memory", "get-context"); got != "second\n" {
				t.Errorf("the context is %q", got)
			}
			h.reports("running, 0 pending", "ok ", "consistent")
			if serves {
				w.stop()
			}
			h.soundly()
		})
	}
}

// waits reports whether a device has a pull waiting at the hub.
func (s *site) waits() bool {
	_, body := s.hub.call("GET", "/metrics", s.token, "")
	return strings.Contains(body, "cairn_hub_waiting_pulls ") && !strings.Contains(body, "cairn_hub_waiting_pulls 0\n")
}

// TestACopyOfADeviceGoesOnBesideIt uses a data directory that is an old copy of itself, and one
// copied from another device. Both continue; nothing is lost or stored twice.
func TestACopyOfADeviceGoesOnBesideIt(t *testing.T) {
	t.Parallel()
	for _, clone := range []bool{true, false} {
		t.Run(map[bool]string{true: "a clone", false: "an old backup"}[clone], func(t *testing.T) {
			t.Parallel()
			h := newClone(t)
			s := h.site("new")
			h.join(s, s.token)
			h.writes("first", "one")
			h.cairn("replication", "drain")
			h.writes("", "two") // inflight in both copies
			copied := newClone(t)
			copyFiles(t, h.dataDir(), copied.dataDir())
			h.writes("second", "three")
			h.cairn("replication", "drain")
			if !clone {
				copyFiles(t, copied.dataDir(), h.dataDir())
				copied = h
			}
			copied.writes("", "four")
			copied.reports("running, 2 pending", "ok ", "await_timeout")
			copied.cairn("replication", "drain")
			h.cairn("replication", "drain")
			want := "one two three four"
			if got := s.entries(); got != want {
				t.Errorf("the hub has %q, want %q", got, want)
			}
			for _, d := range []*home{h, copied} {
				d.wantsOwn(want)
				d.reports("running, 0 pending", "ok ", "consistent")
				if got := d.cairn("memory", "get-context"); got != "second\n" {
					t.Errorf("the context is %q", got)
				}
				d.soundly()
			}
			copied.wantsIncarnation(h, clone)
		})
	}
}

// wantsIncarnation checks that a copy continues as a new device incarnation. Both logs must use
// each number of a device once. It also checks the output for the user.
func (h *home) wantsIncarnation(original *home, clone bool) {
	h.t.Helper()
	reason, note := "behind", "the store was restored from an older backup, or a copy of it is in use"
	if clone {
		reason, note = "moved", "this store was copied or moved from "+original.db()+" to "+h.db()
		if e := original.cairn("replication", "status") + original.cairn("status") + original.cairn("doctor"); strings.Contains(e, "incarnation") {
			h.t.Errorf("the original shows a new incarnation:\n%s", e)
		}
	}
	for _, args := range [][]string{{"status"}, {"replication", "status"}, {"doctor"}} {
		if e := h.run(h.command(args...), nil); !strings.Contains(e.stdout, note) || strings.Contains(e.stdout, "problem  device") {
			h.t.Errorf("cairn %s: %s, want %q", strings.Join(args, " "), e.stdout, note)
		}
	}
	var status struct {
		Device struct {
			ID           string
			Incarnations []struct {
				Device, Before, Reason    string
				Renumbered, ReturnedItems int
			}
		}
	}
	if err := json.Unmarshal([]byte(h.cairn("replication", "status", "--json")), &status); err != nil {
		h.t.Fatal(err)
	}
	all := status.Device.Incarnations
	if len(all) != 1 || all[0].Device != status.Device.ID || all[0].Before == all[0].Device || all[0].Reason != reason {
		h.t.Fatalf("the incarnations are %+v", status)
	}
	if !clone && (all[0].ReturnedItems != 2 || all[0].Renumbered == 0) { // the entry "three" and the context
		h.t.Errorf("the incarnation is %+v", all[0])
	}
	// Writes after the copies separated have different origins.
	const origins = `SELECT device || '/' || device_seq || '/' || hex(doc_hash) FROM change_log WHERE device <> 'hub' AND doc_hash IS NOT NULL`
	seen := map[string]string{}
	for _, row := range append(original.rows(origins), h.rows(origins)...) {
		origin, hash, _ := strings.Cut(row, "/")
		number, hash, _ := strings.Cut(hash, "/")
		origin += "/" + number
		if was, twice := seen[origin]; twice && was != hash {
			h.t.Errorf("the origin %s stands for two changes", origin)
		}
		seen[origin] = hash
	}
}

// TestATokenThatPermitsReadingOnlyIsReported uses a read-only token. Entries of other devices
// arrive, but local writes wait. The commands report this until the token is replaced.
func TestATokenThatPermitsReadingOnlyIsReported(t *testing.T) {
	t.Parallel()
	h := newClone(t)
	s := h.site("new")
	h.join(s, s.token)
	h.writes("", "one")
	h.cairn("replication", "drain")
	_, read := s.newToken(s.user, "read")
	d := newClone(t)
	d.join(s, read)
	d.cairn("replication", "drain")
	d.reports("read_only, 0 pending", "ok ", "consistent")
	w := d.listenUntil()
	d.writes("", "two")
	d.soon("the stop", func() bool {
		return strings.Contains(d.run(d.command("memory", "await", "--timeout-ms", "0", "--json"), nil).stderr, "read_only")
	})
	d.reports("read_only, 1 pending, 0 refused", "problem ", `"state":"read_only"`)
	d.reports("do: at the hub, create a token with `cairn hub token create --level admin`", "problem ", "replication has stopped")
	h.writes("", "three")
	h.cairn("replication", "drain")
	d.soon("an entry of the other device", func() bool { return strings.Contains(d.own(), "three") })
	if s.got("two") {
		t.Error("an entry was sent with a token that permits reading only")
	}
	d.join(s, s.token)
	d.cairn("memory", "await", "--timeout-ms", "60000")
	d.reports("running, 0 pending", "ok ", "consistent")
	if got := s.entries(); !strings.Contains(got, "two") {
		t.Errorf("the hub has %q", got)
	}
	w.stop()
}

// TestARevokedTokenIsReported checks that replication is reported as stopped.
func TestARevokedTokenIsReported(t *testing.T) {
	t.Parallel()
	h := newClone(t)
	s := h.site("new")
	h.join(s, "  "+s.token)
	h.writes("", "one")
	h.cairn("replication", "drain")
	var list struct{ Tokens []struct{ ID string } }
	if err := json.Unmarshal([]byte(s.home.cairn("hub", "token", "list", "--json")), &list); err != nil || len(list.Tokens) != 1 {
		t.Fatal(err, list)
	}
	s.home.cairn("hub", "token", "revoke", list.Tokens[0].ID)
	s.stop() // a running hub would notice only within a minute
	s.again()
	h.writes("", "two")
	if e := h.run(h.command("replication", "drain"), nil); e.code == 0 || !strings.Contains(e.stderr, "token create") {
		t.Errorf("drain: exit %d, %s", e.code, e.stderr)
	}
	h.reports("unauthorized, 1 pending", "problem ", `"state":"unauthorized"`)
	_, fresh := s.newToken(s.user, "admin")
	h.join(s, fresh)
	h.cairn("replication", "drain")
	h.reports("running, 0 pending", "ok ", "consistent")
}

// TestAMemoryDeletedElsewhereKeepsWhatWasWrittenHere deletes a memory on one device. Another device
// has an unsent entry and context for it. Both stay readable, and await reports replication_failed
// instead of consistent.
func TestAMemoryDeletedElsewhereKeepsWhatWasWrittenHere(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"pull", "push"} {
		t.Run(first+" first", func(t *testing.T) {
			t.Parallel()
			h := newClone(t)
			s := h.site("new")
			h.join(s, s.token)
			h.writes("first", "one")
			h.cairn("replication", "drain")
			other := s.device()
			other.cairn("replication", "drain")
			var m struct{ MemoryID string }
			if err := json.Unmarshal([]byte(h.cairn("memory", "get-memory", "--json")), &m); err != nil || m.MemoryID == "" {
				t.Fatal(err)
			}
			other.writes("offline", "two")
			h.cairn("memory", "delete-memory", m.MemoryID)
			w := other.listenUntil()
			await := func() string {
				e := other.run(other.command("memory", "await", "--timeout-ms", "0", "--json", "--memory", m.MemoryID), nil)
				return e.stdout + e.stderr
			}
			other.soon("the refusals", func() bool {
				return strings.Contains(await(), `"failed":["pending-`) && strings.Contains(await(), "context-")
			})
			other.soon("the deletion", func() bool {
				return strings.Contains(other.cairn("replication", "status"), "the memory was deleted on another device")
			})
			if got := await(); !strings.Contains(got, `"replication_failed"`) {
				t.Errorf("await: %s", got)
			}
			other.reports(": running, 2 pending, 2 refused", "problem ", `"replication_failed"`)
			if got := other.cairn("memory", "list-inflight-entries", "--memory", m.MemoryID); !strings.Contains(got, "two") {
				t.Errorf("the entry cannot be read: %s", got)
			}
			if got := other.cairn("memory", "get-context", "--history", "--memory", m.MemoryID); !strings.Contains(got, "not sent") || !strings.Contains(got, "offline") {
				t.Errorf("the context cannot be read: %s", got)
			}
			other.cairn("replication", "retry")
			if got := await(); !strings.Contains(got, `"replication_failed"`) {
				t.Errorf("await after retry: %s", got)
			}
			other.cairn("replication", "discard", "--all")
			if got := await(); !strings.Contains(got, "consistent") {
				t.Errorf("await after discard: %s", got)
			}
			w.stop()
			other.reports("running, 0 pending, 0 refused", "ok ", "consistent")
			other.soundly()
		})
	}
}

// TestOfTwoContextsOverTheSameOneTheLoserIsKeptAndReported: two offline devices replace the same
// context. The winner does not depend on their clocks. The other text is kept, and both devices
// report it.
func TestOfTwoContextsOverTheSameOneTheLoserIsKeptAndReported(t *testing.T) {
	t.Parallel()
	h := newClone(t)
	s := h.site("new")
	h.join(s, s.token)
	h.writes("base")
	h.cairn("replication", "drain")
	other := s.device()
	other.cairn("replication", "drain")
	if got := other.cairn("memory", "get-context"); got != "base\n" {
		t.Fatalf("the laptop has %q", got)
	}
	h.writes("from the desk") // earlier by the clock, but later at the hub
	other.writes("from the laptop, 1")
	other.writes("from the laptop, 2") // replacing its own context is no conflict
	other.cairn("replication", "drain")
	h.cairn("replication", "drain")
	other.cairn("replication", "drain")
	for name, d := range map[string]*home{"desk": h, "laptop": other} {
		e := d.run(d.command("memory", "get-context"), nil)
		if e.stdout != "from the laptop, 2\n" || !strings.Contains(e.stderr, "--history") {
			t.Errorf("%s: the context is %q, and it says %q", name, e.stdout, e.stderr)
		}
		history := d.cairn("memory", "get-context", "--history")
		if !strings.Contains(history, "current") || !strings.Contains(history, "lost a conflict with another device, not merged  session") ||
			!strings.Contains(history, "from the desk") || !strings.Contains(history, "from the laptop, 1") || strings.Count(history, "lost") != 1 {
			t.Errorf("%s: the history is\n%s", name, history)
		}
		d.reports("lost a conflict with another device: `cairn memory get-context", "warning ", "consistent")
	}
	other.writes("both")
	other.cairn("replication", "drain")
	h.cairn("replication", "drain")
	for _, d := range []*home{h, other} {
		if e := d.run(d.command("memory", "get-context"), nil); e.stdout != "both\n" || e.stderr != "" {
			t.Errorf("merged: %q %q", e.stdout, e.stderr)
		}
		if history := d.cairn("memory", "get-context", "--history"); !strings.Contains(history, "from the desk") {
			t.Errorf("the version that lost is gone:\n%s", history)
		}
		d.reports("running, 0 pending, 0 refused\n", "ok ", "consistent")
		d.soundly()
	}
}

// TestANewMemoryShowsUpOnADeviceThatIsConnected checks that a new memory and its entry reach a
// connected device. The hub responds to the waiting pull, so the device need not wait for its next
// catalogue check.
func TestANewMemoryShowsUpOnADeviceThatIsConnected(t *testing.T) {
	t.Parallel()
	h := newClone(t)
	s := h.site("new")
	h.join(s, s.token)
	other := s.device()
	other.cairn("memory", "add-entry", "known", "--project", "shop")
	w := other.listenUntil()
	other.cairn("memory", "await", "--timeout-ms", "60000")
	h.cairn("replication", "drain")
	sender := h.listenUntil()
	h.soon("two waiting pulls", func() bool {
		_, body := s.hub.call("GET", "/metrics", s.token, "")
		return strings.Contains(body, "cairn_hub_waiting_pulls 2\n")
	})
	var vaults struct{ Vaults []struct{ VaultID string } }
	if err := json.Unmarshal([]byte(h.cairn("memory", "list-vaults", "--json")), &vaults); err != nil || len(vaults.Vaults) != 1 {
		t.Fatal(err, vaults)
	}
	before := s.news()
	m := sender.wants(http.StatusCreated, "", "POST", "/v1/vaults/"+vaults.Vaults[0].VaultID+"/memories", `{"title":"notes"}`).text("memoryId")
	sender.wants(http.StatusAccepted, "", "POST", "/v1/memories/"+m+"/entries", `{"rawEntry":"news"}`)
	h.soon("the entry in the new memory", func() bool {
		return strings.Contains(w.do(http.MethodGet, "/v1/memories/"+m+"/entries", "").body, "news")
	})
	if s.news() == before {
		t.Error("no pull was answered because of the new memory")
	}
	sender.stop()
	w.stop()
}
