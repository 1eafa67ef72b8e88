package main

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// fill fetches the page of a form and returns the values of its hidden fields together with
// more fields.
func (v *visitor) fill(path string, more ...string) url.Values {
	v.w.h.t.Helper()
	r := v.page(v.get(path), http.StatusOK, `name="form_token"`)
	form := url.Values{}
	for _, name := range []string{"form_token", "do", "version", "tick", "parent"} {
		_, rest, _ := strings.Cut(r.body, `name="`+name+`" value="`)
		value, _, _ := strings.Cut(rest, `"`)
		form.Set(name, value)
	}
	for i := 0; i < len(more); i += 2 {
		form.Set(more[i], more[i+1])
	}
	return form
}

// stores submits a form and expects a redirect to a page.
func (v *visitor) stores(path string, form url.Values, to string) {
	v.w.h.t.Helper()
	if r := v.submit(path, form); r.status != http.StatusSeeOther || r.header.Get("Location") != to {
		v.w.h.t.Fatalf("%s: %d to %q: %.3000s", path, r.status, r.header.Get("Location"), r.body)
	}
}

// A user creates, answers, changes and compares records on the page.
func TestRecordsAreWrittenFromThePage(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	h.worked()
	v := h.listen().visitor()
	const bad = `"><script>alert(1)</script><img src=x onerror=alert(1)>` + "\u202e"
	form := v.fill("/records/shop?do=new", "type", "question", "title", "Who pays the fee?", "summary", "of a refund", "body", "Nobody knows.\r\n"+bad)
	stolen := url.Values{}
	for k := range form {
		stolen.Set(k, form.Get(k))
	}
	stolen.Set("form_token", "wrong")
	v.page(v.submit("/records/shop", stolen), http.StatusForbidden, "Nothing was stored", "Who pays the fee?")
	v.stores("/records/shop", form, "/records/shop/R001")
	if r := v.page(v.get("/records/shop/R001"), http.StatusOK, "Who pays the fee?", "?do=answer", "Change state"); strings.Contains(r.body, "<img") {
		t.Error("a record's text is not escaped")
	}
	v.stores("/records/shop", v.fill("/records/shop?do=new&parent=R001", "type", "note", "title", "Ask finance", "summary", "s", "body", ""), "/records/shop/R002")

	// A refused form keeps its text.
	v.page(v.submit("/records/shop", v.fill("/records/shop?do=new", "type", "", "title", "Kept text", "summary", "s", "body", "my long text")), http.StatusBadRequest, "Kept text", "my long text")
	v.page(v.submit("/records/shop/R002", v.fill("/records/shop/R002?do=state", "to", "LATER", "reason", "")), http.StatusBadRequest, "reason")
	v.page(v.submit("/records/shop/R099", v.fill("/records/shop/R002?do=state", "to", "LATER", "reason", "x")), http.StatusNotFound)
	v.page(v.submit("/records/shop/R002", v.fill("/records/shop/R002?do=state", "do", "delete")), http.StatusBadRequest, "must be new, edit, state or answer")

	v.stores("/records/shop/R002", v.fill("/records/shop/R002?do=state", "to", "LATER", "reason", "finance is away"), "/records/shop/R002")
	v.stores("/records/shop/R001", v.fill("/records/shop/R001?do=answer", "type", "conclusion", "title", "The shop pays", "summary", "s", "body", "As agreed."), "/records/shop/R001")
	v.page(v.get("/records/shop/R001"), http.StatusOK, "RESOLVED", "resolved by", "/records/shop/R003")

	// Two users edit one record. Changes that do not overlap are merged. Overlapping
	// changes are shown side by side.
	edit := func(body string) url.Values {
		return v.fill("/records/shop/R003?do=edit", "title", "The shop pays", "summary", "s", "body", body)
	}
	v.stores("/records/shop/R003", edit("one\ntwo\nthree\nfour\nfive"), "/records/shop/R003")
	mine, other := edit("one\ntwo\nthree\nfour\nFIVE"), edit("ONE\ntwo\nthree\nfour\nfive")
	v.stores("/records/shop/R003", other, "/records/shop/R003")
	r := v.page(v.submit("/records/shop/R003", mine), http.StatusConflict, "was stored while you wrote", "No line was changed in both", "Take the merge", "ONE\ntwo\nthree\nfour\nFIVE")
	merged := edit("ONE\ntwo\nthree\nfour\nFIVE")
	_, rest, _ := strings.Cut(r.body, `name="version" value="`)
	version, _, _ := strings.Cut(rest, `"`)
	if n, err := strconv.Atoi(version); err != nil || merged.Get("version") != version || n < 3 {
		t.Errorf("the merge is of version %q", version)
	}
	v.stores("/records/shop/R003", merged, "/records/shop/R003")
	mine, other = edit("one more"), edit("two more")
	v.stores("/records/shop/R003", other, "/records/shop/R003")
	v.page(v.submit("/records/shop/R003", mine), http.StatusConflict, "Both sides changed the same lines", "Store this text", "<pre>two more</pre>", "<pre>one more</pre>")

	v.page(v.get("/records/shop/R003?from=2&to=5"), http.StatusOK, "Version 2 to 5", `class="removed"`, `class="added"`)
	v.page(v.get("/records/shop/R003?from=2&to=99"), http.StatusBadRequest)
	if r := v.page(v.get("/records/shop/R001?tick=1&last=9"), http.StatusOK, "As of <b>tick:1</b>"); strings.Contains(r.body, "?do=") || strings.Contains(r.body, "R002") {
		t.Error("the past can be changed, or holds the present")
	}
	if open := h.cairn("session", "list", "--json"); strings.Contains(open, `"S-`) {
		t.Errorf("the page leaves sessions open: %s", open)
	}
}

