package main

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"cairn/internal/mail/agents"
)

// visitor is a user with a browser without scripts.
type visitor struct {
	w       *web
	cookie  string // NAME=VALUE
	project string // the path of its pages
}

// visitor signs in and returns the visitor.
func (w *web) visitor() *visitor {
	w.h.t.Helper()
	v := &visitor{w: w, project: "/projects/" + url.PathEscape(w.h.repo)}
	r := v.submit("/login", url.Values{"token": {w.token}})
	if r.status != http.StatusSeeOther || r.header.Get("Location") != "/" {
		w.h.t.Fatalf("signing in: %d %s", r.status, r.body)
	}
	v.cookie, _, _ = strings.Cut(r.header.Get("Set-Cookie"), ";")
	return v
}

// ask requests a page as a browser does. An empty value removes a header.
func (v *visitor) ask(method, path string, form url.Values, headers ...string) reply {
	v.w.h.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r, err := http.NewRequestWithContext(v.w.h.t.Context(), method, v.w.url+path, body)
	if err != nil {
		v.w.h.t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", v.w.url)
	}
	if v.cookie != "" {
		r.Header.Set("Cookie", v.cookie)
	}
	for i := 0; i < len(headers); i += 2 {
		switch name, value := headers[i], headers[i+1]; {
		case name == "Host":
			r.Host = value
		case value == "":
			r.Header.Del(name)
		default:
			r.Header.Set(name, value)
		}
	}
	answer, err := v.w.http.Transport.RoundTrip(r) // does not follow redirects
	if err != nil {
		v.w.h.t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		v.w.h.t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil {
		v.w.h.t.Error(err)
	}
	return reply{answer.StatusCode, answer.Header, string(text)}
}

func (v *visitor) get(path string) reply {
	v.w.h.t.Helper()
	return v.ask(http.MethodGet, path, nil)
}

func (v *visitor) submit(path string, form url.Values, headers ...string) reply {
	v.w.h.t.Helper()
	return v.ask(http.MethodPost, path, form, headers...)
}

// ownScript matches the script of every page, whose address changes with its content.
var ownScript = regexp.MustCompile(`<script src="/app\.js\?[0-9a-f]{12}" defer></script>`)

// page expects a status and the parts that every page has. The tag of the pages' own script
// is removed from the reply.
func (v *visitor) page(r reply, status int, holds ...string) reply {
	v.w.h.t.Helper()
	if r.status != status || !strings.HasPrefix(r.body, "<!doctype html>") {
		v.w.h.t.Errorf("%d, want %d: %.800s", r.status, status, r.body)
	}
	script := ownScript.FindString(r.body)
	before, after, own := strings.Cut(r.body, script)
	if r.body = before + after; !own || script == "" {
		v.w.h.t.Errorf("a page without the script: %.800s", r.body)
	}
	for name, want := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
		"Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
	} {
		if r.header.Get(name) != want {
			v.w.h.t.Errorf("%s: %q", name, r.header.Get(name))
		}
	}
	policy := "no-referrer"
	if strings.Contains(r.body, `method="post"`) {
		policy = "same-origin" // otherwise browsers omit the form's Origin
	}
	if r.header.Get("Referrer-Policy") != policy || strings.Contains(r.body, "<script") {
		v.w.h.t.Errorf("Referrer-Policy %q: %.300s", r.header.Get("Referrer-Policy"), r.body)
	}
	for _, text := range holds {
		if !strings.Contains(r.body, text) {
			v.w.h.t.Errorf("%q is not in %.3000s", text, r.body)
		}
	}
	return r
}

// form returns the values of the form to write to agents, for this login session.
func (v *visitor) form(to ...string) url.Values {
	v.w.h.t.Helper()
	r := v.page(v.get(v.project+"/overseer"), http.StatusOK)
	hidden := func(name string) string {
		m := regexp.MustCompile(`name="` + name + `" value="([^"]+)"`).FindStringSubmatch(r.body)
		if m == nil {
			v.w.h.t.Fatalf("no %s in %s", name, r.body)
		}
		return html.UnescapeString(m[1])
	}
	return url.Values{"form_token": {hidden("form_token")}, "once": {hidden("once")}, "to": to, "subject": {"s"}, "body": {"b"}}
}

