package readtest

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"cairn/internal/fault"
	"cairn/internal/harness"
	"cairn/internal/harness/harnesses"
	"cairn/internal/harness/harnesstest"
	"cairn/internal/observation"
)

// HookTwice returns the event of a payload, and false if the payload is refused. It checks
// properties of all payloads of all harnesses.
func HookTwice(t *testing.T, payload []byte, from, home string) (observation.Event, bool) {
	t.Helper()
	e, err := harnesses.Hook(bytes.Clone(payload), from, home)
	again, errAgain := harnesses.Hook(bytes.Clone(payload), from, home)
	if !reflect.DeepEqual(e, again) || (err == nil) != (errAgain == nil) {
		t.Errorf("once %+v, %v; then %+v, %v", e, err, again, errAgain)
	}
	if err != nil {
		if fault.KindOf(err) != fault.Invalid || !reflect.ValueOf(e).IsZero() {
			t.Errorf("%+v, %v", e, err)
		}
		return e, false
	}
	if strings.TrimSpace(e.Session) == "" || strings.TrimSpace(e.Cwd) == "" || e.Kind == observation.Tool && len(e.Calls) == 0 {
		t.Errorf("%+v", e)
	}
	harnesstest.CheckTexts(t, reflect.ValueOf(e))
	return e, true
}

// ReadTwice reads a file with any content and checks properties of all events and reports.
func ReadTwice(t *testing.T, file []byte, o harness.TranscriptOptions) []observation.Event {
	t.Helper()
	events, report := ReadAll(t, bytes.NewReader(file), o)
	again, _ := ReadAll(t, bytes.NewReader(file), o)
	if !reflect.DeepEqual(events, again) {
		t.Error("a second reading differs")
	}
	if report.Bytes != int64(len(file)) || report.Resume < 0 || report.Resume > report.Bytes ||
		report.Resume > 0 && file[report.Resume-1] != '\n' {
		t.Errorf("%+v for %d bytes", report, len(file))
	}
	for _, e := range events {
		if e.Session == "" || e.Cwd == "" || e.At.IsZero() || !e.Imported || e.Harness != report.Harness && report.Harness != "" ||
			(e.Kind == observation.Tool) != (len(e.Calls) > 0) {
			t.Errorf("%+v", e)
		}
		harnesstest.CheckTexts(t, reflect.ValueOf(e))
	}
	return events
}

// FuzzHook checks properties of all payloads of a harness.
func FuzzHook(t *testing.T, payload []byte, from string) {
	t.Helper()
	e, ok := HookTwice(t, payload, from, "/home/ada")
	if !ok {
		return
	}
	if e.Harness != from {
		t.Errorf("%+v", e)
	}
	said, err := harnesses.HookOutput(e, "# cairn context", harness.GuardDecision{})
	if err != nil || said != "" && said[0] != '{' {
		t.Errorf("injection %q, %v", said, err)
	}
}

// FuzzTranscript checks properties of all files of a harness, whatever follows a valid beginning.
func FuzzTranscript(t *testing.T, file []byte, path, writer string) {
	t.Helper()
	o := harness.TranscriptOptions{Path: path, ModTime: harnesstest.Someday, Roots: []string{"/k"}}
	events, report := ReadAll(t, bytes.NewReader(file), o)
	again, _ := ReadAll(t, bytes.NewReader(file), o)
	if !reflect.DeepEqual(events, again) {
		t.Error("a second reading differs")
	}
	if report.Bytes != int64(len(file)) || report.Resume != 0 && report.Harness == writer {
		t.Errorf("%+v for %d bytes", report, len(file))
	}
	for _, e := range events {
		if strings.TrimSpace(e.Session) == "" || e.Cwd == "" || e.At.IsZero() || !e.Imported {
			t.Errorf("%+v", e)
		}
		harnesstest.CheckTexts(t, reflect.ValueOf(e))
	}
}

// FuzzPayloads checks properties of all payloads of a host, from those that it sent.
func FuzzPayloads(f *testing.F, host string, more ...string) {
	for _, s := range more {
		f.Add([]byte(`{"session_id":"s","cwd":"/k","hook_event_name":` + s + `}`))
	}
	for payload := range bytes.Lines(Sent(f, host, "payloads.jsonl")) {
		f.Add(bytes.TrimSpace(bytes.ReplaceAll(payload, []byte("@CWD@"), []byte("/k"))))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		if bytes.Contains(payload, []byte("transcript_path")) {
			return // its source may change between two readings
		}
		FuzzHook(t, payload, host)
	})
}

// FuzzLines checks properties of all files of a harness, from one of its transcripts.
func FuzzLines(f *testing.F, file []byte, path, writer string) {
	f.Add(file)
	first, _, _ := bytes.Cut(file, []byte("\n"))
	for line := range bytes.Lines(file) {
		f.Add(append(append(bytes.Clone(first), '\n'), line...))
	}
	f.Fuzz(func(t *testing.T, file []byte) { FuzzTranscript(t, file, path, writer) })
}
