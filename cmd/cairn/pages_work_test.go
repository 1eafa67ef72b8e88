package main

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// failed returns a payload of a failed shell call.
func (h *home) failed(id, command, message string) []byte {
	h.t.Helper()
	return h.payload("PostToolUseFailure", fields{"tool_name": "Bash", "tool_use_id": id, "tool_input": fields{"command": command}, "error": "Exit code 1\n" + message})
}

// json reads the same page as JSON.
func (v *visitor) json(path string, into any) {
	v.w.h.t.Helper()
	mark := "?"
	if strings.Contains(path, "?") {
		mark = "&"
	}
	r := v.get(path + mark + "format=json")
	if r.status != http.StatusOK || r.header.Get("Content-Type") != "application/json; charset=utf-8" {
		v.w.h.t.Fatalf("%s: %d %s", path, r.status, r.body)
	}
	if err := json.Unmarshal([]byte(r.body), into); err != nil {
		v.w.h.t.Fatalf("%s: %v", path, err)
	}
}

// A day of work: what ran, its result, and what needs a decision by the user.
func TestTodayShowsWhatRanAndWhatNeedsAPerson(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	w := h.listen()
	v := w.visitor()
	v.page(v.get("/"), http.StatusOK, "nothing ran", "No session had an event")

	h.worked()
	h.recorded(h.failed("t7", "go test ./ledger", "--- FAIL: TestHalfUp\nwant 1999, got 2000"))
	h.recorded(h.payload("Stop", fields{"last_assistant_message": "TestHalfUp still fails."}))
	h.recorded(h.payload("SessionEnd", fields{"reason": "exit"}))
	h.cairn("records", "create", "--type", "question", "--title", "Who pays the fee of a partial refund?", "--summary", "asked by finance", "--body", "Unknown.")
	h.correspondents("BlueLake", "RedStone")
	h.cairn("mail", "overseer", "RedStone", "--subject", "Hello", "--body", "Tell me more.", "--thread", "t-1")
	h.cairn("mail", "reply", "1", "--as", "RedStone", "--body", "May I regenerate the golden invoices?")

	page := v.page(v.get("/"), http.StatusOK, "<b>2 sessions</b> in 2 projects", "1 check still fails", "make the refund test pass", "1 failing",
		"<code>go test ./ledger</code>", "is open: Who pays the fee of a partial refund?", "RedStone: Re: Hello", "unread")
	if strings.Contains(page.body, "go test ./refund</code> <span class=\"aside\">still fails") {
		t.Error("a check that passed later waits for a person")
	}
	var today struct {
		Sessions, Projects, FailingChecks int
		Needs                             []struct{ Kind, What, Path string }
		Groups                            []struct {
			Sessions []struct {
				SessionID string `json:"session_id"`
			}
		}
	}
	v.json("/", &today)
	kinds := map[string]int{}
	for _, n := range today.Needs {
		kinds[n.Kind]++
		v.page(v.get(n.Path), http.StatusOK)
	}
	if today.Sessions != 2 || today.Projects != 2 || kinds["failure"] != 1 || kinds["question"] != 1 || kinds["mail"] != 1 || len(today.Needs) != 3 {
		t.Errorf("today: %+v", today)
	}

	waits := func(section string) string {
		m := regexp.MustCompile(`>` + section + `(?:<span class="count"> (\d+)<span class="unseen"> waiting)?`).FindStringSubmatch(v.get("/timeline").body)
		return m[1]
	}
	if got := waits("Mail") + " " + waits("Records") + " " + waits("Reservations"); got != "1 1 " {
		t.Errorf("the bar says that so much waits: %q", got)
	}
	letter := v.page(v.get(v.project+"/mail/2"), http.StatusOK, "Mark as read")
	token := regexp.MustCompile(`name="form_token" value="([^"]+)"`).FindStringSubmatch(letter.body)[1]
	path := v.project + "/mail/2/acknowledge"
	if r := v.submit(path, url.Values{"form_token": {"wrong"}}); r.status != http.StatusForbidden {
		t.Errorf("a form of nobody's: %d", r.status)
	}
	for range 2 { // a retry changes nothing
		if r := v.submit(path, url.Values{"form_token": {token}}); r.status != http.StatusSeeOther || r.header.Get("Location") != v.project+"/mail/2" {
			t.Errorf("acknowledging: %d %s", r.status, r.body)
		}
	}
	if waits("Mail") != "" {
		t.Error("the bar counts a message that was acknowledged")
	}
	if r := v.get("/"); strings.Contains(r.body, "RedStone: Re: Hello") || strings.Contains(v.get(v.project+"/mail/2").body, "Mark as read") {
		t.Error("a message that was acknowledged still waits")
	}

	h.recorded(h.payload("PostToolUse", fields{"session_id": "s3", "tool_name": "Bash", "tool_use_id": "t9", "tool_input": fields{"command": "go test ./..."}, "tool_response": fields{"stdout": "ok"}}))
	if r := v.get("/"); strings.Contains(r.body, "still fail") {
		t.Error("a check that a later session's passing run covers still waits for a person")
	}
	v.page(v.get("/?project=mail"), http.StatusOK, "<b>1 session</b> in 1 project")
	v.page(v.get("/?period=1y"), http.StatusBadRequest, "24h, 7d or 30d")
}

