package browser

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// eventually waits until a JavaScript expression is true in the page.
func (b *tab) eventually(t *testing.T, what, expression string) {
	t.Helper()
	for limit := time.Now().Add(pageLimit); ; <-time.After(20 * time.Millisecond) {
		var so bool
		err := chromedp.Run(b.ctx, chromedp.Evaluate("Boolean("+expression+")", &so)) // fails while the page is being replaced
		if err == nil && so {
			return
		}
		if time.Now().After(limit) {
			var at string
			_ = chromedp.Run(b.ctx, chromedp.Evaluate(`location.pathname + ', ' + document.activeElement.outerHTML.slice(0, 200) + ', ' + document.activeElement.value`, &at))
			t.Fatalf("not in time: %s (%v); at %s", what, err, at)
		}
	}
}

func (s *site) ran(id, command string) {
	s.t.Helper()
	s.event("PostToolUse", map[string]any{"tool_name": "Bash", "tool_use_id": id, "tool_input": map[string]any{"command": command}, "tool_response": map[string]any{"stdout": "ok"}})
}

func TestALivePageShowsWhatHappensWithoutLosingThePlace(t *testing.T) {
	s := serve(t)
	b := open(t, s.url)
	b.signIn(t, s)
	b.took()
	b.run(t, emulation.SetDeviceMetricsOverride(1280, 600, 1, false), chromedp.Navigate(s.url+"/"))
	b.eventually(t, "the page is live", `document.querySelector('.livebar')?.innerText.startsWith('live')`)
	s.event("UserPromptSubmit", map[string]any{"prompt": "make the refund test pass", "prompt_id": "p1"})
	b.eventually(t, "Today shows a session that has begun", `document.querySelector('#all-sessions').innerText.includes('make the refund test pass')`)

	b.run(t, chromedp.Navigate(s.url+"/timeline"))
	b.eventually(t, "the timeline is live", `document.querySelector('.livebar')?.innerText.startsWith('live')`)
	b.run(t, chromedp.Evaluate(`window.stayed = true; document.querySelector('.actions a').focus()`, nil))
	s.ran("t1", "go test ./one")
	b.eventually(t, "a new row comes in at the top", `document.querySelector('.actions > li.fresh')?.innerText.includes('go test ./one')`)
	var focus string
	b.run(t, chromedp.Evaluate(`window.stayed ? document.activeElement.innerText : 'the page was loaded anew'`, &focus))
	if !strings.Contains(focus, "make the refund test pass") {
		t.Errorf("the focus is on %q", focus)
	}
	b.run(t, chromedp.Evaluate(`document.activeElement.blur()`, nil), chromedp.KeyEvent("."))
	b.eventually(t, "a key pauses", `document.querySelector('.livebar').innerText.startsWith('paused')`)
	s.ran("t2", "go test ./two")
	b.run(t, chromedp.KeyEvent("."))
	b.eventually(t, "what happened while it was paused is shown", `document.querySelector('#days').innerText.includes('go test ./two')`)

	for i := range 40 {
		s.ran(fmt.Sprint("m", i), fmt.Sprint("make step", i))
	}
	b.eventually(t, "all rows are there", `document.querySelectorAll('.actions > li').length >= 40`)
	b.run(t, chromedp.Evaluate(`scrollTo(0, 500)`, nil))
	s.ran("t3", "go test ./three")
	b.eventually(t, "who has scrolled is told of new rows", `[...document.querySelectorAll('.livebar button')].some(b => !b.hidden && b.innerText === '1 new row')`)
	var there bool
	b.run(t, chromedp.Evaluate(`document.querySelector('#days').innerText.includes('./three')`, &there))
	if there {
		t.Error("rows moved under somebody who reads")
	}
	b.run(t, chromedp.Evaluate(`[...document.querySelectorAll('.livebar button')].find(b => b.innerText === '1 new row').click()`, nil))
	b.eventually(t, "the new row is shown when asked for", `document.querySelector('#days').innerText.includes('./three') && scrollY === 0`)

	b.run(t, chromedp.Navigate(s.url+"/sessions/s1"))
	b.eventually(t, "a running session is live", `document.querySelector('.livebar')?.innerText.startsWith('live')`)
	b.run(t, chromedp.Evaluate(`document.querySelector('#conversation details').open = true`, nil))
	s.event("Stop", map[string]any{"last_assistant_message": "All of them pass."})
	b.eventually(t, "the answer appears and what was unfolded stays so", `document.querySelector('#conversation').innerText.includes('All of them pass.') && document.querySelector('#conversation details').open`)
	if tried := b.took(); len(tried) > 0 {
		t.Errorf("the pages tried %q", tried)
	}
}

