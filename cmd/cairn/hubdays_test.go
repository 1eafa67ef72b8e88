package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// Tests of a hub's failures with the built program: real hubs, real devices, and a proxy between
// them that records and delays requests.

// site is a hub with a separate database, behind a proxy that devices join.
type site struct {
	h     *home
	home  *home // the hub's home
	hub   *hubProcess
	url   string // the proxy's URL
	user  string
	token string

	mu     sync.Mutex
	target *url.URL
	pushed []string                                 // bodies of pushes, in order of arrival
	answer func(w http.ResponseWriter, body string) // called after the hub has responded to a push, before the device gets the response
	newer  int                                      // number of pulls that returned because the catalogue is newer
}

// site starts a hub. user is a user of an earlier site, or "new".
func (h *home) site(user string) *site {
	h.t.Helper()
	return h.siteOn(user, func(*home) {})
}

// siteOn is like site, but prepares the hub's home first.
func (h *home) siteOn(user string, prepare func(hub *home)) *site {
	h.t.Helper()
	s := &site{h: h, home: newHome(h.t)}
	prepare(s.home)
	s.hub = s.home.hub()
	s.user, s.token = s.newToken(user, "admin")
	s.aim()
	proxy := httptest.NewServer(s)
	h.t.Cleanup(proxy.Close)
	h.t.Cleanup(proxy.CloseClientConnections)
	s.url = proxy.URL
	return s
}

// newToken creates a token at the hub.
func (s *site) newToken(user, level string) (owner, secret string) {
	s.h.t.Helper()
	var made struct {
		Token  string
		UserID string `json:"user_id"`
	}
	out := s.home.cairn("hub", "token", "create", "--user", user, "--level", level, "--json")
	if err := json.Unmarshal([]byte(out), &made); err != nil || made.UserID == "" {
		s.h.t.Fatalf("%v: %s", err, out)
	}
	return made.UserID, made.Token
}

// aim points the proxy to the current process of the hub.
func (s *site) aim() {
	target, err := url.Parse(s.hub.url)
	if err != nil {
		s.h.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.target = target
}

// stop stops the hub. Afterwards its database is a file that can be copied.
func (s *site) stop() { s.h.t.Helper(); s.hub.stop() }

// again starts the hub on its existing database.
func (s *site) again() {
	s.h.t.Helper()
	s.hub = s.home.hub()
	s.aim()
}

func (s *site) set(change func(*site)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	s.mu.Lock()
	target, answer := s.target, s.answer
	push := err == nil && strings.HasSuffix(r.URL.Path, "/push")
	if push {
		s.pushed = append(s.pushed, string(body))
	}
	s.mu.Unlock()
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	proxy := httputil.NewSingleHostReverseProxy(target)
	if strings.Contains(r.URL.RawQuery, "catalogue=") {
		proxy.ModifyResponse = func(r *http.Response) error {
			answer, err := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(answer))
			s.set(func(s *site) { s.newer += strings.Count(string(answer), `"catalogue":`) })
			return err
		}
	}
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	if push && answer != nil {
		proxy.ModifyResponse = func(*http.Response) error { answer(w, string(body)); return nil }
	}
	proxy.ServeHTTP(w, r)
}

// got reports whether a push that contains a text has arrived.
func (s *site) got(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, body := range s.pushed {
		if strings.Contains(body, text) {
			return true
		}
	}
	return false
}

// news returns the number of pulls that returned because the catalogue is newer.
func (s *site) news() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newer
}

// join joins a device's user to the hub with a token.
func (h *home) join(s *site, token string) {
	h.t.Helper()
	if e := h.run(h.command("hub", "join", s.url), []byte(token)); e.code != 0 {
		h.t.Fatalf("hub join: %s", e.stderr)
	}
}

