package httpapi

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cairn/internal/fault"
)

func TestAVisitLastsTwelveHours(t *testing.T) {
	t.Parallel()
	s, now := newSessions(""), time.Unix(1_900_000_000, 0)
	token := strings.Repeat("k", 43)
	v := s.newCookie(token, now)
	for after, want := range map[time.Duration]bool{0: true, sessionLife - time.Second: true, sessionLife: false, 1000 * time.Hour: false} {
		if s.valid(token, v, now.Add(after)) != want {
			t.Errorf("after %v: %v", after, !want)
		}
	}
	if s.valid(token+"x", v, now) || s.valid("", v, now) || s.valid("", "."+signed("", "session", ""), now) || s.valid(token, "x."+signed(token, "session", "x"), now) {
		t.Error("a visit under another token, under none, or without an end counts")
	}
	if s.newCookie(token, now) == v || strings.Contains(v, token) || formToken(token, v) == signed(token, "session", v) {
		t.Error("visits are alike, or tell too much")
	}
	logout := func(v string, now time.Time) {
		if err := s.end(v, now); err != nil {
			t.Error(err)
		}
	}
	logout(v, now)
	if s.valid(token, v, now) {
		t.Error("a visit that was ended counts")
	}
	w := s.newCookie(token, now.Add(2*sessionLife))
	if logout(w, now.Add(2*sessionLife)); len(s.ended) != 1 {
		t.Errorf("%d visits are kept that have ended by themselves", len(s.ended)-1)
	}
}

func TestLogoutHoldsForOtherServersOfTheDataDirectory(t *testing.T) {
	t.Parallel()
	dir, now := filepath.Join(t.TempDir(), "logouts"), time.Unix(1_900_000_000, 0)
	token := strings.Repeat("k", 43)
	first, second := newSessions(dir), newSessions(dir)
	v, other := first.newCookie(token, now), first.newCookie(token, now)
	if !second.valid(token, v, now) {
		t.Error("another server does not accept the session")
	}
	for range 2 {
		if err := first.end(v, now); err != nil {
			t.Fatal(err)
		}
	}
	for name, s := range map[string]*sessions{"the server": first, "another server": second, "a later server": newSessions(dir)} {
		if s.valid(token, v, now) || !s.valid(token, other, now) {
			t.Errorf("%s accepts the session after its logout, or refuses the other one", name)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 || strings.Contains(files[0].Name(), v[len("abcdef."):]) {
		t.Errorf("%v: %v", files, err)
	}
	later := now.Add(2 * sessionLife)
	w := first.newCookie(token, later)
	if err := second.end(w, later); err != nil {
		t.Fatal(err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 || files[0].Name() != logoutFile(w) {
		t.Errorf("records of expired sessions stay: %v, %v", files, err)
	}
	broken := newSessions(filepath.Join(dir, logoutFile(w), "x"))
	if broken.valid(token, other, now) {
		t.Error("a session counts although the logouts cannot be read")
	}
	if err := broken.end(other, now); !fault.HasCode(err, "logout_not_stored") {
		t.Errorf("a logout that was not stored: %v", err)
	}
}

func TestTheCookieIsSecureWhereTheConnectionIs(t *testing.T) {
	t.Parallel()
	for origin, want := range map[string]bool{"": false, "http://127.0.0.1:1": false, "https://desk.example": true} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/login", nil)
		r.Header.Set("Origin", origin)
		setSession(w, r, "v")
		if c := w.Header().Get("Set-Cookie"); strings.Contains(c, "; Secure") != want || !strings.Contains(c, "; HttpOnly") || !strings.Contains(c, "SameSite=Strict") {
			t.Errorf("from %q: %s", origin, c)
		}
	}
	if got := fileName("../\u202e..\\a\x00\"b"); got != "__.._a__b" {
		t.Errorf("%q", got)
	}
	if got := fileName("..."); got != "attachment" {
		t.Errorf("%q", got)
	}
}
