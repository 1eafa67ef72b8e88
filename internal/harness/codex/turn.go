package codex

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"cairn/internal/harness"
	"cairn/internal/harness/lazyjson"
	"cairn/internal/observation"
)

// named stores the id of the current turn. Prompts that wait for the id get it.
func (t *transcript) named(id string) {
	if id == "" {
		return
	}
	t.turn = id
	for i := range t.held {
		if t.held[i].event.PromptID == "" {
			t.held[i].event.PromptID = id
		}
	}
}

// release yields the waiting prompts. Prompts that no event confirmed are yielded only if all is
// true, else they are dropped.
func (t *transcript) release(all bool) error {
	held := t.held
	t.held = nil
	for _, p := range held {
		if !p.sure && !all {
			continue
		}
		if err := t.yield(p.event); err != nil {
			return err
		}
	}
	return nil
}

// beginTurn ends the previous turn. The lines from start on can be read without the lines before
// them.
func (t *transcript) beginTurn(start int64) error {
	if err := t.endTurn(); err != nil {
		return err
	}
	t.resume = start
	return nil
}

// endTurn yields what is left at the end of a turn: prompts, commands that are still running, and
// the agent's last message.
func (t *transcript) endTurn() error {
	if err := t.release(true); err != nil {
		return err
	}
	for _, c := range t.running {
		for i := range c.calls {
			c.calls[i].Background = true
		}
		if err := t.finish(c, c.at); err != nil {
			return err
		}
	}
	t.running = nil
	said, at := t.said, t.saidAt
	m := t.newEvent(observation.Message, harness.OnStop)
	t.said, t.acted, t.turn, t.open, t.prompted = "", false, "", false, false
	if said == "" {
		return nil
	}
	m.At = at
	return t.yield(harness.LastMessage(m, said))
}

// end handles the end of the file. A turn that has not ended is read again after the file has
// grown.
func (t *transcript) end() error {
	if n := len(t.pending) + len(t.running); n > 0 {
		t.skipped[harness.NoResult] += n
	}
	if err := t.release(false); err != nil || t.open || t.acted || len(t.running) > 0 {
		return err
	}
	return t.endTurn()
}

// says stores the agent's latest text.
func (t *transcript) says(words string) error {
	if strings.TrimSpace(words) == "" {
		return nil
	}
	t.said, t.saidAt, t.acted = words, t.at, false
	return t.release(true)
}

// item handles an input or output of the model.
func (t *transcript) item(p lazyjson.Value, bare bool, start int64) error {
	f := p.Pick("type", "role", "content", "call_id", "name", "namespace", "id", "action", "output")
	call := lazyjson.FirstNonBlank(f[3].Text(), f[6].Text())
	switch kind := f[0].Text(); kind {
	case "message":
		return t.message(f[1].Text(), f[2], bare, start)
	case "function_call", "custom_tool_call":
		if kind == "custom_tool_call" && isScript(f[5].Text(), f[4].Text()) {
			t.scripts[call], t.acted = true, true
			t.skip(harness.UnusedLine)
			return t.release(true)
		}
		return t.call(call, qualified(f[5].Text(), f[4].Text()), callInput(p, kind))
	case "local_shell_call":
		return t.call(call, "local_shell", f[7])
	case "web_search_call":
		if call == "" {
			call = "web_search-" + t.at.UTC().Format(time.RFC3339Nano)
		}
		c := observation.Call{ID: call, Tool: "web_search"}
		webCall(&c, f[7])
		if c.URL+c.Query == "" {
			t.skip(harness.UnusedLine)
			return nil
		}
		t.acted = true
		return t.finish(&codexCall{calls: []observation.Call{c}, turn: t.turn}, t.at)
	case "function_call_output", "custom_tool_call_output", "local_shell_call_output":
		return t.output(call, f[8])
	case "reasoning", "ghost_snapshot", "compaction", "context_compaction", "image_generation_call",
		"tool_search_call", "tool_search_output", "agent_message", "additional_tools":
		t.skip(harness.UnusedLine)
	default:
		t.skip(harness.UnknownLine)
	}
	return nil
}