// entries returns the entries of the hub's memory of the project shop, oldest first.
func (s *site) entries() string {
	s.h.t.Helper()
	var heads struct {
		Heads []struct {
			Stream string
			Memory *struct{ Title string }
		}
	}
	_, text := s.hub.call("GET", "/v1/hub/heads", s.token, "")
	if err := json.Unmarshal([]byte(text), &heads); err != nil {
		s.h.t.Fatal(err, text)
	}
	var out []string
	for _, head := range heads.Heads {
		if head.Memory == nil || head.Memory.Title != "main" {
			continue
		}
		var page struct{ Entries []struct{ RawEntry string } }
		_, text := s.hub.call("GET", "/v1/hub/entries?limit=100&memory="+head.Stream, s.token, "")
		if err := json.Unmarshal([]byte(text), &page); err != nil {
			s.h.t.Fatal(err, text)
		}
		for _, e := range page.Entries {
			out = append([]string{e.RawEntry}, out...)
		}
	}
	return strings.Join(out, " ")
}

// own returns the entries of the device's default memory, oldest first, with inflight entries last.
func (h *home) own() string {
	h.t.Helper()
	var out []string
	var page struct{ Entries []struct{ RawEntry string } }
	text := h.cairn("memory", "list-entries", "--json", "--limit", "50")
	if err := json.Unmarshal([]byte(text), &page); err != nil {
		h.t.Fatal(err, text)
	}
	for _, e := range page.Entries {
		out = append([]string{e.RawEntry}, out...)
	}
	page.Entries = nil
	text = h.cairn("memory", "list-inflight-entries", "--json", "--limit", "50")
	if err := json.Unmarshal([]byte(text), &page); err != nil {
		h.t.Fatal(err, text)
	}
	for _, e := range page.Entries {
		out = append(out, e.RawEntry)
	}
	return strings.Join(out, " ")
}

// A user leaves a hub and joins another one while a server runs. The old hub is about to respond to
// a push: immediately, after 0.5 s and after 2.5 s. No later write reaches the old hub, and the new
// hub gets all entries.
func TestLeavingAHubForAnotherLosesNothingAndTellsTheOldOneNothing(t *testing.T) {
	t.Parallel()
	for _, late := range []time.Duration{0, 500 * time.Millisecond, 2500 * time.Millisecond} {
		t.Run(late.String(), func(t *testing.T) {
			t.Parallel()
			h := newClone(t)
			first, second := h.site("new"), h.site("new")
			h.join(first, first.token)
			w := h.listenUntil()
			h.cairn("memory", "add-entry", "one")
			h.soon("the first entry at the hub", func() bool { return strings.Contains(first.entries(), "one") })

			joined, answered := make(chan struct{}), make(chan struct{})
			var once sync.Once
			first.set(func(s *site) {
				s.answer = func(_ http.ResponseWriter, body string) {
					if strings.Contains(body, "two") {
						<-joined
						<-time.After(late)
						once.Do(func() { close(answered) })
					}
				}
			})
			h.cairn("memory", "add-entry", "two")
			h.soon("the second entry on its way", func() bool { return first.got("two") })
			h.cairn("hub", "leave", "--force")
			h.join(second, second.token)
			close(joined)
			h.cairn("memory", "add-entry", "three")
			<-answered
			h.cairn("memory", "add-entry", "four")
			h.cairn("memory", "await", "--timeout-ms", "30000")
			if got, want := second.entries(), "one two three four"; got != want {
				t.Errorf("the new hub has %q, want %q", got, want)
			}
			if first.got("three") || first.got("four") {
				t.Errorf("the old hub was sent what was written after leaving it")
			}
			if got, want := h.own(), "one two three four"; got != want {
				t.Errorf("the device has %q, want %q", got, want)
			}
			h.wantsReplication("running", 0)
			w.stop()
			h.soundly()
		})
	}
}

// wantsReplication expects a state and a number of pending rows in the status.
func (h *home) wantsReplication(state string, pending int) (text string) {
	h.t.Helper()
	text = h.cairn("replication", "status", "--json")
	var s struct {
		State   string
		Pending int
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil || s.State != state || s.Pending != pending {
		h.t.Errorf("the status is %v %s, want %s and %d pending", err, text, state, pending)
	}
	return text
}

// soundly expects that a deep check finds the store intact.
func (h *home) soundly() {
	h.t.Helper()
	if e := h.run(h.command("doctor", "--deep"), nil); !strings.Contains(e.stdout, "ok       content") {
		h.t.Errorf("doctor --deep: %s", e.stdout)
	}
}
