package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"cairn/internal/mcp"
	"cairn/internal/mcp/toolargs"
)

// talkative returns a server with a fast tool and a tool that waits for release or the end.
func talkative(t *testing.T, release <-chan struct{}) *mcp.Server {
	t.Helper()
	return newServer(t, mcp.Config{Tools: []mcp.Tool{
		tool("quick", func(context.Context, mcp.Call, none) (any, error) { return mcp.Text("done"), nil }),
		tool("slow", func(ctx context.Context, _ mcp.Call, _ none) (any, error) {
			select {
			case <-release:
				return mcp.Text("released"), nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}),
	}})
}

func TestInputThatEndsAtOnceIsStillAnswered(t *testing.T) {
	t.Parallel()
	s := talkative(t, nil)
	input := strings.Join([]string{initialize, initialized, callLine("1", "quick", "{}"), callLine("2", "quick", "{}"), ping}, "\n")
	for range 20 { // the responses race with the end
		out, err := serveBytes(t.Context(), s, []byte(input)) // the last line lacks its line feed
		if err != nil {
			t.Fatal(err)
		}
		if lines := bytes.Count(out, []byte("\n")); lines != 4 || bytes.Count(out, []byte(`"text":"done"`)) != 2 {
			t.Fatalf("%d answers, want 4:\n%s", lines, out)
		}
	}
}

func TestEmptyInputIsACleanEnd(t *testing.T) {
	t.Parallel()
	for _, input := range []string{"", "\n", "\r\n \n\n", "\ufeff\n"} {
		out, err := serveBytes(t.Context(), talkative(t, nil), []byte(input))
		if err != nil || len(out) != 0 {
			t.Errorf("%q: %q, %v", input, out, err)
		}
	}
}

func TestEndOfInputWaitsOnlySoLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		r := connectRaw(t.Context(), t, talkative(t, nil))
		r.send(initialize)
		r.read()
		r.send(initialized, callLine("1", "slow", "{}"))
		rest, err := r.end()
		if err != nil || len(rest) != 0 {
			t.Errorf("%q, %v", rest, err)
		}
		if waited := time.Since(begun); waited != 5*time.Second {
			t.Errorf("waited %v for a call that does not end", waited)
		}
	})
}

func TestEndOfInputDoesNotWaitForASubscription(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		s := newServer(t, mcp.Config{Context: func(context.Context, toolargs.Scope) (string, error) { return "", nil }})
		r := connectRaw(t.Context(), t, s)
		r.send(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["cairn://context"]},` +
			`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
		if got := r.read(); !strings.Contains(got, "acknowledged") {
			t.Errorf("got %s", got)
		}
		if _, err := r.end(); err != nil {
			t.Error(err)
		}
		if waited := time.Since(begun); waited != 0 {
			t.Errorf("waited %v", waited)
		}
	})
}

