package main

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	router "cairn/internal/web"
)

// pageAddress is an address of a web page.
type pageAddress struct {
	pattern string     // as in the router
	path    string     // for the store that filled creates
	status  int        // for a signed-in user
	form    url.Values // accepted with its token; nil for pages without a form
}

// addresses returns the addresses of all pages that require sign-in.
func (v *visitor) addresses() []pageAddress {
	return []pageAddress{
		{"/", "/", http.StatusOK, nil},
		{"/timeline", "/timeline", http.StatusOK, nil},
		{"/search", "/search?q=refund", http.StatusOK, nil},
		{"/records", "/records", http.StatusSeeOther, nil},
		{"/records/{}", "/records/shop", http.StatusOK, url.Values{"do": {"new"}, "type": {"note"}, "title": {"t"}, "summary": {"s"}}},
		{"/records/{}/{}", "/records/shop/R001", http.StatusOK, url.Values{"do": {"edit"}, "version": {"1"}, "title": {"t"}, "summary": {"s"}}},
		{"/sessions/{}", "/sessions/s1", http.StatusOK, nil},
		{"/rows/{}", "/rows/1", http.StatusOK, nil},
		{"/files", "/files", http.StatusOK, nil},
		{"/files/{}", "/files/shop?path=src%2Frefund.go", http.StatusOK, nil},
		{"/reservations", "/reservations", http.StatusOK, nil},
		{"/memories", "/memories", http.StatusOK, nil},
		{"/memories/{}", "/memories/" + v.memory(), http.StatusOK, nil},
		{"/worth", "/worth", http.StatusOK, nil},
		{"/status", "/status", http.StatusOK, url.Values{}},
		{"/keys", "/keys", http.StatusOK, nil},
		{"/mail", "/mail", http.StatusOK, nil},
		{"/projects/{}/mail", v.project + "/mail", http.StatusOK, nil},
		{"/projects/{}/mail/{}", v.project + "/mail/1", http.StatusOK, nil},
		{"/projects/{}/mail/{}/files/{}", v.project + "/mail/1/files/0", http.StatusNotFound, nil},
		{"/projects/{}/mail/{}/acknowledge", v.project + "/mail/2/acknowledge", http.StatusSeeOther, url.Values{}},
		{"/projects/{}/inbox/{}", v.project + "/inbox/BlueLake", http.StatusOK, nil},
		{"/projects/{}/threads/{}", v.project + "/threads/t-1", http.StatusOK, nil},
		{"/projects/{}/overseer", v.project + "/overseer", http.StatusOK, url.Values{"to": {"BlueLake"}, "subject": {"s"}, "body": {"b"}}},
		{"/projects/{}/reservations/{}/release", v.project + "/reservations/1/release", http.StatusOK, url.Values{"reason": {"it is mine"}}},
	}
}

// memory returns the id of the only memory.
func (v *visitor) memory() string {
	v.w.h.t.Helper()
	var all struct {
		Vaults []struct {
			Memories []struct{ MemoryID string }
		}
	}
	v.json("/memories", &all)
	return all.Vaults[0].Memories[0].MemoryID
}

// filled stores something for every address of the router.
func (h *home) filled() {
	h.t.Helper()
	h.worked()
	h.correspondents("BlueLake", "RedStone")
	h.cairn("mail", "overseer", "RedStone", "--subject", "Hello", "--body", "Tell me more.", "--thread", "t-1")
	h.cairn("mail", "reply", "1", "--as", "RedStone", "--body", "May I regenerate the golden invoices?")
	h.cairn("reserve", "src/**", "--as", "BlueLake")
	h.cairn("records", "create", "--type", "note", "--title", "t", "--summary", "s", "--body", "b")
	h.cairn("memory", "add-entry", "Refunds are counted in UTC.")
}

