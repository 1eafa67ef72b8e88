package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// appends records a prompt and an edit that adds lines to the end of a file.
func (h *home) appends(session, prompt, name, before, added string) {
	h.t.Helper()
	path := filepath.Join(h.repo, name)
	h.recorded(h.payload("UserPromptSubmit", fields{"prompt": prompt, "session_id": session}))
	h.put(filepath.Join("shop", name), []byte(before+added))
	lines := strings.SplitAfter(strings.TrimSuffix(before, "\n"), "\n")
	last := strings.TrimSuffix(lines[len(lines)-1], "\n")
	h.recorded(h.payload("PostToolUse", fields{"session_id": session, "tool_name": "Edit", "tool_use_id": session + prompt[:3], "tool_input": fields{
		"file_path": path, "old_string": last, "new_string": last + "\n" + strings.TrimSuffix(added, "\n"),
	}}))
}

// Each line is shown with the prompt that wrote it. Records show whether the files they
// cite have changed. The history lists edits and commits of all sessions.
func TestBesideEachLineStandsThePromptThatWroteIt(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newReader(t) // window.go, committed by a human
	const begin = "package refund\n\nconst days = 30\n"
	first := "\n// Left is how many days remain until the window is closed.\nfunc Left(paid int) int {\n\treturn days - paid\n}\n"
	h.appends("S2", "show customers how many days are left", "window.go", begin, first)
	h.cairn("records", "create", "--session", "S2", "--type", "decision", "--title", "Days left round down", "--summary", "never up", "--body", "See window.go#L5-L8.")
	h.cairn("records", "create", "--session", "S2", "--type", "note", "--title", "The window", "--summary", "thirty", "--body", "See window.go#L3.")
	h.inShell("git add . && git -c user.name=Ana -c user.email=ana@example.org commit -q -m 'Days left'")
	second := "\n// Open reports whether a refund is still possible on that day.\nfunc Open(paid int) bool { return Left(paid) > 0 }\n"
	h.appends("S3", "tell whether the window is open", "window.go", begin+first, second)
	h.put("shop/window.go", []byte(strings.Replace(begin+first, "days - paid", "days - paid - 1", 1)+second)) // edited by hand
	h.correspondents("BlueLake")
	h.cairn("reserve", "window.go", "--as", "BlueLake")

	v := h.listen().visitor()
	v.page(v.get("/files/shop?path=window.go"), http.StatusOK, "11 lines, from <b>2 prompts</b>", "not committed", "<bdi>show customers how many days are left</bdi>", "<bdi>tell whether the window is open</bdi>",
		"No session recorded", "Days left", `drifted</a>`, `<span class="state LATER">drifted</span>`, `<span class="state RESOLVED">unchanged</span>`, "BlueLake <span", "until")
	var page struct {
		Blocks []struct {
			Commit  *struct{ Subject string }
			Session *struct {
				Prompt struct{ Content string }
			}
			Uncommitted bool
			Lines       []struct{ N int }
		}
		Cited []struct {
			ID     string
			Drifts bool
		}
	}
	v.json("/files/shop?path=window.go", &page)
	var told []string
	for _, b := range page.Blocks {
		by := "-"
		if b.Session != nil {
			by = b.Session.Prompt.Content
		}
		if b.Commit != nil {
			by += ", " + b.Commit.Subject
		}
		told = append(told, fmt.Sprintf("%d to %d: %s", b.Lines[0].N, b.Lines[len(b.Lines)-1].N, by))
	}
	want := []string{
		"1 to 4: -, Refunds expire after 30 days", "5 to 6: show customers how many days are left, Days left", "7 to 7: -", "8 to 9: -, Days left", // a closing bracket after a human's line is too common to be attributed
		"10 to 11: tell whether the window is open",
	}
	if strings.Join(told, "|") != strings.Join(want, "|") {
		t.Errorf("got  %s\nwant %s", strings.Join(told, "|"), strings.Join(want, "|"))
	}
	if len(page.Cited) != 2 || !page.Cited[0].Drifts || page.Cited[1].Drifts {
		t.Errorf("cited: %+v", page.Cited)
	}
	v.page(v.get("/files/shop?path=window.go&view=history"), http.StatusOK, "4 changes across sessions", "tell whether the window is open", "Refunds expire after 30 days")
	var past struct {
		History []struct{ At int64 }
	}
	v.json("/files/shop?path=window.go&view=history", &past)
	for i, c := range past.History {
		if i > 0 && c.At > past.History[i-1].At {
			t.Errorf("the history does not begin with the newest: %+v", past)
		}
	}
	v.page(v.get("/files/shop?path=window.go&view=blame"), http.StatusBadRequest, "history or left out")
}