func TestEndOfContextCancelsCallsAndIsReported(t *testing.T) {
	t.Parallel()
	why := errors.New("told to stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	r := connectRaw(ctx, t, talkative(t, nil))
	r.send(initialize)
	r.read()
	r.send(initialized, callLine("1", "slow", "{}"), ping)
	if got := r.read(); got != pong {
		t.Errorf("got %s", got)
	}
	cancel(why)
	if err := <-r.served; !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
	if _, err := r.in.Write([]byte("\n")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the input is still open: %v", err)
	}
}

func TestMalformedLinesAreAnsweredAndTheSessionGoesOn(t *testing.T) {
	t.Parallel()
	const parse, invalid = -32700, -32600
	for name, c := range map[string]struct {
		line string
		code int
	}{
		"no JSON":            {`{bad`, parse},
		"cut off":            {`{"jsonrpc":"2.0","id":1,"method":"ping"`, parse},
		"two messages":       {ping + ping, parse},
		"trailing comma":     {ping + ",", parse},
		"binary":             {"\x00\xff\x01", parse},
		"number":             {`5`, invalid},
		"string":             {`"ping"`, invalid},
		"empty object":       {`{}`, invalid},
		"no version":         {`{"id":1,"method":"ping"}`, invalid},
		"old version":        {`{"jsonrpc":"1.0","id":1,"method":"ping"}`, invalid},
		"id is an object":    {`{"jsonrpc":"2.0","id":{},"method":"ping"}`, invalid},
		"id is a boolean":    {`{"jsonrpc":"2.0","id":true,"method":"ping"}`, invalid},
		"method is a number": {`{"jsonrpc":"2.0","id":1,"method":5}`, invalid},
		"too deep":           {strings.Repeat(`{"a":`, 2000) + "1" + strings.Repeat("}", 2000), invalid},
		"empty batch":        {`[]`, invalid},
		"broken batch":       {`[{"jsonrpc":"2.0"`, parse},
		"too long":           {`{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 16<<20) + `"}`, invalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := connectRaw(t.Context(), t, talkative(t, nil))
			go r.send(c.line, ping)
			got := r.read()
			if id, code, message := errorOf(t, got); id != nil || code != c.code || message == "" ||
				!strings.HasPrefix(got, `{"jsonrpc":"2.0","id":null,`) {
				t.Errorf("got %.300s", got)
			}
			if got := r.read(); got != pong {
				t.Errorf("afterwards: %s", got)
			}
			if rest, err := r.end(); err != nil || len(rest) != 0 {
				t.Errorf("%q, %v", rest, err)
			}
		})
	}
}

func TestLinesMayEndInCRLFAndBeginWithAByteOrderMark(t *testing.T) {
	t.Parallel()
	out, err := serveBytes(t.Context(), talkative(t, nil), []byte("\ufeff"+ping+"\r\n\r\n"+initialize+"\r\n"))
	if err != nil || !strings.Contains(string(out), pong+"\n") || bytes.Count(out, []byte("\n")) != 2 {
		t.Errorf("%q, %v", out, err)
	}
}

func TestCallBeforeInitializeIsAnInvalidRequest(t *testing.T) {
	t.Parallel()
	out, err := serveBytes(t.Context(), talkative(t, nil), []byte(callLine("7", "quick", "{}")+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	if id, code, message := errorOf(t, string(out)); id != 7.0 || code != -32600 || message == "" {
		t.Errorf("got %s", out)
	}
}

func TestIDCanBeUsedAgainOnlyAfterItsAnswer(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	r := connectRaw(t.Context(), t, talkative(t, release))
	r.send(initialize)
	r.read()
	r.send(initialized, callLine("1", "slow", "{}"), callLine("1", "quick", "{}"))
	if id, code, _ := errorOf(t, r.read()); id != nil || code != -32600 {
		t.Errorf("the second call was answered with %v, code %d", id, code)
	}
	close(release)
	if got := r.read(); !strings.Contains(got, "released") {
		t.Errorf("got %s", got)
	}
	for range 10 {
		r.send(callLine("1", "quick", "{}"))
		if got := r.read(); !strings.Contains(got, "done") {
			t.Errorf("got %s", got)
		}
	}
	if _, err := r.end(); err != nil {
		t.Error(err)
	}
}

func TestBatchIsAnsweredTogether(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	r := connectRaw(t.Context(), t, talkative(t, release))
	r.send(strings.Replace(initialize, "2025-11-25", "2025-03-26", 1))
	r.read()
	r.send("["+initialized+","+callLine("1", "slow", "{}")+","+ping+",5,"+callLine("1", "quick", "{}")+"]",
		`{"jsonrpc":"2.0","id":"q","method":"ping"}`)
	if got := r.read(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":"q",`) { // not delayed by the batch
		t.Errorf("got %s", got)
	}
	close(release)
	var answers []struct {
		ID    any
		Error struct{ Code int }
	}
	if err := json.Unmarshal([]byte(r.read()), &answers); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range answers {
		got = append(got, fmt.Sprint(a.ID, " ", a.Error.Code))
	}
	slices.Sort(got)
	if want := []string{"1 0", "<nil> -32600", "<nil> -32600", "p 0"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	r.send("[7]")
	if got := r.read(); !strings.HasPrefix(got, "[{") || !strings.Contains(got, "-32600") {
		t.Errorf("got %s", got)
	}
	r.send("["+initialized+"]", ping) // the first needs no response
	if got := r.read(); got != pong {
		t.Errorf("got %s", got)
	}
	if _, err := r.end(); err != nil {
		t.Error(err)
	}
}

func TestClientThatDoesNotReadHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, mcp.Config{
			Tools:   []mcp.Tool{tool("quick", func(context.Context, mcp.Call, none) (any, error) { return mcp.Text("done"), nil })},
			Context: func(context.Context, toolargs.Scope) (string, error) { return "", nil },
		})
		ctx, cancel := context.WithCancel(t.Context())
		in, toServer := io.Pipe()
		out := &stuck{after: 2, forever: make(chan struct{})}
		served := make(chan error, 1)
		go func() { served <- s.ServeStdio(ctx, in, out) }()
		for _, line := range []string{
			initialize, initialized,
			`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"cairn://context"}}`,
		} {
			if _, err := io.WriteString(toServer, line+"\n"); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait() // both responses are written; from now on every write blocks
		begun := time.Now()
		for range 2 {
			if err := s.ContextChanged(ctx); err != nil {
				t.Error(err)
			}
		}
		if waited := time.Since(begun); waited < 10*time.Second || waited > 20*time.Second {
			t.Errorf("two notices took %v", waited)
		}
		if _, err := io.WriteString(toServer, callLine("2", "quick", "{}")+"\n"); err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := <-served; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		close(out.forever)
	})
}