// callInput returns the input of a call: an object, which functions receive as JSON text, or the
// text for a tool with free-form input.
func callInput(p lazyjson.Value, kind string) lazyjson.Value {
	if kind == "custom_tool_call" {
		return p.Get("input")
	}
	return p.Get("arguments").Unwrapped()
}

// qualified returns a tool's name as in hooks, including its server.
func qualified(namespace, name string) string {
	if namespace == "" || strings.HasPrefix(name, namespace) {
		return name
	}
	return strings.TrimSuffix(namespace, "__") + "__" + strings.TrimPrefix(name, "__")
}

// message handles a message in the model's conversation.
func (t *transcript) message(role string, content lazyjson.Value, bare bool, start int64) error {
	switch role {
	case "assistant":
		return t.says(content.Plain())
	case "user":
	default:
		t.skip(harness.MetaLine)
		return nil
	}
	words := typedBlocks(content)
	switch {
	case strings.TrimSpace(words) == "":
		t.skip(harness.MetaLine)
		return nil
	case t.prompted:
		return nil // the prompt event contains the text
	}
	if !t.open && len(t.held) == 0 {
		if err := t.beginTurn(start); err != nil {
			return err
		}
	}
	if bare && len(t.held) > 0 {
		if err := t.release(true); err != nil {
			return err
		}
	}
	t.hold(words, bare)
	return nil
}

// typedBlocks returns the user's text in a message of one or more blocks.
func typedBlocks(content lazyjson.Value) string {
	if content.Kind() == '"' {
		return typed(content.Text())
	}
	var said lazyjson.Paragraphs
	for block := range content.Elements() {
		part := block.Get("text").Text()
		if strings.HasPrefix(part, "<image") || strings.HasPrefix(part, "</image") {
			continue // a tag around an image
		}
		if part = typed(part); strings.TrimSpace(part) != "" {
			said.Add(part)
		}
	}
	return said.Text()
}

// hold keeps a prompt until its turn is known.
func (t *transcript) hold(words string, sure bool) {
	if t.agent != "" {
		return // an agent's text to its subagent is not a prompt
	}
	p := t.newEvent(observation.Prompt, harness.OnPrompt)
	p.Text = words
	t.held = append(t.held, heldPrompt{p, sure})
}

// event handles an event that Codex shows to the user.
func (t *transcript) event(p lazyjson.Value, start int64) error {
	f := p.Pick("type", "message", "turn_id", "last_agent_message", "call_id")
	switch f[0].Text() {
	case "user_message":
		return t.userMessage(f[1].Plain(), start)
	case "agent_message":
		return t.says(f[1].Text())
	case "task_started", "turn_started":
		if err := t.beginTurn(start); err != nil {
			return err
		}
		t.named(f[2].Text())
		t.open = true
	case "task_complete", "turn_complete":
		if last := f[3].Text(); strings.TrimSpace(last) != "" && last != t.said {
			t.said, t.saidAt = last, t.at
		}
		t.named(f[2].Text())
		return t.endTurn()
	case "turn_aborted":
		if t.said != "" {
			t.skip(harness.TurnStopped)
		}
		t.said = ""
		return t.endTurn()
	case "exec_command_end", "patch_apply_end", "mcp_tool_call_end":
		return t.ended(f[4].Text(), p)
	case "item_completed":
		return t.completed(p.Get("item"), start)
	default:
		t.skip(harness.UnusedLine)
	}
	return nil
}

// userMessage handles a prompt event. Earlier messages to the model were the same prompt or
// generated, so they are dropped. Later prompts of a turn share its id, so the id does not
// identify them.
func (t *transcript) userMessage(said string, start int64) error {
	words := typed(said)
	if strings.TrimSpace(words) == "" {
		t.skip(harness.MachinePrompt)
		return nil
	}
	if !t.open && (t.prompted || !slices.ContainsFunc(t.held, func(p heldPrompt) bool { return !p.sure })) {
		if err := t.beginTurn(start); err != nil {
			return err
		}
	}
	t.held = slices.DeleteFunc(t.held, func(p heldPrompt) bool { return !p.sure })
	later := t.prompted
	t.hold(words, true)
	t.prompted = true
	if later && len(t.held) > 0 {
		t.held[len(t.held)-1].event.PromptID = ""
		return t.release(true)
	}
	return nil
}

