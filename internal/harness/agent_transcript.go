package harness

import (
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"cairn/internal/observation"
)

// agentTranscript is the state while reading a file about one agent in one session. Such files,
// Cursor's and Gemini CLI's, are always read from the start (observations §12).
type agentTranscript struct {
	harness string
	match   observation.Match
	yield   func(observation.Event) error
	skipped map[string]int
	decoder *jsontext.Decoder

	session string
	agent   string // the subagent that the file belongs to, "" for the main agent
	cwd     string // "" if unknown or not read yet
	at      time.Time

	said  string            // the agent's latest text in this turn, "" if none
	spoke observation.Event // the message event for said
	acted bool              // the agent called a tool after said
}

func newAgentTranscript(harness string, match observation.Match, o TranscriptOptions, report *TranscriptReport,
	yield func(observation.Event) error,
) agentTranscript {
	return agentTranscript{
		harness: harness, match: match, yield: yield, skipped: report.Skipped, decoder: lenient(nil), at: o.ModTime,
	}
}

func (t *agentTranscript) skip(reason string) { t.skipped[reason]++ }

// dated stores a time as the current one. It ignores invalid times.
func (t *agentTranscript) dated(value []byte) {
	if at, err := time.Parse(time.RFC3339Nano, text(value)); err == nil {
		t.at = at
	}
}

// incomplete reports whether an event would lack a required field. If so, it counts the event as
// skipped.
func (t *agentTranscript) incomplete() bool {
	if strings.TrimSpace(t.session) != "" && t.cwd != "" && !t.at.IsZero() {
		return false
	}
	t.skip(homelessLine)
	return true
}

// newEvent returns an event at the current time; lineID may be "".
func (t *agentTranscript) newEvent(kind observation.EventKind, source, lineID string) observation.Event {
	return observation.Event{
		Kind: kind, Source: source, Harness: t.harness, Session: t.session, Cwd: t.cwd, At: t.at,
		AgentID: t.agent, LineID: lineID, Imported: true, Match: t.match,
	}
}

// says stores the agent's latest text, which may end its turn.
func (t *agentTranscript) says(said, lineID string) {
	t.said, t.spoke, t.acted = said, t.newEvent(observation.Message, onStop, lineID), false
}

// endTurn yields the agent's last message in the turn.
func (t *agentTranscript) endTurn() error {
	said := t.said
	t.said, t.acted = "", false
	if said == "" {
		return nil
	}
	return t.yield(lastWords(t.spoke, said))
}

// finish ends the reading. open is the number of calls without a known outcome. A turn whose last
// message is followed by a call is not over.
func (t *agentTranscript) finish(open int) error {
	if open > 0 {
		t.skipped[noResult] += open
	}
	if t.acted {
		return nil
	}
	return t.endTurn()
}
