package web

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

const (
	visitCookie   = "cairn-visit"
	visitGap      = 30 * 60         // seconds without a request for Today after which a new visit begins
	visitLife     = 400 * 24 * 3600 // seconds that the browser keeps the cookie
	maxVisit      = 30 * 24 * 3600  // maximum seconds that "since my last visit" goes back
	refreshHeader = "Cairn-Refresh" // request header of a page that refreshes itself
)

// lastVisit returns when the previous visit ended, in Unix seconds, from the browser's
// cookie. It returns 0 if this is the first visit. The response must set the cookie c. c
// is nil if a page refreshes itself, because the user did not request it.
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

// pastSeconds parses a past time in Unix seconds; 0 for any other text.
func pastSeconds(text string, now int64) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > now {
		return 0
	}
	return n
}
