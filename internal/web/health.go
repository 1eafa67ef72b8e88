package web

import (
	"net/http"

	"cairn/internal/followers"

	"cairn"
)

// health is how the store and what follows it do.
type health struct {
	Check     cairn.HealthCheck `json:"health"`
	Followers followers.Account `json:"followers"`
}

func (s *Site) health(r *http.Request, v Visitor, _ place) (Response, error) {
	p := &health{}
	var err error
	if p.Check, err = s.cairn.HealthCheck(r.Context()); err != nil {
		return Response{}, err
	}
	if p.Followers, err = s.cairn.Followers(r.Context()); err != nil {
		return Response{}, err
	}
	return s.show(r, v, "health", "Health", p)
}

func (p *health) live() bool { return true }