// Two clones changed a record. Its page shows both texts side by side. Choosing the merge
// there ends the conflict.
func TestAConflictOfTwoStoresIsMergedOnThePage(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	exports := t.TempDir()
	file := func(name string) string { return filepath.Join(exports, name) }
	body := func(name, text string) string {
		if err := os.WriteFile(file(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file(name)
	}
	h.cairn("records", "create", "--type", "question", "--title", "Where do refunds expire?", "--summary", "s", "--body-file", body("body.md", "Nobody knows.\n\nSee the ledger.\n\nThe end.\n"), "--session", "here")
	h.cairn("export", "--out", file("first.jsonl"))
	other := newHome(t)
	other.repo = h.repo
	other.cairn("import", file("first.jsonl"))
	other.cairn("records", "activate", "R001", "--session", "there")
	other.cairn("records", "update", "R001", "--body-file", body("there.md", "Nobody knows.\n\nSee the ledger.\n\nThere: <b>ask</b> support.\n"), "--session", "there")
	other.cairn("export", "--out", file("there.jsonl"))
	h.cairn("records", "update", "R001", "--body-file", body("here.md", "Here: somebody knows.\n\nSee the ledger.\n\nThe end.\n"), "--session", "here")
	v := h.listen().visitor()
	if r := v.page(v.get("/records/shop/R001"), http.StatusOK); strings.Contains(r.body, "Conflict") {
		t.Error("a conflict before there is one")
	}
	h.cairn("import", "--merge", file("there.jsonl"))
	r := v.page(v.get("/records/shop/R001"), http.StatusOK, "Conflict: a version from another store", "No line was changed in both", "There: &lt;b&gt;ask&lt;/b&gt; support.", "Here: somebody knows.", "Take the merge", "Take the other version")
	_, form, _ := strings.Cut(r.body, `class="take">`)
	form, _, _ = strings.Cut(form, "</form>")
	sent := url.Values{}
	for _, m := range regexp.MustCompile(`(?s)name="([^"]+)" value="([^"]*)"`).FindAllStringSubmatch(form, -1) {
		sent.Set(m[1], html.UnescapeString(m[2]))
	}
	stolen := url.Values{}
	for name := range sent {
		stolen.Set(name, sent.Get(name))
	}
	stolen.Set("form_token", "wrong")
	v.page(v.submit("/records/shop/R001", stolen), http.StatusForbidden, "Nothing was stored")
	v.stores("/records/shop/R001", sent, "/records/shop/R001")
	if r := v.page(v.get("/records/shop/R001"), http.StatusOK, "Here: somebody knows.", "There: "); strings.Contains(r.body, "Conflict:") {
		t.Error("the conflict is still open")
	}
	v.page(v.submit("/records/shop/R001", sent), http.StatusConflict, "was stored while you wrote")
}

// With more than 400 records the tree opens branch by branch, also at a moment of the past.
func TestALargeTreeOpensBranchByBranchNowAndThen(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	c := h.connect("", nil)
	root := c.created(fields{"title": "root"}).ID
	for range 3 {
		c.created(fields{"title": "child", "parent_id": root})
	}
	asked[any](c, "transition", fields{"id": "R002", "to_state": "LATER", "reason": "finance is away"})
	for n := range 400 {
		c.created(fields{"title": fmt.Sprint("later root ", n)})
	}
	v := h.listen().visitor()
	type page struct {
		Records []struct {
			ID, State string
			Depth     int
			Below     int `json:"hidden_below"`
		}
		More      int  `json:"more_records"`
		Uncounted bool `json:"states_not_counted"`
		States    []struct{ N int }
	}
	read := func(path string) string {
		var p page
		v.json(path, &p)
		var all []string
		for _, r := range p.Records[:min(len(p.Records), 4)] {
			all = append(all, fmt.Sprintf("%d %s %s +%d", r.Depth, r.ID, r.State, r.Below))
		}
		return fmt.Sprint(strings.Join(all, ", "), "; ", len(p.Records), " ", p.More > 0, " ", p.Uncounted)
	}
	for path, want := range map[string]string{
		"/records/shop":                         "0 R001 OPEN +3, 0 R005 OPEN +0, 0 R006 OPEN +0, 0 R007 OPEN +0; 200 true false",
		"/records/shop/R003":                    "0 R001 OPEN +0, 1 R002 LATER +0, 1 R003 OPEN +0, 1 R004 OPEN +0; 203 true false",
		"/records/shop?state=LATER":             "0 R002 LATER +0; 1 false false",
		"/records/shop?at=tick:3":               "0 R001 OPEN +2; 1 false true",
		"/records/shop/R003?at=tick:4":          "0 R001 OPEN +0, 1 R002 OPEN +0, 1 R003 OPEN +0, 1 R004 OPEN +0; 4 false true",
		"/records/shop?at=tick:4&state=LATER":   "; 0 false true",
		"/records/shop?at=tick:5&state=LATER":   "0 R002 LATER +0; 1 false true",
		"/records/shop?at=tick:100&state=LATER": "0 R002 LATER +0; 1 false true",
	} {
		if got := read(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	v.page(v.get("/records/shop?at=tick:3"), http.StatusOK, `href="/records/shop/R001?at=tick%3A3"`, "What was decided, why, and what was open then.")
	v.page(v.get("/records/shop/R009?at=tick:3"), http.StatusNotFound)
}
