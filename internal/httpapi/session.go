package httpapi

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"cairn/internal/fault"
	"cairn/internal/wholefile"
)

const (
	sessionCookie = "cairn-session"
	sessionLife   = 12 * time.Hour
	triesAMinute  = 10 // attempts to sign in per address
)

// sessions are the login sessions of users who signed in with the token. The cookie contains the
// session: its end, random text, and their HMAC under the token. A new token ends all sessions.
// A restarted server accepts the sessions of the previous one.
type sessions struct {
	tries *rate
	dir   string // stores the logouts for other and later servers; "" keeps them in memory
	mu    sync.Mutex
	ended map[string]time.Time // expiry of sessions after their logout
	used  map[string]time.Time // expiry of used sign-in links
}

func newSessions(dir string) *sessions {
	return &sessions{tries: newRate(triesAMinute), dir: dir, ended: map[string]time.Time{}, used: map[string]time.Time{}}
}

// signed returns the HMAC of a text for a purpose.
func signed(token, purpose, text string) string {
	m := hmac.New(sha256.New, []byte(token))
	m.Write([]byte("cairn " + purpose + "\x00" + text))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// newCookie returns the cookie value of a new login session.
func (s *sessions) newCookie(token string, now time.Time) string {
	visit := strconv.FormatInt(now.Add(sessionLife).Unix(), 36) + "." + rand.Text()
	return visit + "." + signed(token, "session", visit)
}

// valid reports whether a cookie's value belongs to a valid login session.
func (s *sessions) valid(token, value string, now time.Time) bool {
	at := strings.LastIndexByte(value, '.')
	if token == "" || at < 0 || !hmac.Equal([]byte(value[at+1:]), []byte(signed(token, "session", value[:at]))) {
		return false
	}
	end, ok := endOf(value)
	return ok && now.Before(end) && !s.loggedOut(value)
}

// loggedOut reports whether a session was ended by a logout, at this server or at another
// one of the data directory. A directory that cannot be read counts as a logout.
func (s *sessions) loggedOut(value string) bool {
	s.mu.Lock()
	_, ended := s.ended[value]
	s.mu.Unlock()
	if ended || s.dir == "" {
		return ended
	}
	_, err := os.Stat(filepath.Join(s.dir, logoutFile(value)))
	return !errors.Is(err, fs.ErrNotExist)
}

// logoutFile is the name of the file that records a logout: the session's end and a hash
// of the session.
func logoutFile(value string) string {
	end, _, _ := strings.Cut(value, ".")
	return end + "." + hashOf(value)
}

func endOf(value string) (time.Time, bool) {
	text, _, _ := strings.Cut(value, ".")
	seconds, err := strconv.ParseInt(text, 36, 64)
	return time.Unix(seconds, 0), err == nil
}

// end ends a valid session. It also records the logout in the data directory, so that it applies
// to other servers and after a restart. It removes the records of expired sessions. The error is
// that of the record; this server refuses the session anyway. It is safe to retry.
func (s *sessions) end(value string, now time.Time) error {
	s.mu.Lock()
	for v, end := range s.ended {
		if now.After(end) {
			delete(s.ended, v)
		}
	}
	s.ended[value], _ = endOf(value)
	s.mu.Unlock()
	if s.dir == "" {
		return nil
	}
	if err := wholefile.WritePrivate(filepath.Join(s.dir, logoutFile(value)), nil); err != nil {
		return fault.Wrap(err, fault.Unavailable, "logout_not_stored", "you are signed out here, but the logout could not be stored").
			WithHint("`cairn http-token --rotate` ends all sessions for certain")
	}
	return s.removeExpired(now)
}

func (s *sessions) removeExpired(now time.Time) error {
	files, err := os.ReadDir(s.dir)
	for _, f := range files {
		if end, ok := endOf(f.Name()); ok && now.After(end) {
			if gone := os.Remove(filepath.Join(s.dir, f.Name())); !errors.Is(gone, fs.ErrNotExist) {
				err = errors.Join(err, gone)
			}
		}
	}
	return err
}

// formToken returns the form token of a login session.
func formToken(token, session string) string { return signed(token, "form", session) }

// setSession sets the cookie of a login session, or removes it if value is "".
func setSession(w http.ResponseWriter, r *http.Request, value string) {
	c := &http.Cookie{
		Name: sessionCookie, Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, MaxAge: int(sessionLife.Seconds()),
		Secure: r.TLS != nil || strings.HasPrefix(strings.ToLower(r.Header.Get("Origin")), "https://"), // also behind a proxy with TLS
	}
	if value == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}
