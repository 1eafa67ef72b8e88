package harness

import (
	"strings"

	"cairn/internal/observation"
)

// user handles the inputs of an agent: prompts, results of tools, summaries and context from the
// harness.
func (t *transcript) user(raw []byte, e envelope, start int64) error {
	f := pick(raw, "message", "isCompactSummary", "toolUseResult", "toolDenialKind")
	content := get(f[0], "content")
	th := t.thread(e)
	results := toolResults(content)
	if len(results) > 1 {
		f[2] = nil // it belongs to one of the results, but the line does not show which
	}
	for _, block := range results {
		if err := t.result(th, e, block, f[2], text(f[3])); err != nil {
			return err
		}
	}
	midTurn := len(results) > 0
	said := words(content)
	switch {
	case e.meta:
		t.skip(metaLine)
		return nil
	case isTrue(f[1]):
		m := e.event(observation.Message, onPostCompact)
		m.Role, m.Text = roleSummary, said
		return t.yield(m)
	case said == "" && midTurn:
		return nil
	case strings.HasPrefix(strings.TrimSpace(said), interrupted):
		th.stopped = true
		t.skip(machinePrompt)
		return nil
	}
	if !midTurn {
		if err := t.newTurn(th, e, start); err != nil {
			return err
		}
	}
	return t.prompt(th, e, said, midTurn)
}

func toolResults(content []byte) (results [][]byte) {
	for block := range elements(content) {
		if string(get(block, "type")) == `"tool_result"` {
			results = append(results, block)
		}
	}
	return results
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
	said = typed(said)
	if strings.TrimSpace(said) == "" {
		t.skip(machinePrompt)
		return nil
	}
	if midTurn || th.yielded {
		e.prompt = ""
	} else {
		th.yielded = true
	}
	p := e.event(observation.Prompt, onPrompt)
	p.Text = said
	return t.yield(p)
}

// words returns the text of a message: a string, or its text blocks joined by newlines.
func words(content []byte) string {
	if kindOf(content) == '"' {
		return text(content)
	}
	var said paragraphs
	for block := range elements(content) {
		f := pick(block, "type", "text")
		if string(f[0]) == `"text"` {
			said.add(text(f[1]))
		}
	}
	return said.text()
}

// assistant handles an agent's messages and calls.
func (t *transcript) assistant(raw []byte, e envelope) error {
	f := pick(raw, "message", "isApiErrorMessage")
	m := pick(f[0], "content", "model", "stop_reason")
	if isTrue(f[1]) || string(m[1]) == `"<synthetic>"` {
		t.skip(ownMessage)
		return nil
	}
	th := t.thread(e)
	if kindOf(m[0]) == '"' {
		th.says(e, text(m[0]))
	}
	for block := range elements(m[0]) {
		b := pick(block, "type", "text", "id", "name", "input")
		switch string(b[0]) {
		case `"text"`:
			th.says(e, text(b[1]))
		case `"tool_use"`:
			id, tool := text(b[2]), text(b[3])
			th.acted = true
			if id != "" && strings.TrimSpace(tool) != "" {
				t.pending[id] = pendingCall{call: newCall(id, tool, b[4]), input: editInput(tool, b[4]), own: isOwn(tool)}
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
		both := paragraphs{[]byte(th.text)}
		both.add(said)
		said = both.text()
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
		t.skip(turnStopped)
		return nil
	}
	e := t.promptOf(th, th.at)
	m := e.event(observation.Message, onStop)
	m.Role, m.Text, m.TurnEnds = roleTurn, said, true
	if th != t.main {
		m.Source, m.Role, m.TurnEnds = onSubagentStop, roleSubagent, false
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
		t.skipped[noResult] += len(t.pending)
	}
	return t.endTurn(t.main, true)
}

// result pairs a tool's result with its call. response is the line's toolUseResult: the hook's
// tool_response or the text of an error.
func (t *transcript) result(th *thread, e envelope, block, response []byte, denial string) error {
	f := pick(block, "tool_use_id", "content", "is_error")
	id := text(f[0])
	p, ok := t.pending[id]
	if !ok {
		t.skip(noCall)
		return nil
	}
	delete(t.pending, id)
	if p.own {
		t.skip(ownTool)
		return nil
	}
	failed := isTrue(f[2])
	if response == nil || string(response) == "null" {
		response = f[1]
	}
	if failed || denial != "" && kindOf(response) != '{' {
		if why := refusal(denial, plain(f[1]), text(response)); why != neverRefused {
			t.skip(why)
			return nil
		}
	}
	c := p.call
	readResponse(&c, response)
	if !failed && c.Stdout == "" && (c.Background || isTrue(get(response, "isAsync"))) {
		c.Output = plain(f[1]) // only the transcript contains the location of a background task's output
	}
	d := pick(response, "durationMs", "totalDurationMs")
	if ms, ok := integer(firstOf(d...)); ok {
		c.DurationMS = ms
	}
	source := onToolUse
	if failed {
		source = onToolFailure
		fail(&c, "", response)
	} else {
		decideFailure(&c, response)
	}
	readPieces(&c, p.input, response, nil)
	done := t.promptOf(th, e).event(observation.Tool, source)
	done.Calls = []observation.Call{c}
	return t.yield(done)
}

// promptOf returns e with the id of the thread's current prompt, if the line contains no id.
func (t *transcript) promptOf(th *thread, e envelope) envelope {
	e.prompt = firstNonBlank(e.prompt, th.prompt, t.main.prompt)
	return e
}

// system handles compactions.
func (t *transcript) system(raw []byte, e envelope) error {
	if string(get(raw, "subtype")) != `"compact_boundary"` || e.sidechain {
		t.skip(unusedLine)
		return nil
	}
	s := e.event(observation.SessionStart, onSessionStart)
	s.Text = "compact"
	return t.yield(s)
}

// attachment yields prompts that the user sent during a turn.
func (t *transcript) attachment(raw []byte, e envelope) error {
	f := pick(get(raw, "attachment"), "type", "prompt", "commandMode")
	mode := text(f[2])
	if string(f[0]) != `"queued_command"` || mode != "" && mode != "prompt" {
		t.skip(unusedLine)
		return nil
	}
	return t.prompt(t.thread(e), e, plain(f[1]), true)
}

// lastWords returns m as the last message in the turn of its agent: the subagent in m, else the
// main agent.
func lastWords(m observation.Event, said string) observation.Event {
	m.Text, m.Role, m.TurnEnds = said, roleTurn, true
	if m.AgentID != "" {
		m.Source, m.Role, m.TurnEnds = onSubagentStop, roleSubagent, false
	}
	return m
}
