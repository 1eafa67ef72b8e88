package harness

import (
	"strings"
	"time"

	"cairn/internal/harness/lazyjson"
	"cairn/internal/observation"
)

// AgentTranscript is the state while reading a file about one agent in one session. Such files,
// Cursor's and Gemini CLI's, are always read from the start (observations §12).
type AgentTranscript struct {
	harness string
	match   observation.Match
	Yield   func(observation.Event) error
	Skipped map[string]int
	Checker lazyjson.Checker

	Session string
	Agent   string // the subagent that the file belongs to, "" for the main agent
	Cwd     string // "" if unknown or not read yet
	At      time.Time

	Said  string            // the agent's latest text in this turn, "" if none
	Spoke observation.Event // the message event for said
	Acted bool              // the agent called a tool after said
}

// NewAgentTranscript returns the state before the first line of a file.
func NewAgentTranscript(harness string, match observation.Match, o TranscriptOptions, report *TranscriptReport,
	yield func(observation.Event) error,
) AgentTranscript {
	return AgentTranscript{
		harness: harness, match: match, Yield: yield, Skipped: report.Skipped, Checker: lazyjson.NewChecker(), At: o.ModTime,
	}
}

// Skip counts something that produces no event.
func (t *AgentTranscript) Skip(reason string) { t.Skipped[reason]++ }

// Dated stores a time as the current one. It ignores invalid times.
func (t *AgentTranscript) Dated(value lazyjson.Value) {
	if at, err := time.Parse(time.RFC3339Nano, value.Text()); err == nil {
		t.At = at
	}
}

// Incomplete reports whether an event would lack a required field. If so, it counts the event as
// skipped.
func (t *AgentTranscript) Incomplete() bool {
	if strings.TrimSpace(t.Session) != "" && t.Cwd != "" && !t.At.IsZero() {
		return false
	}
	t.Skip(HomelessLine)
	return true
}

// NewEvent returns an event at the current time; lineID may be "".
func (t *AgentTranscript) NewEvent(kind observation.EventKind, source, lineID string) observation.Event {
	return observation.Event{
		Kind: kind, Source: source, Harness: t.harness, Session: t.Session, Cwd: t.Cwd, At: t.At,
		AgentID: t.Agent, LineID: lineID, Imported: true, Match: t.match,
	}
}

// Says stores the agent's latest text, which may end its turn.
func (t *AgentTranscript) Says(said, lineID string) {
	t.Said, t.Spoke, t.Acted = said, t.NewEvent(observation.Message, OnStop, lineID), false
}

// EndTurn yields the agent's last message in the turn.
func (t *AgentTranscript) EndTurn() error {
	said := t.Said
	t.Said, t.Acted = "", false
	if said == "" {
		return nil
	}
	return t.Yield(LastMessage(t.Spoke, said))
}

// YieldCalls yields the calls of a tool with their results. failed is what the harness reports.
func (t *AgentTranscript) YieldCalls(calls []observation.Call, failed bool) error {
	e := t.NewEvent(observation.Tool, OnToolUse, "")
	if failed {
		e.Source = OnToolFailure
	}
	e.Calls = calls
	return t.Yield(e)
}

// Finish ends the reading. open is the number of calls without a known outcome. A turn whose last
// message is followed by a call is not over.
func (t *AgentTranscript) Finish(open int) error {
	if open > 0 {
		t.Skipped[NoResult] += open
	}
	if t.Acted {
		return nil
	}
	return t.EndTurn()
}

// PendingCall is a call without a result yet.
type PendingCall struct {
	Call  observation.Call
	Input lazyjson.Value // the input of an edit or a write
	Own   bool           // a call of one of cairn's own tools
}

// LastMessage returns m as the last message in the turn of its agent: the subagent in m, else the
// main agent.
func LastMessage(m observation.Event, said string) observation.Event {
	m.Text, m.Role, m.TurnEnds = said, RoleTurn, true
	if m.AgentID != "" {
		m.Source, m.Role, m.TurnEnds = OnSubagentStop, RoleSubagent, false
	}
	return m
}
