package mcp_test

import (
	"slices"
	"strings"
	"testing"

	"cairn/internal/mcp"
	"cairn/internal/mcp/toolargs"
)

// TestAHostPaysWhatItsRequestsHold compares the estimate with the size of one tool in the
// programs' requests, recorded at the model's API.
func TestAHostPaysWhatItsRequestsHold(t *testing.T) {
	t.Parallel()
	around := func(name, about string) toolargs.Param {
		return toolargs.Param{Name: name, Kind: toolargs.Integer, Description: about, Default: 5, Minimum: new(0), Maximum: new(50)}
	}
	timeline := mcp.Tool{
		Name: "timeline", ReadOnly: true, Description: "What happened around one observation in its session.",
		Params: []toolargs.Param{
			{Name: "anchor", Kind: toolargs.Integer, Required: true, Description: "Observation id."},
			around("before", "Rows before it."), around("after", "Rows after it."),
		},
	}
	override := mcp.Tool{
		Name: "activate", Description: "Load a record, before changing it or adding below it. On a conflict ask the user, then override.",
		Params: []toolargs.Param{{Name: "id", Required: true}, {Name: "override", Kind: toolargs.Boolean}},
	}
	const wait = `"wait_for_previous":{"type":"boolean","description":"Set to true to wait for all previously requested tools in this turn to complete before starting. ` +
		`Set to false (or omit) to run in parallel. Use true when this tool depends on the output of previous tools."}`
	for host, c := range map[string]struct {
		tool     mcp.Tool
		recorded string // with the separator between two tools
	}{
		"Claude Code":      {timeline, `mcp__cairn__timeline\n`},
		"Codex, code mode": {timeline, ""},
		"Codex, plain tools": {timeline, `,{"type":"function","name":"timeline","description":"What happened around one observation in its session.","strict":false,` +
			`"parameters":{"type":"object","properties":{"after":{"type":"integer","description":"Rows after it."},` +
			`"anchor":{"type":"integer","description":"Observation id."},"before":{"type":"integer","description":"Rows before it."}},"required":["anchor"]}}`},
		"Gemini CLI": {timeline, `,{"name":"mcp_cairn_timeline","description":"What happened around one observation in its session.",` +
			`"parametersJsonSchema":{"type":"object","properties":{"anchor":{"type":"integer","description":"Observation id."},` +
			`"before":{"type":"integer","description":"Rows before it.","default":5,"minimum":0,"maximum":50},` +
			`"after":{"type":"integer","description":"Rows after it.","default":5,"minimum":0,"maximum":50},` + wait + `},"required":["anchor"]}}`},
		"Qwen Code": {override, `- \"mcp__cairn__activate\": \"Load a record, before changing it or adding below it. On a conflict ask the user, then override.\"\n`},
		"OpenCode": {override, `,{"type":"function","function":{"name":"cairn_activate",` +
			`"description":"Load a record, before changing it or adding below it. On a conflict ask the user, then override.",` +
			`"parameters":{"type":"object","properties":{"id":{"type":"string"},"override":{"type":"boolean"}},"required":["id"],"additionalProperties":false}}}`},
		"Copilot CLI": {override, `,{"type":"function","function":{"name":"cairn-activate",` +
			`"description":"Load a record, before changing it or adding below it. On a conflict ask the user, then override.",` +
			`"parameters":{"properties":{"id":{"type":"string"},"override":{"type":"boolean"}},"required":["id"],"type":"object"}}}`},
	} {
		h := hostOf(t, host)
		const copies = 400 // so that rounding is insignificant
		got := cost(t, h, slices.Repeat([]mcp.Tool{c.tool}, copies), "") - cost(t, h, nil, "")
		if want := copies * len(c.recorded) / 4; got < want-1 || got > want+1 {
			t.Errorf("%s: a tool has %d bytes, recorded are %d", host, got*4/copies, len(c.recorded))
		}
	}
}

func TestAHostPaysForTheInstructionsThatItSends(t *testing.T) {
	t.Parallel()
	instructions := strings.Repeat("a", 400) + "\n" + strings.Repeat("b", 798)
	for name, want := range map[string]int{"Claude Code": 300, "Codex, code mode": 100, "Qwen Code": 0, "OpenCode": 300, "Copilot CLI": 0} {
		h := hostOf(t, name)
		if got := cost(t, h, nil, instructions) - cost(t, h, nil, ""); got != want {
			t.Errorf("%s: %d tokens for instructions, want %d", name, got, want)
		}
	}
}

// TestALongDescriptionIsCutWhereTheHostCutsIt also checks that the cut part costs nothing.
func TestALongDescriptionIsCutWhereTheHostCutsIt(t *testing.T) {
	t.Parallel()
	h := hostOf(t, "Qwen Code")
	long := func(n int) []mcp.Tool { return []mcp.Tool{{Name: "t", Description: strings.Repeat("x", n)}} }
	if cost(t, h, long(161), "") != cost(t, h, long(5000), "") || cost(t, h, long(100), "") >= cost(t, h, long(160), "") {
		t.Error("descriptions are not cut at 160 characters")
	}
}

func hostOf(t *testing.T, name string) mcp.Host {
	t.Helper()
	hosts := mcp.Hosts()
	i := slices.IndexFunc(hosts, func(h mcp.Host) bool { return h.Name == name })
	if i < 0 {
		t.Fatalf("no host %q", name)
	}
	return hosts[i]
}

func cost(t *testing.T, h mcp.Host, tools []mcp.Tool, instructions string) int {
	t.Helper()
	n, err := h.Cost(tools, instructions)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
