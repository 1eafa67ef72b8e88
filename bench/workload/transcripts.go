package workload

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// WriteTranscript writes the first steps of a session to a file below dir, at Claude Code's
// path, and returns the file's size.
func WriteTranscript(dir string, s *Session, steps int) (size int64, err error) {
	folder := filepath.Join(dir, strings.NewReplacer("/", "-", `\`, "-", ":", "-").Replace(s.project.Root))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return 0, err
	}
	f, err := os.Create(filepath.Join(folder, s.ID+".jsonl"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	buffer := bufio.NewWriterSize(f, 1<<20)
	t := transcriptWriter{Session: s, encoder: json.NewEncoder(buffer)}
	t.encoder.SetEscapeHTML(false)
	for range steps {
		if err := t.step(s.Next()); err != nil {
			return 0, err
		}
	}
	if err := buffer.Flush(); err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// transcriptWriter writes a session as Claude Code does. Besides the conversation this includes
// much that no import needs.
type transcriptWriter struct {
	*Session
	encoder *json.Encoder
	lines   int
}

type fields map[string]any

func (t *transcriptWriter) step(st Step) error {
	switch st.Event {
	case "UserPromptSubmit":
		return errors.Join(
			t.encoder.Encode(fields{"type": "file-history-snapshot", "messageId": t.uuid(), "snapshot": fields{"trackedFileBackups": t.text(600)}}),
			t.line(st.At, "user", fields{"message": fields{"role": "user", "content": st.Text}}),
		)
	case "Stop":
		return errors.Join(
			t.assistant(st.At, fields{"type": "text", "text": st.Text}),
			t.line(st.At, "system", fields{"subtype": "stop_hook_summary", "hookCount": 1, "hookInfos": t.text(300)}),
			t.line(st.At, "system", fields{"subtype": "turn_duration", "durationMs": 1000 * t.IntN(300)}),
		)
	case "PostToolUse", "PostToolUseFailure":
		return t.call(st)
	}
	return nil
}

// call writes thinking, the call, its progress and its result.
func (t *transcriptWriter) call(st Step) error {
	asked := st.At.Add(-time.Duration(st.Millis) * time.Millisecond)
	err := errors.Join(
		t.assistant(asked, fields{"type": "thinking", "thinking": t.sentence(10, 60), "signature": t.text(1200)}),
		t.assistant(asked, fields{"type": "tool_use", "id": st.ID, "name": st.Tool, "input": st.Input}),
	)
	switch st.Tool {
	case "Bash":
		err = errors.Join(err, t.progress(st, fields{"type": "bash_progress", "output": t.text(200), "elapsedTimeSeconds": 2}))
	case "Task":
		for range 8 {
			err = errors.Join(err, t.progress(st, fields{"type": "agent_progress", "message": t.text(9000), "normalizedMessages": t.text(6000)}))
		}
	}
	result := fields{"type": "tool_result", "tool_use_id": st.ID}
	line := fields{"message": fields{"role": "user", "content": []any{result}}, "toolUseResult": st.Response}
	if st.Error != "" {
		result["content"], result["is_error"], line["toolUseResult"] = st.Error, true, "Error: "+st.Error
	} else {
		result["content"] = t.told(st)
	}
	return errors.Join(err, t.line(st.At, "user", line))
}

// told returns a tool's result in the form that the model receives.
func (t *transcriptWriter) told(st Step) string {
	switch r := st.Response.(type) {
	case map[string]any:
		for _, key := range []string{"stdout", "content"} {
			if text, ok := r[key].(string); ok {
				return text
			}
		}
		if file, ok := r["file"].(map[string]any); ok {
			content, _ := file["content"].(string)
			return strings.ReplaceAll(content, "\n\t", "\n   →\t")
		}
	}
	return "Done. " + t.text(300)
}

func (t *transcriptWriter) assistant(at time.Time, block fields) error {
	return t.line(at, "assistant", fields{
		"requestId": "req_" + t.uuid(),
		"message": fields{
			"id": "msg_" + t.uuid(), "type": "message", "role": "assistant", "model": "claude-opus-4-5", "content": []any{block},
			"usage": fields{"input_tokens": 10, "cache_read_input_tokens": t.IntN(90_000), "output_tokens": t.IntN(900), "service_tier": "standard"},
		},
	})
}

func (t *transcriptWriter) progress(st Step, data fields) error {
	return t.line(st.At, "progress", fields{"data": data, "toolUseID": "progress-0", "parentToolUseID": st.ID})
}

// line writes one line with the fields that all lines of a conversation have.
func (t *transcriptWriter) line(at time.Time, kind string, own fields) error {
	all := fields{
		"type": kind, "uuid": t.uuid(), "parentUuid": nil, "isSidechain": false, "userType": "external", "version": "2.1.20",
		"sessionId": t.ID, "cwd": t.project.Root, "gitBranch": "main", "timestamp": at.UTC().Format("2006-01-02T15:04:05.000Z07:00"),
	}
	for k, v := range own {
		all[k] = v
	}
	return t.encoder.Encode(all)
}

func (t *transcriptWriter) uuid() string {
	t.lines++
	return fmt.Sprintf("%08x-0000-4000-8000-%012x", t.Uint32(), t.lines)
}
