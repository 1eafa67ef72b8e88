package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	"cairn/bench/workload"
)

// transcriptLine contains the fields of a Claude Code line that a replay uses.
type transcriptLine struct {
	Type       string          `json:"type"`
	Subtype    string          `json:"subtype"`
	ID         string          `json:"uuid"`
	Session    string          `json:"sessionId"`
	Cwd        string          `json:"cwd"`
	Timestamp  string          `json:"timestamp"`
	Sidechain  bool            `json:"isSidechain"`
	Agent      string          `json:"agentId"`
	PromptID   string          `json:"promptId"`
	Meta       bool            `json:"isMeta"`
	Summary    bool            `json:"isCompactSummary"`
	Refused    bool            `json:"isApiErrorMessage"`
	Denial     string          `json:"toolDenialKind"`
	Result     json.RawMessage `json:"toolUseResult"`
	Attachment struct {
		Type   string          `json:"type"`
		Prompt json.RawMessage `json:"prompt"`
		Mode   string          `json:"commandMode"`
	} `json:"attachment"`
	Message struct {
		Model   string          `json:"model"`
		Content json.RawMessage `json:"content"`
	} `json:"message"`
}

// contentBlock is a part of a message.
type contentBlock struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Input   json.RawMessage `json:"input"`
	UseID   string          `json:"tool_use_id"`
	Content json.RawMessage `json:"content"`
	Failed  bool            `json:"is_error"`
}

// translator derives, line by line, which hook calls the harness made when it wrote a
// transcript. It is a second parser of the format, independent of cairn's own, so that the two
// can be compared.
type translator struct {
	agent   string                  // agent of the file, "" for the session's own
	calls   map[string]contentBlock // tool_use blocks by id
	threads map[string]*spoken      // by agent
	order   []string                // agents in order of appearance
	begun   bool
	cwd     string
	session string
}

// spoken is the latest text of an agent in its turn.
type spoken struct {
	text    string
	line    transcriptLine // line that contains it
	stopped bool           // stopped by the user
	acting  bool           // has called a tool since
}

func newTranslator(agent string) *translator {
	return &translator{agent: agent, calls: map[string]contentBlock{}, threads: map[string]*spoken{}}
}

// line returns the payloads that belong before a line and at it.
func (t *translator) line(l transcriptLine) (payloads []workload.HookPayload) {
	if !t.locate(&l) {
		return nil
	}
	switch l.Type {
	case "user":
		payloads = t.user(l)
	case "assistant":
		t.assistant(l)
	case "system":
		if l.Subtype == "compact_boundary" && l.Agent == "" {
			payloads = append(payloads, workload.HookPayload{Event: "SessionStart", Source: "compact"})
		}
	case "attachment":
		if l.Attachment.Type == "queued_command" && (l.Attachment.Mode == "" || l.Attachment.Mode == "prompt") {
			payloads = t.prompt(l, plainText(l.Attachment.Prompt))
		}
	default:
		return nil
	}
	if !t.begun && l.Agent == "" {
		t.begun = true
		payloads = append([]workload.HookPayload{{Event: "SessionStart", Source: "startup"}}, payloads...)
	}
	return complete(payloads, l)
}

// locate fills in missing fields of a line from previous lines. It returns false while the
// session or its folder is unknown.
func (t *translator) locate(l *transcriptLine) bool {
	l.Session, l.Cwd = cmp.Or(l.Session, t.session), cmp.Or(l.Cwd, t.cwd)
	l.Agent = cmp.Or(l.Agent, t.agent)
	t.session, t.cwd = l.Session, l.Cwd
	return l.Session != "" && l.Cwd != ""
}

// repeat records a line that an earlier transcript already contains. Its calls may have results
// in this transcript.
func (t *translator) repeat(l transcriptLine) {
	if !t.locate(&l) {
		return
	}
	switch l.Type {
	case "assistant":
		t.assistant(l)
	case "user":
		t.user(l)
	}
}

// complete sets the fields that all payloads of a line share.
func complete(payloads []workload.HookPayload, l transcriptLine) []workload.HookPayload {
	for i := range payloads {
		p := &payloads[i]
		p.Session, p.Cwd = l.Session, l.Cwd
		if p.PromptID == "" && p.Event != "SessionStart" {
			p.PromptID = l.PromptID
		}
	}
	return payloads
}

// end returns the payloads after the last line: those of turns that had ended.
func (t *translator) end() (payloads []workload.HookPayload) {
	for _, agent := range append(t.order, "") {
		th := t.threads[agent]
		if th == nil || th.acting {
			continue
		}
		l := th.line
		payloads = append(payloads, complete(t.stop(agent), l)...)
	}
	return payloads
}

func (t *translator) thread(agent string) *spoken {
	th := t.threads[agent]
	if th == nil {
		th = &spoken{}
		t.threads[agent] = th
		if agent != "" {
			t.order = append(t.order, agent)
		}
	}
	return th
}

// stop returns the call at the end of an agent's turn, if the turn ended.
func (t *translator) stop(agent string) []workload.HookPayload {
	th := t.thread(agent)
	said := th.text
	if said == "" || th.stopped {
		*th = spoken{}
		return nil
	}
	p := workload.HookPayload{Event: "Stop", Message: said, PromptID: th.line.PromptID}
	if agent != "" {
		p.Event, p.AgentID = "SubagentStop", agent
	}
	*th = spoken{}
	return []workload.HookPayload{p}
}

