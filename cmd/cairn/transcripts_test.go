package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// call is a tool call of an invented transcript.
type call struct{ session, id, command string }

// story is a directory of invented transcripts, with the expected result of an import.
type story struct {
	dir      string
	digests  []string // of each session: id, prompts and actions, separated by |
	contents []string // of the rows that an import adds, all different
	calls    []call   // the shell calls, which hooks may report too
}

// newStory writes one transcript for each number in turns. Each is a separate session in
// cwd, with four rows a turn. All their texts contain name.
func newStory(t *testing.T, dir, name, cwd string, turns ...int) *story {
	t.Helper()
	s := &story{dir: dir}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	day := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -20) // recent enough not to expire
	for i, n := range turns {
		id := fmt.Sprintf("%s-%d", name, i)
		s.digests = append(s.digests, fmt.Sprintf("%s|%d|%d", id, n, 2*n))
		w := &teller{story: s, session: id, cwd: cwd, at: day.Add(time.Duration(i%24) * time.Hour)}
		for turn := range n {
			w.turn(turn)
		}
		if w.err != nil {
			t.Fatal(w.err)
		}
		if err := os.WriteFile(filepath.Join(dir, id+".jsonl"), w.text.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// teller writes one transcript.
type teller struct {
	*story
	session, cwd string
	at           time.Time
	lines        int
	text         bytes.Buffer
	err          error
}

func (w *teller) turn(n int) {
	prompt := fmt.Sprintf("turn %d of %s: make the totals right", n, w.session)
	command := fmt.Sprintf("go test ./%s/turn%d", w.session, n)
	file := filepath.Join(w.cwd, w.session, fmt.Sprintf("turn%d.go", n))
	answer := fmt.Sprintf("Turn %d of %s is done.", n, w.session)
	shell, edit := fmt.Sprintf("toolu_%s_%d_a", w.session, n), fmt.Sprintf("toolu_%s_%d_b", w.session, n)

	w.line("user", fields{"content": prompt}, nil)
	w.uses(shell, "Bash", fields{"command": command})
	w.result(shell, fields{"stdout": "ok", "stderr": "", "interrupted": false, "isImage": false})
	w.uses(edit, "Edit", fields{"file_path": file, "old_string": "a", "new_string": "b"})
	w.result(edit, fields{"filePath": file})
	w.line("assistant", fields{"content": []fields{{"type": "text", "text": answer}}}, nil)

	w.contents = append(w.contents, prompt, command, file, answer)
	w.calls = append(w.calls, call{w.session, shell, command})
}

func (w *teller) uses(id, tool string, input fields) {
	w.line("assistant", fields{"content": []fields{{"type": "tool_use", "id": id, "name": tool, "input": input}}}, nil)
}

func (w *teller) result(id string, response fields) {
	block := fields{"type": "tool_result", "tool_use_id": id, "content": "ok"}
	w.line("user", fields{"content": []fields{block}}, response)
}

func (w *teller) line(kind string, message, response fields) {
	w.lines++
	w.at = w.at.Add(5 * time.Second)
	message["role"] = kind
	line := fields{
		"type": kind, "uuid": fmt.Sprintf("%s-line-%d", w.session, w.lines), "sessionId": w.session, "cwd": w.cwd,
		"timestamp": w.at.Format(time.RFC3339Nano), "isSidechain": false, "message": message,
	}
	if response != nil {
		line["toolUseResult"] = response
	}
	data, err := json.Marshal(line)
	if err != nil {
		w.err = err
	}
	w.text.Write(append(data, '\n'))
}

// added returns the number of added rows in the JSON report of an import.
func added(t *testing.T, report string) int {
	t.Helper()
	var r struct{ Added int }
	if err := json.Unmarshal([]byte(report), &r); err != nil {
		t.Fatalf("%v in %s", err, report)
	}
	return r.Added
}
