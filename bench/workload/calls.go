package workload

import (
	"fmt"
	"path/filepath"
)

// call returns the next tool call of a session, with the shares of tools in real transcripts. A
// quarter each are commands, reads and edits; the rest are searches and other tools.
func (s *Session) call() Step {
	c := Step{Event: "PostToolUse", At: s.at, ID: fmt.Sprintf("toolu_%s%05d", s.tag, s.calls), Millis: 5 + s.IntN(3000)}
	s.calls++
	switch n := s.IntN(100); {
	case n < 29:
		s.bash(&c)
	case n < 54:
		s.read(&c)
	case n < 77:
		s.edit(&c)
	case n < 91:
		s.search(&c)
	default:
		s.other(&c)
	}
	return c
}

func (s *Session) bash(c *Step) {
	file := one(s.speaker, s.near)
	dir := filepath.Dir(file)
	command := one(s.speaker, []string{
		"go test ./... -run Test" + capital(s.camel(2)), "go test " + dir + " -count=1", "go build ./... && go vet ./...",
		"git status --short", "git diff " + file, "git log --oneline -n " + fmt.Sprint(1+s.IntN(20)),
		"grep -rn " + s.camel(2) + " " + dir, "npm run " + s.noun(), "npx tsc --noEmit && npm test -- " + s.noun(),
		"docker compose logs --tail 50 " + s.noun(), "curl -s http://localhost:8080/" + s.noun() + "/" + s.noun(),
		"sed -n '1,80p' " + file, "psql -c \"select count(*) from " + s.noun() + "s where " + s.noun() + "_id is null\"",
		"make " + s.noun(), "ls -la " + dir, "git add -A && git commit -m \"" + s.sentence(3, 9) + "\"", "gh pr view " + fmt.Sprint(s.IntN(900)),
	})
	c.Tool = "Bash"
	c.Input = map[string]any{"command": command, "description": capital(s.sentence(3, 7))}
	if s.IntN(12) == 0 {
		c.Event, c.Error = "PostToolUseFailure", "Exit code 1\n"+s.text(900)
		return
	}
	c.Response = map[string]any{"stdout": s.text(1500), "stderr": "", "interrupted": false, "isImage": false}
}

func (s *Session) read(c *Step) {
	file := one(s.speaker, s.near)
	c.Tool, c.Input = "Read", map[string]any{"file_path": file}
	content := s.text(9000)
	c.Response = map[string]any{"type": "text", "file": map[string]any{
		"filePath": file, "content": content, "numLines": len(content) / 60, "startLine": 1, "totalLines": len(content) / 60,
	}}
}

func (s *Session) edit(c *Step) {
	file := one(s.speaker, s.near)
	c.Tool = "Edit"
	if s.IntN(20) == 0 {
		c.Tool = "Write"
		content := s.text(4000)
		c.Input = map[string]any{"file_path": file, "content": content}
		c.Response = map[string]any{"type": "create", "filePath": file, "content": content, "structuredPatch": []any{}}
		return
	}
	before, after := s.text(400), s.text(500)
	c.Input = map[string]any{"file_path": file, "old_string": before, "new_string": after}
	c.Response = map[string]any{
		"filePath": file, "oldString": before, "newString": after, "originalFile": s.text(9000), "userModified": false,
		"structuredPatch": []any{map[string]any{"oldStart": 10, "oldLines": 8, "newStart": 10, "newLines": 9, "lines": []string{"-" + before, "+" + after}}},
	}
}

func (s *Session) search(c *Step) {
	c.Tool = "Grep"
	if s.IntN(10) == 0 {
		c.Tool = "Glob"
		c.Input = map[string]any{"pattern": "**/*" + s.noun() + "*"}
	} else {
		c.Input = map[string]any{"pattern": s.camel(1 + s.IntN(2)), "path": filepath.Dir(one(s.speaker, s.near)), "output_mode": "content"}
	}
	c.Response = map[string]any{"mode": "content", "numFiles": s.IntN(30), "filenames": []string{}, "content": s.text(2500)}
}

func (s *Session) other(c *Step) {
	switch s.IntN(8) {
	case 0:
		c.Tool = "Task"
		c.Input = map[string]any{"description": s.sentence(3, 6), "prompt": s.sentence(40, 160), "subagent_type": "Explore"}
		c.Response = map[string]any{"status": "completed", "content": s.text(1500)}
	case 1:
		c.Tool, c.Input = "WebSearch", map[string]any{"query": s.sentence(3, 8)}
		c.Response = map[string]any{"results": s.text(1500)}
	case 2:
		c.Tool = "mcp__tickets__get_issue"
		c.Input = map[string]any{"id": fmt.Sprintf("SHOP-%d", s.IntN(4000)), "fields": s.sentence(2, 4)}
		c.Response = []any{map[string]any{"type": "text", "text": s.text(1200)}}
	default:
		c.Tool = "TodoWrite"
		c.Input = map[string]any{"todos": []any{map[string]any{"content": s.sentence(3, 8), "status": "pending"}}}
		c.Response = map[string]any{"oldTodos": []any{}, "newTodos": []any{}}
	}
}
