package web

import (
	"net/http"

	"cairn/internal/store"
)

// asOf is the moment whose state a page shows.
type asOf struct {
	At      string            `json:"at,omitempty"`        // the moment of the past as the address names it; "" for now
	Then    int64             `json:"at_time,omitempty"`   // the same in Unix seconds, 0 where it is not known
	Note    string            `json:"not_known,omitempty"` // what is not known of that time; "" for nothing
	Now     string            `json:"-"`                   // the address of the same page now
	Keep    map[string]string `json:"-"`                   // the other parameters of the address
	Present int64             `json:"-"`                   // now, in Unix seconds
}

// readAsOf reads the moment from the address of a page.
func (s *Site) readAsOf(r *http.Request) asOf {
	now, u := s.now(), *r.URL
	q := u.Query()
	for _, name := range []string{"at", "tick", "last"} {
		q.Del(name)
	}
	u.RawQuery = q.Encode()
	a := asOf{At: chosenMoment(r.URL.Query()), Now: with(&u, "at", ""), Keep: map[string]string{}, Present: now.Unix()}
	for name := range q {
		if name != "before" && name != "format" {
			a.Keep[name] = q.Get(name)
		}
	}
	return a
}

// found keeps which moment a part found for At.
func (a *asOf) found(m store.Moment) {
	if a.Note = m.Note; !m.Time.IsZero() {
		a.Then = m.Time.Unix()
	}
}
