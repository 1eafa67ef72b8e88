package web

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

const (
	visitCookie   = "cairn-visit"
	visitGap      = 30 * 60         // seconds without a look at Today after which a new visit begins
	visitLife     = 400 * 24 * 3600 // seconds that a browser remembers
	maxVisit      = 30 * 24 * 3600  // seconds that "since my last visit" goes back, at most
	refreshHeader = "Cairn-Refresh" // header of requests by which a page brings itself up to date
)

// lastVisit returns when the visit before the present one ended, in Unix seconds, as this browser
// remembers it; 0 if it was never here. The cookie is to be set with the answer; it is nil for
// a request by which a page refreshes itself, which is no look of a person.
func lastVisit(r *http.Request, now int64) (ended int64, c *http.Cookie) {
	last := int64(0)
	if given, err := r.Cookie(visitCookie); err == nil {
		a, b, _ := strings.Cut(given.Value, ".")
		ended, last = pastSeconds(a, now), pastSeconds(b, now)
	}
	if r.Header.Get(refreshHeader) != "" {
		return ended, nil
	}
	if last != 0 && now-last > visitGap {
		ended = last
	}
	return ended, &http.Cookie{
		Name: visitCookie, Value: fmt.Sprintf("%d.%d", ended, now), Path: "/", MaxAge: visitLife, HttpOnly: true, SameSite: http.SameSiteStrictMode,
	}
}

// pastSeconds reads a moment of the past; 0 for anything else.
func pastSeconds(text string, now int64) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > now {
		return 0
	}
	return n
}
