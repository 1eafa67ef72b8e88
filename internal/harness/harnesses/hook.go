package harnesses

import (
	"bytes"
	"slices"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/harness"
	"cairn/internal/harness/lazyjson"
	"cairn/internal/observation"
)

// Hook parses one hook payload, the whole of standard input (observations §4). It may modify
// payload. The event contains only copies.
//
// from is the harness that sent the payload: one of Names, an alias, or "auto" to detect it. home
// is the user's home directory, or "". It is the directory of events from Cursor without an open
// folder. Source is always one of Claude Code's event names (§4.3), whatever name the harness
// uses. Events of unknown kinds and tool events without a tool name are returned as Ignored. Calls
// of cairn's own tools are returned as Touch.
//
// All errors have the kind Invalid. The codes, in order of the checks, are unknown_harness,
// invalid_json, json_too_deep and not_an_object (§13), then missing_field. missing_field names the
// first of session, directory and event that is blank or not text, by the harness's name for it.
func Hook(payload []byte, from, home string) (observation.Event, error) {
	sender, known := Of(from)
	if from != "auto" && !known {
		return observation.Event{}, fault.Newf(fault.Invalid, "unknown_harness", "unknown --from value %.40q", from).
			WithHint("this version knows: auto, " + strings.Join(Names(), ", "))
	}
	body := bytes.TrimPrefix(payload, []byte(lazyjson.ByteOrderMark))
	lazyjson.MaskNUL(body)
	if err := lazyjson.CheckPayload(body, len(payload)-len(body)); err != nil {
		return observation.Event{}, err
	}
	body = lazyjson.TrimSpace(body)
	if !known {
		sender = senderOfPayload(body)
	}
	e, err := sender.Event(body, home)
	for i := range e.Calls {
		harness.UnwrapOwn(&e.Calls[i])
	}
	return e, err
}

// senderOfPayload returns the harness that sent a payload, detected by its fields (observations
// §4.3). It is the last harness in the table that is the only sender of such payloads, else Claude
// Code.
func senderOfPayload(body lazyjson.Value) harness.Harness {
	all := All()
	for _, h := range slices.Backward(all) {
		if h.Sends != nil && h.Sends(body) {
			return h
		}
	}
	return all[0]
}
