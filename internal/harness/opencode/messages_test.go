package opencode

import (
	"reflect"
	"testing"

	"cairn/internal/harness"
	"cairn/internal/harness/harnesstest"
	"cairn/internal/observation"
)

// Whatever the columns of a message and its part contain, two readings yield the same events. The
// events contain only texts that can be stored.
func FuzzOpenCodeMessages(f *testing.F) {
	for _, s := range [][2]string{
		{`{"role":"user"}`, `{"type":"text","text":"mend it"}`},
		{`{"role":"assistant","path":{"cwd":"/k"}}`, `{"type":"tool","tool":"bash","callID":"c","state":{"status":"error","input":{"command":"x"},"error":"\ud800"}}`},
		{`{"role":"assistant","summary":true}`, `{}`}, {"\xff", "{"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, message, part string) {
		tell := func() (events []observation.Event) {
			base := base{
				sessions: map[string]session{"s": {"s", "p", "/k"}, "p": {"p", "s", "/k"}},
				parts:    map[string][]row{"m": {{id: "a", of: "m", session: "s", made: 1, changed: 2, data: validColumn(part)}}},
			}
			report := harness.NewReport(harness.TranscriptOptions{})
			err := base.emit([]row{{id: "m", session: "s", made: 1, data: validColumn(message)}}, harness.TranscriptOptions{}, &report, func(e observation.Event) error {
				events = append(events, e)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			return events
		}
		events := tell()
		if !reflect.DeepEqual(events, tell()) {
			t.Error("a second reading differs")
		}
		for _, e := range events {
			if e.Session == "" || e.Cwd == "" || e.At.IsZero() || !e.Imported {
				t.Errorf("%+v", e)
			}
			harnesstest.CheckTexts(t, reflect.ValueOf(e))
		}
	})
}
