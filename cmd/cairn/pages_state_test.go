package main

import (
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Reservations, an inbox, records and the context of a memory are shown as they were at a
// point in time. These pages have no forms, and a link back to the present.
func TestPagesOfStateShowAMomentOfThePast(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	h.correspondents("BlueLake", "RedStone")
	h.cairn("records", "create", "--type", "note", "--title", "First title", "--summary", "s", "--body", "b")
	h.cairn("memory", "update-context", "The *old* context.")
	h.cairn("reserve", "src/**", "--as", "BlueLake")
	h.cairn("mail", "send", "RedStone", "--as", "BlueLake", "--subject", "The first letter", "--body", "b")
	w := h.listen()
	v := w.visitor()
	at := "at=" + url.QueryEscape(time.Now().Format(time.RFC3339Nano))
	h.cairn("release", "src/**", "--as", "BlueLake")
	h.cairn("mail", "send", "RedStone", "--as", "BlueLake", "--subject", "The second letter", "--body", "b")
	h.cairn("memory", "update-context", "The *new* context.")

	held, inbox, memory := "/reservations?", v.project+"/inbox/RedStone?", "/memories/"+v.memory()+"?"
	for _, c := range []struct{ path, past, now string }{
		{held, "<code>src/**</code>", "No reservations"},
		{inbox, "The first letter", "The second letter"},
		{memory, "<em>old</em>", "<em>new</em>"},
	} {
		r := v.page(v.get(c.path+at), http.StatusOK, c.past, `class="past"`, "the past, which cannot be changed", ">Back to now<")
		if strings.Contains(r.body, c.now) || strings.Contains(r.body, `method="post"`) || strings.Contains(r.body, "data-live") || strings.Contains(r.body, "/release") {
			t.Errorf("%s shows the present, or changes it: %s", c.path, r.body)
		}
		if r := v.page(v.get(c.path), http.StatusOK, c.now); strings.Contains(r.body, `class="past"`) {
			t.Errorf("%s now is the past", c.path)
		}
		v.page(v.get(c.path+"at=next+year"), http.StatusBadRequest)
	}
	// The link to the present drops every parameter of the point in time, including the
	// slider's.
	r := v.page(v.get("/records/shop?state=OPEN&tick=1&last=9"), http.StatusOK, `class="past"`)
	if !strings.Contains(r.body, `<a href="/records/shop?state=OPEN">Back to now</a>`) {
		t.Errorf("the slider leads nowhere: %s", r.body)
	}
}

// A user releases a reservation on its page and gives a reason, which its holder can read.
func TestAPersonEndsAReservationOnItsPage(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	h.correspondents("BlueLake")
	h.cairn("reserve", "src/**", "--as", "BlueLake", "--reason", "the window")
	v := h.listen().visitor()
	path := v.project + "/reservations/1/release"
	list := v.page(v.get("/reservations"), http.StatusOK, "BlueLake", ">Release</a>")
	_, link, _ := strings.Cut(list.body, `class="button plain" href="`)
	link, _, _ = strings.Cut(link, `"`)
	v.page(v.get(link), http.StatusOK, "End the reservation of <code>src/**</code>", "the window", "BlueLake gets a message from you")
	v.page(v.submit(path, v.fill(path, "reason", " ")), http.StatusBadRequest, "Enter a reason")
	v.page(v.submit(path, with(v.fill(path, "reason", "I need it"), "form_token", "x")), http.StatusForbidden, "Nothing was ended", "I need it")
	v.stores(path, v.fill(path, "reason", "I need it now"), "/reservations")
	v.page(v.get("/reservations"), http.StatusOK, "No reservations", "Ended in the last hour", "BlueLake <span class=\"aside\">released just now")
	v.page(v.get(path), http.StatusNotFound, "has ended")
	v.page(v.get(v.project+"/mail"), http.StatusOK, "HumanOverseer")
	if letter := v.get(v.project + "/mail/1"); !strings.Contains(letter.body, "I need it now") {
		t.Errorf("the holder is not told why: %s", letter.body)
	}
}

// The map shows edits below the reservation that covers them, and edits without a
// reservation. Files lists the edited files.
func TestEditsAreShownOnTheMapAndAmongTheFiles(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	h.correspondents("BlueLake")
	h.worked() // edits src/refund.go in a session without an agent
	h.cairn("reserve", "src/**", "--as", "BlueLake")
	h.recorded(h.payload("PostToolUse", fields{"tool_name": "Edit", "tool_use_id": "t90", "tool_input": fields{"file_path": filepath.Join(h.repo, "docs.md")}}))
	v := h.listen().visitor()
	v.page(v.get("/reservations"), http.StatusOK, "<code>src/refund.go</code>", `class="warned">not BlueLake<`, `class="foreign"`, "<code>docs.md</code>", "no reservation", "1 of them without a reservation")
	v.page(v.get("/files"), http.StatusOK, "<code>src/refund.go</code>", "<code>docs.md</code>", "3 edits", `href="/files/shop?path=docs.md"`)
	v.page(v.get("/files?project=mail"), http.StatusOK, "send.go", "1 edit")
	v.page(v.get("/files?project=nowhere"), http.StatusNotFound)
}

// One query finds records and mail of all projects. Each result links to its page. Spelling
// is corrected with the words of all projects.
func TestSearchFindsRecordsAndMailOfAllProjects(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	other := h.repository(filepath.Join(h.dir, "billing"))
	for _, in := range [][2]string{{h.repo, "shipping"}, {other, "invoices"}} {
		dir, word := in[0], in[1]
		for _, args := range [][]string{
			{"records", "create", "--type", "note", "--title", "The zeppelin of " + word, "--summary", "s", "--body", "b"},
			{"agents", "register", "BlueLake", "--program", "codex", "--model", "m"},
			{"mail", "send", "BlueLake", "--as", "BlueLake", "--subject", "A zeppelin for " + word, "--body", "b"},
		} {
			cmd := h.command(args...)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %v %s", args, err, out)
			}
		}
	}
	v := h.listen().visitor()
	for _, q := range []string{"zeppelin", "zepelin"} {
		v.page(v.get("/search?q="+q), http.StatusOK, `href="/records/shop/R001"`, `href="/records/billing/R001"`, "shipping", "invoices", `href="/projects/shop/mail/1"`, `href="/projects/billing/mail/2"`, "<mark>zeppelin</mark>")
	}
	if r := v.page(v.get("/search?q=zeppelin&project=shop"), http.StatusOK, "shipping"); strings.Contains(r.body, "invoices") {
		t.Error("a search in one project finds what is in another")
	}
}
