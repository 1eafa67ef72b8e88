package browser

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"cairn/internal/markdown/hostiletest"
)

const (
	limit     = 8 * time.Minute  // for the whole test; one page takes milliseconds
	pageLimit = 30 * time.Second // for all actions on one page
)

// site is a running cairn server.
type site struct {
	t          *testing.T
	url, token string
	mail       string // URL of the project's mail
	repo       string
	binary     string
	env        []string
}

// serve builds cairn and runs it over a new store with two agents.
func serve(t *testing.T) *site {
	t.Helper()
	dir := t.TempDir()
	binary, repo := filepath.Join(dir, "cairn"), filepath.Join(dir, "repo")
	if out, err := exec.Command("git", "init", "-q", repo).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	build := exec.Command("go", "build", "-tags", "sqlite_fts5,sqlite_math_functions", "-o", binary, "./cmd/cairn")
	build.Dir = filepath.Join("..", "..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	env := []string{"HOME=" + dir, "CAIRN_HOME=" + filepath.Join(dir, "data"), "PATH=" + os.Getenv("PATH")}
	run := func(args ...string) *exec.Cmd {
		cmd := exec.Command(binary, args...)
		cmd.Dir, cmd.Env = repo, env
		return cmd
	}
	for _, name := range []string{"BlueLake", "GreenFox"} {
		if out, err := run("agents", "register", name, "--program", "claude-code", "--model", "m").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	server := run("serve", "--http", "127.0.0.1:0")
	said, err := server.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(os.Interrupt)
		_ = server.Wait()
	})
	line, err := bufio.NewReader(said).ReadString('\n')
	m := regexp.MustCompile(`serving (http://\S+) `).FindStringSubmatch(line)
	if err != nil || m == nil {
		t.Fatalf("serve said %q, %v", line, err)
	}
	token, err := run("http-token").Output()
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, url: m[1], token: strings.TrimSpace(string(token)), repo: repo, binary: binary, env: env}
	s.mail = s.url + "/projects/" + url.PathEscape(repo) + "/mail"
	return s
}

// send makes an agent write to itself. It returns the message number, or 0 if the mail
// service rejects the text.
func (s *site) send(subject, body string) int {
	s.t.Helper()
	args, err := json.Marshal(map[string]any{"sender_name": "BlueLake", "to": []string{"BlueLake"}, "subject": subject, "body_md": body})
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := http.NewRequest(http.MethodPost, s.url+"/v1/projects/"+url.PathEscape(s.repo)+"/mail/send_message", bytes.NewReader(args))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	var sent struct {
		Deliveries []struct{ Payload struct{ ID int } }
	}
	if answer.StatusCode == http.StatusBadRequest {
		return 0
	}
	if err := json.Unmarshal(text, &sent); err != nil || len(sent.Deliveries) != 1 {
		s.t.Fatalf("%s: %d %.300s", subject, answer.StatusCode, text)
	}
	return sent.Deliveries[0].Payload.ID
}

// tab is a browser tab that records attempted requests and scripts of pages.
type tab struct {
	ctx    context.Context
	origin string
	mu     sync.Mutex
	tried  []string
}

// open starts the browser. It skips the test if no browser is installed.
func open(t *testing.T, origin string) *tab {
	t.Helper()
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		t.Skip("there is no Chromium: apt-get install chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &tab{ctx: ctx, origin: origin}
	chromedp.ListenTarget(ctx, func(event any) {
		switch e := event.(type) {
		case *page.EventJavascriptDialogOpening:
			b.note("a dialog: " + e.Message)
			go func() { _ = chromedp.Run(ctx, page.HandleJavaScriptDialog(true)) }()
		case *network.EventRequestWillBeSent:
			if u := e.Request.URL; !strings.HasPrefix(u, b.origin+"/") && !strings.HasPrefix(u, "data:image/") {
				b.note("a request for " + u)
			}
		case *target.EventTargetCreated:
			if e.TargetInfo.OpenerID != "" {
				b.note("a window: " + e.TargetInfo.URL)
			}
		}
	})
	if err := chromedp.Run(b.ctx, network.Enable(), page.Enable()); err != nil { // starts the browser, which runs until this context ends
		t.Fatal(err)
	}
	return b
}

func (b *tab) note(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tried = append(b.tried, what)
}

// took returns the attempts recorded since its last call.
func (b *tab) took() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.tried
	b.tried = nil
	return out
}

func (b *tab) run(t *testing.T, actions ...chromedp.Action) {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, pageLimit)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

