package browser

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"cairn/internal/markdown/hostiletest"
)

// active finds active content in a page of cairn that cairn itself did not add.
const active = `(() => {
  const found = [];
  for (const e of document.querySelectorAll('main *'))
    for (const kind of ['mouseover', 'mouseenter', 'focus', 'toggle', 'error', 'animationstart'])
      e.dispatchEvent(new Event(kind, {bubbles: false}));
  if (window.cairnOwned || document.title === 'owned') found.push('a script ran');
  for (const e of document.querySelectorAll('*')) {
    const name = e.localName;
    if (name === 'script' && e.src.startsWith(location.origin + '/app.js?') || name === 'link' && e.href.startsWith(location.origin + '/style.css?')) continue;
    if (/^(script|iframe|frame|frameset|object|embed|applet|base|style|link|math|template|noscript|video|audio|source|dialog|isindex|portal|foreignobject|animate|set|use|image)$/i.test(name)) found.push('<' + name + '>');
    if (name === 'meta' && e.httpEquiv) found.push('<meta>');
    if (name === 'form' && new URL(e.action).origin !== location.origin) found.push('a form to ' + e.action);
    for (const a of e.attributes) {
      if (/^on|^style$|^srcdoc$|^srcset$|^formaction$/i.test(a.name)) found.push(name + ' ' + a.name);
      if (/^(href|src|xlink:href)$/i.test(a.name)) {
        const u = String(e[a.name] && e[a.name].baseVal !== undefined ? e[a.name].baseVal : e[a.name] || a.value);
        if (!/^(https?:|mailto:)/i.test(u) && !(name === 'img' && /^data:image\/(png|jpeg|gif|webp);base64,/i.test(u))) found.push(name + ' ' + a.name + '=' + u.slice(0, 80));
      }
    }
  }
  if (document.querySelectorAll('main').length !== 1 || document.querySelectorAll('footer').length !== 1) found.push('the page is not whole');
  if (document.cookie !== '') found.push('the cookie: ' + document.cookie);
  return found.slice(0, 10);
})()`

