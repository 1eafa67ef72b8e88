package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"cairn/internal/fault"
	"cairn/internal/mcp"
	"cairn/internal/mcp/toolargs"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestResultsAreJSONTextAndAStructuredObject(t *testing.T) {
	t.Parallel()
	type row struct {
		Preview string `json:"preview"`
	}
	for name, c := range map[string]struct {
		value            any
		text, structured string
	}{
		"object":     {row{"a < b && c > d"}, `{"preview":"a < b && c > d"}`, `{"preview":"a < b && c > d"}`},
		"array":      {[]row{{"<é\u2028>"}}, `[{"preview":"<é\u2028>"}]`, `{"result":[{"preview":"<é\u2028>"}]}`},
		"nil slice":  {[]row(nil), `[]`, `{"result":[]}`},
		"nothing":    {nil, `null`, `{"result":null}`},
		"text":       {mcp.Text("# Title\n<b>&"), "# Title\n<b>&", `{"result":"# Title\n<b>&"}`},
		"hinted":     {mcp.Empty{Hint: "try less"}, "[]", `{"hint":"try less","result":[]}`},
		"spoken":     {mcp.TextAndValue{Text: "said", Value: row{"v"}}, "said", `{"preview":"v"}`},
		"empty text": {mcp.Text(""), "", `{"result":""}`},
		"bad UTF-8":  {[]string{"a\xffb"}, `["a` + `\ufffd` + `b"]`, "{\"result\":[\"a\ufffdb\"]}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, mcp.Config{Tools: []mcp.Tool{
				tool("give", func(context.Context, mcp.Call, none) (any, error) { return c.value, nil }),
			}})
			for _, revision := range revisions() {
				result, err := call(t, connect(t, s, revision, nil), "give", nil)
				if err != nil {
					t.Fatal(err)
				}
				if got := texts(t, result); got[0] != c.text || result.IsError {
					t.Errorf("%s: text %q, want %q (error: %v)", revision, got, c.text, result.IsError)
				}
				structured, err := json.Marshal(result.StructuredContent)
				if err != nil {
					t.Fatal(err)
				}
				if got := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(structured)); got != c.structured {
					t.Errorf("%s: structured %s, want %s", revision, got, c.structured)
				}
			}
		})
	}
}

func TestErrorsOfTheCallerAreToolResults(t *testing.T) {
	t.Parallel()
	for _, kind := range []fault.Kind{fault.Invalid, fault.NotFound, fault.Conflict, fault.Denied} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			f := fault.New(kind, "some_code", "query must not be empty").WithHint("say more")
			s := newServer(t, mcp.Config{Tools: []mcp.Tool{
				tool("fail", func(context.Context, mcp.Call, none) (any, error) { return nil, fmt.Errorf("wrapped: %w", f) }),
			}})
			for _, revision := range revisions() {
				result, err := call(t, connect(t, s, revision, nil), "fail", nil)
				if err != nil {
					t.Fatal(err)
				}
				if got := texts(t, result); !result.IsError || len(got) != 2 || got[0] != f.Message || got[1] != f.Hint {
					t.Errorf("%s: isError %v, texts %q", revision, result.IsError, got)
				}
				envelope, err := json.Marshal(result.StructuredContent)
				if err != nil {
					t.Fatal(err)
				}
				const want = `{"error":{"code":"some_code","details":{},"message":"query must not be empty","recovery_hint":"say more"}}`
				if string(envelope) != want {
					t.Errorf("%s: envelope %s", revision, envelope)
				}
			}
		})
	}
}

