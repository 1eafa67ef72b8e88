package mcp_test

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"cairn/internal/mcp"
)

// echoing returns functions that return the arguments they received.
func echoing() mcp.Observations {
	return mcp.Observations{
		Search:        func(_ context.Context, a mcp.SearchArgs) (any, error) { return a, nil },
		Get:           func(_ context.Context, ids []int64) (any, error) { return map[string]any{"ids": ids}, nil },
		Timeline:      func(_ context.Context, a mcp.TimelineArgs) (any, error) { return a, nil },
		RecentContext: func(_ context.Context, a mcp.RecentArgs) (any, error) { return a, nil },
		SessionTrace:  func(_ context.Context, a mcp.TraceArgs) (any, error) { return a, nil },
		FileHistory:   func(_ context.Context, a mcp.FileHistoryArgs) (any, error) { return a, nil },
	}
}

func TestArgumentsReachTheirTool(t *testing.T) {
	t.Parallel()
	session := connect(t, newServer(t, mcp.Config{Tools: mcp.ObservationTools(echoing())}), "2025-11-25", nil)
	for name, c := range map[string]struct{ tool, args, want string }{
		"search, all": {
			"search",
			`{"query":"q","project":"p","obs_type":"command","limit":500,"offset":-3,"orderBy":"blended","before":9,"after":8}`,
			`{"Query":"q","Project":{"All":false,"Name":"p"},"ObsType":"command","Limit":500,"Offset":-3,"OrderBy":"blended","Before":9,"After":8,"Remote":false}`,
		},
		"search, least": {
			"search", `{"query":"q"}`,
			`{"Query":"q","Project":{"All":false,"Name":""},"ObsType":"","Limit":null,"Offset":null,"OrderBy":"","Before":null,"After":null,"Remote":false}`,
		},
		"get_observations": {"get_observations", `{"ids":[3,1,3.0]}`, `{"ids":[3,1,3]}`},
		"timeline, all":    {"timeline", `{"anchor":42,"before":0,"after":7}`, `{"Anchor":42,"Before":0,"After":7}`},
		"timeline, least":  {"timeline", `{"anchor":42}`, `{"Anchor":42,"Before":null,"After":null}`},
		"recent_context, everywhere": {
			"recent_context", `{"project":null,"limit":3}`, `{"Project":{"All":true,"Name":""},"Limit":3,"Full":false}`,
		},
		"recent_context, least": {"recent_context", `{}`, `{"Project":{"All":false,"Name":""},"Limit":null,"Full":false}`},
		"session_trace": {
			"session_trace", `{"session_id":"s","before":2,"after":1,"detail":"full"}`, `{"SessionID":"s","Before":2,"After":1,"Full":true}`,
		},
		"file_history": {
			"file_history", `{"file_path":"a/b.go","before":2,"after":1,"limit":4,"edits_only":true}`,
			`{"FilePath":"a/b.go","Before":2,"After":1,"Limit":4,"EditsOnly":true,"Full":false}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := call(t, session, c.tool, json.RawMessage(c.args))
			if err != nil {
				t.Fatal(err)
			}
			if got := texts(t, result); len(got) != 1 || got[0] != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestSixToolsAreListedReadOnlyWithTheirParameters(t *testing.T) {
	t.Parallel()
	session := connect(t, newServer(t, mcp.Config{Tools: mcp.ObservationTools(echoing())}), "2026-07-28", nil)
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{ // the first one is required, except in recent_context
		"search":           {"query", "project", "obs_type", "limit", "offset", "orderBy", "before", "after"},
		"get_observations": {"ids"},
		"timeline":         {"anchor", "before", "after"},
		"recent_context":   {"project", "limit", "detail"},
		"session_trace":    {"session_id", "before", "after", "detail"},
		"file_history":     {"file_path", "before", "after", "limit", "edits_only", "detail"},
	}
	if len(list.Tools) != len(want) {
		t.Errorf("%d tools, want %d", len(list.Tools), len(want))
	}
	for _, tool := range list.Tools {
		if tool.Annotations == nil || !tool.Annotations.ReadOnlyHint {
			t.Errorf("%s is not marked read-only", tool.Name)
		}
		schema, ok := tool.InputSchema.(map[string]any)
		if !ok {
			t.Fatalf("%s: schema is %T", tool.Name, tool.InputSchema)
		}
		var names []string
		for name := range schema["properties"].(map[string]any) {
			names = append(names, name)
		}
		slices.Sort(names)
		params := slices.Clone(want[tool.Name])
		slices.Sort(params)
		if !slices.Equal(names, params) {
			t.Errorf("%s has %v, want %v", tool.Name, names, params)
		}
		var required any
		if tool.Name != "recent_context" {
			required = []any{want[tool.Name][0]}
		}
		if !reflect.DeepEqual(schema["required"], required) {
			t.Errorf("%s requires %v, want %v", tool.Name, schema["required"], required)
		}
	}
}

func TestDefinitionsStayWithinTheirBudget(t *testing.T) {
	t.Parallel()
	tokens, err := mcp.Tokens(mcp.ObservationTools(echoing()))
	if err != nil {
		t.Fatal(err)
	}
	if tokens < 100 || tokens > 1500 {
		t.Errorf("the six definitions take %d tokens, want at most 1500", tokens)
	}
}
