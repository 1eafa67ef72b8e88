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
)

// handler makes a page of a request; of what its address names, key is the project
// and rest the texts behind it.
type handler func(s *Site, r *http.Request, v Visitor, at place) (Answer, error)

// place is what an address names.
type place struct {
	key    string // the project
	id     string // the message or thread
	file   string // the number of the attachment
	answer handler
	post   bool // a form is sent to it
}

// Covers reports whether an escaped path is the pages' affair, be there a page or
// not.
func Covers(escaped string) bool {
	switch escaped {
	case "/", SignInPath, SignOutPath, StylePath:
		return true
	}
	return strings.HasPrefix(escaped, "/projects/")
}

// Methods are those by which the page at an escaped path may be asked for; none
// where there is no page.
func Methods(escaped string) []string {
	at, ok := find(escaped)
	switch {
	case !ok && escaped != SignInPath && escaped != SignOutPath && escaped != StylePath:
		return nil
	case escaped == SignInPath, escaped == SignOutPath, at.post:
		return []string{http.MethodGet, http.MethodHead, http.MethodPost}
	}
	return []string{http.MethodGet, http.MethodHead}
}

// find reads the address of a page behind sign-in.
func find(escaped string) (at place, ok bool) {
	if escaped == "/" {
		return place{answer: (*Site).projects}, true
	}
	rest, ok := strings.CutPrefix(escaped, "/projects/")
	if !ok {
		return at, false
	}
	parts := strings.Split(rest, "/")
	for i, p := range parts {
		var err error
		if parts[i], err = url.PathUnescape(p); err != nil || p == "" {
			return at, false
		}
	}
	at.key = parts[0]
	if len(parts) < 2 {
		return at, false
	}
	switch kind := parts[1]; {
	case kind == "mail" && len(parts) == 2:
		at.answer = (*Site).mailbox
	case kind == "overseer" && len(parts) == 2:
		at.answer, at.post = (*Site).overseer, true
	case kind == "mail" && len(parts) == 3:
		at.answer, at.id = (*Site).letter, parts[2]
	case kind == "threads" && len(parts) == 3:
		at.answer, at.id = (*Site).thread, parts[2]
	case kind == "mail" && len(parts) == 5 && parts[3] == "files":
		at.answer, at.id, at.file = (*Site).file, parts[2], parts[4]
	default:
		return at, false
	}
	return at, true
}

// under is the address of something in a project.
func under(key string, rest ...string) string {
	out := "/projects/" + url.PathEscape(key)
	for _, r := range rest {
		out += "/" + url.PathEscape(r)
	}
	return out
}
