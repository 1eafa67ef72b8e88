package httpapi

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	sessionCookie = "cairn-session"
	sessionLife   = 12 * time.Hour
	triesAMinute  = 10 // to sign in, of one address
)

// sessions are the visits of people who have shown the token. What a visit is lies
// in its cookie: when it ends, chance, and their HMAC under the token; so a new token
// ends all visits, and a server knows those of the one before it.
type sessions struct {
	tries *rate
	mu    sync.Mutex
	ended map[string]time.Time // by people, and when they would have ended by themselves
}

func newSessions() *sessions {
	return &sessions{tries: newRate(triesAMinute), ended: map[string]time.Time{}}
}

// signed is the HMAC of a text that has a purpose.
func signed(token, purpose, text string) string {
	m := hmac.New(sha256.New, []byte(token))
	m.Write([]byte("cairn " + purpose + "\x00" + text))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// begin makes the value of a new visit's cookie.
func (s *sessions) begin(token string, now time.Time) string {
	visit := strconv.FormatInt(now.Add(sessionLife).Unix(), 36) + "." + rand.Text()
	return visit + "." + signed(token, "session", visit)
}

// valid reports whether a cookie's value is that of a visit which goes on.
func (s *sessions) valid(token, value string, now time.Time) bool {
	at := strings.LastIndexByte(value, '.')
	if token == "" || at < 0 || !hmac.Equal([]byte(value[at+1:]), []byte(signed(token, "session", value[:at]))) {
		return false
	}
	end, ok := endOf(value)
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ended := s.ended[value]
	return ok && now.Before(end) && !ended
}

func endOf(value string) (time.Time, bool) {
	text, _, _ := strings.Cut(value, ".")
	seconds, err := strconv.ParseInt(text, 36, 64)
	return time.Unix(seconds, 0), err == nil
}

// end ends a valid visit, as far as this server is concerned.
func (s *sessions) end(value string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for v, end := range s.ended {
		if now.After(end) {
			delete(s.ended, v)
		}
	}
	s.ended[value], _ = endOf(value)
}

// formToken is what the forms of a visit carry.
func formToken(token, session string) string { return signed(token, "form", session) }

// setSession gives the browser a visit's cookie, or takes it away with "".
func setSession(w http.ResponseWriter, r *http.Request, value string) {
	c := &http.Cookie{
		Name: sessionCookie, Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, MaxAge: int(sessionLife.Seconds()),
		Secure: r.TLS != nil || strings.HasPrefix(strings.ToLower(r.Header.Get("Origin")), "https://"), // a proxy's
	}
	if value == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}
