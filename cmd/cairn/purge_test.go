package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn"
	"cairn/internal/doctor"
	"cairn/internal/store"
)

// told is an invented event with unique words. They must be on the disk while its row
// exists, and nowhere after the row was purged.
type told struct {
	words   []string
	hook    []byte
	lines   []fields // the same event in a transcript
	obsType string
}

// teach is a session that is recorded both by hooks and by a transcript.
type teach struct {
	*home
	session string
	cwd     string
	used    map[string]bool // prefixes of words
	events  map[string]*told
	order   []string
	lines   int
	at      time.Time
}

func newTeach(h *home, session, cwd string, used map[string]bool) *teach {
	s := &teach{home: h, session: session, cwd: cwd, used: used, events: map[string]*told{}, at: time.Now()}
	s.everyKind()
	return s
}

// word returns a word in capitals with a unique prefix. Its lower-case form on the disk can
// only come from the search index.
func (s *teach) word() string {
	const rare, vowels, others = "qxz", "aeiou", "bcdfghjklmnpqrtvwxz"
	for {
		b := []byte{rare[rand.IntN(len(rare))], vowels[rand.IntN(len(vowels))]}
		for range 5 {
			b = append(b, others[rand.IntN(len(others))], vowels[rand.IntN(len(vowels))])
		}
		if start := string(b[:3]); !s.used[start] {
			s.used[start] = true
			return strings.ToUpper(string(b)) + "KINGS" // which stemming removes
		}
	}
}

// core returns the part of a word that must be on the disk in any spelling. The index omits
// the prefix that a word shares with the previous word, and its suffix.
func core(word string) string { return strings.ToLower(word[2:12]) }

func (s *teach) add(name, obsType string, e *told, event string, f fields) {
	f["session_id"], f["cwd"] = s.session, s.cwd
	e.hook, e.obsType = s.payload(event, f), obsType
	s.events[name] = e
	s.order = append(s.order, name)
}

// call adds a tool call with its transcript lines.
func (s *teach) call(name, obsType, tool string, input, response fields, words ...string) {
	id := fmt.Sprintf("toolu_%s_%s", s.session, name)
	e := &told{words: words}
	s.uses(e, id, tool, input)
	s.result(e, id, response)
	s.add(name, obsType, e, "PostToolUse", fields{
		"tool_name": tool, "tool_use_id": id, "tool_input": input, "tool_response": response, "prompt_id": s.session + "-p1",
	})
}

func (s *teach) uses(e *told, id, tool string, input fields) {
	s.line(e, "assistant", []fields{{"type": "tool_use", "id": id, "name": tool, "input": input}}, nil)
}

func (s *teach) result(e *told, id string, response any) {
	_, failed := response.(string)
	s.line(e, "user", []fields{{"type": "tool_result", "tool_use_id": id, "content": fmt.Sprint(response), "is_error": failed}}, response)
}

func (s *teach) line(e *told, kind string, content, response any) {
	s.lines++
	line := fields{
		"type": kind, "uuid": fmt.Sprintf("%s-line-%d", s.session, s.lines), "sessionId": s.session, "cwd": s.cwd,
		"promptId": s.session + "-p1", "isSidechain": false, "message": fields{"role": kind, "content": content},
	}
	if response != nil {
		line["toolUseResult"] = response
	}
	e.lines = append(e.lines, line)
}

// everyKind adds an event for every field in which a text can be stored.
func (s *teach) everyKind() {
	w := s.word
	prompt := &told{words: []string{w(), w(), w()}}
	text := strings.Join(prompt.words, " and ") + " of it"
	s.line(prompt, "user", text, nil)
	s.add("prompt", "user_prompt", prompt, "UserPromptSubmit", fields{"prompt": text, "prompt_id": s.session + "-p1"})

	a, b := w(), w()
	s.call("command", "command", "Bash", fields{"command": "run " + a, "description": "to " + b}, fields{"stdout": "ok"}, a, b)

	a, b = w(), w()
	failed := &told{words: []string{a, b}}
	id, say := "toolu_"+s.session+"_error", "Exit code 3 "+b+" is missing"
	s.uses(failed, id, "Bash", fields{"command": "try " + a})
	s.result(failed, id, "Error: "+say)
	s.add("error", "command_error", failed, "PostToolUseFailure", fields{
		"tool_name": "Bash", "tool_use_id": id, "tool_input": fields{"command": "try " + a}, "error": say, "prompt_id": s.session + "-p1",
	})

	a, b, c, d := w(), w(), w(), w()
	s.call("mcp", "mcp_call", "mcp__"+a+"__"+b, fields{c: "the " + d}, fields{"content": "ok"}, a, b, c, d)

	a, b = w(), w()
	s.call("edit", "file_edit", "Edit", fields{"file_path": filepath.Join(s.cwd, a, b+".go"), "old_string": "x", "new_string": "y"},
		fields{"filePath": "x"}, a, b)

	a, b = w(), w()
	s.call("commit", "git_commit", "Bash", fields{"command": "git commit -m '" + b + " done'"},
		fields{"stdout": "[" + a + " 1234abc] " + b + " done\n 1 file changed, 1 insertion(+)\n", "stderr": ""}, a, b)

	a, b = w(), w()
	s.call("search", "search", "Grep", fields{"pattern": a, "path": filepath.Join(s.cwd, b)}, fields{"numFiles": 1}, a, b)
	a = w()
	s.call("fetch", "web_fetch", "WebFetch", fields{"url": "https://example.org/" + a}, fields{"code": 200}, a)
	a = w()
	s.call("task", "task_spawn", "Task", fields{"description": "look for " + a}, fields{"status": "completed"}, a)

	answer := &told{words: []string{w()}}
	text = "The " + answer.words[0] + " stands."
	s.line(answer, "assistant", []fields{{"type": "text", "text": text}}, nil)
	s.add("answer", "agent_message", answer, "Stop", fields{"last_assistant_message": text, "stop_hook_active": false})
}

