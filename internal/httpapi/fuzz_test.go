package httpapi

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"cairn/internal/mcp"
)

// FuzzRoute wants every project's name to be found again in the path that is made
// of it, and nothing to be found elsewhere.
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

// FuzzArguments wants whatever comes in a query or a body to be refused or to be an
// object that names the project of the path.
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
			c := call{mirrored{tool, &tool.Params[7]}, key}
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
			_, _ = tool.Ask(t.Context(), got, mcp.Scope{}, mcp.From{})
		}
	})
}
