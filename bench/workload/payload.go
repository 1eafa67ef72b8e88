package workload

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"cairn/internal/harness/harnesses"
	"cairn/internal/observation"
)

// HookPayload is the standard input that Claude Code passes to a hook.
type HookPayload struct {
	Session    string          `json:"session_id"`
	Transcript string          `json:"transcript_path,omitempty"`
	Cwd        string          `json:"cwd"`
	Mode       string          `json:"permission_mode,omitempty"`
	Event      string          `json:"hook_event_name"`
	AgentID    string          `json:"agent_id,omitempty"`
	PromptID   string          `json:"prompt_id,omitempty"`
	Source     string          `json:"source,omitempty"`
	Prompt     string          `json:"prompt,omitempty"`
	Tool       string          `json:"tool_name,omitempty"`
	Input      json.RawMessage `json:"tool_input,omitempty"`
	Response   json.RawMessage `json:"tool_response,omitempty"`
	Error      string          `json:"error,omitempty"`
	ID         string          `json:"tool_use_id,omitempty"`
	Millis     int64           `json:"duration_ms,omitempty"`
	Message    string          `json:"last_assistant_message,omitempty"`
	Summary    string          `json:"compact_summary,omitempty"`
}

// Payload returns a step as a hook payload.
func (s *Session) Payload(st Step) ([]byte, error) {
	p := HookPayload{
		Session: s.ID, Transcript: filepath.Join(s.project.Root, s.ID+".jsonl"), Cwd: s.project.Root,
		Mode: "acceptEdits", Event: st.Event, Tool: st.Tool, ID: st.ID, Error: st.Error, Millis: int64(st.Millis),
	}
	switch st.Event {
	case "SessionStart":
		p.Source = st.Text
	case "UserPromptSubmit":
		p.Prompt = st.Text
	case "Stop":
		p.Message = st.Text
	}
	var err error
	if st.Input != nil {
		if p.Input, err = json.Marshal(st.Input); err != nil {
			return nil, err
		}
	}
	if st.Response != nil {
		if p.Response, err = json.Marshal(st.Response); err != nil {
			return nil, err
		}
	}
	return json.Marshal(p)
}

// Event returns a step as the event that the hook would create, at the step's own time.
func (s *Session) Event(st Step) (observation.Event, error) {
	text, err := s.Payload(st)
	if err != nil {
		return observation.Event{}, err
	}
	e, err := harnesses.Hook(text, "claude", "")
	e.At = st.At
	return e, err
}

// Payloads generates the payloads of one session for a hook benchmark. It contains prompts and
// calls, but no starts, no stops and no call that cairn would treat as a duplicate. So each
// payload creates exactly one row.
type Payloads struct {
	session *Session
	sent    int
}

// NewPayloads returns the payloads of the n-th session. run is part of the session's id, so
// that the same session can be sent to one store several times.
func NewPayloads(w *Workload, n int, run string) *Payloads {
	s := w.Session(n, time.Now())
	s.ID = run + "-" + s.ID
	return &Payloads{session: s}
}

// Next returns the next payload.
func (p *Payloads) Next() ([]byte, error) {
	for {
		st := p.session.Next()
		switch {
		case st.Event == "SessionStart", st.Event == "Stop":
			continue
		case st.Tool == "Read":
			st.Input["file_path"] = fmt.Sprintf("%s.%d", st.Input["file_path"], p.sent)
		case st.Input["pattern"] != nil:
			st.Input["pattern"] = fmt.Sprintf("%s%d", st.Input["pattern"], p.sent)
		}
		p.sent++
		return p.session.Payload(st)
	}
}
