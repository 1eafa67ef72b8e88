package harness

import (
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"cairn/internal/observation"
)

// agentTranscript is the state of one reading of a file that reports what one agent
// did in one session, and that is always read whole: Cursor's and Gemini CLI's
// (observations §12).
type agentTranscript struct {
	harness string
	match   observation.Match
	yield   func(observation.Event) error
	skipped map[string]int
	decoder *jsontext.Decoder

	session string
	agent   string // the subagent whose file this is, "" for the main agent
	cwd     string // "" if it is not known, or not yet
	at      time.Time

	said  string            // the turn's latest words of the agent, "" if none
	spoke observation.Event // the message that they would be
	acted bool              // called a tool since
}

func newAgentTranscript(harness string, match observation.Match, o TranscriptOptions, report *TranscriptReport,
	yield func(observation.Event) error,
) agentTranscript {
	return agentTranscript{
		harness: harness, match: match, yield: yield, skipped: report.Skipped, decoder: lenient(nil), at: o.ModTime,
	}
}

func (t *agentTranscript) skip(reason string) { t.skipped[reason]++ }

// dated takes a time, if it is one.
func (t *agentTranscript) dated(value []byte) {
	if at, err := time.Parse(time.RFC3339Nano, text(value)); err == nil {
		t.at = at
	}
}

// incomplete reports whether an event would lack a required field, and counts it.
func (t *agentTranscript) incomplete() bool {
	if strings.TrimSpace(t.session) != "" && t.cwd != "" && !t.at.IsZero() {
		return false
	}
	t.skip(homelessLine)
	return true
}

// newEvent returns an event of this moment; lineID may be "".
func (t *agentTranscript) newEvent(kind observation.EventKind, source, lineID string) observation.Event {
	return observation.Event{
		Kind: kind, Source: source, Harness: t.harness, Session: t.session, Cwd: t.cwd, At: t.at,
		AgentID: t.agent, LineID: lineID, Imported: true, Match: t.match,
	}
}

// says notes the latest words of the agent, which may end its turn.
func (t *agentTranscript) says(said, lineID string) {
	t.said, t.spoke, t.acted = said, t.newEvent(observation.Message, onStop, lineID), false
}

// endTurn yields the message with which the agent ended its turn.
func (t *agentTranscript) endTurn() error {
	said := t.said
	t.said, t.acted = "", false
	if said == "" {
		return nil
	}
	return t.yield(lastWords(t.spoke, said))
}

// finish ends the reading with the number of calls without a known outcome. A turn
// that went on with a call is not over.
func (t *agentTranscript) finish(open int) error {
	if open > 0 {
		t.skipped[noResult] += open
	}
	if t.acted {
		return nil
	}
	return t.endTurn()
}