// hostile fills the store with texts that contain active content. They are prompts,
// replies, commands, failures, file names, records, entries, contexts, reasons and mail.
func (s *site) hostile() (records int) {
	s.t.Helper()
	for i, body := range hostiletest.Bodies() {
		text, line := body.Text, strings.Join(strings.Fields(body.Text), " ")
		id := func(what string) string { return fmt.Sprint(what, i) }
		s.event("UserPromptSubmit", map[string]any{"prompt": text + " zebra", "prompt_id": id("p")})
		s.event("PostToolUse", map[string]any{"tool_name": "Edit", "tool_use_id": id("e"), "tool_input": map[string]any{"file_path": s.repo + "/src/" + strings.Map(noSlash, cut(line, 80))}})
		s.event("PostToolUseFailure", map[string]any{"tool_name": "Bash", "tool_use_id": id("f"), "tool_input": map[string]any{"command": "go test ./" + line}, "error": "Exit code 1\n--- FAIL: " + text})
		s.event("Stop", map[string]any{"last_assistant_message": text, "prompt_id": id("p")})
		if i%8 == 0 { // each of these starts a separate process
			if s.tries("records", "create", "--session", "r1", "--type", "question", "--title", cut(line, 150), "--summary", cut(line, 200), "--body", text) {
				records++
			}
			s.tries("memory", "add-entry", text)
			s.tries("reserve", fmt.Sprintf("src/%d/**", i), "--as", "BlueLake", "--reason", line)
		}
		s.send(body.Name+" "+cut(line, 150), text)
	}
	var text strings.Builder
	for _, body := range hostiletest.Bodies() {
		text.WriteString(body.Text + "\n")
	}
	if err := os.WriteFile(filepath.Join(s.repo, "evil.txt"), []byte(text.String()), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.event("PostToolUse", map[string]any{"tool_name": "Write", "tool_use_id": "evil", "tool_input": map[string]any{"file_path": s.repo + "/evil.txt", "content": text.String()}, "tool_response": map[string]any{"type": "create"}})
	s.tries("memory", "update-context", hostiletest.Bodies()[0].Text)
	return records
}

// tries runs the program with a text that it may reject.
func (s *site) tries(args ...string) bool {
	s.t.Helper()
	cmd := s.command(args...)
	return cmd.Run() == nil
}

func cut(text string, n int) string { return string([]rune(text)[:min(n, len([]rune(text)))]) }

func noSlash(r rune) rune {
	if r == '/' || r == 0 {
		return '_'
	}
	return r
}

// Text from agents must be inert on every page, even without the content security policy.
func TestHostileTextIsInertOnEveryPageWithoutThePolicy(t *testing.T) {
	s := serve(t)
	if s.hostile() == 0 {
		t.Fatal("no record took a text")
	}
	b := open(t, s.url)
	b.signIn(t, s)
	b.run(t, page.SetBypassCSP(true))
	const evil = `"><script>window.cairnOwned=1</script><img src=x onerror="window.cairnOwned=1">`
	q := url.QueryEscape(evil)
	addresses := []string{
		"/", "/?period=7d", "/timeline", "/timeline?type=command_error", "/timeline?project=repo&branch=" + q, "/timeline?project=repo&file=" + q,
		"/sessions/s1", "/rows/1", "/rows/2", "/rows/3", "/rows/" + q, "/files", "/files?project=repo", "/files/repo?path=" + q, "/files/repo?path=evil.txt", "/files/repo?path=evil.txt&line=3", "/files/repo?path=evil.txt&view=history", "/files/repo?path=evil.txt&line=" + q, "/files/repo?path=evil.txt&view=" + q, "/search?q=zebra", "/search?q=" + q, "/records/repo", "/records/repo/R001", "/records/repo/R001?do=edit",
		"/records/repo/R001?do=answer", "/records/repo/R001?do=state", "/records/repo?do=new&parent=" + q, "/records/repo?at=" + q, "/records/repo?at=tick%3A1",
		"/reservations", "/reservations?at=" + q, "/reservations?project=" + q, "/projects/" + url.PathEscape(s.repo) + "/reservations/1/release", s.mail[len(s.url):],
		"/projects/" + url.PathEscape(s.repo) + "/inbox/BlueLake", "/projects/" + url.PathEscape(s.repo) + "/inbox/BlueLake?unread=" + q, "/projects/" + url.PathEscape(s.repo) + "/inbox/" + url.PathEscape(evil),
		"/projects/" + url.PathEscape(s.repo) + "/overseer?to=" + q + "&thread=" + q, "/memories", s.memory(), s.memory() + "?at=" + q, "/worth?project=" + q, "/status", "/keys", "/logout", "/sessions/" + url.PathEscape(evil),
	}
	var conversation string
	for _, address := range addresses {
		b.took()
		var found []string
		b.run(t, chromedp.Navigate(s.url+address), chromedp.WaitReady("footer"), chromedp.Evaluate(active, &found))
		if found = append(found, b.took()...); len(found) > 0 {
			t.Errorf("%s: %q", address, found)
		}
		if address == "/sessions/s1" {
			b.run(t, chromedp.Text("main", &conversation))
		}
	}
	if !strings.Contains(conversation, "zebra") {
		t.Errorf("the conversation is not shown: %.500s", conversation)
	}
	// The same check must find active content on an unprotected page.
	bare := filepath.Join(t.TempDir(), "bare.html")
	if err := os.WriteFile(bare, []byte(`<main>`+evil+`</main><footer></footer>`), 0o600); err != nil {
		t.Fatal(err)
	}
	var found []string
	b.run(t, chromedp.Navigate("file://"+bare), chromedp.Evaluate(active, &found))
	if told := strings.Join(found, "; "); !strings.Contains(told, "a script ran") || !strings.Contains(told, "img onerror") {
		t.Errorf("what acts is not noticed: %s", told)
	}
}
