package httpapi

import (
	"crypto/hmac"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"cairn/internal/fault"
	"cairn/internal/web"
)

// maxForm is the maximum size of a form, in bytes. It allows 50,000 characters of twelve bytes
// each.
const maxForm = 1 << 20

// policy is the Content-Security-Policy of pages: only their own style, script and images
// (mail §13).
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// visit serves a request for a page. The checks are those of all requests, in the same
// order. But a login session is accepted instead of the token, and rejections are shown as a
// page.
func (s *Server) visit(w *response, r *http.Request) {
	v := web.Visitor{}
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	w.problem = func(no refusal) { s.showRefusal(w, r, v, no) }
	if !s.guard.admits(w, r) {
		return
	}
	session, known := s.visitor(r)
	if known {
		v = web.Visitor{SignedIn: true, FormToken: formToken(s.token(r.Context()), session)}
	}
	path := r.URL.EscapedPath()
	open := path == web.SignInPath || path == web.StylePath || path == web.ScriptPath
	if !known && !open {
		s.rejectVisitor(w, r)
		return
	}
	if !open && s.rate.exceeded(w, r) {
		return
	}
	methods := web.Methods(path)
	switch {
	case methods == nil:
		refuse(w, refusal{status: http.StatusNotFound, code: "not_found", message: "this page does not exist", hint: "start at the list of projects"})
	case !slices.Contains(methods, r.Method):
		checkMethod(w, r, methods...)
	case path == web.EventsPath:
		s.gate.pass(w, r, true, func(http.ResponseWriter, *http.Request) { s.events(w, r) })
	default:
		s.gate.pass(w, r, false, func(http.ResponseWriter, *http.Request) {
			if r.Method != http.MethodPost || s.formRead(w, r) {
				s.page(w, r, v, session)
			}
		})
	}
}

// visitor returns the login session of a request. The token counts as a session.
func (s *Server) visitor(r *http.Request) (session string, known bool) {
	if scheme, given, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok {
		return "", strings.EqualFold(scheme, "Bearer") && s.isToken(r.Context(), given)
	}
	token, now := s.token(r.Context()), time.Now()
	for _, c := range r.CookiesNamed(sessionCookie) {
		if s.sessions.valid(token, c.Value, now) {
			return c.Value, true
		}
	}
	return "", false
}

// rejectVisitor redirects a GET request without a login session to the sign-in page. A program
// with a wrong token gets the usual error. The sender of a form gets an error that says that
// nothing was done.
func (s *Server) rejectVisitor(w *response, r *http.Request) {
	switch {
	case r.Header.Get("Authorization") != "":
		if _, ok := s.authorized(w, r); ok {
			refuse(w, refusal{
				status: http.StatusForbidden, code: "forbidden", message: "this token is for programs; pages require the owner",
				hint: "send the owner's token, which `cairn http-token` prints, or sign in",
			})
		}
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		to := web.SignInPath
		if r.URL.Path != "/" {
			to += "?next=" + url.QueryEscape(r.URL.RequestURI())
		}
		http.Redirect(w, r, to, http.StatusSeeOther)
	default:
		refuse(w, refusal{
			status: http.StatusUnauthorized, code: "unauthorized", message: "you are not signed in; nothing was done",
			hint: "sign in in another window, go back in your browser, and send it again",
		})
	}
}

