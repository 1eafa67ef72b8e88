package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cairn/internal/fault"
	"cairn/internal/mcp"
	"cairn/internal/mcp/toolargs"
)

// everyKind has an argument of every kind.
type everyKind struct {
	S       *string         `arg:"s"`
	I       *int64          `arg:"i"`
	B       bool            `arg:"b"`
	IS      []int64         `arg:"is"`
	SS      []string        `arg:"ss"`
	O       json.RawMessage `arg:"o"`
	N       *string         `arg:"n,nullable"`
	Null    bool            `arg:"n,null"`
	Project toolargs.Scope  `arg:"project"`
}

// kinds returns a tool with an argument of every kind.
func kinds(call func(context.Context, mcp.Call, everyKind) (any, error)) mcp.Tool {
	return mcp.NewTool(mcp.Tool{Name: "kinds", ReadOnly: true, Errors: mcp.ErrorEnvelope}, call)
}

// told returns the given arguments of a call.
func told(_ context.Context, c mcp.Call, a everyKind) (any, error) {
	if a.Project == (toolargs.Scope{}) { // the tool has no project argument
		a.Project = c.Scope
	}
	return map[string]any{
		"s": a.S, "i": a.I, "b": a.B, "is": a.IS, "ss": a.SS, "o": a.O, "n": a.N, "null": a.Null, "project": a.Project,
	}, nil
}

