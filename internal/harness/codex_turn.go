package harness

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"cairn/internal/observation"
)

// named stores the id of the current turn. Prompts that wait for the id get it.
func (t *codexTranscript) named(id string) {
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
func (t *codexTranscript) release(all bool) error {
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
func (t *codexTranscript) beginTurn(start int64) error {
	if err := t.endTurn(); err != nil {
		return err
	}
	t.resume = start
	return nil
}

// endTurn yields what is left at the end of a turn: prompts, commands that are still running, and
// the agent's last message.
func (t *codexTranscript) endTurn() error {
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
	m := t.newEvent(observation.Message, onStop)
	t.said, t.acted, t.turn, t.open, t.prompted = "", false, "", false, false
	if said == "" {
		return nil
	}
	m.At = at
	return t.yield(lastWords(m, said))
}

// end handles the end of the file. A turn that has not ended is read again after the file has
// grown.
func (t *codexTranscript) end() error {
	if n := len(t.pending) + len(t.running); n > 0 {
		t.skipped[noResult] += n
	}
	if err := t.release(false); err != nil || t.open || t.acted || len(t.running) > 0 {
		return err
	}
	return t.endTurn()
}

// says stores the agent's latest text.
func (t *codexTranscript) says(words string) error {
	if strings.TrimSpace(words) == "" {
		return nil
	}
	t.said, t.saidAt, t.acted = words, t.at, false
	return t.release(true)
}

// item handles an input or output of the model.
func (t *codexTranscript) item(p []byte, bare bool, start int64) error {
	f := pick(p, "type", "role", "content", "call_id", "name", "namespace", "id", "action", "output")
	call := firstNonBlank(text(f[3]), text(f[6]))
	switch kind := text(f[0]); kind {
	case "message":
		return t.message(text(f[1]), f[2], bare, start)
	case "function_call", "custom_tool_call":
		if kind == "custom_tool_call" && isScript(text(f[5]), text(f[4])) {
			t.scripts[call], t.acted = true, true
			t.skip(unusedLine)
			return t.release(true)
		}
		return t.call(call, qualified(text(f[5]), text(f[4])), callInput(p, kind))
	case "local_shell_call":
		return t.call(call, "local_shell", f[7])
	case "web_search_call":
		if call == "" {
			call = "web_search-" + t.at.UTC().Format(time.RFC3339Nano)
		}
		c := observation.Call{ID: call, Tool: "web_search"}
		webCall(&c, f[7])
		if c.URL+c.Query == "" {
			t.skip(unusedLine)
			return nil
		}
		t.acted = true
		return t.finish(&codexCall{calls: []observation.Call{c}, turn: t.turn}, t.at)
	case "function_call_output", "custom_tool_call_output", "local_shell_call_output":
		return t.output(call, f[8])
	case "reasoning", "ghost_snapshot", "compaction", "context_compaction", "image_generation_call",
		"tool_search_call", "tool_search_output", "agent_message", "additional_tools":
		t.skip(unusedLine)
	default:
		t.skip(unknownLine)
	}
	return nil
}

// callInput returns the input of a call: an object, which functions receive as JSON text, or the
// text for a tool with free-form input.
func callInput(p []byte, kind string) []byte {
	if kind == "custom_tool_call" {
		return get(p, "input")
	}
	arguments := get(p, "arguments")
	if inner := insideText(arguments); inner != nil {
		return inner
	}
	return arguments
}

// qualified returns a tool's name as in hooks, including its server.
func qualified(namespace, name string) string {
	if namespace == "" || strings.HasPrefix(name, namespace) {
		return name
	}
	return strings.TrimSuffix(namespace, "__") + "__" + strings.TrimPrefix(name, "__")
}

// message handles a message in the model's conversation.
func (t *codexTranscript) message(role string, content []byte, bare bool, start int64) error {
	switch role {
	case "assistant":
		return t.says(plain(content))
	case "user":
	default:
		t.skip(metaLine)
		return nil
	}
	words := typedBlocks(content)
	switch {
	case strings.TrimSpace(words) == "":
		t.skip(metaLine)
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
func typedBlocks(content []byte) string {
	if kindOf(content) == '"' {
		return codexTyped(text(content))
	}
	var said paragraphs
	for block := range elements(content) {
		part := text(get(block, "text"))
		if strings.HasPrefix(part, "<image") || strings.HasPrefix(part, "</image") {
			continue // a tag around an image
		}
		if part = codexTyped(part); strings.TrimSpace(part) != "" {
			said.add(part)
		}
	}
	return said.text()
}

// hold keeps a prompt until its turn is known.
func (t *codexTranscript) hold(words string, sure bool) {
	if t.agent != "" {
		return // an agent's text to its subagent is not a prompt
	}
	p := t.newEvent(observation.Prompt, onPrompt)
	p.Text = words
	t.held = append(t.held, heldPrompt{p, sure})
}

// event handles an event that Codex shows to the user.
func (t *codexTranscript) event(p []byte, start int64) error {
	f := pick(p, "type", "message", "turn_id", "last_agent_message", "call_id")
	switch text(f[0]) {
	case "user_message":
		return t.userMessage(plain(f[1]), start)
	case "agent_message":
		return t.says(text(f[1]))
	case "task_started", "turn_started":
		if err := t.beginTurn(start); err != nil {
			return err
		}
		t.named(text(f[2]))
		t.open = true
	case "task_complete", "turn_complete":
		if last := text(f[3]); strings.TrimSpace(last) != "" && last != t.said {
			t.said, t.saidAt = last, t.at
		}
		t.named(text(f[2]))
		return t.endTurn()
	case "turn_aborted":
		if t.said != "" {
			t.skip(turnStopped)
		}
		t.said = ""
		return t.endTurn()
	case "exec_command_end", "patch_apply_end", "mcp_tool_call_end":
		return t.ended(text(f[4]), p)
	case "item_completed":
		return t.completed(get(p, "item"), start)
	default:
		t.skip(unusedLine)
	}
	return nil
}

// userMessage handles a prompt event. Earlier messages to the model were the same prompt or
// generated, so they are dropped. Later prompts of a turn share its id, so the id does not
// identify them.
func (t *codexTranscript) userMessage(said string, start int64) error {
	words := codexTyped(said)
	if strings.TrimSpace(words) == "" {
		t.skip(machinePrompt)
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
func (t *codexTranscript) call(id, tool string, input []byte) error {
	t.acted = true
	if id == "" || strings.TrimSpace(tool) == "" {
		return t.release(true)
	}
	c := &codexCall{tool: tool, own: isOwn(tool), turn: t.turn}
	if tool == "write_stdin" {
		c.number = text(get(input, "session_id"))
		if n, ok := integer(get(input, "session_id")); ok {
			c.number = strconv.FormatInt(n, 10)
		}
	} else {
		c.calls = codexCalls(id, tool, input)
	}
	t.pending[id] = c
	return t.release(true)
}

// ended handles the event at the end of a call. The output for the model follows, except after a
// command that was left running.
func (t *codexTranscript) ended(id string, p []byte) error {
	r := readCodexResult(p)
	if result := get(p, "result"); result != nil {
		f := pick(result, "Ok", "Err")
		if f[1] != nil {
			r = codexResult{stderr: plain(f[1]), failed: true}
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
	t.skip(unusedLine)
	return nil
}

// output pairs a call with its output.
func (t *codexTranscript) output(id string, output []byte) error {
	c, ok := t.pending[id]
	if t.scripts[id] {
		delete(t.scripts, id)
		t.skip(unusedLine)
		return nil
	}
	if !ok {
		t.skip(noCall)
		return nil
	}
	delete(t.pending, id)
	r := readCodexResult(output)
	why := codexRefusal(r)
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
		t.skip(ownTool)
		return nil
	case why != neverRefused:
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
		c.Failed, c.Error, c.Output = true, firstNonBlank(r.stderr, r.stdout), ""
	}
	return t.finish(c, t.at)
}

// goesOn handles later output of a running command. If the command has exited, the call that
// started it is complete.
func (t *codexTranscript) goesOn(number string, r codexResult, output []byte) error {
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
func (t *codexTranscript) finish(c *codexCall, at time.Time) error {
	e := t.newEvent(observation.Tool, onToolUse)
	e.Calls, e.At, e.PromptID, e.Settled = c.calls, at, firstNonBlank(c.turn, t.turn), c.final || c.reported != nil
	return t.emit(e)
}