func TestEveryPageIsReachedAndReadByKeys(t *testing.T) {
	s := serve(t)
	s.works()
	b := open(t, s.url)
	b.signIn(t, s)
	b.run(t, emulation.SetDeviceMetricsOverride(1280, 900, 1, false), chromedp.Navigate(s.url+"/"))
	for _, c := range []struct{ keys, path, title string }{
		{"gt", "/timeline", "Timeline"}, {"gf", "/files", "Files"}, {"gm", "/mail", "Mail"}, {"gr", "/records/repo", "Records"}, {"gv", "/reservations", "Reservations"},
		{"ge", "/memories", "Memories"}, {"gw", "/worth", "Worth"}, {"gs", "/status", "Health"}, {"?", "/keys", "Keys"}, {"gh", "/", "Today"},
	} {
		for _, key := range c.keys {
			b.run(t, chromedp.KeyEvent(string(key)))
		}
		b.eventually(t, c.keys+" leads to "+c.path, fmt.Sprintf(`location.pathname === %q && document.title.startsWith(%q) && document.readyState === 'complete'`, c.path, c.title))
	}
	b.run(t, chromedp.KeyEvent("j"))
	b.eventually(t, "j chooses the first row", `document.activeElement.matches('.needs a')`)
	b.run(t, chromedp.KeyEvent("j"), chromedp.KeyEvent("j"), chromedp.KeyEvent("k"), chromedp.KeyEvent("k"), chromedp.KeyEvent(kb.Enter))
	b.eventually(t, "Enter opens the row", `location.pathname === '/sessions/s1' && document.readyState === 'complete'`)
	b.run(t, chromedp.KeyEvent("n"))
	b.eventually(t, "n goes to the failure", `document.activeElement.matches('.failed a') && document.activeElement.closest('.failed').innerText.includes('day 30 must still be open')`)
	b.run(t, chromedp.KeyEvent("o"))
	b.eventually(t, "o folds", `!document.querySelector('#conversation details').open`)
	b.run(t, chromedp.KeyEvent("/"), chromedp.KeyEvent("gt?"))
	b.eventually(t, "letters are typed in a field", `document.activeElement.value.endsWith('gt?') && location.pathname === '/sessions/s1'`)
	b.run(t, chromedp.KeyEvent(kb.Escape))
	b.eventually(t, "Escape leaves the field", `document.activeElement === document.body`)
	b.run(t, chromedp.Navigate(s.url+"/keys"), chromedp.Click("#single-keys"), chromedp.Navigate(s.url+"/"), chromedp.KeyEvent("g"), chromedp.KeyEvent("t"), chromedp.KeyEvent("j"))
	var at, focus string
	b.run(t, chromedp.Location(&at), chromedp.Evaluate(`document.activeElement.tagName`, &focus))
	if at != s.url+"/" || focus != "BODY" {
		t.Errorf("keys that are switched off led to %s, %s", at, focus)
	}
}

func TestEveryPageWorksWithoutScripts(t *testing.T) {
	s := serve(t)
	s.works()
	b := open(t, s.url)
	b.signIn(t, s)
	b.run(t, emulation.SetScriptExecutionDisabled(true))
	for path, want := range map[string]string{
		"/": "make the refund test pass", "/timeline": "go test ./internal/refund", "/sessions/s1": "day 30 must still be open", "/reservations": "BlueLake", "/keys": "go to Timeline",
	} {
		var text string
		b.run(t, chromedp.Navigate(s.url+path), chromedp.Text("main", &text))
		if !strings.Contains(text, want) || strings.Contains(text, "Pause") {
			t.Errorf("%s: %.600s", path, text)
		}
	}
}
