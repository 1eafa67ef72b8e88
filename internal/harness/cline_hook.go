package harness

import (
	"bytes"
	"context"
	"path/filepath"
	"time"

	"cairn/internal/observation"
	"cairn/internal/regular"
)

// clineSource returns Claude Code's name for an event of Cline.
func clineSource(hook string) string {
	switch hook {
	case "tool_call":
		return onBeforeTool
	case "tool_result":
		return onToolUse
	case "agent_end", "agent_abort", "agent_error":
		return onStop
	case "session_shutdown":
		return onSessionEnd
	}
	return hook
}

// clineEvent reads a payload of Cline. Cline's hooks send neither the first prompt nor replies. So
// the event at the end of a turn names the conversation file, which contains them.
func clineEvent(body []byte, home string) (observation.Event, error) {
	f := pick(body, "sessionContext", "taskId", "workspaceRoots", "hookName", "agent_id", "parent_agent_id", "workspaceInfo")
	e := observation.Event{
		Harness: cline, Session: firstNonBlank(text(get(f[0], "rootSessionId")), text(f[1])), Source: text(f[3]),
		Cwd: firstNonBlank(firstRoot(f[2]), text(get(f[6], "rootPath")), home),
	}
	if text(f[5]) != "" {
		e.AgentID = text(f[4])
	}
	if err := requireFields(e, "taskId", "workspaceRoots", "hookName"); err != nil {
		return observation.Event{}, err
	}
	switch e.Source = clineSource(e.Source); e.Source {
	case onBeforeTool:
		c := pick(get(body, "tool_call"), "id", "name", "input")
		e.Kind, e.Calls = observation.Touch, clineCalls(text(c[0]), text(c[1]), c[2])
		if n, ok := integer(get(body, "iteration")); ok && n == 1 { // the file contains the prompt by then
			e.Transcript = clineConversation(home, e)
		}
	case onToolUse:
		clineTool(&e, body)
	case onStop, onSessionEnd:
		e.Kind, e.TurnEnds = observation.Touch, e.AgentID == ""
		if e.Source == onSessionEnd {
			e.Kind = observation.SessionEnd
		}
		e.Transcript = clineConversation(home, e)
	}
	return e, nil
}

// clineConversation returns the file of a session's conversation, "" for a subagent's event.
func clineConversation(home string, e observation.Event) string {
	if home == "" || e.AgentID != "" || !filepath.IsLocal(e.Session) {
		return ""
	}
	return filepath.Join(clineData(Homes{User: home}), "sessions", e.Session, e.Session+clineSuffix)
}

// readClineTurn reads the newest turn from a conversation of Cline. Cline writes the file after
// the hook runs. At the end of a turn, readClineTurn waits up to a second for the reply. This
// delays nothing, because Cline does not wait for this hook. A conversation that is too long for a
// hook is read by the next import.
func readClineTurn(ctx context.Context, path string, ends bool) (events []observation.Event, err error) {
	const patience, pause = time.Second, 100 * time.Millisecond // each attempt reads the whole file
	for began := time.Now(); ; {
		whole, err := regular.Read(path, maxSettled)
		if err != nil {
			return nil, err
		}
		events = events[:0]
		_, err = readCline(ctx, bytes.NewReader(whole), TranscriptOptions{Path: path}, func(e observation.Event) error {
			if e.Kind == observation.Prompt {
				events = events[:0]
			}
			events = append(events, e)
			return nil
		})
		over := !ends || len(events) > 0 && events[len(events)-1].Kind == observation.Message
		if err != nil || over || time.Since(began) > patience {
			return events, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return events, ctx.Err()
		}
	}
}

func isClinePayload(body []byte) bool {
	f := pick(body, "clineVersion", "hookName", "taskId")
	return f[0] != nil && text(f[1]) != "" && f[2] != nil
}

// clineTool reads the event of a finished call.
func clineTool(e *observation.Event, body []byte) {
	r := pick(get(body, "tool_result"), "id", "name", "input", "output", "error", "durationMs")
	if text(r[1]) == "" {
		return
	}
	e.Kind, e.Calls = observation.Tool, clineResult(text(r[0]), text(r[1]), r[2], firstOf(r[3], r[4]), isThere(r[4]))
	if c := &e.Calls[0]; isOwnServer(*c) {
		c.Failed, c.Result = isThere(r[4]), geminiText(firstOf(r[3], r[4]))
		e.Kind = observation.Touch
		return
	}
	if isThere(r[4]) {
		e.Source = onToolFailure
	}
	if ms, ok := integer(r[5]); ok && len(e.Calls) == 1 {
		e.Calls[0].DurationMS = ms
	}
}