func TestASessionIsShownWithItsConversationAndActions(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	h.worked()
	v := h.listen().visitor()
	v.page(v.get("/sessions/s1"), http.StatusOK, "<bdi>make the refund test pass</bdi>", "1 prompt, 5 actions", "<b>5 actions</b>", "1 read · 1 edit", ">1 failed<",
		"src/refund.go", "go test ./refund", "The refund test passes. Next: the docs.", `<details id="actions-1" open>`, "ended")
	v.page(v.get("/sessions/s1?from=0"), http.StatusBadRequest, "number of a turn")
	v.page(v.get("/sessions/s1"), http.StatusOK, "Nothing was injected into this session", "The session changed no record", `class="label good">fixed here`)
	v.page(v.get("/sessions/s1?from=99"), http.StatusOK)
	v.page(v.get("/timeline"), http.StatusOK, "go test ./refund", `href="/sessions/s1"`, `href="/sessions/s2"`)
	v.page(v.get("/timeline?project=shop&type=file_edit"), http.StatusOK, "src/refund.go")
	if r := v.page(v.get("/timeline?project=shop&file=src%2Frefund.go"), http.StatusOK, "of <code>src/refund.go</code>"); strings.Contains(r.body, "go test") {
		t.Error("the timeline of a file shows commands")
	}
	v.page(v.get("/timeline?file=a.go"), http.StatusBadRequest, "file requires a project")
	v.page(v.get("/timeline?before=x"), http.StatusBadRequest)
	v.page(v.get("/timeline?branch=nowhere"), http.StatusOK, "Nothing was recorded for this choice")
	v.page(v.get("/search?q=refund+test"), http.StatusOK, "<mark>refund</mark>", `href="/sessions/s1"`)
	v.page(v.get("/search?q=refund+test&type=command_error"), http.StatusOK, "<mark>refund</mark>", `aria-current="true">failed run`)
	v.page(v.get("/search?q=refund+test&agent=nobody"), http.StatusOK, "Nothing found")
	v.page(v.get("/search?q="), http.StatusOK, "Ask in plain words")
	v.page(v.get("/search?q=zzzzqqqq"), http.StatusOK, "Nothing found")
	v.page(v.get(`/search?q=%22unclosed`), http.StatusOK)
	v.page(v.get("/status"), http.StatusOK, "Nothing is set aside")
}

// The pages of a timeline together contain each row once, in order.
func TestTheTimelineIsPagedWithoutGapsOrRepeats(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	const rows = 120
	for i := range rows {
		h.recorded(h.shell("t"+string(rune('a'+i/26))+string(rune('a'+i%26)), "make step"+strings.Repeat("x", i)))
	}
	v := h.listen().visitor()
	seen := map[int64]bool{}
	for path := "/timeline"; path != ""; {
		var p struct {
			Older string
			Days  []struct {
				Rows []struct{ ID, Timestamp int64 }
			}
		}
		v.json(path, &p)
		for _, d := range p.Days {
			for _, r := range d.Rows {
				if seen[r.ID] {
					t.Fatalf("row %d is on two pages", r.ID)
				}
				seen[r.ID] = true
			}
		}
		path = p.Older
	}
	if len(seen) < rows {
		t.Errorf("%d rows on all pages, want at least %d", len(seen), rows)
	}
}

func TestRecordsAndReservationsAreShown(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	v := h.listen().visitor()
	v.page(v.get("/records"), http.StatusOK, "No records")
	v.page(v.get("/reservations"), http.StatusOK, "No reservations")
	h.cairn("records", "create", "--session", "r1", "--type", "question", "--title", "Which zone?", "--summary", "days", "--body", "Days *count* in some zone.")
	h.cairn("records", "create", "--session", "r1", "--type", "conclusion", "--parent", "R001", "--title", "The shop's zone", "--summary", "of the shop", "--body", "See.")
	if r := v.get("/records"); r.status != http.StatusSeeOther || r.header.Get("Location") != "/records/shop" {
		t.Errorf("/records: %d %v", r.status, r.header)
	}
	v.page(v.get("/records/shop"), http.StatusOK, "Which zone?", "The shop&#39;s zone", `class="level1 OPEN"`)
	v.page(v.get("/records/shop/R001"), http.StatusOK, "<em>count</em>", "Versions", "v1 ")
	v.page(v.get("/records/shop?state=RESOLVED"), http.StatusOK, "No records in this state")
	v.page(v.get("/records/shop?at=tick%3A1"), http.StatusOK, "As of <b>tick:1</b>", "Which zone?")
	if r := v.get("/records/shop?at=tick%3A1"); strings.Contains(r.body, "The shop&#39;s zone") {
		t.Error("the past shows a later record")
	}
	v.page(v.get("/records/shop?at=whenever"), http.StatusBadRequest)

	h.correspondents("BlueLake", "GreenFox")
	h.cairn("reserve", "src/**", "--as", "BlueLake", "--reason", "the refund window")
	h.recorded(h.payload("PostToolUse", fields{"tool_name": "Edit", "tool_use_id": "e1", "tool_input": fields{"file_path": h.repo + "/src/a.go"}}))
	v.page(v.get("/reservations"), http.StatusOK, "<b>1 reservation</b>", "src/**", "BlueLake", "the refund window", "src/a.go", `class="below"><a href="/files/shop?path=src%2Fa.go"`)
}

// The page of a session shows the context it was given and used, and its mail and records.
func TestBesideASessionStandWhatItWasToldItsMailAndRecords(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.worked()
	h.recorded(h.payload("SessionStart", fields{"source": "startup", "session_id": "s9"}))
	h.recorded(h.payload("PostToolUse", fields{"session_id": "s9", "tool_name": "Edit", "tool_use_id": "e9", "tool_input": fields{"file_path": filepath.Join(h.repo, "src", "refund.go")}}))
	h.cairn("records", "create", "--session", "s9", "--type", "question", "--title", "Who pays the fee?", "--summary", "of a refund", "--body", "Nobody knows.")
	h.recorded(h.payload("Stop", fields{"session_id": "s9", "last_assistant_message": "Done."}))
	v := h.listen().visitor()
	v.page(v.get("/sessions/s9"), http.StatusOK, "% used", "used:</span> <code>", "R001 <bdi>Who pays the fee?</bdi>")
	var page struct {
		Tokens   int `json:"injected_tokens"`
		Injected []struct{ Section string }
		Records  []struct {
			ID      string
			Changed bool
		}
	}
	v.json("/sessions/s9", &page)
	if page.Tokens == 0 || len(page.Injected) == 0 || len(page.Records) != 1 || !page.Records[0].Changed {
		t.Errorf("beside the session: %+v", page)
	}
}

// Text from agents, commands and records is escaped on every page of work.
func TestWhatWasRecordedIsEscapedOnEveryPage(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	const bad = `"><script>alert(1)</script>'<b onmouseover=alert(1)>x zebra`
	h.recorded(h.payload("UserPromptSubmit", fields{"prompt": bad + " please fix this now", "prompt_id": "p1"}))
	h.recorded(h.shell("t1", "echo "+bad))
	h.recorded(h.failed("t2", "go test ./"+bad, "FAIL "+bad))
	h.recorded(h.payload("PostToolUse", fields{"tool_name": "Edit", "tool_use_id": "t3", "tool_input": fields{"file_path": h.repo + "/" + strings.ReplaceAll(bad, "/", "_")}}))
	h.recorded(h.payload("Stop", fields{"last_assistant_message": bad + "\n\n<img src=x onerror=alert(1)>", "prompt_id": "p1"}))
	h.cairn("records", "create", "--type", "question", "--title", bad, "--summary", bad, "--body", bad)
	h.correspondents("BlueLake")
	h.cairn("reserve", "src/<b>/**", "--as", "BlueLake", "--reason", bad)
	v := h.listen().visitor()
	for _, path := range []string{
		"/", "/timeline", "/timeline?project=shop&branch=" + url.QueryEscape(bad), "/timeline?project=shop&file=" + url.QueryEscape(bad), "/sessions/s1",
		"/search?q=zebra", "/search?q=" + url.QueryEscape(bad), "/records/shop", "/records/shop/R001", "/reservations", "/status",
	} {
		r := v.page(v.get(path), http.StatusOK)
		for _, text := range []string{"<script", "<b onmouseover", "<img", `"><`} {
			if text == `"><` {
				if regexp.MustCompile(`"><script|"><b on`).MatchString(r.body) {
					t.Errorf("%s is open at an attribute", path)
				}
			} else if strings.Contains(r.body, text) {
				t.Errorf("%s holds %s", path, text)
			}
		}
	}
}

// A file is shown with the prompt that wrote a line. Files that no agent has edited and
// files outside the working tree are not shown.
func TestAFileIsShownWithTheReasonOfALine(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newReader(t)
	const text = "package refund\n\n// Refunds expire thirty days after the payment was captured.\nconst days = 30\n"
	h.put(filepath.Join("shop", "window.go"), []byte(text))
	h.recorded(h.payload("UserPromptSubmit", fields{"prompt": "say in a comment when refunds expire", "session_id": "S2"}))
	h.recorded(h.payload("PostToolUse", fields{"session_id": "S2", "tool_name": "Write", "tool_use_id": "w1", "tool_input": fields{"file_path": filepath.Join(h.repo, "window.go"), "content": text}, "tool_response": fields{"type": "create", "filePath": filepath.Join(h.repo, "window.go")}}))
	h.put(filepath.Join("shop", "secret.txt"), []byte("hush"))
	if err := os.Symlink(filepath.Join(h.dir, ".claude"), filepath.Join(h.repo, "link")); err != nil {
		t.Fatal(err)
	}
	h.recorded(h.payload("PostToolUse", fields{"session_id": "S2", "tool_name": "Edit", "tool_use_id": "w2", "tool_input": fields{"file_path": filepath.Join(h.repo, "link", "settings.json")}}))
	v := h.listen().visitor()
	v.page(v.get("/files/shop?path=window.go"), http.StatusOK, "Refunds expire thirty days", "4 lines", `id="line-4"`)
	v.page(v.get("/files/shop?path=window.go&line=3"), http.StatusOK, `class="chosen"`, "say in a comment when refunds expire", "wrote the text of this line", `href="/sessions/S2"`)
	v.page(v.get("/files/shop?path=window.go&line=99"), http.StatusOK)
	v.page(v.get("/files/shop?path=window.go&line=x"), http.StatusBadRequest)
	for _, path := range []string{"secret.txt", "../shop/secret.txt", "..%2F..%2Fetc%2Fpasswd", "", ".", "%2Fetc%2Fpasswd"} {
		if r := v.page(v.get("/files/shop?path="+path), http.StatusNotFound, "no agent has touched"); strings.Contains(r.body, "hush") {
			t.Errorf("%s is shown", path)
		}
	}
	for _, path := range []string{"link%2Fsettings.json"} {
		if r := v.get("/files/shop?path=" + path); strings.Contains(r.body, "hooks") || r.status == http.StatusOK && !strings.Contains(r.body, "There is no text to show") {
			t.Errorf("a link leads out of the working tree: %d %.300s", r.status, r.body)
		}
	}
	v.page(v.get("/files/nowhere?path=window.go"), http.StatusNotFound)
}

func TestMemoriesAndTheirWorthAreShown(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	h.worked()
	v := h.listen().visitor()
	v.page(v.get("/memories"), http.StatusOK, "Nothing is kept yet")
	h.cairn("memory", "add-entry", `Ana wants <script>alert(1)</script> *UTC*.`, "--tag", "topic=refunds")
	v.page(v.get("/memories"), http.StatusOK, "Choose a memory")
	var all struct {
		Vaults []struct {
			Memories []struct{ MemoryID string }
		}
	}
	v.json("/memories", &all)
	id := all.Vaults[0].Memories[0].MemoryID
	if r := v.page(v.get("/memories/"+id), http.StatusOK, "<em>UTC</em>", "topic: refunds"); strings.Contains(r.body, "<script") {
		t.Error("an entry is not escaped")
	}
	v.page(v.get("/memories/00000000-0000-4000-8000-000000000000"), http.StatusNotFound)
	v.page(v.get("/worth"), http.StatusOK, "What is stored", "<h1>Worth</h1>")
	h.recorded(h.payload("SessionStart", fields{"source": "startup", "session_id": "s9"}))
	v.page(v.get("/worth"), http.StatusOK, "agents received <b>")
	v.page(v.get("/worth?period=7d"), http.StatusOK, "Tokens by day", "Tokens by week", "As a table", time.Now().Format(time.DateOnly), "recent here", "session start")
}

// Worth shows what tools cost, the retention of data, and what was redacted before storage.
func TestWorthShowsToolsRetentionAndRedactions(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	h.worked()
	secret := "q7Zp" + strings.Repeat("x4Lm9Tt", 4)
	h.recorded(h.shell("k1", "export SHOP_API_KEY="+secret))
	h.recorded(h.shell("k2", "curl -H 'Authorization: Bearer "+secret+"' https://example.org"))
	v := h.listen().visitor()
	if r := v.page(v.get("/worth"), http.StatusOK, "Redactions", "<td>named value</td>", "<td>header</td>", "Tool sets", "<td>mail</td>", "180 days", "365 days", "permanently", "Hook times", "<td>PostToolUse</td>"); strings.Contains(r.body, secret) {
		t.Error("the page shows the secret")
	}
	var page struct {
		Toolsets []struct {
			Name               string
			Tokens, LeanTokens int
		}
		Redactions []struct {
			Form  string
			Marks int
		}
		Store struct {
			Types []struct {
				Type        string
				Rows, Bytes int64
			}
		}
	}
	v.json("/worth", &page)
	if len(page.Toolsets) < 4 || page.Toolsets[0].Tokens < 500 || len(page.Redactions) != 2 || len(page.Store.Types) < 4 {
		t.Errorf("worth: %+v", page)
	}
	for _, kind := range page.Store.Types {
		if kind.Rows == 0 || kind.Bytes == 0 && !strings.HasPrefix(kind.Type, "session_") {
			t.Errorf("a type without rows or bytes: %+v", kind)
		}
	}
	v.page(v.get("/worth?project=mail"), http.StatusOK, "no stored event had a secret removed")
}

