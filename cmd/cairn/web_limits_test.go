package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const newRecord = `{"type":"question","title":"Where?","summary":"","body":""}`

func TestCallsBeyondTheRateAreRefused(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	h.setting("[http]\nrate_limit_per_minute = 4\n")
	w := h.listen()
	refused := 0
	for range 6 {
		r := w.do(http.MethodGet, "/v1/tools", "")
		if r.status == http.StatusOK {
			continue
		}
		refused++
		wait, err := strconv.Atoi(r.header.Get("Retry-After"))
		if r.status != http.StatusTooManyRequests || r.code() != "rate_limited" || err != nil || wait < 1 || wait > 60 {
			t.Errorf("%d %v %s", r.status, r.header, r.body)
		}
	}
	if refused != 2 {
		t.Errorf("%d of 6 calls refused", refused)
	}
	w.wants(http.StatusTooManyRequests, "rate_limited", http.MethodPost, "/mcp", initializing)
	w.wants(http.StatusOK, "", http.MethodGet, "/health", "", "Authorization", "")
	w.wants(http.StatusUnauthorized, "", http.MethodGet, "/v1/tools", "", "Authorization", "")
}

// setting writes the settings.
func (h *home) setting(text string) {
	h.t.Helper()
	if err := os.MkdirAll(h.dataDir(), 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.dataDir(), "config.toml"), []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

func TestAThousandCallersAreAllServed(t *testing.T) {
	t.Parallel()
	const callers = 1000
	h := newHome(t)
	w := h.listen()
	w.post("/v1/projects/*/records/create_project", fields{"id": "p", "name": "p"})
	var ids sync.Map
	var all sync.WaitGroup
	began := time.Now()
	for range callers {
		all.Go(func() {
			r, err := w.send(http.MethodPost, "/v1/projects/p/records/create_record", newRecord)
			var made struct{ Record kept }
			if err == nil {
				err = json.Unmarshal([]byte(r.body), &made)
			}
			if _, twice := ids.LoadOrStore(made.Record.ID, true); err != nil || r.status != http.StatusOK || twice {
				t.Errorf("%d %s %v", r.status, r.body, err)
			}
		})
	}
	all.Wait()
	t.Logf("%d writes in %v", callers, time.Since(began).Round(time.Millisecond))
	h.wantRows(`SELECT count(*) FROM records`, strconv.Itoa(callers))
	h.check()
}

// TestCallersBeyondTheLimitAreRefusedAtOnceAndNoneHangs locks the store while more clients
// call than the server admits.
func TestCallersBeyondTheLimitAreRefusedAtOnceAndNoneHangs(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	const admitted = 1024
	callers := 1300
	if soaking() {
		callers = 4000
	}
	h := newHome(t)
	w := h.listen()
	w.post("/v1/projects/*/records/create_project", fields{"id": "p", "name": "p"})
	release := h.holdWrites()
	replies := make(chan reply, callers)
	for range callers {
		go func() {
			r, err := w.send(http.MethodPost, "/v1/projects/p/records/create_record", newRecord)
			if err != nil {
				r.body = err.Error()
			}
			replies <- r
		}()
	}
	began := time.Now()
	for i := range callers - admitted { // while all others wait for the lock
		r := <-replies
		if r.status != http.StatusServiceUnavailable || r.code() != "resource_busy" || r.header.Get("Retry-After") == "" {
			t.Fatalf("refusal %d: %d %s", i, r.status, r.body)
		}
	}
	t.Logf("%d refused in %v", callers-admitted, time.Since(began).Round(time.Millisecond))
	w.wants(http.StatusOK, "", http.MethodGet, "/health", "")
	if n := w.running(); n != admitted {
		t.Errorf("%d calls are running", n)
	}
	released := time.Now()
	release()
	for range admitted {
		if r := <-replies; r.status != http.StatusOK {
			t.Fatalf("an admitted call: %d %s", r.status, r.body)
		}
	}
	w.wants(http.StatusOK, "", http.MethodPost, "/v1/projects/p/records/create_record", newRecord)
	t.Logf("recovered in %v", time.Since(released).Round(time.Millisecond))
	h.wantRows(`SELECT count(*) FROM records`, strconv.Itoa(admitted+1))
}

// TestAStopLetsRunningCallsEnd interrupts a server while a call waits for the store and
// streams are open.
func TestAStopLetsRunningCallsEnd(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	w := h.listenUntil()
	w.post("/v1/projects/*/records/create_project", fields{"id": "p", "name": "p"})
	begun := w.wants(http.StatusOK, "", http.MethodPost, "/mcp", initializing, "Accept", "application/json, text/event-stream")
	stream := make(chan error, 1)
	streaming := w.openStream(begun.header.Get("Mcp-Session-Id"))
	go func() { _, err := io.ReadAll(streaming); stream <- err }()

	release := h.holdWrites()
	replies := make(chan reply, 2)
	for range 2 {
		go func() {
			r, err := w.send(http.MethodPost, "/v1/projects/p/records/create_record", newRecord)
			if err != nil {
				r.body = err.Error()
			}
			replies <- r
		}()
	}
	h.soon("two calls", func() bool { return w.running() == 2 })
	if err := w.server.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	h.soon("the end of listening", func() bool {
		c, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
		if err == nil {
			err = c.Close()
			return err != nil
		}
		return true
	})
	if err := <-stream; err != nil {
		t.Errorf("the stream did not end well: %v", err)
	}
	release()
	for range 2 {
		if r := <-replies; r.status != http.StatusOK {
			t.Errorf("a running call: %d %s", r.status, r.body)
		}
	}
	if err := w.server.Wait(); err != nil || strings.Count(w.stderr.String(), "\n") != 1 {
		t.Errorf("%v, %s", err, w.stderr)
	}
	h.wantRows(`SELECT count(*) FROM records`, "2")
	h.check()
}

// openStream opens a session's stream for notifications.
func (w *web) openStream(session string) io.Reader {
	w.h.t.Helper()
	r, err := http.NewRequestWithContext(w.h.t.Context(), http.MethodGet, w.url+"/mcp", nil)
	if err != nil {
		w.h.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.token)
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Mcp-Session-Id", session)
	r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	response, err := w.http.Do(r)
	if err != nil || response.StatusCode != http.StatusOK {
		w.h.t.Fatalf("the stream: %v, %v", response, err)
	}
	w.h.t.Cleanup(func() { _ = response.Body.Close() })
	return response.Body
}

func TestAStopCutsCallsThatDoNotEnd(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	h.setting("[http]\nstop_s = 1\n")
	w := h.listenUntil()
	w.post("/v1/projects/*/records/create_project", fields{"id": "p", "name": "p"})
	release := h.holdWrites()
	done := make(chan reply, 1)
	go func() {
		r, err := w.send(http.MethodPost, "/v1/projects/p/records/create_record", newRecord)
		if err != nil {
			r.body = err.Error()
		}
		done <- r
	}()
	h.soon("a call", func() bool { return w.running() == 1 })
	w.stop()
	if r := <-done; r.status == http.StatusOK {
		t.Errorf("the call succeeded: %s", r.body)
	}
	if !strings.Contains(w.stderr.String(), "running calls are cancelled") {
		t.Errorf("serve --http said %s", w.stderr)
	}
	release()
	h.wantRows(`SELECT count(*) FROM records`, "0")
}

func TestASecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	h.setting("[http]\nstop_s = 3600\n")
	w := h.listenUntil()
	w.post("/v1/projects/*/records/create_project", fields{"id": "p", "name": "p"})
	release := h.holdWrites()
	done := make(chan error, 1)
	go func() {
		_, err := w.send(http.MethodPost, "/v1/projects/p/records/create_record", newRecord)
		done <- err
	}()
	h.soon("a call", func() bool { return w.running() == 1 })
	ended := make(chan error, 1)
	go func() { ended <- w.server.Wait() }()
	h.soon("the end", func() bool { // a signal that arrives while the first one is handled is merged with it
		_ = w.server.Process.Signal(os.Interrupt)
		select {
		case err := <-ended:
			return err != nil
		default:
			return false
		}
	})
	if err := <-done; err == nil {
		t.Error("the call got an answer")
	}
	release()
}