// look finds active content in the page, after waiting for events that could trigger
// handlers.
const look = `(() => {
  const found = [];
  for (const e of [...document.querySelectorAll('main *')].slice(0, 500)) {
    for (const kind of ['mouseover', 'mouseenter', 'focus', 'toggle', 'error', 'animationstart'])
      e.dispatchEvent(new Event(kind, {bubbles: true}));
  }
  if (window.cairnOwned || document.title === 'owned') found.push('a script ran');
  for (const e of document.querySelectorAll('head *, main *')) {
    const name = e.localName;
    if (name === 'script' && e.parentElement === document.head && e.src.startsWith(location.origin + '/app.js?')) continue; // cairn's own
    if (/^(script|form|iframe|frame|frameset|object|embed|applet|base|style|svg|math|template|noscript|input|button|select|textarea|video|audio|source|dialog|isindex|portal)$/.test(name)) found.push('<' + name + '>');
    if (e.namespaceURI !== 'http://www.w3.org/1999/xhtml') found.push(e.namespaceURI);
    if (name === 'meta' && (e.httpEquiv || !e.closest('head'))) found.push('<meta>');
    if (name === 'link' && !e.href.startsWith(location.origin + '/style.css?')) found.push('<link>');
    for (const a of e.attributes) {
      if (/^on|^style$|^srcdoc$|^srcset$|^formaction$|^action$|^id$|^name$/i.test(a.name) && name !== 'meta') found.push(name + ' ' + a.name);
      if (/^(href|src|xlink:href)$/i.test(a.name)) {
        const u = e[a.name] || a.value;
        if (!/^(https?:|mailto:)/i.test(u) && !(name === 'img' && /^data:image\/(png|jpeg|gif|webp);base64,/i.test(u))) found.push(name + ' ' + a.name + '=' + u.slice(0, 80));
        if (name === 'a' && e.closest('article') && e.rel !== 'noopener noreferrer nofollow') found.push('rel ' + e.rel);
      }
    }
  }
  if (document.querySelectorAll('main > article').length !== 1) found.push('the page is not whole');
  if (document.cookie !== '') found.push('the cookie: ' + document.cookie);
  return found.slice(0, 10);
})()`

// findings returns the attempts of a page and the active content in it.
func (b *tab) findings(t *testing.T, address string) []string {
	t.Helper()
	b.took()
	var found []string
	b.run(t, chromedp.Navigate(address), chromedp.Evaluate(look, &found))
	return append(found, b.took()...)
}

func (b *tab) signIn(t *testing.T, s *site) {
	t.Helper()
	var at string
	b.run(t,
		chromedp.Navigate(s.mail), chromedp.WaitVisible("#token"), chromedp.SendKeys("#token", s.token), chromedp.Click("button"),
		chromedp.WaitVisible("a.button"), chromedp.Location(&at),
	)
	if at != s.mail {
		t.Fatalf("signing in led to %s", at)
	}
}

func TestHostileMailIsInertInABrowser(t *testing.T) {
	s := serve(t)
	b := open(t, s.url)

	// Active content must be found on a page without any protection.
	bare := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<main><article>`+hostiletest.Bodies()[0].Text+`<form><img src="http://127.0.0.1:1/x" onerror="1"></form></article></main>`)
	}))
	defer bare.Close()
	told := strings.Join(b.findings(t, bare.URL), "; ")
	for _, want := range []string{"a dialog", "a script ran", "a request for", "<form>", "img onerror"} {
		if !strings.Contains(told, want) {
			t.Fatalf("%s was not noticed: %s", want, told)
		}
	}

	b.signIn(t, s)
	seen := 0
	for _, body := range hostiletest.Bodies() {
		id := s.send(body.Name+` <script>alert(1)</script><img src=x onerror=alert(1)>`, body.Text)
		if id == 0 {
			continue
		}
		seen++
		began := time.Now()
		if found := b.findings(t, fmt.Sprintf("%s/%d", s.mail, id)); len(found) > 0 {
			t.Errorf("%s: %q", body.Name, found)
		}
		if took := time.Since(began); took > time.Second {
			t.Logf("%s took %v", body.Name, took)
		}
	}
	if seen < 65 {
		t.Errorf("only %d texts were shown", seen)
	}
	b.took()
	var rows int
	b.run(t, chromedp.Navigate(s.mail), chromedp.Evaluate(`document.querySelectorAll('table.list')[0].rows.length`, &rows))
	if tried := b.took(); rows != 51 || len(tried) > 0 {
		t.Errorf("the list has %d rows and tried %q", rows, tried)
	}
	t.Logf("%d texts", seen)
}

func TestAPersonWritesFromABrowserAndSignsOut(t *testing.T) {
	s := serve(t)
	b := open(t, s.url)
	b.signIn(t, s)
	var at, text, title string
	b.run(t,
		chromedp.Click("a.button"), chromedp.WaitVisible("#subject"),
		chromedp.SendKeys("#subject", "Stop <now>"), chromedp.SendKeys("#body", "\n  Leave **it**."), chromedp.SendKeys("#thread", "t-1"),
		chromedp.Click(`input[value=BlueLake]`), chromedp.Click(`form button`),
		chromedp.WaitVisible("article"), chromedp.Location(&at), chromedp.Text("article strong", &text), chromedp.Text("h1", &title),
	)
	if at != s.url+"/projects/"+url.PathEscape(s.repo)+"/mail/1" || text != "it" || title != "Stop <now>" {
		t.Errorf("at %s: %q %q", at, title, text)
	}
	b.run(t,
		chromedp.Navigate(s.url+"/logout"), chromedp.Click("form button"), chromedp.WaitVisible("#token"),
		chromedp.Navigate(s.mail), chromedp.WaitVisible("#token"), chromedp.Location(&at),
	)
	if !strings.HasPrefix(at, s.url+"/login?next=") {
		t.Errorf("signed out and at %s", at)
	}
}