func with(form url.Values, name string, values ...string) url.Values {
	out := url.Values{}
	for k, v := range form {
		out[k] = v
	}
	out[name] = values
	return out
}

// correspondents registers agents.
func (h *home) correspondents(names ...string) {
	h.t.Helper()
	for _, name := range names {
		h.cairn("agents", "register", name, "--program", "claude-code", "--model", "m")
	}
}

func TestPagesNeedSignInAndTheAPIStaysAsItWas(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	h.correspondents("BlueLake")
	w := h.listen()
	nobody := &visitor{w: w, project: "/projects/" + url.PathEscape(h.repo)}
	for _, path := range []string{
		"/", nobody.project + "/mail?before=7", "/projects/nowhere/mail", "/projects/x/y/z", "/logout", "/mail", "/timeline?project=shop", "/search?q=x",
		"/records", "/records/shop/R001", "/reservations", "/status", "/sessions/none", "/sessions/a/b",
	} {
		r := nobody.get(path)
		want := "/login"
		if path != "/" {
			want += "?next=" + url.QueryEscape(path)
		}
		if r.status != http.StatusSeeOther || r.header.Get("Location") != want {
			t.Errorf("%s: %d to %s", path, r.status, r.header.Get("Location"))
		}
	}
	for _, path := range []string{"/v1/tools", "/metrics", "/mcp", "/nowhere"} {
		if r := nobody.get(path); r.status != http.StatusUnauthorized || r.body != `{"detail":"Unauthorized"}`+"\n" {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
	if r := nobody.ask(http.MethodGet, "/", nil, "Authorization", "Bearer wrong"); r.status != http.StatusUnauthorized || r.body != `{"detail":"Unauthorized"}`+"\n" {
		t.Errorf("a wrong bearer token: %d %s", r.status, r.body)
	}
	nobody.page(nobody.submit(nobody.project+"/overseer", url.Values{"to": {"BlueLake"}}), http.StatusUnauthorized, "nothing was done")
	nobody.page(nobody.get("/login?next=%2Fprojects%2Fx%2Fmail"), http.StatusOK, `name="next" value="/projects/x/mail"`)
	for _, next := range []string{"https://evil.example/", "//evil.example/", `/\evil.example`, "javascript:alert(1)", "/%2Fevil.example", "/v1/tools", "\"><script>"} {
		nobody.page(nobody.get("/login?next="+url.QueryEscape(next)), http.StatusOK, `name="next" value="/"`)
	}
	if r := nobody.get("/style.css"); r.status != http.StatusOK || !strings.Contains(r.body, "prefers-color-scheme") || r.header.Get("Content-Type") != "text/css; charset=utf-8" {
		t.Errorf("style: %d %v", r.status, r.header)
	}
	// A browser keeps what the pages link to, and nothing else.
	linked := regexp.MustCompile(`"(/(?:style\.css|app\.js)\?[0-9a-f]{12})"`).FindAllStringSubmatch(nobody.get("/login").body, -1)
	if len(linked) != 2 {
		t.Errorf("linked: %q", linked)
	}
	for _, m := range linked {
		path, _, _ := strings.Cut(m[1], "?")
		kept, other := nobody.get(m[1]), nobody.get(path)
		if kept.body != other.body || !strings.Contains(kept.header.Get("Cache-Control"), "immutable") || other.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v and %v", path, kept.header, other.header)
		}
	}
}

func TestOnlyTheTokenSignsInAndNotTooOften(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	w := h.listen()
	nobody := &visitor{w: w, project: "/projects/" + url.PathEscape(h.repo)}
	// Requests from other origins are refused before anything else is checked.
	right := url.Values{"token": {w.token}}
	nobody.page(nobody.submit("/login", right, "Origin", "https://evil.example"), http.StatusForbidden)
	nobody.page(nobody.submit("/login", right, "Origin", "null"), http.StatusForbidden)
	nobody.page(nobody.submit("/login", right, "Origin", ""), http.StatusForbidden)
	nobody.page(nobody.submit("/login", right, "Host", "evil.example"), http.StatusForbidden)
	nobody.page(nobody.ask(http.MethodGet, "/", nil, "Host", "evil.example"), http.StatusForbidden)
	nobody.page(nobody.submit("/login", right, "Content-Type", "text/plain"), http.StatusUnsupportedMediaType)
	nobody.page(nobody.ask(http.MethodDelete, "/login", nil), http.StatusMethodNotAllowed, "GET, HEAD, POST")

	for _, wrong := range []string{"", "x", w.token + "x", w.token[1:]} {
		r := nobody.page(nobody.submit("/login", url.Values{"token": {wrong}}), http.StatusUnauthorized, "That is not the token.")
		if r.header.Get("Set-Cookie") != "" {
			t.Errorf("a cookie for %d characters", len(wrong))
		}
	}
	r := nobody.submit("/login", url.Values{"token": {" " + w.token + "\n"}, "next": {nobody.project + "/mail"}})
	given := r.header.Get("Set-Cookie")
	if r.status != http.StatusSeeOther || r.header.Get("Location") != nobody.project+"/mail" || strings.Contains(given, w.token) {
		t.Errorf("signing in: %d %v", r.status, r.header)
	}
	for _, part := range []string{"; Path=/", "; HttpOnly", "; SameSite=Strict", "; Max-Age=43200"} {
		if !strings.Contains(given, part) {
			t.Errorf("the cookie has no %s: %s", part, given)
		}
	}
	for range 10 {
		if r = nobody.submit("/login", right); r.status == http.StatusTooManyRequests {
			break
		}
	}
	nobody.page(r, http.StatusTooManyRequests)
	if r.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}

func TestAVisitEndsBySigningOutAndByANewToken(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	h.correspondents("BlueLake")
	w := h.listen()
	v, other := w.visitor(), w.visitor()
	v.page(v.get("/mail"), http.StatusOK, html.EscapeString(h.repo), "Sign out")
	if r := v.get("/v1/tools"); r.status != http.StatusUnauthorized {
		t.Errorf("the cookie opens the API: %d", r.status)
	}
	name, value, _ := strings.Cut(v.cookie, "=")
	for _, changed := range []string{"", value + "x", "x" + value, value[1:], strings.Replace(value, ".", "..", 1), w.token, "zzzzzz" + value[strings.IndexByte(value, '.'):]} {
		x := &visitor{w: w, cookie: name + "=" + changed}
		if r := x.get("/"); r.status != http.StatusSeeOther {
			t.Errorf("cookie %q: %d", changed, r.status)
		}
	}
	form := v.form()
	v.page(v.submit("/logout", url.Values{}), http.StatusForbidden)
	v.page(v.submit("/logout", url.Values{"form_token": other.form()["form_token"]}), http.StatusForbidden)
	v.page(v.get("/logout"), http.StatusOK, form.Get("form_token"))
	if r := v.submit("/logout", form); r.status != http.StatusSeeOther || r.header.Get("Location") != "/login" || !strings.Contains(r.header.Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("signing out: %d %v", r.status, r.header)
	}
	if r := v.get("/"); r.status != http.StatusSeeOther {
		t.Errorf("the cookie still counts after signing out: %d", r.status)
	}
	other.page(other.get("/"), http.StatusOK)
	h.cairn("http-token", "--rotate")
	if r := other.get("/"); r.status != http.StatusSeeOther {
		t.Errorf("the cookie still counts with a new token: %d", r.status)
	}
}

func TestALogoutSurvivesARestartOfTheServer(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	h.correspondents("BlueLake")
	w := h.listenUntil()
	v, other := w.visitor(), w.visitor()
	if r := v.submit("/logout", v.form()); r.status != http.StatusSeeOther {
		t.Fatalf("signing out: %d %s", r.status, r.body)
	}
	w.stop()
	again := h.listen()
	v.w, other.w = again, again
	if r := v.get("/"); r.status != http.StatusSeeOther {
		t.Errorf("after a restart the cookie counts again: %d", r.status)
	}
	other.page(other.get("/mail"), http.StatusOK, html.EscapeString(h.repo))
	if mode := h.files()["http-logouts"]; mode.Perm() != 0o700 {
		t.Errorf("the logouts are %v", mode)
	}
}

func TestAPersonWritesToAgentsFromThePages(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	h.correspondents("BlueLake", "GreenFox")
	h.cairn("contacts", "policy", "block_all", "--as", "GreenFox")
	w := h.listen()
	v := w.visitor()
	c := w.connect("/mcp", "", nil)
	h.recorded(h.payload("SessionStart", fields{"source": "startup"}))
	asked[agents.AgentInfo](c, "register_agent", fields{"project_key": h.repo, "program": "claude-code", "model": "m", "name": "BlueLake", "session_id": "s1"})

	form := v.form("BlueLake", "GreenFox")
	form.Set("subject", "Stop <b>")
	form.Set("body", "Leave the *branch*\r\nalone.")
	form.Set("thread", "t-1")
	form.Set("ack", "yes")
	r := v.submit(v.project+"/overseer", form)
	if r.status != http.StatusSeeOther || r.header.Get("Location") != v.project+"/mail/1" {
		t.Fatalf("%d %s", r.status, r.body)
	}
	v.page(v.get(v.project+"/mail/1"), http.StatusOK, "Stop &lt;b&gt;", "HumanOverseer", "BlueLake, GreenFox", "<p>Leave the <em>branch</em>\nalone.</p>", "high", "requires acknowledgement", v.project+"/threads/t-1")
	v.page(v.get(v.project+"/threads/t-1"), http.StatusOK, v.project+"/mail/1")
	told := h.recorded(h.payload("UserPromptSubmit", fields{"prompt": "what now?"}))
	if !strings.Contains(told, "\n#1 [operator] high ack HumanOverseer: Stop ‹b>\n") {
		t.Errorf("the recipient was told %q", told)
	}
	h.wantRows(`SELECT a.program || ' ' || a.model || ' ' || m.importance || ' ' || m.body_md FROM mail_messages m JOIN mail_agents a ON a.id = m.sender_id`,
		"WebUI Human high Leave the *branch*\nalone.")

	// Submitting a form twice sends one message. A form that was changed in between sends
	// another message.
	if r := v.submit(v.project+"/overseer", form); r.header.Get("Location") != v.project+"/mail/1" {
		t.Errorf("sent again: %d %s", r.status, r.header.Get("Location"))
	}
	if r := v.submit(v.project+"/overseer", with(form, "subject", "Go on")); r.header.Get("Location") != v.project+"/mail/2" {
		t.Errorf("changed: %d %s", r.status, r.header.Get("Location"))
	}
	h.check()
}

func TestTheFormHasItsLimitsAndKeepsTheText(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	h.correspondents("BlueLake")
	w := h.listen()
	v := w.visitor()
	form := v.form("BlueLake")
	many := make([]string, 101)
	for i := range many {
		many[i] = "BlueLake"
	}
	kept := `typed <text>`
	form.Set("body", kept)
	foreign := w.visitor().form("BlueLake")
	for _, c := range []struct {
		name    string
		form    url.Values
		status  int
		headers []string
	}{
		{"no form token", with(form, "form_token"), http.StatusForbidden, nil},
		{"a wrong one", with(form, "form_token", "x"), http.StatusForbidden, nil},
		{"another visit's", with(form, "form_token", foreign.Get("form_token")), http.StatusForbidden, nil},
		{"no recipient", with(form, "to"), http.StatusBadRequest, nil},
		{"101 recipients", with(form, "to", many...), http.StatusBadRequest, nil},
		{"an unknown recipient", with(form, "to", "RedFox"), http.StatusNotFound, nil},
		{"a long subject", with(form, "subject", strings.Repeat("é", 201)), http.StatusRequestEntityTooLarge, nil},
		{"a thread that is none", with(form, "thread", "../<script>"), http.StatusBadRequest, nil},
		{"a broken subject", with(form, "subject", "\xff"), http.StatusBadRequest, nil},
	} {
		r := v.page(v.submit(v.project+"/overseer", c.form, c.headers...), c.status, html.EscapeString(kept), `role="alert"`)
		if strings.Contains(r.body, "../<script>") {
			t.Errorf("%s: not escaped", c.name)
		}
	}
	v.page(v.submit(v.project+"/overseer", with(form, "body", strings.Repeat("x", 50_001))), http.StatusRequestEntityTooLarge, `role="alert"`)
	v.page(v.submit(v.project+"/overseer", with(form, "body", strings.Repeat("x", 1<<20))), http.StatusRequestEntityTooLarge)
	v.page(v.submit(v.project+"/overseer", form, "Origin", "https://evil.example"), http.StatusForbidden)
	v.page(v.submit(v.project+"/overseer", form, "Origin", ""), http.StatusForbidden)
	v.page(v.submit(v.project+"/overseer", form, "Content-Type", "multipart/form-data; boundary=x"), http.StatusUnsupportedMediaType)
	v.page(v.submit("/projects/nowhere/overseer", form), http.StatusNotFound)
	v.page(v.submit("/projects/"+url.PathEscape(t.TempDir())+"/overseer", form), http.StatusNotFound)
	h.wantRows(`SELECT count(*) FROM mail_messages`, "0")
	h.wantRows(`SELECT count(*) FROM mail_projects`, "1")

	most := with(with(form, "body", strings.Repeat("𝄞", 50_000)), "subject", strings.Repeat("é", 200))
	if r := v.submit(v.project+"/overseer", most); r.status != http.StatusSeeOther {
		t.Errorf("as long as may be: %d %.500s", r.status, r.body)
	}
	h.wantRows(`SELECT length(subject) || ' ' || length(body_md) FROM mail_messages`, "200 50000")
}

func TestOnAFullDiskThePersonIsTold(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.correspondents("BlueLake")
	if err := os.WriteFile(filepath.Join(h.dataDir(), "config.toml"), []byte("[disk]\nfatal_mb = 900000000\ncritical_mb = 900000001\nwarning_mb = 900000002\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := h.listenUntil()
	v := w.visitor()
	v.page(v.submit(v.project+"/overseer", v.form("BlueLake")), http.StatusInsufficientStorage, `role="alert"`)
	h.wantRows(`SELECT count(*) FROM mail_messages`, "0")
}

func TestWhatAgentsWroteIsEscapedOnEveryPage(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	const bad = `"><script>alert(1)</script>'<img src=x onerror=alert(1)>`
	h.correspondents("BlueLake", "GreenFox", "RedOwl")
	h.cairn("agents", "register", "BlueLake", "--program", bad, "--model", bad, "--task", bad)
	h.put(filepath.Join("shop", "note <b>.svg"), []byte(`<svg onload="alert(1)"/>`))
	h.cairn("mail", "send", "GreenFox", "--as", "BlueLake", "--bcc", "RedOwl", "--subject", bad, "--body", bad, "--thread", "t.1", "--attach", filepath.Join(h.repo, "note <b>.svg"))
	w := h.listen()
	w.post("/v1/projects/"+url.PathEscape(h.repo)+"/mail/send_message", fields{"sender_name": "BlueLake", "to": []string{}, "bcc": "RedOwl", "subject": "alone", "body_md": "x"})
	v := w.visitor()
	for _, path := range []string{"/", "/mail", "/mail/1", "/mail/2", "/mail?before=2", "/threads/t.1", "/overseer", "/overseer?to=" + url.QueryEscape(bad) + "&thread=" + url.QueryEscape(bad)} {
		if path != "/" {
			path = v.project + path
		}
		r := v.page(v.get(path), http.StatusOK)
		if strings.Contains(r.body, "<img") || strings.Contains(r.body, `"><`+"script") {
			t.Errorf("%s: %s", path, r.body)
		}
		// A recipient of a blind copy appears only in the list of the project's agents.
		if told := strings.Count(r.body, "RedOwl"); strings.Contains(path, "/mail/") && told != 0 || strings.HasSuffix(path, "/mail") && told != strings.Count(r.body, `?to=RedOwl`)*4 {
			t.Errorf("%s names RedOwl %d times: %s", path, told, r.body)
		}
	}
	v.page(v.get("/projects/"+url.PathEscape(bad)+"/mail"), http.StatusNotFound)
	v.page(v.get(v.project+"/threads/"+url.PathEscape(bad)), http.StatusBadRequest)
	v.page(v.get(v.project+"/threads/none"), http.StatusNotFound)
	r := v.get(v.project + "/mail/1/files/0")
	if r.status != http.StatusOK || !strings.HasPrefix(r.body, "<svg") || r.header.Get("Content-Type") != "application/octet-stream" || r.header.Get("X-Content-Type-Options") != "nosniff" ||
		!strings.HasPrefix(r.header.Get("Content-Disposition"), "attachment; filename=") || !strings.Contains(r.header.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("attachment: %d %v %s", r.status, r.header, r.body)
	}
}

func TestPagesThatAreNotThereSaySo(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	h.correspondents("BlueLake")
	elsewhere := h.repository(filepath.Join(h.dir, "elsewhere"))
	h.cairn("mail", "overseer", "BlueLake", "--subject", "a", "--body", "b")
	w := h.listen()
	v := w.visitor()
	for _, path := range []string{
		"/projects/", "/projects/nowhere", "/projects/nowhere/mail", "/projects//mail", "/projects/x/y", v.project + "/mail/0", v.project + "/mail/-1", v.project + "/mail/01",
		v.project + "/mail/9223372036854775808", v.project + "/mail/12abc", v.project + "/mail/2", v.project + "/mail/1/files/0", v.project + "/mail/1/files/x", v.project + "/mail/1/more",
		v.project + "/mail?before=x", "/projects/" + url.PathEscape(elsewhere) + "/mail/1",
		"/sessions/", "/sessions/none", "/sessions/a/b", "/records/", "/records/nowhere", "/records/shop/R999", "/records/a/b/c", "/?project=nowhere", "/timeline?project=nowhere",
	} {
		v.page(v.get(path), http.StatusNotFound, "<h1>Not Found</h1>")
	}
	for _, c := range [][2]string{{http.MethodPost, "/"}, {http.MethodPost, "/search"}, {http.MethodDelete, "/records/shop"}, {http.MethodPost, "/sessions/x"}, {http.MethodDelete, v.project + "/mail"}, {http.MethodPut, v.project + "/overseer"}, {http.MethodPost, v.project + "/mail/1"}, {http.MethodOptions, "/logout"}} {
		r := v.page(v.ask(c[0], c[1], url.Values{}), http.StatusMethodNotAllowed)
		if !strings.HasPrefix(r.header.Get("Allow"), "GET, HEAD") {
			t.Errorf("%v: %v", c, r.header)
		}
	}
	if r := v.ask(http.MethodHead, v.project+"/mail/1", nil); r.status != http.StatusOK || r.body != "" {
		t.Errorf("HEAD: %d %s", r.status, r.body)
	}
	for _, key := range []string{"1", url.PathEscape(h.repo)} {
		v.page(v.get("/projects/"+key+"/mail"), http.StatusOK, "/projects/"+key+"/mail/1")
	}
}

func TestTheListOfMessagesIsPaged(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.letters(120)
	w := h.listen()
	v := w.visitor()
	next, seen := v.project+"/mail", 0
	row := regexp.MustCompile(`<td><a href="` + regexp.QuoteMeta(v.project) + `/mail/(\d+)">`)
	older := regexp.MustCompile(`rel="next" href="([^"]+)"`)
	for pages := 1; ; pages++ {
		r := v.page(v.get(next), http.StatusOK)
		for _, m := range row.FindAllStringSubmatch(r.body, -1) {
			if id, err := strconv.Atoi(m[1]); err != nil || id != 120-seen {
				t.Fatalf("message %s after %d", m[1], seen)
			}
			seen++
		}
		m := older.FindStringSubmatch(r.body)
		if m == nil {
			if pages != 3 || seen != 120 {
				t.Errorf("%d pages with %d messages", pages, seen)
			}
			break
		}
		next = html.UnescapeString(m[1])
	}
	v.page(v.get(fmt.Sprintf("%s/mail?before=1", v.project)), http.StatusOK, "nothing older")
}