// formRead checks the origin of a form and reads it.
func (s *Server) formRead(w *response, r *http.Request) bool {
	if r.Header.Get("Origin") == "" { // a present one has been checked
		refuse(w, refusal{
			status: http.StatusForbidden, code: "forbidden", message: "the browser does not name the page of the form",
			hint: "send it from cairn's own page",
		})
		return false
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/x-www-form-urlencoded" {
		refuse(w, refusal{status: http.StatusUnsupportedMediaType, code: "unsupported_media_type", message: "this is not a form", hint: "send it from cairn's own page"})
		return false
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	err := r.ParseForm()
	if long, ok := errors.AsType[*http.MaxBytesError](err); ok {
		tooLong(w, long.Limit, max(r.ContentLength, long.Limit+1))
	} else if err != nil {
		refuse(w, refusal{status: http.StatusBadRequest, code: "invalid_argument", message: "the form could not be read", hint: "send it again"})
	}
	return err == nil
}

// page serves a request that has passed all checks except that of the form's token.
func (s *Server) page(w *response, r *http.Request, v web.Visitor, session string) {
	pages, path := s.config.Pages, r.URL.EscapedPath()
	posted := r.Method == http.MethodPost
	if path == web.SignInPath {
		s.signIn(w, r)
		return
	}
	if posted && !hmac.Equal([]byte(r.PostForm.Get("form_token")), []byte(v.FormToken)) {
		a, err := pages.Stale(r, v)
		if err != nil || a.Body == nil {
			refuse(w, refusal{status: http.StatusForbidden, code: "forbidden", message: "the form belongs to another login session; nothing was done", hint: "open the page again"})
			return
		}
		a.Status = http.StatusForbidden
		s.show(w, r, a, nil)
		return
	}
	var a web.Response
	var err error
	switch {
	case path == web.StylePath:
		a, err = pages.Style()
	case path == web.ScriptPath:
		a, err = pages.Script()
	case path == web.SignOutPath && posted:
		if session != "" {
			err = s.sessions.end(session, time.Now())
		}
		setSession(w, r, "")
		a.To = web.SignInPath
	case path == web.SignOutPath:
		a, err = pages.SignOut(v)
	default:
		a, err = pages.Answer(r, v)
	}
	if a.Fixed && r.URL.RawQuery != "" {
		w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	}
	s.show(w, r, a, err)
}

// signIn shows or processes the sign-in form.
func (s *Server) signIn(w *response, r *http.Request) {
	next, problem, status := r.FormValue("next"), "", http.StatusOK
	if !strings.HasPrefix(next, "/") || !web.Covers(pathOf(next)) {
		next = "/" // never redirect to another site
	}
	if link := r.URL.Query().Get("once"); link != "" && r.Method == http.MethodGet {
		now := time.Now()
		if s.sessions.tries.exceeded(w, r) {
			return
		}
		if s.sessions.use(s.token(r.Context()), link, now) {
			setSession(w, r, s.sessions.newCookie(s.token(r.Context()), now))
			s.show(w, r, web.Response{To: next}, nil)
			return
		}
		problem, status = "That link was already used or is too old. `cairn open` creates a new one.", http.StatusUnauthorized
	}
	if r.Method == http.MethodPost {
		switch now := time.Now(); {
		case s.sessions.tries.exceeded(w, r):
			return
		case s.isToken(r.Context(), r.PostForm.Get("token")):
			setSession(w, r, s.sessions.newCookie(s.token(r.Context()), now))
			s.show(w, r, web.Response{To: next}, nil)
			return
		}
		problem, status = "That is not the token.", http.StatusUnauthorized
	}
	a, err := s.config.Pages.SignIn(next, problem)
	a.Status = status
	s.show(w, r, a, err)
}

// pathOf returns the path of an address of this site, "" for other addresses.
func pathOf(address string) string {
	u, err := url.ParseRequestURI(address)
	if err != nil || u.Host != "" || strings.Contains(address, `\`) {
		return ""
	}
	return u.EscapedPath()
}

// show sends a page. With an error its status is the error's.
func (s *Server) show(w *response, r *http.Request, a web.Response, err error) {
	h := w.Header()
	switch {
	case err != nil && a.Body == nil:
		s.failedPage(w, r, err)
		return
	case err != nil:
		a.Status = statusOf(err)
	case a.To != "":
		http.Redirect(w, r, a.To, http.StatusSeeOther)
		return
	}
	if a.Forms {
		// With no-referrer a browser would not name the page of a form.
		h.Set("Referrer-Policy", "same-origin")
	}
	if a.SaveAs != "" {
		h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": fileName(a.SaveAs)}))
		h.Set("Content-Security-Policy", policy+"; sandbox")
	}
	if a.Cookie != nil {
		http.SetCookie(w, a.Cookie)
	}
	h.Set("Content-Type", a.Type)
	w.WriteHeader(max(a.Status, http.StatusOK))
	_, _ = w.Write(a.Body) // a disconnected client is not an error
}

// fileName returns a safe file name for a download. The name comes from other agents.
func fileName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x200b && r <= 0x206f || strings.ContainsRune(`/\:*?"<>|`, r) {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(name, "_"))
	if name = strings.TrimLeft(name, ". "); name == "" {
		return "attachment"
	}
	return name
}

// failedPage shows an error as a page. Unclassified errors are logged and not shown.
func (s *Server) failedPage(w *response, r *http.Request, err error) {
	f, known := errors.AsType[*fault.Error](err)
	switch {
	case !known && r.Context().Err() != nil:
		refuse(w, refusal{status: http.StatusServiceUnavailable, code: "stopping", message: "the call was cancelled", hint: "try again", retry: busyFor})
	case !known:
		s.log.ErrorContext(r.Context(), "a page failed", "error", err)
		refuse(w, refusal{status: http.StatusInternalServerError, code: "internal", message: "internal error", hint: "see the server's log"})
	default:
		no := refusal{status: statusOf(err), code: f.Code, message: f.Message, hint: f.Hint}
		if no.status == http.StatusServiceUnavailable {
			no.retry = busyFor
		}
		refuse(w, no)
	}
}

// showRefusal shows a rejection as a page.
func (s *Server) showRefusal(w *response, r *http.Request, v web.Visitor, no refusal) {
	a, err := s.config.Pages.Problem(v, no.status, no.message, no.hint)
	if err != nil {
		w.problem = nil
		refuse(w, no)
		return
	}
	s.show(w, r, a, nil)
}