func TestTroubleOfTheStoreIsAnInternalError(t *testing.T) {
	t.Parallel()
	const path = "/home/someone/.cairn/cairn.db"
	for name, c := range map[string]struct {
		err           error
		message, data string
	}{
		"unavailable": {
			fault.Wrap(errors.New(path), fault.Unavailable, "busy", "database is locked").WithHint("try again"),
			"database is locked", `{"code":"busy","recovery_hint":"try again"}`,
		},
		"internal": {
			fault.Wrap(errors.New(path), fault.Internal, "corrupt", "database disk image is malformed"),
			"database disk image is malformed", `{"code":"corrupt","recovery_hint":""}`,
		},
		"unclassified": {fmt.Errorf("open %s: permission denied", path), "internal error", ``},
		"cancelled":    {context.Canceled, "internal error", ``},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log journal
			s := newServer(t, mcp.Config{Log: log.logger(), Tools: []mcp.Tool{
				tool("fail", func(context.Context, mcp.Call, none) (any, error) { return nil, c.err }),
			}})
			for _, revision := range revisions() {
				_, err := call(t, connect(t, s, revision, nil), "fail", nil)
				e, ok := errors.AsType[*jsonrpc.Error](err)
				if !ok || e.Code != jsonrpc.CodeInternalError || e.Message != c.message || string(e.Data) != c.data {
					t.Errorf("%s: got %#v", revision, err)
				}
			}
			if !strings.Contains(log.String(), "a tool failed") {
				t.Error("the failure was not logged")
			}
		})
	}
}

func TestResultThatIsNoJSONIsAnInternalError(t *testing.T) {
	t.Parallel()
	s := newServer(t, mcp.Config{Tools: []mcp.Tool{
		tool("give", func(context.Context, mcp.Call, none) (any, error) { return make(chan int), nil }),
	}})
	_, err := call(t, connect(t, s, "2025-11-25", nil), "give", nil)
	if e, ok := errors.AsType[*jsonrpc.Error](err); !ok || e.Code != jsonrpc.CodeInternalError || e.Message != "internal error" {
		t.Errorf("got %v", err)
	}
}

func TestWrongArgumentsNeverReachTheTool(t *testing.T) {
	t.Parallel()
	s := newServer(t, mcp.Config{Tools: []mcp.Tool{
		tool("count", func(context.Context, mcp.Call, struct {
			N int64 `arg:"n,required,min=1"`
		},
		) (any, error) {
			t.Error("the tool was called")
			return nil, nil
		}),
	}})
	for _, revision := range revisions() {
		session := connect(t, s, revision, nil)
		for args, want := range map[string]string{
			`{"n":"3"}`: `argument "n" must be an integer, not a string`,
			`{"n":2.5}`: `argument "n" must be an integer, not a fraction`,
			`{}`:        `missing required argument "n"`,
			`[1]`:       `arguments must be an object, not an array`,
		} {
			result, err := call(t, session, "count", json.RawMessage(args))
			if err != nil {
				t.Fatalf("%s %s: %v", revision, args, err)
			}
			if got := texts(t, result); !result.IsError || len(got) != 1 || got[0] != want {
				t.Errorf("%s %s: got %q", revision, args, got)
			}
		}
	}
}

func TestUnknownToolIsAProtocolError(t *testing.T) {
	t.Parallel()
	for _, revision := range revisions() {
		_, err := call(t, connect(t, newServer(t, mcp.Config{}), revision, nil), "nope", nil)
		if e, ok := errors.AsType[*jsonrpc.Error](err); !ok || e.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("%s: got %v", revision, err)
		}
	}
}