// All pages are for the human user alone. Requests without a token and requests with a
// memory token of any level are refused. Forms require the session's token and must come
// from a page of this server. An address that is missing from the table above fails the
// test.
func TestEveryAddressOfThePagesIsForThePersonAlone(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	h.filled()
	w := h.listen()
	v, nobody := w.visitor(), &visitor{w: w}
	bearers := map[string]string{"wrong": "Bearer wrong"}
	for _, level := range []string{"read", "write", "admin"} {
		out := h.cairn("token", "create", "--level", level)
		bearers[level] = "Bearer " + strings.TrimSpace(out[strings.LastIndex(strings.TrimSpace(out), "\n")+1:])
		if r := nobody.ask(http.MethodGet, "/v1/vaults", nil, "Authorization", bearers[level]); r.status != http.StatusOK {
			t.Fatalf("the token of level %s does not open what it is for: %d %s (%s)", level, r.status, r.body, out)
		}
	}
	table := v.addresses()
	token := regexp.MustCompile(`name="form_token" value="([^"]+)"`).FindStringSubmatch(v.get("/status").body)[1]
	for _, a := range router.Addresses() {
		if slices.Contains([]string{router.SignInPath, router.SignOutPath, router.StylePath, router.ScriptPath, router.EventsPath}, a.Pattern) {
			continue // checked below
		}
		i := slices.IndexFunc(table, func(row pageAddress) bool { return row.pattern == a.Pattern })
		if i < 0 {
			t.Errorf("%s: who may ask for it? It is not in the table", a.Pattern)
			continue
		}
		row := table[i]
		if (row.form != nil) != a.Form {
			t.Errorf("%s: a form is sent to it: %v, and the table says %v", a.Pattern, a.Form, row.form != nil)
		}
		v.isClosed(nobody, row.path, bearers)
		if r := v.get(row.path); r.status != row.status {
			t.Errorf("%s: %d for the person, want %d: %.300s", row.path, r.status, row.status, r.body)
		}
		if a.Form {
			v.needsItsToken(nobody, row.path, row.form, token, bearers)
		}
	}
	for path, want := range map[string]int{router.SignInPath: http.StatusOK, router.StylePath: http.StatusOK, router.ScriptPath: http.StatusOK} {
		if r := nobody.get(path); r.status != want || strings.Contains(r.body, "BlueLake") {
			t.Errorf("%s: %d %.300s", path, r.status, r.body)
		}
	}
	for _, path := range []string{router.SignOutPath, router.EventsPath} {
		v.isClosed(nobody, path, bearers)
	}
	v.needsItsToken(nobody, router.SignOutPath, url.Values{}, token, bearers)
}

// isClosed expects that only the signed-in user gets a page.
func (v *visitor) isClosed(nobody *visitor, path string, bearers map[string]string) {
	v.w.h.t.Helper()
	if r := nobody.get(path); r.status != http.StatusSeeOther || !strings.HasPrefix(r.header.Get("Location"), "/login") {
		v.w.h.t.Errorf("%s without a token: %d", path, r.status)
	}
	for level, bearer := range bearers {
		if r := nobody.ask(http.MethodGet, path, nil, "Authorization", bearer); r.status != refusalOf(level) || strings.Contains(r.body, "BlueLake") {
			v.w.h.t.Errorf("%s with a token of level %s: %d", path, level, r.status)
		}
	}
}

// needsItsToken expects that a form is accepted only with the session's token and only from
// this server.
func (v *visitor) needsItsToken(nobody *visitor, path string, form url.Values, token string, bearers map[string]string) {
	v.w.h.t.Helper()
	good := with(form, "form_token", token)
	refused := func(what string, r reply, want int) {
		if r.status != want {
			v.w.h.t.Errorf("%s %s: %d, want %d: %.300s", path, what, r.status, want, r.body)
		}
	}
	refused("without a visit", nobody.submit(path, good), http.StatusUnauthorized)
	for level, bearer := range bearers {
		refused("with a token of level "+level, nobody.submit(path, good, "Authorization", bearer), refusalOf(level))
	}
	refused("without the form's token", v.submit(path, form), http.StatusForbidden)
	refused("with the token of another visit", v.submit(path, with(form, "form_token", fmt.Sprint(token, "x"))), http.StatusForbidden)
	refused("from another page", v.submit(path, good, "Origin", "https://evil.example"), http.StatusForbidden)
	refused("from nowhere", v.submit(path, good, "Origin", ""), http.StatusForbidden)
	refused("as JSON", v.submit(path, good, "Content-Type", "application/json"), http.StatusUnsupportedMediaType)
	refused("as it should be", v.submit(path, good), http.StatusSeeOther)
}

// refusalOf returns the status of the pages for the bearer of a token. Memory tokens are
// known but not sufficient.
func refusalOf(level string) int {
	if level == "wrong" {
		return http.StatusUnauthorized
	}
	return http.StatusForbidden
}
