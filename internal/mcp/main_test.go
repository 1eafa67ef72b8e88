package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"sync"
	"testing"

	"cairn/internal/mcp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// revisions returns the two most different revisions: with and without sessions.
func revisions() []string { return []string{"2025-11-25", "2026-07-28"} }

// none is the type of empty arguments.
type none struct{}

// tool returns a Tool with the arguments In that calls call.
func tool[In any](name string, call func(context.Context, mcp.Call, In) (any, error)) mcp.Tool {
	return mcp.NewTool(mcp.Tool{Name: name, Description: "For a test."}, call)
}

func newServer(t *testing.T, c mcp.Config) *mcp.Server {
	t.Helper()
	c.Version = "1.2.3"
	s, err := mcp.NewServer(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// connect starts s on a pipe and returns an official client of it. At the end of the test the
// client disconnects and ServeStdio must return nil.
func connect(t *testing.T, s *mcp.Server, revision string, o *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	served := make(chan error, 1)
	ctx := context.WithoutCancel(t.Context()) // the test's own context ends before its cleanups run
	go func() { served <- s.ServeStdio(ctx, fromClient, toClient) }()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o)
	session, err := client.Connect(t.Context(),
		&sdk.IOTransport{Reader: fromServer, Writer: toServer}, &sdk.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Errorf("closing the client: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("ServeStdio: %v", err)
		}
	})
	return session
}

// call calls a tool and returns its result.
func call(t *testing.T, session *sdk.ClientSession, name string, args any) (*sdk.CallToolResult, error) {
	t.Helper()
	return session.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
}

// texts returns the text blocks of a result.
func texts(t *testing.T, r *sdk.CallToolResult) []string {
	t.Helper()
	var all []string
	for _, c := range r.Content {
		text, ok := c.(*sdk.TextContent)
		if !ok {
			t.Fatalf("content is %T, want text", c)
		}
		all = append(all, text.Text)
	}
	return all
}

// raw is a client that writes and reads lines.
type raw struct {
	t      *testing.T
	in     *io.PipeWriter
	out    *bufio.Reader
	served chan error
}

// connectRaw starts s on a pipe. The server ends when the caller calls end, or with ctx.
func connectRaw(ctx context.Context, t *testing.T, s *mcp.Server) *raw {
	t.Helper()
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	r := &raw{t: t, in: toServer, out: bufio.NewReader(fromServer), served: make(chan error, 1)}
	go func() { r.served <- s.ServeStdio(ctx, fromClient, toClient) }()
	return r
}

// send writes lines; it may be called from any goroutine.
func (r *raw) send(lines ...string) {
	r.t.Helper()
	for _, line := range lines {
		if _, err := io.WriteString(r.in, line+"\n"); err != nil {
			r.t.Errorf("sending: %v", err)
			return
		}
	}
}

func (r *raw) read() string {
	r.t.Helper()
	line, err := r.out.ReadString('\n')
	if err != nil {
		r.t.Fatalf("reading an answer: %v", err)
	}
	return line[:len(line)-1]
}

// end closes the input and returns the remaining responses and the error of ServeStdio.
func (r *raw) end() ([]byte, error) {
	r.t.Helper()
	if err := r.in.Close(); err != nil {
		r.t.Fatal(err)
	}
	rest, err := io.ReadAll(r.out)
	if err != nil {
		r.t.Fatal(err)
	}
	return rest, <-r.served
}

// serveBytes serves a complete input that ends immediately.
func serveBytes(ctx context.Context, s *mcp.Server, input []byte) ([]byte, error) {
	var out bytes.Buffer
	err := s.ServeStdio(ctx, io.NopCloser(bytes.NewReader(input)), nopCloser{&out})
	return out.Bytes(), err
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

const (
	initialize  = `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	ping        = `{"jsonrpc":"2.0","id":"p","method":"ping"}`
	pong        = `{"jsonrpc":"2.0","id":"p","result":{}}`
)

func callLine(id, name, args string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + name + `","arguments":` + args + `}}`
}

// errorOf returns the JSON-RPC error in a line.
func errorOf(t *testing.T, line string) (id any, code int, message string) {
	t.Helper()
	var m struct {
		ID    any
		Error struct {
			Code    int
			Message string
		}
	}
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return m.ID, m.Error.Code, m.Error.Message
}

// journal is a log that tests can read.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func (j *journal) logger() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }
