package browser

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// axe returns the script of axe-core, "" if it is not installed.
func axe(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	found, err := filepath.Glob(filepath.Join(cache, "cairn-axe-core-*", "node_modules", "axe-core", "axe.min.js"))
	if err != nil || len(found) == 0 {
		t.Log("axe-core is not installed: accessibility is not checked (make browser installs it)")
		return ""
	}
	text, err := os.ReadFile(found[len(found)-1])
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// command returns a command that runs cairn in the repository.
func (s *site) command(args ...string) *exec.Cmd {
	cmd := exec.Command(s.binary, args...)
	cmd.Dir, cmd.Env = s.repo, s.env
	return cmd
}

// memory returns the path of the only memory's page.
func (s *site) memory() string {
	s.t.Helper()
	r, err := http.NewRequest(http.MethodGet, s.url+"/memories?format=json", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	id := regexp.MustCompile(`"memoryId": *"([^"]+)"`).FindSubmatch(text)
	if err != nil || id == nil {
		s.t.Fatalf("%v: %s", err, text)
	}
	return "/memories/" + string(id[1])
}

// cairn runs cairn in the repository.
func (s *site) cairn(input string, args ...string) {
	s.t.Helper()
	cmd := s.command(args...)
	cmd.Stdin = strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %v %s", args, err, out)
	}
}

// event records an event of the session s1, as a hook does.
func (s *site) event(name string, fields map[string]any) {
	s.t.Helper()
	fields["hook_event_name"], fields["session_id"], fields["cwd"] = name, "s1", s.repo
	text, err := json.Marshal(fields)
	if err != nil {
		s.t.Fatal(err)
	}
	s.cairn(string(text), "record")
}

// works fills the store with a session, a record, a reservation and a message to the user.
func (s *site) works() {
	s.t.Helper()
	cairn, event := s.cairn, s.event
	event("UserPromptSubmit", map[string]any{"prompt": "make the refund test pass and say why it failed"})
	window := s.repo + "/internal/refund/window.go"
	if err := os.MkdirAll(filepath.Dir(window), 0o700); err != nil {
		s.t.Fatal(err)
	}
	const before, after = "package refund\n", "package refund\n\n// Days is how long a payment can be refunded, the day of payment left out.\nconst Days = 30\n"
	if err := os.WriteFile(window, []byte(after), 0o600); err != nil {
		s.t.Fatal(err)
	}
	event("PostToolUse", map[string]any{"tool_name": "Edit", "tool_use_id": "t1", "tool_input": map[string]any{"file_path": window, "old_string": before, "new_string": after}})
	event("PostToolUseFailure", map[string]any{"tool_name": "Bash", "tool_use_id": "t2", "tool_input": map[string]any{"command": "go test ./internal/refund"}, "error": "Exit code 1\n--- FAIL: TestWindow\nday 30 must still be open"})
	event("Stop", map[string]any{"last_assistant_message": "It still **fails**.\n\n- one\n- two\n\n`code`"})
	event("SessionEnd", map[string]any{"reason": "exit"})
	cairn("", "records", "create", "--session", "r1", "--type", "question", "--title", "Who pays the fee?", "--summary", "of a partial refund", "--body", "Nobody *knows*. See internal/refund/window.go#L3-L4.")
	cairn("", "memory", "add-entry", "Refunds are counted in **UTC**.", "--tag", "topic=refunds")
	cairn("", "reserve", "internal/refund/**", "--as", "BlueLake", "--reason", "the window")
}

// windowPath is the page of the file that the session edited.
const windowPath = "/files/repo?path=internal%2Frefund%2Fwindow.go"

// overflow is the number of pixels by which a page is wider than the window.
const overflow = `document.documentElement.scrollWidth - document.documentElement.clientWidth`

func TestEveryPageOfWorkIsWholeAccessibleAndFitsItsWindow(t *testing.T) {
	s := serve(t)
	s.works()
	b := open(t, s.url)
	b.signIn(t, s)
	script := axe(t)
	project := "/projects/" + strings.ReplaceAll(s.repo, "/", "%2F")
	pages := []string{
		"/files?period=7d", "/reservations?at=1+minute+ago", project + "/reservations/1/release", project + "/inbox/BlueLake", project + "/inbox/BlueLake?at=1+second+ago", s.memory(), s.memory() + "?at=1+second+ago",
		project + "/overseer", "/", "/?period=7d", "/timeline", "/timeline?project=repo&type=file_edit", "/sessions/s1", "/rows/3", "/search", "/search?q=refund+window", "/search?q=nothing+at+all+zzz",
		"/records", "/records/repo/R001", "/records/repo/R001?do=edit", "/records/repo/R001?do=answer", "/records/repo/R001?do=state", "/records/repo?do=new", "/records/repo?at=tick%3A1", "/reservations", "/status", "/worth?period=30d", "/memories", windowPath, windowPath + "&line=3", windowPath + "&view=history", "/keys", "/mail", project + "/mail", "/logout", "/sessions/none",
	}
	for _, view := range []struct {
		name  string
		width int64
		dark  bool
	}{{"desktop", 1280, false}, {"dark desktop", 1280, true}, {"phone", 390, false}, {"dark small phone", 320, true}} {
		scheme := "light"
		if view.dark {
			scheme = "dark"
		}
		for _, page := range pages {
			b.took()
			var wide int
			var title string
			b.run(t,
				emulation.SetDeviceMetricsOverride(view.width, 900, 1, view.width < 500),
				emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
				chromedp.Navigate(s.url+page), chromedp.WaitReady("main"), chromedp.Evaluate(overflow, &wide), chromedp.Title(&title),
			)
			if wide > 0 {
				t.Errorf("%s, %s: %d pixels wider than the window", view.name, page, wide)
			}
			if tried := b.took(); len(tried) > 0 || !strings.Contains(title, "· cairn") {
				t.Errorf("%s, %s: %q tried %q", view.name, page, title, tried)
			}
			if script != "" {
				b.accessible(t, view.name+", "+page, script)
			}
		}
	}
}

// accessible checks the page with axe-core's rules for WCAG 2.2 A and AA.
func (b *tab) accessible(t *testing.T, what, script string) {
	t.Helper()
	const run = `axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']}).then(r =>
  r.violations.map(v => v.id + ': ' + v.help + ': ' + v.nodes.slice(0, 3).map(n => n.html.slice(0, 160) + ' ' + n.any.concat(n.all).map(c => c.message).join('; ').slice(0, 200)).join(' | ')))`
	var found []string
	b.run(t, chromedp.Evaluate(script, nil), chromedp.Evaluate(run, &found, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	for _, f := range found {
		t.Errorf("%s: %s", what, f)
	}
}

// A user can find the failed commands and the holder of a file by clicks from the first
// page.
func TestSixQuestionsAreAnsweredInAFewClicks(t *testing.T) {
	s := serve(t)
	s.works()
	b := open(t, s.url)
	b.signIn(t, s)
	b.run(t, emulation.SetDeviceMetricsOverride(1280, 900, 1, false))
	text := func(actions ...chromedp.Action) string {
		var all string
		b.run(t, append(append([]chromedp.Action{chromedp.Navigate(s.url + "/")}, actions...), chromedp.Text("main", &all))...)
		return all
	}
	nav := func(name string) chromedp.Action {
		return chromedp.Click(fmt.Sprintf(`//nav[@aria-label="Pages"]/a[text()="%s"]`, name), chromedp.BySearch)
	}
	at := func(marker string) chromedp.Action { return chromedp.WaitVisible(marker, chromedp.BySearch) }
	for question, c := range map[string]struct {
		clicks []chromedp.Action
		want   string
	}{
		"what did the agents do?":       {nil, "make the refund test pass"},
		"what needs me?":                {nil, "go test ./internal/refund still fails"},
		"why did it fail?":              {[]chromedp.Action{chromedp.Click(`//a[text()="See failure"]`, chromedp.BySearch), at(`//h2[text()="Files "]`)}, "day 30 must still be open"},
		"why is this line so?":          {[]chromedp.Action{nav("Files"), at(`//h1[text()="Files"]`), chromedp.Click(`//a[contains(., "window.go")]`, chromedp.BySearch), at(`//code[contains(., "const Days")]`)}, "make the refund test pass"},
		"and what else is behind it?":   {[]chromedp.Action{nav("Files"), at(`//h1[text()="Files"]`), chromedp.Click(`//a[contains(., "window.go")]`, chromedp.BySearch), chromedp.Click(`a[aria-label="why line 4"]`, chromedp.ByQuery), at(`//h2[text()="Why line 4"]`)}, "wrote the text of this line"},
		"who is in refund/window.go?":   {[]chromedp.Action{nav("Reservations"), at(`//h1[text()="Reservations"]`)}, "BlueLake"},
		"what is undecided?":            {[]chromedp.Action{chromedp.Click(`//a[text()="Answer"]`, chromedp.BySearch), at(`//h2[text()="Versions "]`)}, "Nobody knows"},
		"where was that about refunds?": {[]chromedp.Action{chromedp.SendKeys(`input[name=q]`, "refund window\r", chromedp.ByQuery), at(`//mark`)}, "window.go"},
	} {
		if got := text(c.clicks...); !strings.Contains(got, c.want) {
			t.Errorf("%s %q is not in %.600s", question, c.want, got)
		}
	}
}
