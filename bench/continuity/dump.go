package continuity

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"time"

	"cairn/internal/observation"
	"cairn/internal/project"
	"cairn/internal/redact"
)

// dumped is one event in a dump.
type dumped struct {
	Session  string    `json:"session"`
	Project  string    `json:"project"`
	Folder   string    `json:"folder"` // checkout, as named in the transcript
	At       time.Time `json:"at"`
	Kind     string    `json:"kind"`           // prompt, edit, read, search, command, commit, message, compact
	Path     string    `json:"path,omitempty"` // relative to the repository, absolute outside it
	Text     string    `json:"text,omitempty"`
	PromptID string    `json:"prompt_id,omitempty"`
	Agent    string    `json:"agent,omitempty"`
	Branch   string    `json:"branch,omitempty"`
	Failed   bool      `json:"failed,omitempty"`
	Created  bool      `json:"created,omitempty"`
	Tool     string    `json:"tool,omitempty"`
	Role     string    `json:"role,omitempty"`
}

// maxDumped is the maximum number of characters of a text in a dump.
const maxDumped = 4000

// dump writes the events, shortened and redacted, as JSON lines.
func dump(file string, events []event, filter *redact.Filter) (err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	buffer := bufio.NewWriterSize(f, 1<<20)
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	for i := range events {
		for _, line := range events[i].dumped(filter) {
			if err := encoder.Encode(line); err != nil {
				return err
			}
		}
	}
	return buffer.Flush()
}

func (e *event) dumped(filter *redact.Filter) (lines []dumped) {
	text := func(s string) string {
		s, _ = filter.Head(strings.ReplaceAll(s, e.repo.root+"/", ""), maxDumped)
		return s
	}
	all := dumped{
		Session: e.Session, Project: e.repo.name, Folder: e.folder, At: e.At, PromptID: e.PromptID, Agent: e.AgentID, Branch: e.branch, Role: e.Role,
	}
	switch e.Kind {
	case observation.Prompt:
		all.Kind, all.Text = "prompt", text(e.Text)
		return []dumped{all}
	case observation.Message:
		all.Kind, all.Text = "message", text(e.Text)
		return []dumped{all}
	case observation.SessionStart:
		all.Kind = e.Text
		return []dumped{all}
	}
	for i := range e.Calls {
		c := &e.Calls[i]
		line := all
		line.Tool, line.Failed, line.Created = c.Tool, c.Failed, c.Created
		line.Path, _ = e.relative(c.Path)
		switch c.Action {
		case observation.Edit, observation.Write:
			line.Kind = "edit"
		case observation.Read:
			line.Kind = "read"
		case observation.Search:
			line.Kind, line.Text = "search", text(c.Pattern)
		case observation.Shell:
			line.Kind, line.Text = "command", text(c.Command)
			if !c.Failed && strings.Contains(c.Command, "git commit") {
				line.Kind, line.Text = "commit", text(c.Command+"\n"+firstLine(c.Stdout))
			}
		default:
			continue
		}
		lines = append(lines, line)
	}
	return lines
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// relative returns the key of an event's file. inside reports whether it is in the event's
// repository.
func (e *event) relative(file string) (key string, inside bool) {
	if file == "" {
		return "", false
	}
	place, err := project.Locate(e.Cwd, "")
	if err != nil {
		return "", false
	}
	key = place.PathKey(file)
	return key, place.Root == e.repo.root && !strings.HasPrefix(key, "/") && key != "."
}
