package cline

import (
	"bytes"
	"context"
	"path/filepath"
	"time"

	"cairn/internal/harness"
	"cairn/internal/harness/lazyjson"
	"cairn/internal/observation"
	"cairn/internal/regular"
)

// source returns Claude Code's name for an event of Cline.
func source(hook string) string {
	switch hook {
	case "tool_call":
		return harness.OnBeforeTool
	case "tool_result":
		return harness.OnToolUse
	case "agent_end", "agent_abort", "agent_error":
		return harness.OnStop
	case "session_shutdown":
		return harness.OnSessionEnd
	}
	return hook
}

// event reads a payload of Cline. Cline's hooks send neither the first prompt nor replies. So
// the event at the end of a turn names the conversation file, which contains them.
func event(body lazyjson.Value, home string) (observation.Event, error) {
	f := body.Pick("sessionContext", "taskId", "workspaceRoots", "hookName", "agent_id", "parent_agent_id", "workspaceInfo")
	e := observation.Event{
		Harness: name, Session: lazyjson.FirstNonBlank(f[0].Get("rootSessionId").Text(), f[1].Text()), Source: f[3].Text(),
		Cwd: lazyjson.FirstNonBlank(harness.FirstFolder(f[2]), f[6].Get("rootPath").Text(), home),
	}
	if f[5].Text() != "" {
		e.AgentID = f[4].Text()
	}
	if err := harness.RequireFields(e, "taskId", "workspaceRoots", "hookName"); err != nil {
		return observation.Event{}, err
	}
	switch e.Source = source(e.Source); e.Source {
	case harness.OnBeforeTool:
		c := body.Get("tool_call").Pick("id", "name", "input")
		e.Kind, e.Calls = observation.Touch, calls(c[0].Text(), c[1].Text(), c[2])
		if n, ok := body.Get("iteration").Integer(); ok && n == 1 { // the file contains the prompt by then
			e.Transcript = conversation(home, e)
		}
	case harness.OnToolUse:
		tool(&e, body)
	case harness.OnStop, harness.OnSessionEnd:
		e.Kind, e.TurnEnds = observation.Touch, e.AgentID == ""
		if e.Source == harness.OnSessionEnd {
			e.Kind = observation.SessionEnd
		}
		e.Transcript = conversation(home, e)
	}
	return e, nil
}

// conversation returns the file of a session's conversation, "" for a subagent's event.
func conversation(home string, e observation.Event) string {
	if home == "" || e.AgentID != "" || !filepath.IsLocal(e.Session) {
		return ""
	}
	return filepath.Join(data(harness.Homes{User: home}), "sessions", e.Session, e.Session+suffix)
}

// readTurn reads the newest turn from a conversation of Cline. Cline writes the file after
// the hook runs. At the end of a turn, readTurn waits up to a second for the reply. This
// delays nothing, because Cline does not wait for this hook. A conversation that is too long for a
// hook is read by the next import.
func readTurn(ctx context.Context, path, session string, ends bool) (events []observation.Event, err error) {
	if filepath.Base(path) != session+suffix {
		return nil, nil
	}
	const patience, pause = time.Second, 100 * time.Millisecond // each attempt reads the whole file
	for began := time.Now(); ; {
		whole, err := regular.Read(path, harness.MaxSettled)
		if err != nil {
			return nil, err
		}
		events = events[:0]
		_, err = readConversation(ctx, bytes.NewReader(whole), harness.TranscriptOptions{Path: path}, func(e observation.Event) error {
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

func isPayload(body lazyjson.Value) bool {
	f := body.Pick("clineVersion", "hookName", "taskId")
	return f[0] != nil && f[1].Text() != "" && f[2] != nil
}

// tool reads the event of a finished call.
func tool(e *observation.Event, body lazyjson.Value) {
	r := body.Get("tool_result").Pick("id", "name", "input", "output", "error", "durationMs")
	if r[1].Text() == "" {
		return
	}
	e.Kind, e.Calls = observation.Tool, result(r[0].Text(), r[1].Text(), r[2], lazyjson.First(r[3], r[4]), r[4].IsSet())
	if c := &e.Calls[0]; harness.IsOwnCall(*c) {
		c.Failed, c.Result = r[4].IsSet(), harness.ContentText(lazyjson.First(r[3], r[4]))
		e.Kind = observation.Touch
		return
	}
	if r[4].IsSet() {
		e.Source = harness.OnToolFailure
	}
	if ms, ok := r[5].Integer(); ok && len(e.Calls) == 1 {
		e.Calls[0].DurationMS = ms
	}
}

// answer returns an object for Cline. A denied call is cancelled.
func answer(_ observation.Event, text string, v harness.GuardDecision) (string, error) {
	switch {
	case v.Decision == harness.Deny:
		return harness.JSONLine(map[string]any{"cancel": true, "errorMessage": v.Reason})
	case text == "":
		return "", nil
	}
	return harness.JSONLine(map[string]any{"contextModification": text})
}
