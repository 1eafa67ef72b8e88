package main

import (
	"bufio"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// follow opens the stream that notifies pages of changes. It returns a function that reads
// the next line with a given prefix, or "" after the stream has ended.
func (v *visitor) follow() func(begin string) string {
	v.w.h.t.Helper()
	r, err := http.NewRequestWithContext(v.w.h.t.Context(), http.MethodGet, v.w.url+"/events", nil)
	if err != nil {
		v.w.h.t.Fatal(err)
	}
	r.Header.Set("Cookie", v.cookie)
	answer, err := v.w.http.Transport.RoundTrip(r)
	if err != nil {
		v.w.h.t.Fatal(err)
	}
	v.w.h.t.Cleanup(func() { _ = answer.Body.Close() }) // the server has ended by then
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" {
		v.w.h.t.Fatalf("/events: %d %v", answer.StatusCode, answer.Header)
	}
	lines := bufio.NewReader(answer.Body)
	return func(begin string) string {
		for {
			line, err := lines.ReadString('\n')
			if strings.HasPrefix(line, begin) && err == nil {
				return strings.TrimSpace(line)
			}
			if err != nil {
				if err != io.EOF && !strings.Contains(err.Error(), "EOF") {
					v.w.h.t.Errorf("the stream: %v", err)
				}
				return ""
			}
		}
	}
}

// An open page is notified that something has changed, but not what.
func TestPagesAreToldThatSomethingHasChanged(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	w := h.listenUntil()
	v := w.visitor()
	next := v.follow() // before the store exists
	if line := next("retry"); line != "retry: 2000" {
		t.Fatalf("the stream began with %q", line)
	}
	h.recorded(h.payload("UserPromptSubmit", fields{"prompt": "zebra, in a hurry", "prompt_id": "p1"}))
	if line := next("data"); !strings.HasPrefix(line, `data: {"changes":`) || strings.Contains(line, "zebra") {
		t.Fatalf("a change was told as %q", line)
	}

	// Other clients must not follow. A stream ends with the login session and with the
	// server.
	stranger := &visitor{w: w}
	if r := stranger.get("/events"); r.status != http.StatusSeeOther {
		t.Errorf("without a visit: %d", r.status)
	}
	if r := v.submit("/events", url.Values{}); r.status != http.StatusMethodNotAllowed {
		t.Errorf("by POST: %d", r.status)
	}
	other := w.visitor()
	ends := other.follow()
	ends("retry")
	other.submit("/logout", url.Values{"form_token": {tokenOf(other.get("/logout"))}})
	h.recorded(h.shell("t1", "ls"))
	if line := ends("data"); line != "" {
		t.Errorf("after the logout: %q", line)
	}
	if line := next("data"); line == "" {
		t.Error("the logout of one visit ended the stream of another")
	}
	stays := v.follow()
	stays("retry")
	w.stop()
	if line := stays("data"); line != "" {
		t.Errorf("after the server's end: %q", line)
	}
}

// tokenOf returns the token of the form on a page.
func tokenOf(page reply) string {
	_, rest, _ := strings.Cut(page.body, `name="form_token" value="`)
	token, _, _ := strings.Cut(rest, `"`)
	return token
}

func TestTheScriptIsThePagesOwn(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	w := h.listen()
	r := (&visitor{w: w}).get("/app.js")
	if r.status != http.StatusOK || r.header.Get("Content-Type") != "text/javascript; charset=utf-8" || r.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("/app.js: %d %v", r.status, r.header)
	}
	for _, word := range []string{"innerHTML", "eval(", "http://", "https://"} {
		if strings.Contains(r.body, word) {
			t.Errorf("the script holds %s", word)
		}
	}
	w.visitor().page(w.visitor().get("/keys"), http.StatusOK, "<kbd>g t</kbd>", "go to Timeline")
}