// live sends every event through the hook.
func (s *teach) live() {
	s.t.Helper()
	for _, name := range s.order {
		s.recorded(s.events[name].hook)
	}
}

// write writes the session's transcript into a directory. Its lines start at a given time.
func (s *teach) write(dir string, at time.Time) {
	s.t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		s.t.Fatal(err)
	}
	var text bytes.Buffer
	for _, name := range s.order {
		for _, line := range s.events[name].lines {
			line["timestamp"] = at.Format(time.RFC3339Nano)
			data, err := json.Marshal(line)
			if err != nil {
				s.t.Fatal(err)
			}
			text.Write(append(data, '\n'))
		}
	}
	if err := os.WriteFile(filepath.Join(dir, s.session+".jsonl"), text.Bytes(), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// words returns the words of the named events, or of all events without names.
func (s *teach) words(names ...string) (all []string) {
	if len(names) == 0 {
		names = s.order
	}
	for _, name := range names {
		all = append(all, s.events[name].words...)
	}
	return all
}

// onDisk returns the words that a file of the data directory contains. If the store is
// encrypted, it also searches the decrypted files.
func (h *home) onDisk(words []string) (found []string) {
	h.t.Helper()
	seen := map[string]bool{}
	key := h.key()
	err := filepath.WalkDir(h.dataDir(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		under := bytes.ToLower(h.decrypted(data, key))
		data = bytes.ToLower(data)
		for _, w := range words {
			if bytes.Contains(data, []byte(core(w))) {
				seen[w] = true
				if key != nil {
					h.t.Errorf("%s holds %s in plain", filepath.Base(path), w)
				}
			}
			if bytes.Contains(under, []byte(core(w))) {
				seen[w] = true
			}
		}
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, w := range words {
		if seen[w] {
			found = append(found, w)
		}
	}
	return found
}

func (h *home) wantOnDisk(words []string) {
	h.t.Helper()
	found := h.onDisk(words)
	if lost := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return slices.Contains(found, w) }); len(lost) > 0 {
		h.t.Errorf("not on the disk: %q", lost)
	}
}

func (h *home) wantGone(words []string) {
	h.t.Helper()
	if found := h.onDisk(words); len(found) > 0 {
		h.t.Errorf("still on the disk: %q", found)
	}
}

// indexed returns the number of words whose stems are in the search index, in lower case.
func (h *home) indexed(words []string) (n int) {
	h.t.Helper()
	var blocks []byte
	for _, block := range h.rows(`SELECT block FROM observations_fts_data`) {
		blocks = append(blocks, block...)
	}
	for _, w := range words {
		if bytes.Contains(blocks, []byte(core(w))) {
			n++
		}
	}
	return n
}

// purgeHome is a home with two sessions and a transcript of each. Both are stored by hooks
// and from an older transcript. One of them will be purged.
type purgeHome struct {
	*home
	gone, kept, old *teach
	transcripts     string
}

// inventedWords are settings under which meaningless words do not count as secrets.
const inventedWords = "[observations.filter]\nlevel = 'relaxed'\n"

// settle writes the settings.
func (h *home) settle(text string) {
	h.t.Helper()
	err := errors.Join(os.MkdirAll(h.dataDir(), 0o700),
		os.WriteFile(filepath.Join(h.dataDir(), "config.toml"), []byte(text), 0o600))
	if err != nil {
		h.t.Fatal(err)
	}
}

func newPurgeHome(t *testing.T) *purgeHome {
	t.Helper()
	h := newHome(t)
	h.settle(inventedWords)
	used := map[string]bool{}
	p := &purgeHome{home: h, transcripts: filepath.Join(h.dir, "transcripts")}
	p.gone = newTeach(h, "gone", h.repository(filepath.Join(h.dir, "secretive")), used)
	p.kept = newTeach(h, "kept", h.repo, used)
	p.old = newTeach(h, "old", h.repo, used)
	p.gone.live()
	p.kept.live()
	p.old.write(p.transcripts, time.Date(2025, 3, 4, 5, 0, 0, 0, time.UTC))
	h.cairn("import", p.transcripts)
	p.gone.write(p.transcripts, time.Now())
	p.kept.write(p.transcripts, time.Now())
	for _, s := range []*teach{p.gone, p.kept, p.old} {
		h.wantOnDisk(s.words())
		if n := h.indexed(s.words()); n < len(s.words()) {
			t.Errorf("only %d of %d words are in the search index", n, len(s.words()))
		}
	}
	return p
}

// TestPurgedTextIsOnNoDiskAndComesBackOnlyWhenAskedFor purges by each filter and checks
// every byte of the data directory.
func TestPurgedTextIsOnNoDiskAndComesBackOnlyWhenAskedFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		filter func(p *purgeHome) []string
		gone   func(p *purgeHome) []string // purged words; the others stay
		added  int                         // by an import that includes purged text
	}{
		{"session", func(*purgeHome) []string { return []string{"--session", "gone"} },
			func(p *purgeHome) []string { return p.gone.words() }, 10},
		{"project", func(*purgeHome) []string { return []string{"--project", "secretive"} },
			func(p *purgeHome) []string { return p.gone.words() }, 10},
		{"session in project", func(*purgeHome) []string { return []string{"--session", "gone", "--project", "secretive"} },
			func(p *purgeHome) []string { return p.gone.words() }, 10},
		{"file", func(p *purgeHome) []string {
			return []string{"--file", p.gone.events["edit"].words[0] + "/../" + p.gone.events["edit"].words[0] + "/" + p.gone.events["edit"].words[1] + ".go"}
		}, func(p *purgeHome) []string { return p.gone.words("edit") }, 1},
		{"type in session", func(*purgeHome) []string { return []string{"--type", "user_prompt", "--session", "gone"} },
			func(p *purgeHome) []string { return p.gone.words("prompt") }, 1},
		{"type", func(*purgeHome) []string { return []string{"--type", "agent_message"} },
			func(p *purgeHome) []string {
				return slices.Concat(p.gone.words("answer"), p.kept.words("answer"), p.old.words("answer"))
			}, 3},
		{"before", func(*purgeHome) []string { return []string{"--before", "2025-04-01"} },
			func(p *purgeHome) []string { return p.old.words() }, 10},
		{"older than", func(*purgeHome) []string { return []string{"--older-than", "30"} },
			func(p *purgeHome) []string { return p.old.words() }, 10},
		{"search", func(p *purgeHome) []string {
			return []string{"--search", strings.ToLower(p.gone.events["mcp"].words[3]) + " OR " + p.old.events["error"].words[1]}
		}, func(p *purgeHome) []string { return slices.Concat(p.gone.words("mcp"), p.old.words("error")) }, 2},
		{"id", func(p *purgeHome) []string {
			return []string{"--id", p.rows(`SELECT id FROM observations WHERE obs_type = 'git_commit' AND session_id = 'gone'`)[0]}
		}, func(p *purgeHome) []string { return p.gone.words("commit") }, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPurgeHome(t)
			filter := append([]string{"purge"}, c.filter(p)...)
			gone := c.gone(p)
			all := slices.Concat(p.gone.words(), p.kept.words(), p.old.words())
			rest := slices.DeleteFunc(slices.Clone(all), func(w string) bool { return slices.Contains(gone, w) })
			purge := func(args ...string) ending {
				cmd := p.command(append(filter, args...)...)
				cmd.Dir = p.gone.cwd
				return p.run(cmd, nil)
			}

			if e := purge(); e.code != 0 || !strings.Contains(e.stdout, "add --confirm") {
				t.Fatalf("counting: exit %d, %s%s", e.code, e.stdout, e.stderr)
			}
			p.wantOnDisk(all)
			if e := purge("--confirm"); e.code != 0 {
				t.Fatalf("purging: exit %d, %s", e.code, e.stderr)
			}
			p.wantGone(gone)
			p.wantOnDisk(rest)
			p.check()

			if n := added(t, p.cairn("import", "--json", p.transcripts)); n != 0 {
				t.Errorf("an import adds %d rows: %q", n, p.rows(`SELECT obs_type, content, session_id FROM observations ORDER BY id DESC LIMIT 12`))
			}
			for _, s := range []*teach{p.gone, p.kept} {
				for _, name := range []string{"prompt", "commit", "mcp", "edit"} {
					if slices.Contains(gone, s.events[name].words[0]) {
						p.recorded(s.events[name].hook) // a late hook
					}
				}
			}
			p.wantGone(gone)
			if n := added(t, p.cairn("import", "--json", "--include-purged", p.transcripts)); n != c.added {
				t.Errorf("importing with what was purged adds %d rows, want %d", n, c.added)
			}
			p.wantOnDisk(all)
			p.check()
		})
	}
}

