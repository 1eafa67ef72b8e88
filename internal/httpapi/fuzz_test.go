package httpapi

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"cairn/internal/fault"
	"cairn/internal/mcp"
	"cairn/internal/mcp/toolargs"
)

// FuzzRoute checks that find returns every project name from the path built for it. It also
// checks that find accepts no other paths.
func FuzzRoute(f *testing.F) {
	for _, path := range []string{
		"/v1/projects/shop/set/kinds", "/v1/projects/a%2Fb/set/kinds", "/v1/projects//set/kinds", "/v1/projects/%/set/kinds",
		"/v1/projects/%zz/set/kinds", "/v1/projects/a/set/kinds/", "/v1/projects/../set/kinds", "/v1/projects", "",
	} {
		f.Add(path)
	}
	m, err := newMirror(Config{Toolsets: []Toolset{{Name: "set", Tools: []mcp.Tool{kinds(told)}}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if c, ok := m.find(text); ok {
			if c.key == "" || c.tool.Name != "kinds" || !strings.HasPrefix(text, "/v1/projects/") || strings.Count(text, "/") != 5 {
				t.Errorf("%q: %+v", text, c)
			}
		}
		c, ok := m.find("/v1/projects/" + url.PathEscape(text) + "/set/kinds")
		if ok != (text != "") || ok && c.key != text {
			t.Errorf("%q: %q, %v", text, c.key, ok)
		}
	})
}

// FuzzArguments checks that any query or body is either rejected or becomes an object with the
// project of the path.
func FuzzArguments(f *testing.F) {
	f.Add("s=a&i=1&is=1&is=2&ss=x&o={}&n=null&b=t", `{"s":"a"}`, "shop")
	f.Add("s=%FF&i=-&x=%00", `{"project":"shop"}`, "shop")
	f.Add("i=1e999;a", `{"project":null}`, "a/b")
	f.Add("o={\"a\":\"\xff\"}", `null`, "*")
	f.Add("&=&=a&&s", "[{}]", "\xff")
	tool := kinds(told)
	f.Fuzz(func(t *testing.T, query, body, key string) {
		fromQuery, err := queryArguments(tool.Params, query)
		if err == nil && !json.Valid(fromQuery) {
			t.Fatalf("%q became %q", query, fromQuery)
		}
		for _, arguments := range []json.RawMessage{fromQuery, json.RawMessage(body)} {
			if !json.Valid(arguments) {
				continue
			}
			c := call{mirroredTool{tool, &tool.Params[7]}, key}
			got, err := c.withProject(arguments)
			if err != nil {
				continue
			}
			var before, fields map[string]json.RawMessage
			if json.Unmarshal(arguments, &before) != nil {
				continue // the tool refuses it
			}
			if err := json.Unmarshal(got, &fields); err != nil {
				t.Fatalf("%q became %q", arguments, got)
			}
			var name string
			if key != "*" && (json.Unmarshal(fields["project"], &name) != nil || name != key || !utf8.ValidString(key)) {
				t.Fatalf("%q for %q became %q", arguments, key, got)
			}
			for field := range before {
				if _, kept := fields[field]; !kept {
					t.Fatalf("%q lost %q", arguments, field)
				}
			}
			_, _ = tool.Invoke(t.Context(), got, toolargs.Scope{}, mcp.CallInfo{})
		}
	})
}

// FuzzMemoryArguments checks that any query or body is either rejected with the name of a field,
// or parsed into valid texts.
func FuzzMemoryArguments(f *testing.F) {
	f.Add("limit=3&tag=a:b&tag=c", `{"rawEntry":"a","tags":{"k":"v"},"topK":"3","metadata":{"a":[1]}}`)
	f.Add("limit=3.0&limit=3", `{"rawEntry":null,"tags":null}`)
	f.Add("rawEntry=%00&x=%FF", `{"rawEntry":"\ud800","rawEntry":"b"}`)
	f.Add("topK=1e999;a", `{"topK":-99999999999999999999} {}`)
	f.Add("%zz", "{\"rawEntry\":\"\xff\"}")
	f.Add("a=", `{"all":1,"local_ids":["a",7]}`)
	f.Fuzz(func(t *testing.T, query, body string) {
		fromQuery, err := queryParameters(query, "tag")
		if err != nil {
			fromQuery = &arguments{err: err}
		}
		fromBody, err := bodyArguments([]byte(body))
		if err != nil {
			fromBody = &arguments{err: err}
		}
		for _, a := range []*arguments{fromQuery, fromBody} {
			texts := append(a.texts("tag"), a.string("rawEntry"), a.id("sessionId"), a.required("memoryId"))
			texts = append(texts, a.texts("local_ids")...)
			for k, v := range a.tags() {
				texts = append(texts, k, v)
			}
			for _, text := range texts {
				if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
					t.Fatalf("%q, %q: %q was let in", query, body, text)
				}
			}
			if raw := a.object("metadata"); raw != nil && (raw[0] != '{' || !json.Valid(raw)) {
				t.Fatalf("%q: metadata is %q", body, raw)
			}
			a.number("limit")
			a.integer("topK")
			a.boolean("all")
			if err := a.done(); err != nil {
				e := fault.As(err)
				field, ok := e.Details["field"].(string)
				if e.Code != "validation_error" || !ok || !utf8.ValidString(field) || !utf8.ValidString(e.Message) {
					t.Fatalf("%q, %q: %v %v", query, body, err, e.Details)
				}
			}
		}
	})
}

// FuzzMemoryRoute checks that find accepts only paths that match the route's pattern.
func FuzzMemoryRoute(f *testing.F) {
	for _, path := range []string{"/v1/vaults", "/v1/memories/a%2Fb:await_commit", "/memories/x/context", "/v1/memories/x/entries/y:delete", "/v1/x", "//", "/v1/", ""} {
		f.Add(path)
	}
	s := &Server{memoryRoutes: memoryRoutes()}
	f.Fuzz(func(t *testing.T, path string) {
		methods, vars, ok := s.findMemoryRoute(path)
		if !ok {
			return
		}
		if len(methods) == 0 || len(vars) > 2 || strings.Count(path, "/") > 6 {
			t.Errorf("%q: %v %v", path, methods, vars)
		}
		if strings.HasPrefix(path, "/") && !isMemoryPath(path) {
			t.Errorf("%q is a route and not about memories", path)
		}
	})
}
