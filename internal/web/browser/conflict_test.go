package browser

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// clone returns the same repository with another, empty store.
func (s *site) clone() *site {
	other := *s
	other.env = append(slices.Clone(s.env), "CAIRN_HOME="+s.t.TempDir())
	return &other
}

// text stores a body in a file and returns the file's path.
func (s *site) text(body string) string {
	s.t.Helper()
	f, err := os.CreateTemp(s.t.TempDir(), "*.md")
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(body); err != nil {
		s.t.Fatal(err)
	}
	return f.Name()
}

// inMain returns the text of the page's content.
func (b *tab) inMain(t *testing.T) (text string) {
	t.Helper()
	b.run(t, chromedp.Text("main", &text, chromedp.ByQuery))
	return text
}

// check fails the test unless the page fits its window, violates no rule of axe-core and
// contains the texts.
func (b *tab) check(t *testing.T, what, script string, wants ...string) {
	t.Helper()
	for _, width := range []int64{390, 1280} {
		var wide int
		b.run(t, emulation.SetDeviceMetricsOverride(width, 900, 1, width < 500), chromedp.Evaluate(overflow, &wide))
		if wide > 0 {
			t.Errorf("%s: %d pixels wider than a window of %d", what, wide, width)
		}
		if script != "" {
			b.accessible(t, what, script)
		}
	}
	text := b.inMain(t)
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%s: %q is missing in %.1500s", what, want, text)
		}
	}
}

const (
	bodyBefore = "Nobody knows.\n\nSee the ledger.\n\nThe end.\n"
	bodyHere   = "Here: somebody knows.\n\nSee the ledger.\n\nThe end.\n"
	bodyThere  = "Nobody knows.\n\nSee the ledger.\n\nThere: ask support.\n"
	jsonMerged = `Here: somebody knows.\n\nSee the ledger.\n\nThere: ask support.\n`
)

// shows fails the test unless `cairn records show R001 --json` contains the texts.
func (s *site) shows(wants ...string) {
	s.t.Helper()
	out, err := s.command("records", "show", "R001", "--json").Output()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, want := range wants {
		if !strings.Contains(string(out), want) {
			s.t.Errorf("%s is missing in %s", want, out)
		}
	}
}

// Two stores change one record. After an import its page shows both texts, and one click takes
// the merge.
func TestTheMergeOfTwoStoresIsTakenByOneClick(t *testing.T) {
	s := serve(t)
	exports := t.TempDir()
	first, there := filepath.Join(exports, "first.jsonl"), filepath.Join(exports, "there.jsonl")
	s.cairn("", "records", "create", "--session", "here", "--type", "question", "--title", "Where do refunds expire?", "--summary", "s", "--body-file", s.text(bodyBefore))
	s.cairn("", "export", "--out", first)
	other := s.clone()
	other.cairn("", "import", first)
	other.cairn("", "records", "activate", "R001", "--session", "there")
	other.cairn("", "records", "update", "R001", "--session", "there", "--body-file", s.text(bodyThere))
	other.cairn("", "export", "--out", there)
	s.cairn("", "records", "update", "R001", "--session", "here", "--body-file", s.text(bodyHere))

	b := open(t, s.url)
	b.signIn(t, s)
	script := axe(t)
	b.run(t, chromedp.Navigate(s.url+"/records/repo/R001"))
	if text := b.inMain(t); strings.Contains(text, "Conflict") {
		t.Errorf("a conflict before there is one: %s", text)
	}
	s.cairn("", "import", "--merge", there)
	b.run(t, chromedp.Navigate(s.url+"/records/repo/R001"), chromedp.WaitVisible(".conflict"))
	b.check(t, "the conflict", script, "Conflict: a version from another store", "Here: somebody knows.", "There: ask support.", "Take the merge", "Edit by hand")
	var left, right struct{ Top, Left float64 }
	b.run(t,
		chromedp.Evaluate(`(r => ({Top: r.top, Left: r.left}))(document.querySelectorAll('.conflict .sides section')[0].getBoundingClientRect())`, &left),
		chromedp.Evaluate(`(r => ({Top: r.top, Left: r.left}))(document.querySelectorAll('.conflict .sides section')[1].getBoundingClientRect())`, &right),
	)
	if left.Top != right.Top || left.Left >= right.Left {
		t.Errorf("the texts are not side by side: %v and %v", left, right)
	}
	b.run(t, chromedp.Click(`//section[contains(@class, "conflict")]//button[text()="Take the merge"]`, chromedp.BySearch), chromedp.WaitNotPresent(".conflict"))
	b.check(t, "after the merge", script, "Here: somebody knows.", "There: ask support.", "version 4")
	s.shows(`"version": 4`+"\n", jsonMerged)
}

// The user edits a record in the browser. An agent stores another version meanwhile. The
// form shows both texts, and one click takes the merge.
func TestTheMergeWithAnAgentsVersionIsTakenByOneClick(t *testing.T) {
	s := serve(t)
	s.cairn("", "records", "create", "--session", "agent", "--type", "question", "--title", "Where do refunds expire?", "--summary", "s", "--body-file", s.text(bodyBefore))
	b := open(t, s.url)
	b.signIn(t, s)
	script := axe(t)
	b.run(t,
		chromedp.Navigate(s.url+"/records/repo/R001"), chromedp.Click(`//a[text()="Edit"]`, chromedp.BySearch), chromedp.WaitVisible("#body"),
		chromedp.SetValue("#body", bodyHere, chromedp.ByQuery),
	)
	s.cairn("", "records", "update", "R001", "--session", "agent", "--body-file", s.text(bodyThere))
	b.run(t, chromedp.Click(`//form[contains(@class, "write")]//button[text()="Store"]`, chromedp.BySearch), chromedp.WaitVisible(".sides"))
	b.check(t, "the form with both texts", script, "Version 2 was stored while you wrote.", "Here: somebody knows.", "There: ask support.", "Take the merge")
	s.shows(`"version": 2` + "\n") // the form has stored nothing
	b.run(t, chromedp.Click(`//button[text()="Take the merge"]`, chromedp.BySearch), chromedp.WaitNotPresent("#body"))
	b.check(t, "after the merge", script, "Here: somebody knows.", "There: ask support.", "version 3")
	s.shows(`"version": 3`+"\n", jsonMerged)
}
