package httpapi

import (
	"crypto/hmac"
	"crypto/rand"
	"net/url"
	"strconv"
	"strings"
	"time"

	"cairn/internal/web"
)

// linkLife is the lifetime of a sign-in link.
const linkLife = time.Minute

// SignInLink returns the path and query of a sign-in link for a server of the data directory
// dir. The first browser that opens it within a minute is signed in and gets the page next.
// The link does not contain the token.
//
// Errors: those of ReadToken.
func SignInLink(dir, next string, now time.Time) (string, error) {
	token, err := ReadToken(dir)
	if err != nil {
		return "", err
	}
	link := strconv.FormatInt(now.Add(linkLife).Unix(), 36) + "." + rand.Text()
	q := url.Values{"once": {link + "." + signed(token, "link", link)}, "next": {next}}
	return web.SignInPath + "?" + q.Encode(), nil
}

// use reports whether a link belongs to this token, is still valid and was not used at this
// server before. It marks the link as used.
func (s *sessions) use(token, value string, now time.Time) bool {
	at := strings.LastIndexByte(value, '.')
	if token == "" || at < 0 || !hmac.Equal([]byte(value[at+1:]), []byte(signed(token, "link", value[:at]))) {
		return false
	}
	end, ok := endOf(value)
	if !ok || now.After(end) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for used, end := range s.used {
		if now.After(end) {
			delete(s.used, used)
		}
	}
	if _, again := s.used[value]; again {
		return false
	}
	s.used[value] = end
	return true
}
