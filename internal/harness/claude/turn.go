package claude

import (
	"bytes"
	"strings"

	"cairn/internal/harness"
	"cairn/internal/harness/lazyjson"
	"cairn/internal/observation"
)

// editInput returns a copy of the input of a call that edits or writes a file. It returns nil for
// other calls.
func editInput(tool string, input lazyjson.Value) lazyjson.Value {
	if a := harness.ActionOf(tool); a != observation.Edit && a != observation.Write {
		return nil
	}
	return bytes.Clone(input)
}

// user handles the inputs of an agent: prompts, results of tools, summaries and context from the
// harness.
func (t *transcript) user(raw lazyjson.Value, e envelope, start int64) error {
	f := raw.Pick("message", "isCompactSummary", "toolUseResult", "toolDenialKind")
	content := f[0].Get("content")
	th := t.thread(e)
	results := harness.ToolResults(content)
	if len(results) > 1 {
		f[2] = nil // it belongs to one of the results, but the line does not show which
	}
	for _, block := range results {
		if err := t.result(th, e, block, f[2], f[3].Text()); err != nil {
			return err
		}
	}
	midTurn := len(results) > 0
	said := harness.MessageText(content)
	switch {
	case e.meta:
		t.skip(harness.MetaLine)
		return nil
	case f[1].IsTrue():
		m := e.event(observation.Message, harness.OnPostCompact)
		m.Role, m.Text = harness.RoleSummary, said
		return t.yield(m)
	case said == "" && midTurn:
		return nil
	case strings.HasPrefix(strings.TrimSpace(said), harness.Interrupted):
		th.stopped = true
		t.skip(harness.MachinePrompt)
		return nil
	}
	if !midTurn {
		if err := t.newTurn(th, e, start); err != nil {
			return err
		}
	}
	return t.prompt(th, e, said, midTurn)
}

// newTurn ends the turn of a thread. A new turn of the main thread also ends those of its
// subagents.
func (t *transcript) newTurn(th *thread, e envelope, start int64) error {
	if th.agent == t.agent {
		t.resume = start
	}
	if th == t.main {
		for _, agent := range t.agents {
			if err := t.endTurn(agent, false); err != nil {
				return err
			}
		}
		t.agents = nil
		clear(t.byAgent)
	}
	if err := t.endTurn(th, false); err != nil {
		return err
	}
	if e.prompt != th.prompt {
		th.prompt, th.yielded = e.prompt, false
	}
	return nil
}

// prompt yields a user's prompt. A prompt during a turn shares that turn's prompt id, so the id
// does not identify it.
func (t *transcript) prompt(th *thread, e envelope, said string, midTurn bool) error {
	if th != t.main {
		return nil // an agent's text to its subagent is not a prompt
	}
	said = harness.Typed(said)
	if strings.TrimSpace(said) == "" {
		t.skip(harness.MachinePrompt)
		return nil
	}
	if midTurn || th.yielded {
		e.prompt = ""
	} else {
		th.yielded = true
	}
	p := e.event(observation.Prompt, harness.OnPrompt)
	p.Text = said
	return t.yield(p)
}

// assistant handles an agent's messages and calls.
func (t *transcript) assistant(raw lazyjson.Value, e envelope) error {
	f := raw.Pick("message", "isApiErrorMessage")
	m := f[0].Pick("content", "model", "stop_reason")
	if f[1].IsTrue() || string(m[1]) == `"<synthetic>"` {
		t.skip(harness.OwnMessage)
		return nil
	}
	th := t.thread(e)
	if m[0].Kind() == '"' {
		th.says(e, m[0].Text())
	}
	for block := range m[0].Elements() {
		b := block.Pick("type", "text", "id", "name", "input")
		switch string(b[0]) {
		case `"text"`:
			th.says(e, b[1].Text())
		case `"tool_use"`:
			id, tool := b[2].Text(), b[3].Text()
			th.acted = true
			if id != "" && strings.TrimSpace(tool) != "" {
				t.pending[id] = harness.PendingCall{Call: harness.NewCall(id, tool, b[4]), Input: editInput(tool, b[4]), Own: harness.IsOwnTool(tool)}
			}
		}
	}
	if string(m[2]) == `"tool_use"` {
		th.acted = true // a call follows on a later line
	}
	return nil
}