func TestPanicEndsOneCallAndTellsTheClientNothing(t *testing.T) {
	t.Parallel()
	var log journal
	s := newServer(t, mcp.Config{
		Log: log.logger(),
		Tools: []mcp.Tool{
			tool("burst", func(context.Context, mcp.Call, none) (any, error) { panic("what a user typed") }),
			tool("index", func(_ context.Context, _ mcp.Call, a struct {
				None []int64 `arg:"none"`
			}) (any, error) {
				return a.None[3], nil
			}),
			tool("work", func(context.Context, mcp.Call, none) (any, error) { return mcp.Text("still here"), nil }),
		},
		Context: func(context.Context, toolargs.Scope) (string, error) { panic("what a user typed") },
	})
	for _, revision := range revisions() {
		session := connect(t, s, revision, nil)
		for _, name := range []string{"burst", "index"} {
			_, err := call(t, session, name, nil)
			e, ok := errors.AsType[*jsonrpc.Error](err)
			if !ok || e.Code != jsonrpc.CodeInternalError || e.Message != "internal error" || e.Data != nil {
				t.Errorf("%s %s: got %#v", revision, name, err)
			}
		}
		if _, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: mcp.ContextURI}); err == nil {
			t.Errorf("%s: reading did not fail", revision)
		}
		result, err := call(t, session, "work", nil)
		if err != nil || texts(t, result)[0] != "still here" {
			t.Errorf("%s: the next call: %v %v", revision, result, err)
		}
	}
	if said := log.String(); !strings.Contains(said, "index out of range") || !strings.Contains(said, "server_test.go") ||
		strings.Contains(said, "what a user typed") {
		t.Errorf("the log should hold the stack and no payload: %s", said)
	}
}

func TestCancellingACallEndsItsContext(t *testing.T) {
	t.Parallel()
	for _, revision := range revisions() {
		started, ended := make(chan struct{}), make(chan error, 1)
		s := newServer(t, mcp.Config{Tools: []mcp.Tool{
			tool("wait", func(ctx context.Context, _ mcp.Call, _ none) (any, error) {
				close(started)
				<-ctx.Done()
				ended <- ctx.Err()
				return nil, ctx.Err()
			}),
			tool("work", func(context.Context, mcp.Call, none) (any, error) { return mcp.Text("free"), nil }),
		}})
		session := connect(t, s, revision, nil)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-started
			cancel()
		}()
		if _, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "wait"}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: the client got %v", revision, err)
		}
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: the tool got %v", revision, err)
		}
		if result, err := call(t, session, "work", nil); err != nil || texts(t, result)[0] != "free" {
			t.Errorf("%s: the next call: %v", revision, err)
		}
	}
}

func TestLargeResultArrivesWhole(t *testing.T) {
	t.Parallel()
	want := strings.Repeat("<0123456789é>\n", 150_000) // 2.1 MB
	s := newServer(t, mcp.Config{Tools: []mcp.Tool{
		tool("give", func(context.Context, mcp.Call, none) (any, error) { return map[string]string{"text": want}, nil }),
	}})
	for _, revision := range revisions() {
		result, err := call(t, connect(t, s, revision, nil), "give", nil)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]string
		if err := json.Unmarshal([]byte(texts(t, result)[0]), &got); err != nil {
			t.Fatal(err)
		}
		if got["text"] != want || result.StructuredContent.(map[string]any)["text"] != want {
			t.Errorf("%s: the text changed on the way", revision)
		}
	}
}

func TestConcurrentCallsRunSideBySide(t *testing.T) {
	t.Parallel()
	const calls = 50
	for _, revision := range revisions() {
		var all sync.WaitGroup
		all.Add(calls) // every call waits for all others to have started
		s := newServer(t, mcp.Config{Tools: []mcp.Tool{
			tool("meet", func(_ context.Context, _ mcp.Call, a struct {
				Name string `arg:"name"`
			}) (any, error) {
				all.Done()
				all.Wait()
				return mcp.Text(a.Name), nil
			}),
		}})
		session := connect(t, s, revision, nil)
		var clients sync.WaitGroup
		for i := range calls {
			clients.Go(func() {
				name := fmt.Sprint("call ", i)
				result, err := call(t, session, "meet", map[string]any{"name": name})
				if err != nil || texts(t, result)[0] != name {
					t.Errorf("%s %s: %v %v", revision, name, result, err)
				}
			})
		}
		clients.Wait()
	}
}

