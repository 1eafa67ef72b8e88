package web

import (
	"net/http"
	"net/url"
	"strings"
)

// Addresses that the listener answers by itself, with pages from here.
const (
	SignInPath  = "/login"
	SignOutPath = "/logout"
	StylePath   = "/style.css"
	ScriptPath  = "/app.js"
	EventsPath  = "/events"
)

// handler makes a page of a request, at the place that its address names.
type handler func(s *Site, r *http.Request, v Visitor, at place) (Response, error)

// place is what an address names.
type place struct {
	key  string // the project, or what the page is of
	id   string // the message, thread, record or agent
	file string // the number of the attachment
	route
}

// route is an address with its page.
type route struct {
	pattern string // {} is a name, path-escaped
	answer  handler
	post    bool    // a form is sent to it
	again   handler // shows a form again that was not of this visit, with its text; nil where there is no text to keep
}

// routes are the addresses of the pages behind sign-in.
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

// Address is an address of the pages, with {} for each name in it.
type Address struct {
	Pattern string
	Form    bool // a form is sent to it
}

// Addresses are all addresses that pages answer, those of the listener included.
func Addresses() []Address {
	list := []Address{{SignInPath, true}, {SignOutPath, true}, {StylePath, false}, {ScriptPath, false}, {EventsPath, false}}
	for _, one := range routes() {
		list = append(list, Address{one.pattern, one.post})
	}
	return list
}

// Covers reports whether an escaped path belongs to the pages, be there a page or
// not.
func Covers(escaped string) bool {
	for _, a := range Addresses() {
		if below, _, named := strings.Cut(a.Pattern, "{}"); escaped == a.Pattern || named && strings.HasPrefix(escaped, below) {
			return true
		}
	}
	return false
}

// Methods are those by which the page at an escaped path may be asked for; none
// where there is no page.
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

// find reads the address of a page behind sign-in.
func find(escaped string) (at place, ok bool) {
	for _, one := range routes() {
		names, ok := match(one.pattern, escaped)
		if !ok {
			continue
		}
		names = append(names, "", "", "") // no address has more
		return place{names[0], names[1], names[2], one}, true
	}
	return at, false
}

// match compares an escaped path with a pattern and returns the names in it, unescaped and
// none of them empty.
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

// under is the address of something in a project.
func under(key string, rest ...string) string {
	out := "/projects/" + url.PathEscape(key)
	for _, r := range rest {
		out += "/" + url.PathEscape(r)
	}
	return out
}