// stuck accepts some writes and then blocks, even after it is closed, like a terminal that was
// stopped.
type stuck struct {
	after   int
	forever chan struct{}
}

func (s *stuck) Write(p []byte) (int, error) {
	if s.after--; s.after < 0 {
		<-s.forever
	}
	return len(p), nil
}
func (s *stuck) Close() error { return nil }

func TestClientThatIsGoneIsACleanEnd(t *testing.T) {
	t.Parallel()
	for _, gone := range []error{io.ErrClosedPipe, fmt.Errorf("write: %w", syscall.EPIPE)} {
		in, toServer := io.Pipe() // stays open, so only the output ends the session
		served := make(chan error, 1)
		go func() { served <- talkative(t, nil).ServeStdio(t.Context(), in, failing{gone}) }()
		if _, err := io.WriteString(toServer, ping+"\n"); err != nil {
			t.Fatal(err)
		}
		if err := <-served; err != nil {
			t.Errorf("%v: got %v", gone, err)
		}
	}
}

func TestBrokenOutputEndsTheSessionWithItsError(t *testing.T) {
	t.Parallel()
	full := errors.New("no space left")
	in := io.NopCloser(strings.NewReader(ping + "\n"))
	err := talkative(t, nil).ServeStdio(t.Context(), in, failing{full})
	if !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
func (f failing) Close() error              { return nil }

func FuzzAnyInputIsAnsweredInJSONLines(f *testing.F) {
	for _, seed := range []string{
		"", ping, initialize + "\n" + initialized + "\n" + callLine("1", "quick", "{}"), "[" + ping + ",1," + initialize + "]",
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}`, `{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`, "\xff\n{}\n[]\n[[]]\n",
		initialize + "\n" + `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"cursor":"x"}}`,
	} {
		f.Add([]byte(seed))
	}
	s, err := mcp.NewServer(mcp.Config{Tools: []mcp.Tool{
		tool("quick", func(context.Context, mcp.Call, none) (any, error) { return mcp.Text("done"), nil }),
	}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		out, err := serveBytes(t.Context(), s, input)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(out) {
			if !json.Valid(line) || line[len(line)-1] != '\n' {
				t.Errorf("not a line of JSON: %q", line)
			}
		}
	})
}