func TestContextCanBeReadAndIsAnnounced(t *testing.T) {
	t.Parallel()
	for _, revision := range revisions() {
		s := newServer(t, mcp.Config{Context: func(_ context.Context, project toolargs.Scope) (string, error) {
			return fmt.Sprintf("# cairn context\n%+v", project), nil
		}})
		updates := make(chan string, 1)
		session := connect(t, s, revision, &sdk.ClientOptions{
			ResourceUpdatedHandler: func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) {
				select {
				case updates <- r.Params.URI:
				default: // one notice is enough
				}
			},
		})
		result, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: mcp.ContextURI})
		if err != nil {
			t.Fatal(err)
		}
		if c := result.Contents[0]; c.MIMEType != "text/markdown" || c.Text != "# cairn context\n{All:false Name:}" ||
			result.CacheScope != "private" {
			t.Errorf("%s: read %+v, cache %q", revision, c, result.CacheScope)
		}
		if err := session.Subscribe(t.Context(), &sdk.SubscribeParams{URI: mcp.ContextURI}); err != nil {
			t.Fatal(err)
		}
		// The newer revision subscribes without a response, so announce until the first notice
		// arrives.
		for announced := false; !announced; {
			if err := s.ContextChanged(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := session.ListTools(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			select {
			case uri := <-updates:
				announced = true
				if uri != mcp.ContextURI {
					t.Errorf("%s: notice about %s", revision, uri)
				}
			default:
			}
		}
	}
}

func TestOnlyTheContextCanBeReadOrSubscribedTo(t *testing.T) {
	t.Parallel()
	with := newServer(t, mcp.Config{Context: func(context.Context, toolargs.Scope) (string, error) { return "", nil }})
	session := connect(t, with, "2025-11-25", nil)
	for _, uri := range []string{"cairn://context/", "file:///etc/passwd", ""} {
		if _, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri}); err == nil {
			t.Errorf("%q could be read", uri)
		}
		if err := session.Subscribe(t.Context(), &sdk.SubscribeParams{URI: uri}); err == nil {
			t.Errorf("%q could be subscribed to", uri)
		}
	}
	without := connect(t, newServer(t, mcp.Config{}), "2025-11-25", nil)
	if without.InitializeResult().Capabilities.Resources != nil {
		t.Error("resources are announced though there are none")
	}
	if err := without.Subscribe(t.Context(), &sdk.SubscribeParams{URI: mcp.ContextURI}); err == nil {
		t.Error("the missing context could be subscribed to")
	}
}

func TestFailingContextIsAProtocolErrorWithoutPaths(t *testing.T) {
	t.Parallel()
	for want, failing := range map[string]error{
		"database is locked": fault.New(fault.Unavailable, "busy", "database is locked"),
		"no such project":    fault.New(fault.NotFound, "no_project", "no such project"),
		"internal error":     errors.New("open /home/someone/.cairn: denied"),
	} {
		s := newServer(t, mcp.Config{Context: func(context.Context, toolargs.Scope) (string, error) { return "", failing }})
		session := connect(t, s, "2026-07-28", nil)
		_, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: mcp.ContextURI})
		if e, ok := errors.AsType[*jsonrpc.Error](err); !ok || e.Message != want {
			t.Errorf("%v: got %v", failing, err)
		}
	}
}

func TestToolsWithOneNameAreRefused(t *testing.T) {
	t.Parallel()
	twice := tool("same", func(context.Context, mcp.Call, none) (any, error) { return nil, nil })
	if _, err := mcp.NewServer(mcp.Config{Tools: []mcp.Tool{twice, twice}}); err == nil {
		t.Error("two tools share a name")
	}
	odd := mcp.Tool{Name: "odd", Params: []toolargs.Param{{Name: "n", Default: func() {}}}}
	if _, err := mcp.NewServer(mcp.Config{Tools: []mcp.Tool{odd}}); err == nil {
		t.Error("a default is not JSON")
	}
}
