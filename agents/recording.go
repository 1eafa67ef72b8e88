package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"cairn/agents/model"
)

// recordedHook is one line of a recording: a hook call of a session.
type recordedHook struct {
	Session int             `json:"session"` // 1, 2 or 3: see first, second, resumed
	Args    []string        `json:"args"`
	Payload json.RawMessage `json:"payload"`
}

// recorder writes recordings without names, paths and ids of this machine.
type recorder struct {
	names *strings.Replacer
	ids   map[string]string
}

func (e *examiner) newRecorder() *recorder {
	stand := filepath.Dir(e.home)
	host, err := os.Hostname()
	if err != nil || len(host) < 4 {
		host = stand // replaced anyway
	}
	slug := strings.NewReplacer("/", "-", ".", "-")
	return &recorder{ids: map[string]string{}, names: strings.NewReplacer(
		e.repo, "{repo}", e.home, "{home}", stand, "{stand}", slug.Replace(e.repo), "{slug}", strings.TrimPrefix(slug.Replace(e.repo), "-"), "{slug}", host, "host",
		e.model.URL, "http://127.0.0.1:1",
	)}
}

var someID = regexp.MustCompile(`\b(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?:toolu|call|msg|resp|fc|ses|prt|exec|chatcmpl)[_-][0-9A-Za-z]{12,}|call-[0-9a-z]{16}|a[0-9a-f]{16})\b`)

// clean returns a text with placeholders for paths and with neutral ids. Equal ids stay equal.
func (r *recorder) clean(text string) string {
	return someID.ReplaceAllStringFunc(r.names.Replace(text), func(id string) string {
		if r.ids[id] == "" {
			n := len(r.ids) + 1
			switch i := strings.IndexAny(id, "_-"); {
			case len(id) == 36 && id[8] == '-':
				r.ids[id] = fmt.Sprintf("00000000-0000-4000-8000-%012d", n)
			case i > 0:
				r.ids[id] = fmt.Sprintf("%s%016d", id[:i+1], n)
			default:
				r.ids[id] = fmt.Sprintf("a%016d", n)
			}
		}
		return r.ids[id]
	})
}

// record writes the hooks and MCP requests of the first three sessions. It adds the transcript
// if the program's hooks read it.
func (e *examiner) record(dir string, sessions []session) error {
	dir = filepath.Join(dir, e.program.Name)
	if err := os.RemoveAll(filepath.Join(dir, "home")); err != nil { // its file names contain the date
		return err
	}
	r := e.newRecorder()
	var hooks bytes.Buffer
	transcripts := map[string]bool{}
	for i, s := range sessions {
		for _, h := range s.hooks {
			payload := []byte(r.clean(h.Payload))
			if !json.Valid(payload) {
				return fmt.Errorf("the payload of %s is not valid JSON", h.event())
			}
			line, err := json.Marshal(recordedHook{Session: i + 1, Args: h.Args, Payload: payload})
			if err != nil {
				return err
			}
			hooks.Write(append(line, '\n'))
			for _, path := range e.transcriptsOf(h) {
				transcripts[path] = true
			}
		}
	}
	if hooks.Len() == 0 {
		return nil
	}
	err := writeFile(filepath.Join(dir, "hooks.jsonl"), hooks.String())
	if err == nil && len(sessions[0].requests) > 0 {
		err = e.recordOutline(r, sessions[0].requests[0])
	}
	for _, path := range slices.Sorted(maps.Keys(transcripts)) {
		if err == nil {
			err = e.recordTranscript(r, dir, path)
		}
	}
	if err == nil {
		err = e.recordRequests(r, dir)
	}
	return err
}

