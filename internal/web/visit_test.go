package web

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestAVisitBeginsAfterAGapAndRefreshesAreNone(t *testing.T) {
	t.Parallel()
	var jar *http.Cookie
	look := func(now int64, header string) int64 {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if jar != nil {
			r.AddCookie(jar)
		}
		if header != "" {
			r.Header.Set(refreshHeader, header)
		}
		ended, c := lastVisit(r, now)
		if c != nil {
			jar = c
		}
		return ended
	}
	const day = 24 * 3600
	for i, step := range []struct {
		now     int64
		refresh string
		want    int64
	}{
		{10 * day, "", 0}, {10*day + 600, "", 0}, {10*day + 900, "1", 0}, // the first visit
		{11 * day, "1", 0},                          // a tab that was left open
		{12 * day, "", 10*day + 600},                // the next visit
		{12*day + 100, "", 10*day + 600},            // continues it
		{12*day + 100 + visitGap, "", 10*day + 600}, // not yet a new visit
		{13 * day, "", 12*day + 100 + visitGap},     // the third visit
	} {
		if got := look(step.now, step.refresh); got != step.want {
			t.Errorf("step %d: the last visit ended at %d, want %d", i, got, step.want)
		}
	}
	for _, bad := range []string{"", ".", "x.y", "-1.5", "99999999999999999999.1", "1769000000000.1769000000000", "1"} {
		jar = &http.Cookie{Name: visitCookie, Value: bad}
		if got := look(100, ""); got != 0 && got != 1 {
			t.Errorf("a cookie of %q tells of a visit at %d", bad, got)
		}
	}
}
