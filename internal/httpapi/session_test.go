package httpapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestAVisitLastsTwelveHours(t *testing.T) {
	t.Parallel()
	s, now := newSessions(), time.Unix(1_900_000_000, 0)
	token := strings.Repeat("k", 43)
	v := s.begin(token, now)
	for after, want := range map[time.Duration]bool{0: true, sessionLife - time.Second: true, sessionLife: false, 1000 * time.Hour: false} {
		if s.valid(token, v, now.Add(after)) != want {
			t.Errorf("after %v: %v", after, !want)
		}
	}
	if s.valid(token+"x", v, now) || s.valid("", v, now) || s.valid("", "."+signed("", "session", ""), now) || s.valid(token, "x."+signed(token, "session", "x"), now) {
		t.Error("a visit under another token, under none, or without an end counts")
	}
	if s.begin(token, now) == v || strings.Contains(v, token) || formToken(token, v) == signed(token, "session", v) {
		t.Error("visits are alike, or tell too much")
	}
	s.end(v, now)
	if s.valid(token, v, now) {
		t.Error("a visit that was ended counts")
	}
	w := s.begin(token, now.Add(2*sessionLife))
	if s.end(w, now.Add(2*sessionLife)); len(s.ended) != 1 {
		t.Errorf("%d visits are kept that have ended by themselves", len(s.ended)-1)
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