// transcriptsOf returns the files that a hook may have read: the transcript named in its
// payload, or the files that the program stores for its session.
func (e *examiner) transcriptsOf(h hook) []string {
	if path, ok := h.fields["transcript_path"].(string); ok && e.program.ReadsTranscript {
		return []string{path}
	}
	context, _ := h.fields["sessionContext"].(map[string]any)
	session, _ := context["rootSessionId"].(string)
	if session == "" || e.program.Sessions == "" {
		return nil
	}
	found, err := filepath.Glob(filepath.Join(e.home, e.program.Sessions, session, "*.json"))
	if err != nil {
		return nil
	}
	return found
}

// recordOutline stores which tools the program offers, for the tests of the scripted model.
func (e *examiner) recordOutline(r *recorder, request model.Request) error {
	data, err := json.MarshalIndent(request.Outline(), "", " ")
	if err != nil {
		return err
	}
	return writeFile(filepath.Join("model", "testdata", e.program.Name+".json"), r.clean(string(data))+"\n")
}

// recordTranscript stores a transcript under its path below the home. It shortens long texts,
// which belong to the program.
func (e *examiner) recordTranscript(r *recorder, dir, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	name, err := filepath.Rel(e.home, path)
	if err != nil {
		return err
	}
	var out strings.Builder
	text := r.clean(string(data))
	lines := strings.Lines(text)
	if json.Valid([]byte(text)) { // a single document
		lines = slices.Values([]string{text})
	}
	for line := range lines {
		var item any
		if err := json.Unmarshal([]byte(line), &item); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		short, err := json.Marshal(shortenTexts(item))
		if err != nil {
			return err
		}
		out.Write(append(short, '\n'))
	}
	return writeFile(filepath.Join(dir, "home", r.clean(name)), out.String())
}

const maxRecordedText = 1500 // in bytes

// shortenTexts shortens long texts in a JSON value.
func shortenTexts(v any) any {
	switch v := v.(type) {
	case string:
		if len(v) > maxRecordedText {
			return strings.ToValidUTF8(v[:maxRecordedText/10], "") + " …"
		}
	case []any:
		for i := range v {
			v[i] = shortenTexts(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = shortenTexts(v[name])
		}
	}
	return v
}

// recordRequests stores the program's requests to cairn's MCP server: the first connection that
// called a tool.
func (e *examiner) recordRequests(r *recorder, dir string) error {
	files, err := filepath.Glob(filepath.Join(e.kept, "*.requests.jsonl"))
	if err != nil {
		return err
	}
	slices.Sort(files)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if bytes.Contains(data, []byte(`"tools/call"`)) {
			return writeFile(filepath.Join(dir, "mcp.jsonl"), r.clean(string(data)))
		}
	}
	return nil
}

// newFields reports payload fields that are not in the recording in dir, and recorded fields
// that are missing. They show what a new version of the program has changed.
func (e *examiner) newFields(dir string) {
	const check = "payloads as recorded"
	data, err := os.ReadFile(filepath.Join(dir, e.program.Name, "hooks.jsonl"))
	if err != nil {
		return // this program has no recording
	}
	known, now := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(string(data)) {
		var r recordedHook
		if json.Unmarshal([]byte(line), &r) == nil {
			addFields(known, string(r.Payload))
		}
	}
	for _, s := range e.recorded {
		for _, h := range s.hooks {
			addFields(now, h.Payload)
		}
	}
	var changes []string
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if !known[name] {
			changes = append(changes, "+"+name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if !now[name] {
			changes = append(changes, "-"+name)
		}
	}
	if len(changes) > 0 {
		e.note(check, "fields that differ: %s", strings.Join(changes, " "))
		return
	}
	e.note(check, "no difference")
}

// addFields adds the fields of a payload with their types: Event.field:type.
func addFields(fields map[string]bool, payload string) {
	h := hook{}
	if json.Unmarshal([]byte(payload), &h.fields) != nil {
		return
	}
	for name, value := range h.fields {
		kind := fmt.Sprintf("%T", value)
		switch value.(type) {
		case map[string]any:
			kind = "object"
		case []any:
			kind = "array"
		}
		fields[h.event()+"."+name+":"+kind] = true
	}
}