// TestPurgeBesideAServerLeavesNothing purges while an MCP server has the store open and has
// read from it.
func TestPurgeBesideAServerLeavesNothing(t *testing.T) {
	t.Parallel()
	plainAndEncrypted(t, purgeBesideAServer)
}

func purgeBesideAServer(t *testing.T, encrypt func(*home)) {
	p := newPurgeHome(t)
	encrypt(p.home)
	c := p.connect("", nil)
	if _, isError, err := c.answer("search", map[string]any{"query": p.gone.events["error"].words[0], "project": "*"}); err != nil || isError {
		t.Fatal(isError, err)
	}
	p.cairn("purge", "--session", "gone", "--confirm")
	p.wantGone(p.gone.words())
	text, isError, err := c.answer("session_trace", map[string]any{"session_id": "gone"})
	if err != nil || !isError || !strings.Contains(text, "session not found") {
		t.Errorf("the server still answers %q %v", text, err)
	}
}

// TestPurgeSaysWhenAReaderHoldsTheBytes purges while another process reads an older state.
// The rows are deleted immediately, the bytes only after that process has ended.
func TestPurgeSaysWhenAReaderHoldsTheBytes(t *testing.T) {
	t.Parallel()
	p := newPurgeHome(t)
	p.opened(func(ctx context.Context, c *cairn.Cairn) error {
		s, err := c.Store(ctx)
		if err != nil {
			return err
		}
		return s.Read(ctx, func(ctx context.Context, _ *store.Tx) error {
			e := p.run(p.command("purge", "--session", "gone", "--confirm"), nil)
			if e.code != 1 || !strings.Contains(e.stderr, "rows are gone") || !strings.Contains(e.stdout, "purged 10 observations") {
				t.Errorf("exit %d, %s%s", e.code, e.stdout, e.stderr)
			}
			if found := p.onDisk(p.gone.words()); len(found) == 0 {
				t.Error("the reader holds nothing")
			}
			return nil
		})
	})
	p.wantRows(`SELECT count(*) FROM observations WHERE session_id = 'gone'`, "0")
	d, _ := p.diagnosed()
	wants(t, d, "forgetting", doctor.Problem, "still in the store's files", "cairn sweep")
	p.cairn("sweep")
	d, _ = p.diagnosed()
	wants(t, d, "forgetting", doctor.OK)
	p.wantGone(p.gone.words())
	p.wantOnDisk(p.kept.words())
	p.check()
}