// served returns a server with the tools in one toolset, and its log.
func served(t *testing.T, tools ...mcp.Tool) (*Server, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	inner, err := mcp.NewServer(mcp.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{
		MCP: inner, Meter: new(ToolMetrics), Log: slog.New(slog.NewTextHandler(&log, nil)),
		Toolsets: []Toolset{{Name: "set", Project: []string{"project", "s"}, Tools: tools}},
		Token:    func() (string, error) { return "open", nil },
		Health:   func(context.Context) Health { return Health{} },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, &log
}

func ask(s *Server, method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "localhost"
	r.Header.Set("Authorization", "Bearer open")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func TestQueryParametersBecomeArguments(t *testing.T) {
	t.Parallel()
	s, _ := served(t, kinds(told))
	for query, want := range map[string]string{
		"":                          `{}`,
		"s=7&i=7&b=1":               `{"s":"7","i":7,"b":true}`,
		"i=-3&b=yes":                `{"i":-3,"b":true}`,
		"i=1e400&b=false":           `{"i":9223372036854775807}`,
		"is=1&is=2&ss=a&ss=b,c":     `{"is":[1,2],"ss":["a","b,c"]}`,
		"is=5&ss=":                  `{"is":[5],"ss":[""]}`,
		`o={"a":[1,"<"]}`:           `{"o":{"a":[1,"<"]}}`,
		"n=null":                    `{"null":true}`,
		"n=nul&s=null":              `{"n":"nul","s":"null"}`,
		"s=%22%5C%0A%00<%26%C3%A9+": `{"s":"\"\\\n\u0000<&é "}`,
		"s=&n=":                     `{"s":"","n":""}`,
	} {
		w := ask(s, http.MethodGet, "/v1/projects/*/set/kinds?"+strings.NewReplacer(`"`, "%22", " ", "%20").Replace(query), "")
		var got, expected map[string]any
		if err := json.Unmarshal([]byte(want), &expected); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
			continue
		}
		for name, v := range got {
			empty := v == nil || v == false || name == "project"
			a, _ := json.Marshal(v)
			b, _ := json.Marshal(expected[name])
			if empty && expected[name] != nil || !empty && string(a) != string(b) {
				t.Errorf("%s: %s is %s, want %s", query, name, a, b)
			}
		}
	}
	for query, field := range map[string]string{
		"i=": "i", "i=x": "i", "i=1.5": "i", "i=0x10": "i", "i=%201": "i", "b=2": "b", "is=x": "is", "o=[1]": "o", "o={": "o",
		"s=a&s=b": "s", "s=%FF": "s", "ss=%FF": "ss",
	} {
		w := ask(s, http.MethodGet, "/v1/projects/*/set/kinds?"+query, "")
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), `"field":"`+field+`"`) {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
}

func TestTheKeyFillsTheFirstArgumentThatAToolHasForIt(t *testing.T) {
	t.Parallel()
	second := kinds(told)
	second.Name, second.Params = "second", second.Params[:1]
	none := kinds(told)
	none.Name, none.Params = "none", nil
	s, _ := served(t, kinds(told), second, none)
	for path, want := range map[string]string{
		"a%2Fb/set/kinds":   `"project":{"All":false,"Name":"a/b"},"s":null`,
		"*/set/kinds":       `"project":{"All":true,"Name":""},"s":null`,
		"%2A/set/kinds":     `"project":{"All":true,"Name":""},"s":null`,
		"%C3%A9/set/second": `"s":"é"`,
		"*/set/second":      `"s":null`,
		"x/set/none":        `"project":{"All":false,"Name":"x"},"s":null`,
	} {
		if w := ask(s, http.MethodPost, "/v1/projects/"+path, ""); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s, want %s", path, w.Code, w.Body, want)
		}
	}
	for body, want := range map[string]int{
		`{"project":"x"}`: 200, `{"project":"y"}`: 400, `{"project":null}`: 400, `{"project":7}`: 400, `{"project":"*"}`: 400,
		`{}`: 200, `null`: 200, `7`: 400, `[]`: 400, `{"project":"x"} `: 200, `{"project":"x"}{}`: 400,
	} {
		if w := ask(s, http.MethodPost, "/v1/projects/x/set/kinds", body); w.Code != want {
			t.Errorf("%s: %d %s, want %d", body, w.Code, w.Body, want)
		}
	}
}

func TestIgnoredArgumentsAreNamedInAHeader(t *testing.T) {
	t.Parallel()
	s, _ := served(t, kinds(told))
	w := ask(s, http.MethodPost, "/v1/projects/*/set/kinds", `{"zeta":1,"é, \r\nSet-Cookie: a":2}`)
	if got := w.Header().Get("Cairn-Ignored"); got != "zeta, %C3%A9%2C+%0D%0ASet-Cookie%3A+a" || w.Header().Get("Set-Cookie") != "" {
		t.Errorf("%v", w.Header())
	}
}

func TestErrorsHaveTheStatusesOfTheContracts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind   fault.Kind
		code   string
		status int
		retry  bool
	}{
		{fault.Invalid, "invalid_argument", 400, false},
		{fault.Invalid, "CONFIGURATION_ERROR", 400, false},
		{fault.NotFound, "RECIPIENT_NOT_FOUND", 404, false},
		{fault.Conflict, "CONTACT_REQUIRED", 409, false},
		{fault.Denied, "CONTACT_BLOCKED", 403, false},
		{fault.Denied, "CAPABILITY_DENIED", 403, false},
		{fault.Conflict, "IDEMPOTENCY_CONFLICT", 409, false},
		{fault.Invalid, "MESSAGE_TOO_LARGE", 413, false},
		{fault.Invalid, "entry_too_large", 413, false},
		{fault.Unavailable, "disk_full", 507, false},
		{fault.Unavailable, "DATABASE_ERROR", 500, false},
		{fault.Unavailable, "DATABASE_POOL_EXHAUSTED", 503, true},
		{fault.Unavailable, "RESOURCE_BUSY", 503, true},
		{fault.Unavailable, "store_busy", 503, true},
		{fault.Unavailable, "RATE_LIMITED", 429, true},
		{fault.Unavailable, "queue_full", 429, true},
		{fault.Internal, "DATABASE_CORRUPTION", 500, false},
		{fault.Internal, "store_corrupt", 500, false},
		{fault.Unavailable, "DISK_FULL", 507, false},
		{fault.Internal, "UNHANDLED_EXCEPTION", 500, false},
		{fault.Unavailable, "await_timeout", 504, false},
	} {
		s, _ := served(t, kinds(func(context.Context, mcp.Call, everyKind) (any, error) { return nil, fault.New(c.kind, c.code, "no") }))
		w := ask(s, http.MethodPost, "/v1/projects/*/set/kinds", "")
		var e fault.Envelope
		err := json.Unmarshal(w.Body.Bytes(), &e)
		if err != nil || w.Code != c.status || e.Error.Code != strings.ToUpper(c.code) || (w.Header().Get("Retry-After") != "") != c.retry {
			t.Errorf("%s: %d %v %s", c.code, w.Code, w.Header(), w.Body)
		}
	}
}

func TestWhatNobodyClassifiedIsLoggedAndNotSent(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(context.Context, mcp.Call, everyKind) (any, error){
		"error": func(context.Context, mcp.Call, everyKind) (any, error) {
			return nil, errors.New("open /home/ada/private")
		},
		"panic":   func(context.Context, mcp.Call, everyKind) (any, error) { panic("the private text") },
		"runtime": func(_ context.Context, _ mcp.Call, a everyKind) (any, error) { return a.SS[3], nil },
		"result":  func(context.Context, mcp.Call, everyKind) (any, error) { return func() {}, nil },
	} {
		s, log := served(t, kinds(call))
		w := ask(s, http.MethodPost, "/v1/projects/*/set/kinds", "")
		if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), `"internal error"`) || strings.Contains(w.Body.String(), "private") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		if log.Len() == 0 || strings.Contains(log.String(), "the private text") {
			t.Errorf("%s: logged %s", name, log)
		}
		if len(s.gate.calls) != 0 || s.gate.bodies.Load() != 0 {
			t.Errorf("%s: its place is still taken", name)
		}
	}
}

