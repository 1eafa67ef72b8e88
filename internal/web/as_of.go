package web

import (
	"net/http"

	"cairn/internal/store"
)

// asOf is the moment whose state a page shows.
type asOf struct {
	At      string            `json:"at,omitempty"`        // a past moment as given in the URL; "" for now
	Then    int64             `json:"at_time,omitempty"`   // the same moment in Unix seconds, 0 if unknown
	Note    string            `json:"not_known,omitempty"` // what is not known about that moment; "" if everything is
	Now     string            `json:"-"`                   // URL of the same page for now
	Keep    map[string]string `json:"-"`                   // the other parameters of the URL
	Present int64             `json:"-"`                   // the current time in Unix seconds
}

// readAsOf reads the moment from the URL of a page.
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

// found stores the moment that a part resolved At to.
func (a *asOf) found(m store.Moment) {
	if a.Note = m.Note; !m.Time.IsZero() {
		a.Then = m.Time.Unix()
	}
}