// says stores the latest text of an agent. Texts of one line are joined.
func (th *thread) says(e envelope, said string) {
	if strings.TrimSpace(said) == "" {
		return
	}
	if th.text != "" && !th.acted && e.id != "" && e.id == th.at.id {
		var both lazyjson.Paragraphs
		both.Add(th.text)
		both.Add(said)
		said = both.Text()
	}
	th.text, th.at, th.acted, th.stopped = said, e, false, false
}

// endTurn yields the last message of a thread's turn. A turn that the user stopped has no message.
// At the end of the file, a text before a call does not count as the last message.
func (t *transcript) endTurn(th *thread, atEnd bool) error {
	said, stopped := th.text, th.stopped
	open := atEnd && th.acted
	th.text, th.stopped, th.acted = "", false, false
	switch {
	case said == "" || open:
		return nil
	case stopped:
		t.skip(harness.TurnStopped)
		return nil
	}
	e := t.promptOf(th, th.at)
	m := e.event(observation.Message, harness.OnStop)
	m.Role, m.Text, m.TurnEnds = harness.RoleTurn, said, true
	if th != t.main {
		m.Source, m.Role, m.TurnEnds = harness.OnSubagentStop, harness.RoleSubagent, false
	}
	return t.yield(m)
}

// end handles the end of the file.
func (t *transcript) end() error {
	for _, agent := range t.agents {
		if err := t.endTurn(agent, true); err != nil {
			return err
		}
	}
	if len(t.pending) > 0 {
		t.skipped[harness.NoResult] += len(t.pending)
	}
	return t.endTurn(t.main, true)
}

// result pairs a tool's result with its call. response is the line's toolUseResult: the hook's
// tool_response or the text of an error.
func (t *transcript) result(th *thread, e envelope, block, response lazyjson.Value, denial string) error {
	f := block.Pick("tool_use_id", "content", "is_error")
	id := f[0].Text()
	p, ok := t.pending[id]
	if !ok {
		t.skip(harness.NoCall)
		return nil
	}
	delete(t.pending, id)
	if p.Own {
		t.skip(harness.OwnTool)
		return nil
	}
	failed := f[2].IsTrue()
	if response == nil || string(response) == "null" {
		response = f[1]
	}
	if failed || denial != "" && response.Kind() != '{' {
		if why := refusal(denial, f[1].Plain(), response.Text()); why != harness.NeverRefused {
			t.skip(why)
			return nil
		}
	}
	c := p.Call
	harness.ReadResponse(&c, response)
	if !failed && c.Stdout == "" && (c.Background || response.Get("isAsync").IsTrue()) {
		c.Output = f[1].Plain() // only the transcript contains the location of a background task's output
	}
	d := response.Pick("durationMs", "totalDurationMs")
	if ms, ok := lazyjson.First(d...).Integer(); ok {
		c.DurationMS = ms
	}
	source := harness.OnToolUse
	if failed {
		source = harness.OnToolFailure
		harness.SetFailed(&c, "", response)
	} else {
		harness.DecideFailure(&c, response)
	}
	harness.ReadPieces(&c, p.Input, response, nil)
	done := t.promptOf(th, e).event(observation.Tool, source)
	done.Calls = []observation.Call{c}
	return t.yield(done)
}

// promptOf returns e with the id of the thread's current prompt, if the line contains no id.
func (t *transcript) promptOf(th *thread, e envelope) envelope {
	e.prompt = lazyjson.FirstNonBlank(e.prompt, th.prompt, t.main.prompt)
	return e
}

// system handles compactions.
func (t *transcript) system(raw lazyjson.Value, e envelope) error {
	if string(raw.Get("subtype")) != `"compact_boundary"` || e.sidechain {
		t.skip(harness.UnusedLine)
		return nil
	}
	s := e.event(observation.SessionStart, harness.OnSessionStart)
	s.Text = "compact"
	return t.yield(s)
}

// attachment yields prompts that the user sent during a turn.
func (t *transcript) attachment(raw lazyjson.Value, e envelope) error {
	f := raw.Get("attachment").Pick("type", "prompt", "commandMode")
	mode := f[2].Text()
	if string(f[0]) != `"queued_command"` || mode != "" && mode != "prompt" {
		t.skip(harness.UnusedLine)
		return nil
	}
	return t.prompt(t.thread(e), e, f[1].Plain(), true)
}
