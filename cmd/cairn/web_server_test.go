package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"cairn"
	"cairn/internal/store"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// web is a process of cairn serve --http.
type web struct {
	h      *home
	server *exec.Cmd
	url    string // http://127.0.0.1:PORT, unless the test sets another address
	token  string
	stderr *gathered
	http   *http.Client
}

// listen starts a server on a free port. It interrupts the server when the test ends; the
// server must then exit 0 without further output.
func (h *home) listen(args ...string) *web {
	h.t.Helper()
	w := h.listenUntil(args...)
	h.t.Cleanup(func() {
		w.stop()
		if said := w.stderr.String(); strings.Count(said, "\n") != 1 {
			h.t.Errorf("serve --http said %s", said)
		}
	})
	return w
}

// listenUntil is like listen, but the test itself stops the server.
func (h *home) listenUntil(args ...string) *web {
	h.t.Helper()
	return h.listenAt(":0", args...)
}

// listenAt is like listenUntil, but at a given address.
func (h *home) listenAt(addr string, args ...string) *web {
	h.t.Helper()
	w := &web{h: h, server: h.command(append([]string{"serve", "--http", addr}, args...)...), stderr: &gathered{}}
	w.server.Stderr = w.stderr
	if err := w.server.Start(); err != nil {
		h.t.Fatal(err)
	}
	line := regexp.MustCompile(`^cairn: serving (http://[0-9.]+:\d+) \(token in (.*)\)\n`)
	h.t.Cleanup(func() { _ = w.server.Process.Kill() }) // has already ended, unless the test failed
	h.soon("the address", func() bool { return strings.Contains(w.stderr.String(), "\n") })
	m := line.FindStringSubmatch(w.stderr.String())
	if m == nil || m[2] != filepath.Join(h.dataDir(), "http-token") {
		h.t.Fatalf("serve --http said %s", w.stderr)
	}
	token, err := os.ReadFile(m[2])
	if err != nil {
		h.t.Fatal(err)
	}
	w.url, w.token = m[1], strings.TrimSpace(string(token))
	connections := &http.Transport{MaxIdleConnsPerHost: 2000}
	h.t.Cleanup(connections.CloseIdleConnections)
	w.http = &http.Client{Transport: connections, Timeout: stopLimit}
	return w
}

// soon waits until a condition holds.
func (h *home) soon(what string, so func() bool) {
	h.t.Helper()
	for limit := time.Now().Add(stopLimit); ; {
		began := time.Now()
		if so() {
			return
		}
		if began.After(limit) {
			h.t.Fatalf("%s: not in time", what)
		}
		// After an expensive check, for example of a process, wait longer, so that the
		// checks leave CPU time to the server.
		<-time.After(max(5*time.Millisecond, min(4*time.Since(began), time.Second)))
	}
}

// stop interrupts the server, which must exit 0.
func (w *web) stop() {
	w.h.t.Helper()
	if w.server.ProcessState != nil {
		return
	}
	if err := w.server.Process.Signal(os.Interrupt); err != nil {
		w.h.t.Error(err)
	}
	if err := w.server.Wait(); err != nil {
		w.h.t.Errorf("serve --http: %v, %s", err, w.stderr)
	}
}

// reply is a response of the server.
type reply struct {
	status int
	header http.Header
	body   string
}

// code returns the error code in the envelope of a reply.
func (r reply) code() string {
	var e envelope
	if json.Unmarshal([]byte(r.body), &e) != nil || e.Error.Message == "" || e.Error.Details == nil {
		return "no envelope: " + r.body
	}
	return e.Error.Code
}

// send makes a request with the token and a JSON body, "" for no body. Headers are names
// and values in turn. An empty value removes the header.
func (w *web) send(method, path, body string, headers ...string) (reply, error) {
	r, err := http.NewRequestWithContext(w.h.t.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	r.Header.Set("Authorization", "Bearer "+w.token)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		switch name, value := headers[i], headers[i+1]; {
		case name == "Host":
			r.Host = value
		case value == "":
			r.Header.Del(name)
		default:
			r.Header.Add(name, value)
		}
	}
	response, err := w.http.Do(r)
	if err != nil {
		return reply{}, err
	}
	data, err := io.ReadAll(response.Body)
	return reply{response.StatusCode, response.Header, string(data)}, errors.Join(err, response.Body.Close())
}

func (w *web) do(method, path, body string, headers ...string) reply {
	w.h.t.Helper()
	r, err := w.send(method, path, body, headers...)
	if err != nil {
		w.h.t.Fatalf("%s %s: %v, %s", method, path, err, w.stderr)
	}
	return r
}

// wants expects the status of a request and, if it fails, its error code.
func (w *web) wants(status int, code, method, path, body string, headers ...string) reply {
	w.h.t.Helper()
	r := w.do(method, path, body, headers...)
	if r.status != status || code != "" && r.code() != code {
		w.h.t.Errorf("%s %s %.200s %q: %d %s; want %d %s", method, path, body, headers, r.status, r.body, status, code)
	}
	return r
}

// post calls a tool of the mirror. The call must succeed.
func (w *web) post(path string, args fields) reply {
	w.h.t.Helper()
	body, err := json.Marshal(args)
	if err != nil {
		w.h.t.Fatal(err)
	}
	return w.wants(http.StatusOK, "", http.MethodPost, path, string(body))
}

// bearer adds a token to all requests of a client.
type bearer struct {
	token string
	next  http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(r)
}

// dial connects an official MCP client to a path of the server.
func (w *web) dial(path, revision, token string, o *sdk.ClientOptions) (*client, error) {
	transport := &sdk.StreamableClientTransport{
		Endpoint: w.url + path, HTTPClient: &http.Client{Transport: bearer{token, w.http.Transport}}, MaxRetries: -1,
	}
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o).Connect(w.h.t.Context(), transport,
		&sdk.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		return nil, err
	}
	return &client{ClientSession: session, t: w.h.t, left: true}, nil
}

// connect is like dial, for a client that disconnects before the server ends.
func (w *web) connect(path, revision string, o *sdk.ClientOptions) *client {
	w.h.t.Helper()
	c, err := w.dial(path, revision, w.token, o)
	if err != nil {
		w.h.t.Fatalf("connecting to %s: %v, %s", path, err, w.stderr)
	}
	w.h.t.Cleanup(func() { _ = c.Close() }) // a test may have stopped the server
	return c
}

// holdWrites prevents all other processes from writing until release is called.
func (h *home) holdWrites() (release func()) {
	h.t.Helper()
	held, released := make(chan struct{}), make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		h.opened(func(ctx context.Context, c *cairn.Cairn) error {
			s, err := c.Store(ctx)
			if err != nil {
				close(held)
				return err
			}
			return s.Write(ctx, store.Full, func(context.Context, *store.Tx) error {
				close(held)
				<-released
				return nil
			})
		})
	})
	<-held
	release = sync.OnceFunc(func() { close(released); done.Wait() })
	h.t.Cleanup(release)
	return release
}

// running returns the number of calls that the server is working on.
func (w *web) running() int {
	w.h.t.Helper()
	return w.number("cairn_http_running_calls")
}

// number returns a value of /metrics, or -1 if it is missing.
func (w *web) number(name string) int {
	w.h.t.Helper()
	for line := range strings.Lines(w.do(http.MethodGet, "/metrics", "").body) {
		if text, ok := strings.CutPrefix(line, name+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil {
				w.h.t.Fatal(err)
			}
			return int(v)
		}
	}
	return -1
}