// TestKilledPurgeIsCompletedByRepeatingIt kills purges at random instants.
func TestKilledPurgeIsCompletedByRepeatingIt(t *testing.T) {
	t.Parallel()
	plainAndEncrypted(t, killedPurge)
}

func killedPurge(t *testing.T, encrypt func(*home)) {
	h := newHome(t)
	big := newStory(t, filepath.Join(h.dir, "transcripts"), "big", h.repo, 400, 300)
	h.settle(inventedWords)
	secret := newTeach(h, "secret", h.repo, map[string]bool{})
	secret.write(filepath.Join(h.dir, "transcripts"), time.Now())
	secret.live()
	h.cairn("import", big.dir)
	encrypt(h)
	h.wantOnDisk(secret.words())

	filter := []string{"purge", "--project", "shop", "--confirm"}
	killed := 0
	for range often(12, 4) {
		cmd := h.command(filter...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(time.Duration(rand.Int64N(int64(250*time.Millisecond))), func() { _ = cmd.Process.Kill() })
		if err := cmd.Wait(); err != nil {
			killed++
		}
		timer.Stop()
		h.check()
	}
	if killed == 0 {
		t.Error("no purge was killed before it ended")
	}
	h.cairn(filter...)
	h.wantGone(secret.words())
	h.wantRows(`SELECT (SELECT count(*) FROM observations), (SELECT count(*) FROM prompts), (SELECT count(*) FROM sessions)`, "0|0|0")
	if n := added(t, h.cairn("import", "--json", big.dir)); n != 0 {
		t.Errorf("an import adds %d rows", n)
	}
	h.check()
}
