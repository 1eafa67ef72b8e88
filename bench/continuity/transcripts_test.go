package continuity

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// author writes a generated transcript of one session.
type author struct {
	t       *testing.T
	session string
	cwd     string
	branch  string
	at      time.Time
	lines   []byte
	n       int
}

// noon returns 12:00 UTC on a day of January.
func noon(day int) time.Time { return time.Date(2026, 1, day, 12, 0, 0, 0, time.UTC) }

func newAuthor(t *testing.T, session, cwd string, at time.Time) *author {
	return &author{t: t, session: session, cwd: cwd, branch: "main", at: at}
}

type fields map[string]any

func (a *author) line(kind string, f fields) {
	a.t.Helper()
	a.n++
	f["type"], f["uuid"], f["sessionId"], f["cwd"] = kind, a.session+"-"+strconv.Itoa(a.n), a.session, a.cwd
	f["gitBranch"], f["timestamp"] = a.branch, a.at.Format("2006-01-02T15:04:05.000Z07:00")
	text, err := json.Marshal(f)
	if err != nil {
		a.t.Fatal(err)
	}
	a.lines = append(append(a.lines, text...), '\n')
	a.at = a.at.Add(time.Second)
}

func (a *author) prompt(text string) *author {
	a.line("user", fields{"message": fields{"role": "user", "content": text}})
	return a
}

// call adds a call that succeeded or failed.
func (a *author) call(tool string, failed bool, input fields) *author {
	id := "call-" + a.session + "-" + strconv.Itoa(a.n)
	a.line("assistant", fields{"message": fields{"model": "m", "content": []fields{{"type": "tool_use", "id": id, "name": tool, "input": input}}}})
	told := "done"
	if failed {
		told = "File does not exist."
	}
	a.line("user", fields{"message": fields{"role": "user", "content": []fields{
		{"type": "tool_result", "tool_use_id": id, "content": told, "is_error": failed},
	}}})
	return a
}

func (a *author) edit(file string) *author {
	return a.call("Edit", false, fields{"file_path": file, "old_string": "a", "new_string": "b"})
}

func (a *author) read(file string) *author {
	return a.call("Read", false, fields{"file_path": file})
}

// wait advances the author's clock.
func (a *author) wait(d time.Duration) *author {
	a.at = a.at.Add(d)
	return a
}

// fork continues in a new session. Its transcript begins with a copy of this one, with the new
// session's id but the same calls, lines and times.
func (a *author) fork(session string) *author {
	f := *a
	f.session = session
	f.lines = []byte(strings.ReplaceAll(string(a.lines), `"sessionId":"`+a.session+`"`, `"sessionId":"`+session+`"`))
	return &f
}

// save writes the transcripts into a folder with Claude Code's layout.
func save(t *testing.T, authors ...*author) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, a := range authors {
		folder := filepath.Join(dir, strings.ReplaceAll(a.cwd, "/", "-"))
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, a.session+".jsonl"), a.lines, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
