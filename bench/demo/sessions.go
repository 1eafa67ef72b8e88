package main

import (
	"bytes"
	"crypto/rand"
	"embed"
	"encoding/json"
	"fmt"
	"path"
	"strings"
)

// recordings contains the generated sessions: one hook payload per line, with {{placeholders}}
// for values that are known only at replay.
//
//go:embed sessions/*.jsonl
var recordings embed.FS

// recording is one generated session.
type recording struct {
	file     string
	repo     string // placeholder of its project's folder
	payloads [][]byte
}

// payload contains the fields of a hook payload that the demo reads.
type payload struct {
	SessionID string `json:"session_id"`
	Cwd       string `json:"cwd"`
	Event     string `json:"hook_event_name"`
	Prompt    string `json:"prompt"`
}

// readRecordings returns the sessions in chronological order.
func readRecordings() ([]recording, error) {
	entries, err := recordings.ReadDir("sessions")
	if err != nil {
		return nil, err
	}
	var out []recording
	for _, e := range entries {
		text, err := recordings.ReadFile(path.Join("sessions", e.Name()))
		if err != nil {
			return nil, err
		}
		r := recording{file: e.Name(), payloads: bytes.Split(bytes.TrimSpace(text), []byte("\n"))}
		var first payload
		if err := json.Unmarshal(r.payloads[0], &first); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name(), err)
		}
		r.repo = strings.Trim(first.Cwd, "{}")
		out = append(out, r)
	}
	return out, nil
}

// fill replaces names in double braces with values, escaped for JSON strings. A name without a
// value is an error.
func fill(line []byte, values map[string]string) ([]byte, error) {
	var out []byte
	for {
		before, rest, found := bytes.Cut(line, []byte("{{"))
		out = append(out, before...)
		if !found {
			return out, nil
		}
		name, after, closed := bytes.Cut(rest, []byte("}}"))
		value, known := values[string(name)]
		if !closed || !known {
			return nil, fmt.Errorf("unknown placeholder {{%.20s", rest)
		}
		quoted, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		out = append(out, quoted[1:len(quoted)-1]...)
		line = after
	}
}

// inventedKey returns a random text that looks like a payment key and is valid nowhere. It is
// generated at each call, so that no file contains it.
func inventedKey() string { return "sk_" + "live_" + rand.Text() }