// A file with many or long lines is shown in pages of at most 150 KB. Together the pages
// contain each line once.
func TestALongFileIsPagedWithoutGapsOrRepeats(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newReader(t)
	var text strings.Builder
	const lines = 3000
	for i := range lines {
		fmt.Fprintf(&text, "line %d %s\n", i+1, strings.Repeat("<&\"", 40*(i%7/5)*(i%50)))
	}
	h.put("shop/long.txt", []byte(text.String()))
	h.recorded(h.payload("PostToolUse", fields{"session_id": "S2", "tool_name": "Edit", "tool_use_id": "l1", "tool_input": fields{"file_path": filepath.Join(h.repo, "long.txt"), "old_string": "a", "new_string": "line 2 "}}))
	v := h.listen().visitor()
	next, seen, pages := "/files/shop?path=long.txt", 0, 0
	number := regexp.MustCompile(`id="line-(\d+)"`)
	later := regexp.MustCompile(`rel="next" href="([^"]+)"`)
	for ; next != ""; pages++ {
		r := v.page(v.get(next), http.StatusOK)
		if len(r.body) > 150_000 {
			t.Errorf("%s: %d bytes", next, len(r.body))
		}
		for _, m := range number.FindAllStringSubmatch(r.body, -1) {
			if seen++; m[1] != fmt.Sprint(seen) {
				t.Fatalf("%s shows line %s, not %d", next, m[1], seen)
			}
		}
		next = ""
		if m := later.FindStringSubmatch(r.body); m != nil {
			next = strings.ReplaceAll(m[1], "&amp;", "&")
		}
	}
	if seen != lines || pages < lines/200 {
		t.Errorf("%d lines on %d pages", seen, pages)
	}
	for _, line := range []int{1, 139, 140, 141, 1533, 2999, 3000} {
		path := fmt.Sprintf("/files/shop?path=long.txt&line=%d", line)
		if r := v.page(v.get(path), http.StatusOK, fmt.Sprintf(`id="line-%d" class="chosen"`, line)); len(r.body) > 150_000 {
			t.Errorf("%s: %d bytes", path, len(r.body))
		}
	}
	v.page(v.get("/files/shop?path=long.txt&from=9999"), http.StatusOK, `id="line-3000"`)
	v.page(v.get("/files/shop?path=long.txt&from=0"), http.StatusBadRequest)
}

