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

// linkLife is how long a link that signs in can be used.
const linkLife = time.Minute

// SignInLink is the path and query of a link that signs in the browser that opens it first,
// at a server over the data directory dir, within a minute from now, and shows the page at
// next. The link holds no token.
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

// use takes a link's text once: it reports whether the link is of this token, still good and
// was not used at this server before.
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
