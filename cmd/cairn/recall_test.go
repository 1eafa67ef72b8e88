package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"cairn/internal/recall"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestRecallAnswersAlikeOverMCPAndAsJSON recalls the work of two sessions, in the profile
// with the fewest tools.
func TestRecallAnswersAlikeOverMCPAndAsJSON(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	h.worked()
	w := h.listen("--toolsets", "records", "--profile", "lean")
	c := w.connect("/mcp", "", nil)
	for _, args := range []fields{
		{"query": "why does the refund test fail?", "words": "docs"},
		{"query": "refund AND test", "limit": 1},
		{"query": "zeppelin"},
	} {
		r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "recall", Arguments: args})
		if err != nil || r.IsError {
			t.Fatalf("%v: %+v, %v", args, r, err)
		}
		text := r.Content[0].(*sdk.TextContent).Text
		if shown, _ := r.StructuredContent.(map[string]any); len(shown) != 1 || shown["result"] != text {
			t.Errorf("%v: models of some hosts are shown %v, not the text", args, r.StructuredContent)
		}
		body, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		got := w.do(http.MethodPost, "/v1/projects/*/recall/recall", string(body))
		var answer recall.Answer
		if json.Unmarshal([]byte(got.body), &answer) != nil || got.status != http.StatusOK {
			t.Fatalf("%v: JSON %s (%d)", args, got.body, got.status)
		}
		for _, g := range slices.Concat(answer.Results, answer.Newest) {
			if !strings.Contains(text, g.SessionID) || len(g.Items) > 0 && !strings.Contains(text, g.Items[0].Excerpt) {
				t.Errorf("%v: the text does not tell of %+v:\n%s", args, g, text)
			}
		}
		if found := args["query"] != "zeppelin"; strings.Contains(text, "\n   observations #") != found || !strings.Contains(text, "session s1") {
			t.Errorf("%v: %s", args, text)
		}
	}
	if refused := w.do(http.MethodPost, "/v1/projects/*/recall/recall", `{"query":"x","detail":"much"}`); refused.status != http.StatusBadRequest || !strings.Contains(refused.body, "brief or full") {
		t.Errorf("%d %s", refused.status, refused.body)
	}
}

// TestAnAnswerToAnAgentHasAtMost800Tokens stores many sessions with long prompts.
func TestAnAnswerToAnAgentHasAtMost800Tokens(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	for n := range 30 {
		id := fmt.Sprintf("0000000%d-0000-4000-8000-%012d", n%10, n)
		for turn := range 4 {
			h.recorded(h.payload("UserPromptSubmit", fields{"session_id": id, "prompt_id": fmt.Sprint(n, turn), "prompt": strings.Repeat(fmt.Sprintf("refund %d of the ledger, ", n*turn), 20)}))
		}
		h.recorded(h.payload("SessionEnd", fields{"session_id": id, "reason": "exit"}))
	}
	c := h.connect("2025-11-25", nil)
	sizes := map[string]int{}
	for _, detail := range []string{"brief", "full"} {
		r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "recall", Arguments: fields{"query": "refund of the ledger", "detail": detail}})
		if err != nil || r.IsError {
			t.Fatalf("%+v, %v", r, err)
		}
		structured, err := json.Marshal(r.StructuredContent)
		if err != nil {
			t.Fatal(err)
		}
		sizes[detail] = max(len(structured), len(r.Content[0].(*sdk.TextContent).Text)) / 4
	}
	if sizes["brief"] > 800 || sizes["brief"] < 500 || sizes["full"] > 4000 || 10*sizes["full"] < 13*sizes["brief"] {
		t.Errorf("%v tokens", sizes)
	}
}