// The timeline can show one day, and the sessions of one agent.
func TestTheTimelineIsNarrowedToADayAndAnAgent(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	h.put(".claude/projects/-shop/old.jsonl", fmt.Appendf(nil, `{"type":"user","uuid":"u1","sessionId":"old","cwd":%q,"timestamp":"2026-01-02T12:00:00Z","message":{"role":"user","content":"add a refund window"}}`+"\n", h.repo))
	h.cairn("import", filepath.Join(h.dir, ".claude", "projects"))
	c := h.connect("", nil)
	called := c.calls("register_agent", fields{"project_key": h.repo, "program": "p", "model": "m", "name": "RedFox"})
	h.recorded(h.payload("UserPromptSubmit", fields{"prompt": "tell the zone of the shop", "session_id": "s1"}))
	h.recorded(h.payload("UserPromptSubmit", fields{"prompt": "count the invoices again", "session_id": "s2"}))
	h.sees("s2", "claude", called, nil)
	v := h.listen().visitor()
	shows := func(path string, want, not []string) {
		t.Helper()
		r := v.page(v.get(path), http.StatusOK, want...)
		for _, text := range not {
			if strings.Contains(r.body, text) {
				t.Errorf("%s shows %q", path, text)
			}
		}
	}
	const old, first, second = "add a refund window", "tell the zone of the shop", "count the invoices again"
	shows("/timeline", []string{old, first, second}, nil)
	shows("/timeline?day=2026-01-02", []string{old, "Friday, 2 January 2026", `href="/timeline?day=2026-01-01"`, `href="/timeline?day=2026-01-03"`}, []string{first, second})
	shows("/timeline?day=2026-01-03", []string{"Nothing was recorded for this choice"}, []string{old, first})
	shows("/timeline?day="+time.Now().Format(time.DateOnly), []string{first, second}, []string{old, "The day after"})
	shows("/timeline?agent=RedFox", []string{second, "by <b>RedFox</b>"}, []string{old, first})
	shows("/timeline?agent=RedFox&project=shop&type=user_prompt", []string{second}, []string{first})
	shows("/timeline?agent=RedFox&branch=nowhere", []string{"Nothing was recorded"}, []string{second})
	shows("/timeline?agent=NobodyAtAll", []string{"Nothing was recorded"}, []string{old, first, second})
	v.page(v.get("/timeline?day=yesterday"), http.StatusBadRequest, "must be a date")

	shows("/search?q=refund+window", []string{"older than 30 days", "refund"}, []string{"Nothing found"})
	shows("/search?q=refund+window&when=older", []string{`aria-current="true">older than 30 days`, "add a <mark>refund</mark>"}, nil)
	shows("/search?q=refund+window&when=24h", nil, []string{"add a <mark>refund</mark>"})
}

// The page of an event shows its prompt and its output. A session's commits and actions
// link to it.
func TestAnEventIsShownWithItsPromptAndOutput(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	h.recorded(h.payload("UserPromptSubmit", fields{"prompt": "count refund days in the shop's zone", "prompt_id": "p1"}))
	h.recorded(h.payload("PostToolUse", fields{"tool_name": "Bash", "tool_use_id": "b1", "prompt_id": "p1", "tool_input": fields{"command": "go test ./refund -v"}, "tool_response": fields{"stdout": "ok  \tshop/refund\t0.204s\ncoverage: 81.3% of statements\n"}}))
	h.recorded(h.payload("PostToolUse", fields{"tool_name": "Bash", "tool_use_id": "b2", "prompt_id": "p1", "tool_input": fields{"command": `git commit -am "Count refund days in the zone"`},
		"tool_response": fields{"stdout": "[main 4be91d7] Count refund days in the zone\n 2 files changed, 19 insertions(+), 7 deletions(-)\n"}}))
	h.recorded(h.payload("Stop", fields{"last_assistant_message": "Done.", "prompt_id": "p1"}))
	v := h.listen().visitor()
	r := v.page(v.get("/sessions/s1"), http.StatusOK, `href="/rows/2">#2</a>`)
	link := regexp.MustCompile(`<code>4be91d7</code> <a href="(/rows/\d+)">`).FindStringSubmatch(r.body)
	if link == nil {
		t.Fatalf("the commit is no link: %s", r.body)
	}
	v.page(v.get(link[1]), http.StatusOK, "count refund days in the shop&#39;s zone", "4be91d7", "+19", "2 files", `href="/sessions/s1?from=1#row-`)
	v.page(v.get("/rows/2"), http.StatusOK, "go test ./refund -v", "coverage: 81.3% of statements", "Output")
	for path, want := range map[string]int{"/rows/99": http.StatusNotFound, "/rows/x": http.StatusNotFound, "/rows/-1": http.StatusNotFound, "/rows/01": http.StatusNotFound} {
		if r := v.get(path); r.status != want {
			t.Errorf("%s: %d", path, r.status)
		}
	}
}