// call stores a call until its result arrives.
func (t *transcript) call(id, tool string, input lazyjson.Value) error {
	t.acted = true
	if id == "" || strings.TrimSpace(tool) == "" {
		return t.release(true)
	}
	c := &codexCall{tool: tool, own: harness.IsOwnTool(tool), turn: t.turn}
	if tool == "write_stdin" {
		c.number = input.Get("session_id").Text()
		if n, ok := input.Get("session_id").Integer(); ok {
			c.number = strconv.FormatInt(n, 10)
		}
	} else {
		c.calls = calls(id, tool, input)
	}
	t.pending[id] = c
	return t.release(true)
}

// ended handles the event at the end of a call. The output for the model follows, except after a
// command that was left running.
func (t *transcript) ended(id string, p lazyjson.Value) error {
	r := readCodexResult(p)
	if result := p.Get("result"); result != nil {
		f := result.Pick("Ok", "Err")
		if f[1] != nil {
			r = codexResult{stderr: f[1].Plain(), failed: true}
		} else {
			r = readCodexResult(f[0])
		}
	}
	if c, ok := t.pending[id]; ok {
		c.reported = &r
		return nil
	}
	for i, c := range t.running {
		if c.calls[0].ID == id {
			t.running = slices.Delete(t.running, i, i+1)
			r.apply(c.calls, nil, nil)
			return t.finish(c, t.at)
		}
	}
	t.skip(harness.UnusedLine)
	return nil
}

// output pairs a call with its output.
func (t *transcript) output(id string, output lazyjson.Value) error {
	c, ok := t.pending[id]
	if t.scripts[id] {
		delete(t.scripts, id)
		t.skip(harness.UnusedLine)
		return nil
	}
	if !ok {
		t.skip(harness.NoCall)
		return nil
	}
	delete(t.pending, id)
	r := readCodexResult(output)
	why := refusal(r)
	if c.reported != nil {
		reported := *c.reported
		if reported.stdout == "" && reported.stderr == "" {
			reported.stdout, reported.stderr = r.stdout, r.stderr
		}
		reported.durationMS = max(reported.durationMS, r.durationMS)
		reported.running = r.running
		r = reported
	}
	switch {
	case c.tool == "write_stdin":
		return t.goesOn(c.number, r, output)
	case c.own:
		t.skip(harness.OwnTool)
		return nil
	case why != harness.NeverRefused:
		t.skip(why)
		return nil
	case r.running != "" && r.code == nil:
		c.number, c.at = r.running, t.at
		t.running = append(t.running, c)
		return nil
	}
	r.apply(c.calls, output, nil)
	if r.failed && len(c.calls) == 1 && !c.calls[0].Failed {
		c := &c.calls[0]
		c.Failed, c.Error, c.Output = true, lazyjson.FirstNonBlank(r.stderr, r.stdout), ""
	}
	return t.finish(c, t.at)
}

// goesOn handles later output of a running command. If the command has exited, the call that
// started it is complete.
func (t *transcript) goesOn(number string, r codexResult, output lazyjson.Value) error {
	t.skip(typedInput)
	i := slices.IndexFunc(t.running, func(c *codexCall) bool { return c.number == number })
	if i < 0 || r.code == nil {
		return nil
	}
	c := t.running[i]
	t.running = slices.Delete(t.running, i, i+1)
	r.apply(c.calls, output, nil)
	return t.finish(c, t.at)
}

// finish yields a call with the time of its result and the turn that made it.
func (t *transcript) finish(c *codexCall, at time.Time) error {
	e := t.newEvent(observation.Tool, harness.OnToolUse)
	e.Calls, e.At, e.PromptID, e.Settled = c.calls, at, lazyjson.FirstNonBlank(c.turn, t.turn), c.final || c.reported != nil
	return t.emit(e)
}