// TestStreamsAndLongCallsOutlastTheLimits uses limits of one second and responses that take
// longer.
func TestStreamsAndLongCallsOutlastTheLimits(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	h.setting("[http]\nread_s = 1\nwrite_s = 1\nheader_s = 1\nidle_s = 1\n")
	w := h.listen()
	w.post("/v1/projects/*/records/create_project", fields{"id": "p", "name": "p"})
	begun := w.wants(http.StatusOK, "", http.MethodPost, "/mcp", initializing, "Accept", "application/json, text/event-stream")
	session := []string{"Mcp-Session-Id", begun.header.Get("Mcp-Session-Id"), "Accept", "application/json, text/event-stream"}
	w.do(http.MethodPost, "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, session...)
	w.do(http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"cairn://context"}}`, session...)
	stream := bufio.NewReader(w.openStream(begun.header.Get("Mcp-Session-Id")))

	release := h.holdWrites()
	done := make(chan reply, 1)
	go func() {
		r, err := w.send(http.MethodPost, "/v1/projects/p/records/create_record", newRecord)
		if err != nil {
			r.body = err.Error()
		}
		done <- r
	}()
	slow, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	if _, err := io.WriteString(slow, "GET /health HT"); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(slow) // until its time limit of one second, and that of the others, is over
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !strings.Contains(err.Error(), "reset") {
		t.Errorf("a header that never ends: %v, %s", err, answer)
	}
	w.tooSlowABody()
	release()
	if r := <-done; r.status != http.StatusOK {
		t.Errorf("a long call: %d %s", r.status, r.body)
	}
	h.recorded(h.shell("t1", "make"))
	for {
		line, err := stream.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream: %v", err)
		}
		if strings.Contains(line, "notifications/resources/updated") {
			return
		}
	}
}

// tooSlowABody sends half a body and expects a timeout response.
func (w *web) tooSlowABody() {
	w.h.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	if err != nil {
		w.h.t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "POST /v1/projects/p/records/list_records HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: 9\r\n\r\n{", w.token)
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		w.h.t.Fatal(err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusRequestTimeout {
		w.h.t.Errorf("half a body: %d", r.StatusCode)
	}
}

func TestTwoServersOnOneStoreShareItAndTheToken(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	w, x := h.listen(), h.listen()
	if w.token != x.token || w.url == x.url {
		t.Fatal("two servers with two tokens, or on one port")
	}
	w.post("/v1/projects/*/records/create_project", fields{"id": "p", "name": "p"})
	var all sync.WaitGroup
	for _, server := range []*web{w, x} {
		all.Go(func() {
			for range 20 {
				if r, err := server.send(http.MethodPost, "/v1/projects/p/records/create_record", newRecord); err != nil || r.status != http.StatusOK {
					t.Errorf("%d %s %v", r.status, r.body, err)
				}
			}
		})
	}
	all.Wait()
	for _, server := range []*web{w, x} {
		if r := server.post("/v1/projects/p/records/get_project", nil); !strings.Contains(r.body, `"tick":40`) {
			t.Errorf("%s", r.body)
		}
	}
	h.check()
}

func TestAnAddressThatCannotBeServedIsExplained(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	w := h.listen()
	taken := strings.TrimPrefix(w.url, "http://")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--http", taken}, "cairn: serve: " + taken + " is in use ("},
		{[]string{"--http", "8765"}, `cairn: serve: "8765" is not an address to listen on (give HOST:PORT`},
		{[]string{"--http", ""}, "cairn: serve: --http is blank"},
		{[]string{"--http", "127.0.0.1:99999"}, "cairn: serve: cannot listen on 127.0.0.1:99999: "},
		{[]string{"--http", "0.0.0.0:0"}, "cairn: serve: 0.0.0.0 can be reached from other machines (add --allow-remote"},
		{[]string{"--http", "[::]:0"}, "cairn: serve: :: can be reached from other machines"},
		{[]string{"--http", "example.com:0"}, "cairn: serve: example.com can be reached from other machines"},
		{[]string{"--http", ":0", "--allow-host", "a/b"}, `cairn: serve: "a/b" is not a host`},
		{[]string{"--http", ":0", "--allow-origin", "*"}, `cairn: serve: "*" is not an origin`},
		{[]string{"--http", ":0", "--allow-origin", "https://*.example"}, `cairn: serve: "https://*.example" is not an origin`},
		{[]string{"--allow-host", "a"}, "cairn: serve: --allow-host requires --http"},
		{[]string{"--allow-remote"}, "cairn: serve: --allow-remote requires --http"},
	} {
		e := h.run(h.command(append([]string{"serve"}, c.args...)...), nil)
		if e.code != 2 || !strings.HasPrefix(e.stderr, c.want) || strings.Count(e.stderr, "\n") != 1 {
			t.Errorf("%v: exit %d, %s", c.args, e.code, e.stderr)
		}
	}
	for setting, want := range map[string]string{
		"rate_limit_per_minute = -1": "http.rate_limit_per_minute must be from 0",
		"stop_s = 0":                 "http.stop_s must be from 1 to 3600",
		"write_s = 4000":             "http.write_s must be from 1",
	} {
		other := newHome(t)
		other.setting("[http]\n" + setting + "\n")
		if e := other.run(other.command("serve", "--http", ":0"), nil); e.code != 2 || !strings.Contains(e.stderr, "config.toml: line 2: "+want) {
			t.Errorf("%s: exit %d, %s", setting, e.code, e.stderr)
		}
	}
}
