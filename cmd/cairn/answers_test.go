package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// update is set by go test -update. Flags must be registered before TestMain.
var update = flag.Bool("update", false, "write the golden files of testdata/client")

// worked records two sessions, the second in another repository. Their rows have the ids 1 to 10;
// the last one belongs to the second session.
func (h *home) worked() {
	h.t.Helper()
	file := filepath.Join(h.repo, "src", "refund.go")
	tool := func(name, id string, f fields) fields {
		f["tool_name"], f["tool_use_id"], f["prompt_id"] = name, id, "p1"
		return f
	}
	test := fields{"command": "go test ./refund"}
	other := h.repository(filepath.Join(h.dir, "mail"))
	for _, payload := range [][]byte{
		h.payload("SessionStart", fields{"source": "startup", "model": "m1"}),
		h.payload("UserPromptSubmit", fields{"prompt": "make the refund test pass", "prompt_id": "p1"}),
		h.payload("PostToolUse", tool("Read", "t1", fields{"tool_input": fields{"file_path": file}})),
		h.payload("PostToolUse", tool("Edit", "t2", fields{"tool_input": fields{"file_path": file, "replace_all": true}})),
		h.payload("PostToolUseFailure", tool("Bash", "t3", fields{"tool_input": test, "error": "Exit code 1\nFAIL refund"})),
		h.payload("PostToolUse", tool("Bash", "t4", fields{"tool_input": test, "tool_response": fields{"stdout": "ok"}})),
		h.payload("PostToolUse", tool("mcp__tracker__close", "t5", fields{"tool_input": fields{"issue": 7}})),
		h.payload("Stop", fields{"last_assistant_message": "The refund test passes. Next: the docs.", "prompt_id": "p1"}),
		h.payload("SessionEnd", fields{"reason": "exit"}),
		h.payload("PostToolUse", fields{
			"session_id": "s2", "cwd": other, "agent_id": "a1", "tool_name": "Edit", "tool_use_id": "t6",
			"tool_input": fields{"file_path": filepath.Join(other, "send.go")},
		}),
	} {
		h.recorded(payload)
	}
}

// TestToolsAnswerAClientInTheShapesOfTheContract compares the results of all six tools with
// testdata/client/answers.golden (go test -update writes it). Times, scores and folders are
// normalised.
func TestToolsAnswerAClientInTheShapesOfTheContract(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.worked()
	golden := filepath.Join("testdata", "client", "answers.golden")
	questions := []struct {
		tool string
		args fields
	}{
		{"search", fields{"query": "refund"}},
		{"search", fields{"query": "send OR tracker", "project": nil, "orderBy": "blended"}},
		{"search", fields{"query": "refund", "obs_type": "command_error", "limit": 1, "project": "*"}},
		{"get_observations", fields{"ids": []int{5, 7, 5, 999, 1, 10}}},
		{"timeline", fields{"anchor": 4, "before": 1, "after": 2}},
		{"recent_context", fields{}},
		{"recent_context", fields{"project": nil, "limit": 3}},
		{"session_trace", fields{"session_id": "s1"}},
		{"file_history", fields{"file_path": "src/refund.go"}},
	}
	for _, revision := range revisions() {
		c := h.connect(revision, nil)
		var got bytes.Buffer
		for _, q := range questions {
			text, isError, err := c.answer(q.tool, q.args)
			if err != nil || isError {
				t.Fatalf("%s %v: %s, %v", q.tool, q.args, text, err)
			}
			args, err := json.Marshal(q.args)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&got, "> %s %s\n%s\n", q.tool, args, h.timeless(text))
		}
		if *update {
			if err := os.WriteFile(golden, got.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		wantLines(t, golden+" in "+revision, got.String(), string(want))
	}
}

// wantLines reports the first line in which a text differs from the golden text.
func wantLines(t *testing.T, what, got, want string) {
	t.Helper()
	old := strings.Split(want, "\n")
	for i, line := range strings.Split(got, "\n") {
		if i >= len(old) || line != old[i] {
			t.Errorf("%s changed in line %d (go test -update accepts it): %s; want: %s", what, i+1, line, append(old, "")[min(i, len(old))])
			return
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s: the end is missing", what)
	}
}

// timeless returns indented JSON in which values that differ between runs are normalised.
func (h *home) timeless(text string) []byte {
	h.t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		h.t.Fatalf("%v in %s", err, text)
	}
	out, err := json.MarshalIndent(h.evened("", v), "", "  ")
	if err != nil {
		h.t.Fatal(err)
	}
	return out
}

func (h *home) evened(name string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name := range v {
			v[name] = h.evened(name, v[name])
		}
	case []any:
		for i := range v {
			v[i] = h.evened("", v[i])
		}
	case float64:
		switch name {
		case "timestamp", "started_at", "ended_at":
			if age := time.Since(time.Unix(int64(v), 0)); v != math.Trunc(v) || age < -time.Minute || age > time.Hour {
				h.t.Errorf("%s is %v", name, v)
			}
			return "now"
		case "score":
			return math.Round(100*v) / 100
		}
	case string:
		if rest, ok := strings.CutPrefix(v, h.dir); ok {
			return "HOME" + filepath.ToSlash(rest)
		}
	}
	return v
}