func TestBodiesInAllAreBounded(t *testing.T) {
	t.Parallel()
	s, _ := served(t, kinds(told))
	s.gate.bodies.Store(maxBodies - 10)
	if w := ask(s, http.MethodPost, "/v1/projects/*/set/kinds", "{         }"); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := ask(s, http.MethodPost, "/v1/projects/*/set/kinds", "{}"); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	r := httptest.NewRequest(http.MethodPost, "/v1/projects/*/set/kinds", strings.NewReader("{}"))
	r.Host, r.ContentLength = "localhost", -1
	r.Header.Set("Authorization", "Bearer open")
	w := httptest.NewRecorder()
	if s.ServeHTTP(w, r); w.Code != http.StatusServiceUnavailable {
		t.Errorf("a body of unknown length: %d", w.Code)
	}
	if got := s.gate.bodies.Load(); got != maxBodies-10 {
		t.Errorf("%d bytes are left of 0", got-(maxBodies-10))
	}
}

func TestRateIsBoundedForEachAddressAndForgotten(t *testing.T) {
	t.Parallel()
	r, now := newRate(3), time.Unix(1e9, 0)
	for i, want := range []time.Duration{0, 0, 0, 20 * time.Second} {
		if got := r.wait("a", now); got != want {
			t.Errorf("call %d: %v", i, got)
		}
	}
	if r.wait("b", now) != 0 {
		t.Error("another address has to wait")
	}
	if got := r.wait("a", now.Add(19*time.Second)); got != time.Second {
		t.Errorf("after 19 s: %v", got)
	}
	if r.wait("a", now.Add(20*time.Second)) != 0 || r.wait("a", now.Add(20*time.Second)) == 0 {
		t.Error("a third of a minute is not worth one call")
	}
	for i := range 5000 {
		r.wait(time.Duration(i).String(), now.Add(time.Duration(i)*time.Minute))
	}
	if len(r.due) > 1100 {
		t.Errorf("%d addresses are kept", len(r.due))
	}
}

func TestMetricsAreEscapedAndAddUp(t *testing.T) {
	t.Parallel()
	var m ToolMetrics
	for _, took := range []time.Duration{0, time.Millisecond, 3 * time.Millisecond, time.Minute} {
		m.Seen("t", took, nil)
	}
	m.Seen("t", 0, context.Canceled)
	m.Seen("t", 0, fault.New(fault.NotFound, "x", "x"))
	m.Seen("t", 0, errors.New("x"))
	var text bytes.Buffer
	n := &MetricsWriter{out: &text}
	m.write(n)
	n.Gauge("g", 0.25, "name", "a\"b\\c\nd\xff")
	for _, want := range []string{
		"# TYPE cairn_tool_calls_total counter\n",
		`cairn_tool_calls_total{tool="t",result="ok"} 4` + "\n",
		`cairn_tool_calls_total{tool="t",result="cancelled"} 1` + "\n",
		`cairn_tool_calls_total{tool="t",result="not_found"} 1` + "\n",
		`cairn_tool_calls_total{tool="t",result="internal"} 1` + "\n",
		"# TYPE cairn_tool_seconds histogram\n",
		`cairn_tool_seconds_bucket{tool="t",le="0.0005"} 4` + "\n",
		`cairn_tool_seconds_bucket{tool="t",le="0.001"} 5` + "\n",
		`cairn_tool_seconds_bucket{tool="t",le="0.005"} 6` + "\n",
		`cairn_tool_seconds_bucket{tool="t",le="30"} 6` + "\n",
		`cairn_tool_seconds_bucket{tool="t",le="+Inf"} 7` + "\n",
		`cairn_tool_seconds_sum{tool="t"} 60.004` + "\n",
		`cairn_tool_seconds_count{tool="t"} 7` + "\n",
		"# TYPE g gauge\n" + `g{name="a\"b\\c\nd?"} 0.25` + "\n",
	} {
		if strings.Count(text.String(), want) != 1 {
			t.Errorf("%q is not once in\n%s", want, &text)
		}
	}
}

func TestATokenIsMadeOnceAndReplacedWhole(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	if _, err := ReadToken(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before: %v", err)
	}
	first, err := EnsureToken(dir)
	again, err2 := EnsureToken(dir)
	if err != nil || err2 != nil || first != again || len(first) != 43 {
		t.Errorf("%v, %v", err, err2)
	}
	second, err := RotateToken(dir)
	if now, rerr := ReadToken(dir); err != nil || rerr != nil || now != second || now == first {
		t.Errorf("%v, %v", err, rerr)
	}
	for _, bad := range []string{"", "\n", "short", second + second, strings.Repeat("!", 43)} {
		if err := os.WriteFile(TokenFile(dir), []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := EnsureToken(dir); !fault.HasCode(err, "http_token") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if third, err := RotateToken(dir); err != nil || third == second {
		t.Errorf("rotating a broken one: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left over: %v, %v", entries, err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := EnsureToken(file); !fault.HasCode(err, "http_token") {
		t.Errorf("in a folder that is a file: %v", err)
	}
}
