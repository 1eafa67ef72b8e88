package web

import (
	"net/http"
	"net/url"
	"strings"
)

// Paths that the listener handles itself, with pages from this package.
const (
	SignInPath  = "/login"
	SignOutPath = "/logout"
	StylePath   = "/style.css"
	ScriptPath  = "/app.js"
	EventsPath  = "/events"
)

// handler renders the page for a request. at contains the names in its path.
type handler func(s *Site, r *http.Request, v Visitor, at place) (Response, error)

// place contains the names in a path.
type place struct {
	key  string // the project, or the subject of the page
	id   string // the message, thread, record or agent
	file string // the number of the attachment
	route
}

// route is a path pattern and its page.
type route struct {
	pattern string // {} matches one path-escaped name
	answer  handler
	post    bool    // accepts a submitted form
	again   handler // shows a form of an earlier login session again, with its text; nil if the form has no text
}

// routes returns the paths of the pages that require a login.
func routes() []route {
	return []route{
		{pattern: "/", answer: (*Site).today},
		{pattern: "/timeline", answer: (*Site).timeline},
		{pattern: "/search", answer: (*Site).search},
		{pattern: "/records", answer: (*Site).firstRecords},
		{pattern: "/records/{}", answer: (*Site).records, post: true, again: (*Site).staleRecord},
		{pattern: "/records/{}/{}", answer: (*Site).records, post: true, again: (*Site).staleRecord},
		{pattern: "/sessions/{}", answer: (*Site).session},
		{pattern: "/rows/{}", answer: (*Site).row},
		{pattern: "/files", answer: (*Site).editedFiles},
		{pattern: "/files/{}", answer: (*Site).sourceFile},
		{pattern: "/reservations", answer: (*Site).reservations},
		{pattern: "/memories", answer: (*Site).memories},
		{pattern: "/memories/{}", answer: (*Site).memories},
		{pattern: "/worth", answer: (*Site).worth},
		{pattern: "/status", answer: (*Site).health, post: true},
		{pattern: "/keys", answer: (*Site).keys},
		{pattern: "/mail", answer: (*Site).projects},
		{pattern: "/projects/{}/mail", answer: (*Site).mailbox},
		{pattern: "/projects/{}/mail/{}", answer: (*Site).letter},
		{pattern: "/projects/{}/mail/{}/files/{}", answer: (*Site).file},
		{pattern: "/projects/{}/mail/{}/acknowledge", answer: (*Site).acknowledge, post: true},
		{pattern: "/projects/{}/inbox/{}", answer: (*Site).inbox},
		{pattern: "/projects/{}/threads/{}", answer: (*Site).thread},
		{pattern: "/projects/{}/overseer", answer: (*Site).overseer, post: true, again: (*Site).staleMessage},
		{pattern: "/projects/{}/reservations/{}/release", answer: (*Site).release, post: true, again: (*Site).staleRelease},
	}
}

// Address is a path pattern of the pages, with {} for each name.
type Address struct {
	Pattern string
	Form    bool // accepts a submitted form
}

// Addresses returns all paths that have a page, including those that the listener handles.
func Addresses() []Address {
	list := []Address{{SignInPath, true}, {SignOutPath, true}, {StylePath, false}, {ScriptPath, false}, {EventsPath, false}}
	for _, one := range routes() {
		list = append(list, Address{one.pattern, one.post})
	}
	return list
}

// Covers reports whether an escaped path belongs to the pages, even if no page exists
// there.
func Covers(escaped string) bool {
	for _, a := range Addresses() {
		if below, _, named := strings.Cut(a.Pattern, "{}"); escaped == a.Pattern || named && strings.HasPrefix(escaped, below) {
			return true
		}
	}
	return false
}

// Methods returns the HTTP methods that the page at an escaped path accepts. It returns
// none if there is no page.
func Methods(escaped string) []string {
	if escaped == EventsPath {
		return []string{http.MethodGet}
	}
	for _, a := range Addresses() {
		switch _, ok := match(a.Pattern, escaped); {
		case !ok:
		case a.Form:
			return []string{http.MethodGet, http.MethodHead, http.MethodPost}
		default:
			return []string{http.MethodGet, http.MethodHead}
		}
	}
	return nil
}

// find parses the path of a page that requires a login.
func find(escaped string) (at place, ok bool) {
	for _, one := range routes() {
		names, ok := match(one.pattern, escaped)
		if !ok {
			continue
		}
		names = append(names, "", "", "") // no path has more names
		return place{names[0], names[1], names[2], one}, true
	}
	return at, false
}

// match compares an escaped path with a pattern and returns the names in it, unescaped.
// None of them is empty.
func match(pattern, escaped string) (names []string, ok bool) {
	want, given := strings.Split(pattern, "/"), strings.Split(escaped, "/")
	if len(want) != len(given) {
		return nil, false
	}
	for i, part := range want {
		text, err := url.PathUnescape(given[i])
		switch {
		case err != nil, part == "{}" && text == "", part != "{}" && text != part:
			return nil, false
		case part == "{}":
			names = append(names, text)
		}
	}
	return names, true
}

// under returns the path of a page in a project.
func under(key string, rest ...string) string {
	out := "/projects/" + url.PathEscape(key)
	for _, r := range rest {
		out += "/" + url.PathEscape(r)
	}
	return out
}
