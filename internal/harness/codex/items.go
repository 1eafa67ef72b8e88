package codex

import (
	"fmt"
	"strings"

	"cairn/internal/harness"
	"cairn/internal/harness/lazyjson"
)

// Since 0.169 Codex reports every message and call when it is complete (item_completed). Its
// default mode gives the model one tool, functions.exec, which runs JavaScript. Only the items
// contain the calls that a script made and their results.

// isScript reports whether a call runs a script.
func isScript(namespace, name string) bool {
	return name == "exec" && (namespace == "functions" || namespace == "")
}

// completed handles a completed item.
func (t *transcript) completed(item lazyjson.Value, start int64) error {
	f := item.Pick("type", "id", "content", "status")
	id, status := f[1].Text(), f[3].Text()
	switch kind := f[0].Text(); kind {
	case "UserMessage":
		return t.userMessage(typedBlocks(f[2]), start)
	case "AgentMessage":
		return t.says(f[2].Plain())
	case "CommandExecution", "FileChange", "McpToolCall":
		r := readCodexItem(kind, item)
		if c, ok := t.pending[id]; ok { // called without a script: its output follows
			if status != "declined" {
				c.reported = &r
			}
			return nil
		}
		if status == "declined" {
			t.skip(harness.Rejected)
			return nil
		}
		return t.scripted(id, kind, item, r)
	default:
		t.skip(harness.UnusedLine)
	}
	return nil
}

// scripted yields a call that a script made, under the tool name that hooks use.
func (t *transcript) scripted(id, kind string, item lazyjson.Value, r codexResult) error {
	t.acted = true
	tool, input := itemCall(kind, item)
	if harness.IsOwnTool(tool) {
		t.skip(harness.OwnTool)
		return t.release(true)
	}
	c := &codexCall{tool: tool, calls: calls(id, tool, input), turn: t.turn, final: true}
	response := item
	if kind == "McpToolCall" {
		response = mcpResult(item)
	}
	r.apply(c.calls, response, nil)
	if r.failed && len(c.calls) > 0 && !c.calls[0].Failed && !c.calls[0].Interrupted {
		for i := range c.calls {
			c.calls[i].Failed, c.calls[i].Error, c.calls[i].Output = true, lazyjson.FirstNonBlank(r.stderr, r.stdout), ""
		}
	}
	return t.finish(c, t.at)
}

// readCodexItem reads the outcome of an item's call.
func readCodexItem(kind string, item lazyjson.Value) codexResult {
	if kind == "McpToolCall" {
		f := item.Pick("error", "status")
		r := readCodexResult(mcpResult(item))
		if said := f[0].Plain(); said != "" {
			r.stdout, r.stderr = said, said
		}
		r.failed = r.failed || f[1].Text() == "failed"
		return r
	}
	r := readResultObject(item)
	if item.Get("status").Text() == "failed" && r.code == nil {
		r.failed = true
	}
	if r.stderr == "" {
		r.stderr = r.stdout
	}
	return r
}

// mcpResult returns the response of an MCP server in the form that hooks use, nil if there is
// none.
func mcpResult(item lazyjson.Value) lazyjson.Value {
	result := item.Get("result")
	if ok := result.Get("Ok"); ok != nil {
		return ok
	}
	return result
}

// itemCall returns the tool of an item and its input, as in hooks.
func itemCall(kind string, item lazyjson.Value) (tool string, input lazyjson.Value) {
	switch kind {
	case "CommandExecution":
		return "Bash", lazyjson.Quote(shellLine(item.Get("command")))
	case "FileChange":
		return harness.PatchTool, lazyjson.Quote(patch(item.Get("changes")))
	default:
		f := item.Pick("server", "tool", "arguments")
		return "mcp__" + f[0].Text() + "__" + f[1].Text(), f[2]
	}
}

// patch returns a patch with an item's changes to files.
func patch(changes lazyjson.Value) string {
	var b strings.Builder
	b.WriteString(harness.PatchBegin + "\n")
	for name, change := range changes.Members() {
		path := strings.ReplaceAll(string(name), "\n", " ")
		f := change.Pick("type", "unified_diff", "content", "move_path")
		switch f[0].Text() {
		case "add":
			fmt.Fprintf(&b, "*** Add File: %s\n", path)
			for line := range strings.Lines(f[2].Text()) {
				b.WriteString("+" + line)
			}
		case "delete":
			fmt.Fprintf(&b, "*** Delete File: %s\n", path)
		default:
			fmt.Fprintf(&b, "*** Update File: %s\n", path)
			if to := f[3].Text(); to != "" {
				fmt.Fprintf(&b, "*** Move to: %s\n", to)
			}
			b.WriteString(f[1].Text())
		}
		b.WriteString("\n")
	}
	b.WriteString("*** End Patch\n")
	return b.String()
}