// Worth shows how long hooks took, by event, and how often a tool set was called over HTTP.
func TestWorthShowsHookTimesAndCalls(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	h.worked()
	w := h.listen()
	v := w.visitor()
	v.page(v.get("/worth"), http.StatusOK, "No calls over HTTP to this server since")
	type worth struct {
		Times []struct {
			Event string
			Hooks int
			P50   float64 `json:"p50_ms"`
			P95   float64 `json:"p95_ms"`
			Max   float64 `json:"max_ms"`
		} `json:"hook_times"`
		Since    int64 `json:"hook_times_since"`
		Toolsets []struct {
			Name  string
			Calls int
		}
	}
	hooks := func() int {
		var p worth
		v.json("/worth", &p)
		for _, e := range p.Times {
			if e.P50 <= 0 || e.P50 > e.P95 || e.P95 > e.Max || e.Max > 60_000 || p.Since == 0 {
				t.Errorf("since %d: %+v", p.Since, e)
			}
			if e.Event == "PostToolUse" {
				return e.Hooks
			}
		}
		return 0
	}
	before := hooks()
	for _, id := range []string{"k1", "k2", "k3"} {
		h.recorded(h.shell(id, "go test ./"+id))
	}
	if now := hooks(); before == 0 || now != before+3 {
		t.Errorf("%d hooks after %d and three more", now, before)
	}
	w.post("/v1/projects/"+url.PathEscape(h.repo)+"/mail/register_agent", fields{"program": "codex", "model": "m", "name": "BlueLake"})
	var p worth
	v.json("/worth", &p)
	for _, set := range p.Toolsets {
		if want := map[string]int{"mail": 1}[set.Name]; set.Calls != want {
			t.Errorf("%s: %d calls, want %d", set.Name, set.Calls, want)
		}
	}
	v.page(v.get("/worth"), http.StatusOK, "<th scope=\"col\" class=\"n\">Calls</th>", "Calls over HTTP to this server since")
}

// A user with a terminal can open the pages without the token. Each link works once.
func TestOpenSignsInByALinkThatWorksOnce(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	cmd := h.command("open", "--print", "--http", "127.0.0.1:0")
	out, said := &gathered{}, &gathered{}
	cmd.Stdout, cmd.Stderr = out, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	h.soon("the link", func() bool { return strings.Contains(out.String(), "\n") })
	link, err := url.Parse(strings.TrimSpace(out.String()))
	if err != nil {
		t.Fatal(err)
	}
	w := &web{h: h, url: "http://" + link.Host, http: &http.Client{Transport: &http.Transport{}}}
	v := &visitor{w: w}
	r := v.get(link.RequestURI())
	if r.status != http.StatusSeeOther || r.header.Get("Location") != "/" {
		t.Fatalf("the link: %d %s", r.status, r.body)
	}
	v.cookie, _, _ = strings.Cut(r.header.Get("Set-Cookie"), ";")
	v.page(v.get("/"), http.StatusOK, "Today")
	if again := v.get(link.RequestURI()); again.status != http.StatusUnauthorized || !strings.Contains(again.body, "was already used") {
		t.Errorf("the link a second time: %d", again.status)
	}
	changed := link.Query()
	changed.Set("once", changed.Get("once")+"x")
	if r := v.get("/login?" + changed.Encode()); r.status != http.StatusUnauthorized || r.header.Get("Set-Cookie") != "" {
		t.Errorf("a changed link: %d %v", r.status, r.header)
	}
	second := strings.TrimSpace(h.cairn("open", "records", "--print", "--http", link.Host)) // finds the running server
	if u, err := url.Parse(second); err != nil || u.Host != link.Host || u.Query().Get("next") != "/records" {
		t.Errorf("a second open printed %s", second)
	}
	if e := h.run(h.command("open", "nowhere"), nil); e.code != 2 || !strings.Contains(e.stderr, "the pages are today, timeline") {
		t.Errorf("an unknown page: %d %s", e.code, e.stderr)
	}
}