func (t *translator) assistant(l transcriptLine) {
	if l.Refused || l.Message.Model == "<synthetic>" {
		return
	}
	th := t.thread(l.Agent)
	for _, b := range blocks(l.Message.Content) {
		switch b.Type {
		case "text":
			if strings.TrimSpace(b.Text) != "" {
				*th = spoken{text: b.Text, line: l}
			}
		case "tool_use":
			t.calls[b.ID] = b
			th.acting = true
		}
	}
}

func (t *translator) user(l transcriptLine) (payloads []workload.HookPayload) {
	var results []contentBlock
	var said []string
	for _, b := range blocks(l.Message.Content) {
		switch {
		case b.Type == "tool_result":
			results = append(results, b)
		case b.Type == "text" && b.Text != "":
			said = append(said, b.Text)
		}
	}
	if len(results) > 1 {
		l.Result = nil // it belongs to one of them, but the transcript does not show to which
	}
	for _, r := range results {
		payloads = append(payloads, t.result(l, r)...)
	}
	text := strings.Join(said, "\n")
	switch {
	case l.Meta, text == "" && len(results) > 0:
		return payloads
	case l.Summary:
		return append(payloads, workload.HookPayload{Event: "PostCompact", Summary: text})
	case strings.HasPrefix(strings.TrimSpace(text), "[Request interrupted"):
		t.thread(l.Agent).stopped = true
		return payloads
	}
	if len(results) == 0 {
		payloads = append(payloads, t.stop(l.Agent)...)
	}
	return append(payloads, t.prompt(l, text)...)
}

// prompt returns the call for a prompt that the user typed. It reconstructs slash commands from
// their form in the transcript.
func (t *translator) prompt(l transcriptLine, text string) []workload.HookPayload {
	if name, ok := inside(text, "command-name"); ok {
		arguments, _ := inside(text, "command-args")
		text = strings.TrimSpace("/" + strings.TrimPrefix(strings.TrimSpace(name), "/") + " " + strings.TrimSpace(arguments))
	}
	begins := strings.TrimSpace(text)
	for _, machine := range []string{"<local-command", "<bash-", "<task-notification", "<system-reminder", "[SYSTEM NOTIFICATION"} {
		if strings.HasPrefix(begins, machine) {
			return nil
		}
	}
	if begins == "" || l.Agent != "" || l.Sidechain {
		return nil
	}
	return []workload.HookPayload{{Event: "UserPromptSubmit", Prompt: text}}
}

func inside(text, tag string) (string, bool) {
	_, rest, ok := strings.Cut(text, "<"+tag+">")
	if !ok {
		return "", false
	}
	text, _, ok = strings.Cut(rest, "</"+tag+">")
	return text, ok
}

// result returns the call after a tool has run. It returns nothing for a tool call that never
// ran.
func (t *translator) result(l transcriptLine, r contentBlock) []workload.HookPayload {
	use, ok := t.calls[r.UseID]
	if !ok {
		return nil
	}
	delete(t.calls, r.UseID)
	told := plainText(r.Content)
	p := workload.HookPayload{Event: "PostToolUse", AgentID: l.Agent, Tool: use.Name, Input: use.Input, ID: r.UseID, Response: l.Result}
	if len(p.Response) == 0 || string(p.Response) == "null" {
		p.Response = r.Content
	}
	if r.Failed {
		if neverRan(l.Denial, told, plainText(l.Result)) {
			return nil
		}
		p.Event, p.Error, p.Response = "PostToolUseFailure", told, nil
	}
	return []workload.HookPayload{p}
}

// neverRan reports whether a call was refused by the user or a rule, or was invalid. No hook is
// called after such a call.
func neverRan(denial, told, result string) bool {
	if strings.HasPrefix(told, "Exit code ") {
		return false
	}
	if denial != "" {
		return true
	}
	for _, said := range []string{told, strings.TrimPrefix(result, "Error: ")} {
		for _, sign := range []string{
			"The user doesn't want to", "User rejected", "[Request interrupted", "<tool_use_error>", "InputValidationError",
			"No such tool", "Permission to ", "Permission for ", "Claude requested permissions", "This command requires approval",
			"This Bash command contains multiple", "The agent proposed a plan that was rejected", "[Tool result missing",
		} {
			if strings.HasPrefix(said, sign) {
				return true
			}
		}
		if strings.Contains(said[:min(len(said), 500)], "was blocked. For security") {
			return true
		}
	}
	return false
}

// blocks returns the parts of a message. A text message has one part.
func blocks(content json.RawMessage) []contentBlock {
	var list []contentBlock
	if json.Unmarshal(content, &list) == nil {
		return list
	}
	return []contentBlock{{Type: "text", Text: plainText(content)}}
}

// plainText returns the text of a JSON string, or of the text blocks in a list.
func plainText(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	var list []contentBlock
	if !bytes.HasPrefix(bytes.TrimSpace(value), []byte("[")) || json.Unmarshal(value, &list) != nil {
		return ""
	}
	var parts []string
	for _, b := range list {
		if b.Text != "" {
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, "\n")
}