// TestToolsAreListedWithTheParametersOfTheContract checks the tools and parameters offered to the
// model.
func TestToolsAreListedWithTheParametersOfTheContract(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	for _, revision := range revisions() {
		c := h.dialTo(h.command("serve", "--toolsets", "observations,records"), revision, nil)
		t.Cleanup(c.leave)
		listed, err := c.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, tool := range listed.Tools {
			var schema struct {
				Type       string
				Properties map[string]struct{ Type string }
				Required   []string
			}
			data, err := json.Marshal(tool.InputSchema)
			if err == nil {
				err = json.Unmarshal(data, &schema)
			}
			if err != nil || schema.Type != "object" || tool.Description == "" {
				t.Errorf("%s: %s, %v", tool.Name, data, err)
			}
			var params []string
			for name, p := range schema.Properties {
				if slices.Contains(schema.Required, name) {
					name += "!"
				}
				params = append(params, name+":"+p.Type)
			}
			slices.Sort(params)
			got[tool.Name] = strings.Join(params, " ")
			writes := slices.Contains([]string{
				"create_project", "activate", "sync_session", "create_record", "update_record", "transition", "save_session", "close_session",
			}, tool.Name)
			if (tool.Annotations != nil && tool.Annotations.ReadOnlyHint) == writes {
				t.Errorf("%s: marked as only reading: %v", tool.Name, !writes)
			}
		}
		for name, want := range map[string]string{
			"search": "after:integer before:integer limit:integer obs_type:string offset:integer orderBy:string " +
				"project:string query!:string",
			"get_observations": "ids!:array",
			"timeline":         "after:integer anchor!:integer before:integer",
			"recent_context":   "detail:string limit:integer project:string",
			"session_trace":    "after:integer before:integer detail:string session_id!:string",
			"file_history":     "after:integer before:integer detail:string edits_only:boolean file_path!:string limit:integer",

			// The tools of the record-sync seed, plus the parameters at, project_id, session_id and
			// metadata from records §2 and §7.
			"create_project":       "description:string id:string name!:string",
			"list_projects":        "",
			"get_project":          "at:string id:string",
			"get_project_overview": "at:string project_id:string",
			"search_records": "at:string limit:integer parent_id:string project_id:string query!:string " +
				"states:array types:array",
			"list_records":   "at:string depth:integer parent_id:string project_id:string states:array types:array",
			"get_record_ref": "at:string id!:string project_id:string",
			"activate":       "id!:string override:boolean project_id:string session_id:string",
			"sync_session":   "project_id:string session_id:string",
			"create_record": "body!:string metadata:object parent_id:string project_id:string related:array " +
				"session_id:string state:string summary!:string title!:string type!:string",
			"update_record": "body:string force:boolean id!:string metadata:object project_id:string related:array " +
				"session_id:string summary:string title:string",
			"transition": "id!:string project_id:string reason:string resolved_by:string session_id:string " +
				"to_state!:string",
			"save_session":        "project_id:string session_id:string summary:string",
			"close_session":       "project_id:string session_id:string summary:string",
			"get_record_history":  "at:string id!:string limit:integer project_id:string since:string",
			"get_record_diff":     "from!:string id!:string project_id:string session_id:string to:string",
			"get_active_sessions": "at:string project_id:string record_id!:string session_id:string",
			"get_recent_activity": "at:string limit:integer project_id:string record_id:string since:string types:array",
		} {
			if got[name] != want {
				t.Errorf("%s: %s takes %q, want %q", revision, name, got[name], want)
			}
		}
	}
}
