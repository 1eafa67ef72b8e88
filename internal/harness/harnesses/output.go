package harnesses

import (
	"slices"

	"cairn/internal/harness"
	"cairn/internal/observation"
)

// HookOutput returns the output of a hook, with which the harness adds a text to the conversation
// and applies a decision. It returns "" if there is neither, or if the harness accepts neither on
// this event. Plain text never begins with {, because hosts would parse it as JSON (observations
// §4.3, §9; mail §8).
//
// Some harnesses cannot ask: Codex would make the call, and Gemini CLI would wait forever. In
// sessions with Event.CannotAsk the user cannot reply. In both cases the question is added to the
// text instead, if the harness accepts text on this event. A harness with WarnsLate gets it after
// the call, see WarnsAfter (amendments §B.1).
func HookOutput(e observation.Event, text string, v harness.GuardDecision) (string, error) {
	h := senderOf(e)
	if WarnsAfter(e) {
		text, v = withText(v.Reason, text), harness.GuardDecision{}
	}
	if e.Source != harness.OnBeforeTool {
		v = harness.GuardDecision{}
	}
	if v.Decision == harness.Ask && (e.CannotAsk || !h.Asks) {
		text, v = withText(v.Reason, text), harness.GuardDecision{}
	}
	if !Listens(e) {
		text = ""
	}
	return h.Answer(e, text, v)
}

// WarnsAfter reports whether a decision is shown as a warning on this event, after the tool. This
// applies to harnesses that can neither ask nor accept text before a tool.
func WarnsAfter(e observation.Event) bool {
	return e.Source == harness.OnToolUse && senderOf(e).WarnsLate
}

// Listens reports whether a harness adds a text to the conversation on this event.
func Listens(e observation.Event) bool { return slices.Contains(senderOf(e).Hears, e.Source) }

// TakesHelp reports whether the event's harness accepts help with prompts and before calls
// (observations §9.2).
func TakesHelp(e observation.Event) bool { return senderOf(e).Helped }

// ShowsError reports whether exit code 2 on this event shows the error to the user without
// blocking anything (contract observations §4.1).
func ShowsError(e observation.Event) bool { return slices.Contains(senderOf(e).ShowsTwo, e.Source) }

// StartsLate reports whether an event is a prompt in a harness that accepts the session's context
// with the first prompt. Such a harness may start a session without an event, or drop the context
// at the start.
func StartsLate(e observation.Event) bool {
	return e.Kind == observation.Prompt && senderOf(e).LateStart
}

// withText appends the second text to the first.
func withText(first, second string) string {
	if first == "" || second == "" {
		return first + second
	}
	return first + "\n\n" + second
}

// RefusesByTwo reports whether the hook must report a decision with exit code 2 and its reason on
// standard error.
func RefusesByTwo(e observation.Event, v harness.GuardDecision) bool {
	return v.Decision == harness.Deny && e.Source == harness.OnBeforeTool && senderOf(e).RefusesByTwo
}
