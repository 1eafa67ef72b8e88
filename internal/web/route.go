package web

import (
	"net/http"
	"net/url"
	"slices"
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

// handler makes a page of a request; of what its address names, key is the project
// and rest the texts behind it.
type handler func(s *Site, r *http.Request, v Visitor, at place) (Response, error)

// place is what an address names.
type place struct {
	key    string // the project
	id     string // the message or thread
	file   string // the number of the attachment
	answer handler
	post   bool    // a form is sent to it
	again  handler // shows a form again that was not of this visit, with its text; nil where there is no text to keep
}

// Covers reports whether an escaped path is the pages' affair, be there a page or
// not.
func Covers(escaped string) bool {
	if ownAnswer(escaped) {
		return true
	}
	if _, ok := plain(escaped); ok {
		return true
	}
	for _, below := range []string{"/projects/", "/sessions/", "/records/", "/memories/", "/files/"} {
		if strings.HasPrefix(escaped, below) {
			return true
		}
	}
	return false
}

// ownAnswer reports whether the listener answers an address by itself.
func ownAnswer(escaped string) bool {
	return slices.Contains([]string{SignInPath, SignOutPath, StylePath, ScriptPath, EventsPath}, escaped)
}

// Methods are those by which the page at an escaped path may be asked for; none
// where there is no page.
func Methods(escaped string) []string {
	at, ok := find(escaped)
	switch {
	case escaped == EventsPath:
		return []string{http.MethodGet}
	case !ok && !ownAnswer(escaped):
		return nil
	case escaped == SignInPath, escaped == SignOutPath, at.post:
		return []string{http.MethodGet, http.MethodHead, http.MethodPost}
	}
	return []string{http.MethodGet, http.MethodHead}
}

// find reads the address of a page behind sign-in.
func find(escaped string) (at place, ok bool) {
	if at, ok := plain(escaped); ok {
		return at, true
	}
	for below, answer := range map[string]handler{"/sessions/": (*Site).session, "/memories/": (*Site).memories, "/files/": (*Site).sourceFile} {
		rest, ok := strings.CutPrefix(escaped, below)
		if !ok {
			continue
		}
		parts, readable := names(rest)
		if !readable || len(parts) != 1 {
			return at, false
		}
		return place{key: parts[0], id: parts[0], answer: answer}, true
	}
	if rest, ok := strings.CutPrefix(escaped, "/records/"); ok {
		parts, readable := names(rest)
		if !readable || len(parts) > 2 {
			return at, false
		}
		at = place{key: parts[0], answer: (*Site).records, post: true, again: (*Site).staleRecord}
		if len(parts) == 2 {
			at.id = parts[1]
		}
		return at, true
	}
	rest, ok := strings.CutPrefix(escaped, "/projects/")
	parts, readable := names(rest)
	if !ok || !readable || len(parts) < 2 {
		return at, false
	}
	at.key = parts[0]
	if len(parts) > 2 {
		at.id = parts[2]
	}
	if len(parts) > 4 {
		at.file = parts[4]
	}
	switch shape(parts[1:]) {
	case "mail":
		at.answer = (*Site).mailbox
	case "mail/*":
		at.answer = (*Site).letter
	case "mail/*/files/*":
		at.answer = (*Site).file
	case "mail/*/acknowledge":
		at.answer, at.post = (*Site).acknowledge, true
	case "threads/*":
		at.answer = (*Site).thread
	case "overseer":
		at.answer, at.post, at.again = (*Site).overseer, true, (*Site).staleMessage
	default:
		return at, false
	}
	return at, true
}

// plain finds the pages whose address names nothing.
func plain(escaped string) (at place, ok bool) {
	all := map[string]handler{
		"/": (*Site).today, "/timeline": (*Site).timeline, "/search": (*Site).search, "/records": (*Site).firstRecords,
		"/mail": (*Site).projects, "/reservations": (*Site).reservations, "/status": (*Site).health,
		"/memories": (*Site).memories, "/worth": (*Site).worth, "/keys": (*Site).keys,
	}
	answer, ok := all[escaped]
	return place{answer: answer, post: escaped == "/status"}, ok
}

// names cuts a path at its slashes; each part must be some text.
func names(path string) (parts []string, ok bool) {
	for part := range strings.SplitSeq(path, "/") {
		name, err := url.PathUnescape(part)
		if err != nil || name == "" {
			return nil, false
		}
		parts = append(parts, name)
	}
	return parts, true
}

// shape is what the parts of an address are for: every second one is a name of its
// own.
func shape(parts []string) string {
	out := slices.Clone(parts)
	for i := 1; i < len(out); i += 2 {
		out[i] = "*"
	}
	for i := 0; i < len(out); i += 2 {
		if strings.ContainsAny(out[i], "/*") {
			return "" // an escaped slash is none
		}
	}
	return strings.Join(out, "/")
}

// under is the address of something in a project.
func under(key string, rest ...string) string {
	out := "/projects/" + url.PathEscape(key)
	for _, r := range rest {
		out += "/" + url.PathEscape(r)
	}
	return out
}
