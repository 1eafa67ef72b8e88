package web

import (
	"fmt"
	"strings"
	"testing"

	"cairn/internal/observation/browse"
	"cairn/internal/record"
)

func prompt(source, text string, rows ...browse.TraceRow) browse.TracePrompt {
	return browse.TracePrompt{Source: source, Content: &text, Observations: rows, ObservationCount: len(rows)}
}

func TestAnswersAndActionsBelongToThePromptBeforeThem(t *testing.T) {
	t.Parallel()
	turns := turnsOf(browse.Trace{Prompts: []browse.TracePrompt{
		{Source: "system", Observations: []browse.TraceRow{{ObsType: "session_start"}}},
		{Source: "system", Observations: []browse.TraceRow{{ObsType: "session_start"}, {ObsType: "command"}}},
		prompt("user", "first", browse.TraceRow{ObsType: "file_read"}, browse.TraceRow{ObsType: "command_error", Failed: true}),
		prompt("agent", "half way", browse.TraceRow{ObsType: "file_edit"}),
		prompt("agent", "done"),
		prompt("user", "second"),
	}})
	var told []string
	for _, n := range turns {
		told = append(told, fmt.Sprintf("%d %s: %d actions, %d failed, %d answers", n.N, n.Prompt, len(n.Actions), n.Failed, len(n.Answers)))
	}
	want := "1 : 1 actions, 0 failed, 0 answers|2 first: 3 actions, 1 failed, 2 answers|3 second: 0 actions, 0 failed, 0 answers"
	if got := strings.Join(told, "|"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestATreeHoldsEachRecordOnceBelowItsParent(t *testing.T) {
	t.Parallel()
	ref := func(id, parent string, state record.State) record.Ref {
		r := record.Ref{ID: id, State: state}
		if parent != "" {
			r.ParentID = &parent
		}
		return r
	}
	all := []record.Ref{
		ref("R001", "", record.Resolved), ref("R002", "R001", record.Open), ref("R003", "R009", record.Open), ref("R004", "R002", record.Later), ref("R005", "", record.Discarded),
	}
	draw := func(state record.State) string {
		var out []string
		for _, n := range (&recordsPage{Project: "shop", State: state}).treeOf(all, "R002") {
			out = append(out, strings.Repeat(">", n.Depth)+n.ID)
		}
		return strings.Join(out, " ")
	}
	for state, want := range map[record.State]string{
		"": "R001 >R002 >>R004 R003 R005", record.Later: "R001 >R002 >>R004", record.Open: "R001 >R002 R003", record.Discarded: "R005",
	} {
		if got := draw(state); got != want {
			t.Errorf("%s: %s, want %s", state, got, want)
		}
	}
}
