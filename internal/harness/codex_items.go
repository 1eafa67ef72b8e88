package harness

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Since 0.169 Codex reports every message and call when it is complete (item_completed). Its
// default mode gives the model one tool, functions.exec, which runs JavaScript. Only the items
// contain the calls that a script made and their results.

// isScript reports whether a call runs a script.
func isScript(namespace, name string) bool {
	return name == "exec" && (namespace == "functions" || namespace == "")
}

// completed handles a completed item.
func (t *codexTranscript) completed(item []byte, start int64) error {
	f := pick(item, "type", "id", "content", "status")
	id, status := text(f[1]), text(f[3])
	switch kind := text(f[0]); kind {
	case "UserMessage":
		return t.userMessage(typedBlocks(f[2]), start)
	case "AgentMessage":
		return t.says(plain(f[2]))
	case "CommandExecution", "FileChange", "McpToolCall":
		r := readCodexItem(kind, item)
		if c, ok := t.pending[id]; ok { // called without a script: its output follows
			if status != "declined" {
				c.reported = &r
			}
			return nil
		}
		if status == "declined" {
			t.skip(rejected)
			return nil
		}
		return t.scripted(id, kind, item, r)
	default:
		t.skip(unusedLine)
	}
	return nil
}

// scripted yields a call that a script made, under the tool name that hooks use.
func (t *codexTranscript) scripted(id, kind string, item []byte, r codexResult) error {
	t.acted = true
	tool, input := codexItemCall(kind, item)
	if isOwn(tool) {
		t.skip(ownTool)
		return t.release(true)
	}
	c := &codexCall{tool: tool, calls: codexCalls(id, tool, input), turn: t.turn, final: true}
	response := item
	if kind == "McpToolCall" {
		response = codexMCPResult(item)
	}
	r.apply(c.calls, response, nil)
	if r.failed && len(c.calls) > 0 && !c.calls[0].Failed && !c.calls[0].Interrupted {
		for i := range c.calls {
			c.calls[i].Failed, c.calls[i].Error, c.calls[i].Output = true, firstNonBlank(r.stderr, r.stdout), ""
		}
	}
	return t.finish(c, t.at)
}

// readCodexItem reads the outcome of an item's call.
func readCodexItem(kind string, item []byte) codexResult {
	if kind == "McpToolCall" {
		f := pick(item, "error", "status")
		r := readCodexResult(codexMCPResult(item))
		if said := plain(f[0]); said != "" {
			r.stdout, r.stderr = said, said
		}
		r.failed = r.failed || text(f[1]) == "failed"
		return r
	}
	r := readResultObject(item)
	if text(get(item, "status")) == "failed" && r.code == nil {
		r.failed = true
	}
	if r.stderr == "" {
		r.stderr = r.stdout
	}
	return r
}

// codexMCPResult returns the response of an MCP server in the form that hooks use, nil if there is
// none.
func codexMCPResult(item []byte) []byte {
	result := get(item, "result")
	if ok := get(result, "Ok"); ok != nil {
		return ok
	}
	return result
}

// codexItemCall returns the tool of an item and its input, as in hooks.
func codexItemCall(kind string, item []byte) (tool string, input []byte) {
	switch kind {
	case "CommandExecution":
		return "Bash", jsonText(shellLine(get(item, "command")))
	case "FileChange":
		return patchTool, jsonText(codexPatch(get(item, "changes")))
	default:
		f := pick(item, "server", "tool", "arguments")
		return "mcp__" + text(f[0]) + "__" + text(f[1]), f[2]
	}
}

// jsonText encodes a text as JSON.
func jsonText(s string) []byte {
	quoted, err := jsontext.AppendQuote(nil, strings.ToValidUTF8(s, "\uFFFD"))
	if err != nil {
		return []byte(`""`)
	}
	return quoted
}

// codexPatch returns a patch with an item's changes to files.
func codexPatch(changes []byte) string {
	var b strings.Builder
	b.WriteString(patchBegin + "\n")
	for name, change := range members(changes) {
		path := strings.ReplaceAll(string(name), "\n", " ")
		f := pick(change, "type", "unified_diff", "content", "move_path")
		switch text(f[0]) {
		case "add":
			fmt.Fprintf(&b, "*** Add File: %s\n", path)
			for line := range strings.Lines(text(f[2])) {
				b.WriteString("+" + line)
			}
		case "delete":
			fmt.Fprintf(&b, "*** Delete File: %s\n", path)
		default:
			fmt.Fprintf(&b, "*** Update File: %s\n", path)
			if to := text(f[3]); to != "" {
				fmt.Fprintf(&b, "*** Move to: %s\n", to)
			}
			b.WriteString(text(f[1]))
		}
		b.WriteString("\n")
	}
	b.WriteString("*** End Patch\n")
	return b.String()
}
