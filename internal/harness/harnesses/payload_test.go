package harnesses_test

import (
	"io"
	"testing"
	"testing/iotest"

	"cairn/internal/harness/harnesses"
	"cairn/internal/harness/harnesstest"
	"cairn/internal/harness/lazyjson"
)

// TestAPayloadOverTheLimitIsShortened checks that all members around the long part remain.
func TestAPayloadOverTheLimitIsShortened(t *testing.T) {
	t.Parallel()
	if testing.Short() || harnesstest.Raced {
		t.Skip("reads payloads of 64 MiB")
	}
	const head, end = `{"session_id":"s","cwd":"/k","hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{"command":"make"},"tool_response":`, `,"tool_use_id":"t","duration_ms":7}`
	for name, r := range map[string]io.Reader{
		"string":  harnesstest.Huge(head+`{"stdout":"`, `a\n"`[:3], `","interrupted":true}`+end),
		"bytes":   harnesstest.Huge(head+`"`, "\xff", `"`+end),
		"blocks":  harnesstest.Huge(head+`[{"text":"a"}`, `,{"text":"a"}`, `]`+end),
		"objects": harnesstest.Huge(head+`{"a":1`, `,"b":[{}]`, `}`+end),
		"spaces":  harnesstest.Huge(head+`{"a":1`, " \n", `}`+end),
		"numbers": harnesstest.Huge(head, "1", end),
		"halves":  iotest.HalfReader(harnesstest.Huge(head+`"`, "x", `"`+end)),
	} {
		payload, err := lazyjson.ReadPayload(r)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(payload) > 20<<20 {
			t.Errorf("%s: %d bytes are left", name, len(payload))
		}
		e, err := harnesses.Hook(payload, "auto", "")
		if err != nil || len(e.Calls) != 1 || e.Session != "s" || e.Calls[0].ID != "t" || e.Calls[0].DurationMS != 7 {
			t.Errorf("%s: %v, %+.300v", name, err, e)
		}
	}
}
