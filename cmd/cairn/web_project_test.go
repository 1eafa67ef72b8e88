package main

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// posted sends one call as a script does, by a plain POST. It returns the result's text and
// structured content.
func (w *web) posted(query, tool string, args fields, headers ...string) (text string, result fields) {
	w.h.t.Helper()
	body, err := json.Marshal(fields{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": fields{"name": tool, "arguments": args}})
	if err != nil {
		w.h.t.Fatal(err)
	}
	r, err := w.send(http.MethodPost, "/mcp"+query, string(body), headers...)
	var answer struct {
		Result struct {
			Content           []struct{ Text string }
			StructuredContent fields
		}
	}
	if err != nil || r.status != http.StatusOK || json.Unmarshal([]byte(r.body), &answer) != nil || len(answer.Result.Content) == 0 {
		w.h.t.Fatalf("%s: %d, %s, %v", tool, r.status, r.body, err)
	}
	return answer.Result.Content[0].Text, answer.Result.StructuredContent
}

func TestAWriteOverHTTPGoesToTheProjectOfItsSessionOrIsRefused(t *testing.T) { // amendments §B.4, §B.5
	t.Parallel()
	h := newHome(t)
	kiln, yard := h.repository(filepath.Join(h.dir, "kiln")), h.repository(filepath.Join(h.dir, "yard"))
	entry := fields{"memory_id": "default", "raw_entry": "The kiln is at 900 degrees.", "summary": "kiln"}
	record := fields{"type": "question", "title": "Which glaze?", "summary": "s", "body": "b"}
	refused := func(w *web, when string, headers ...string) {
		t.Helper()
		for tool, args := range map[string]fields{"add_entry": entry, "create_record": record} {
			text, result := w.posted("", tool, args, headers...)
			failed, _ := result["error"].(map[string]any)
			details, _ := failed["details"].(map[string]any)
			if failed["code"] != "PROJECT_REQUIRED" || !strings.Contains(text, "PROJECT_REQUIRED") || details["projects"] == nil {
				t.Errorf("%s, %s: %s", when, tool, text)
			}
		}
	}
	w := h.listenUntil()
	refused(w, "without a store")
	start := func(w *web, dir string) {
		t.Helper()
		if text, result := w.posted("", "macro_start_session", fields{"human_key": dir, "program": "p", "model": "m"}, "Mcp-Session-Id", "of-a-client"); result["agent"] == nil {
			t.Fatal(text)
		}
	}
	start(w, kiln)
	refused(w, "outside any session")
	refused(w, "in another session", "Mcp-Session-Id", "of-another-client")
	wrote := func(w *web, project, query string, headers ...string) {
		t.Helper()
		if text, result := w.posted(query, "add_entry", entry, headers...); result["localId"] == nil {
			t.Fatal(text)
		}
		text, _ := w.posted("?project="+project, "list_entries", fields{"memory_id": "default"})
		if !strings.Contains(text, "900 degrees") {
			t.Errorf("%s has no entry: %s", project, text)
		}
		if text, result := w.posted(query, "create_record", record, headers...); result["error"] != nil {
			t.Error(text)
		}
		if text, _ := w.posted("?project="+project, "get_project_overview", fields{}); !strings.Contains(text, "Which glaze?") {
			t.Errorf("%s has no record: %s", project, text)
		}
	}
	wrote(w, "kiln", "", "Mcp-Session-Id", "of-a-client")
	wrote(w, "named", "?project=named")
	w.stop()

	again := h.listenUntil() // the session's project and agent are kept
	start(again, yard)       // and the newest start takes precedence
	wrote(again, "yard", "", "Mcp-Session-Id", "of-a-client")
	again.stop()

	if list := h.cairn("project", "list", "--json"); strings.Contains(list, filepath.Base(h.repo)) {
		t.Errorf("the server's own folder has become a project: %s", list)
	}
}
