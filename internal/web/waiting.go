package web

import (
	"context"
	"net/http"
	"time"

	"cairn/internal/observation"
)

// waitingShare is how many times as long the counts of the bar are shown as counting them took:
// milliseconds in a small store, a second or two over 100,000 records and messages.
const waitingShare = 20

// waiting is how many things wait for the person, by the path of the page that shows them.
type waiting struct {
	until  time.Time
	counts map[string]int
}

// countWaiting returns how much waits for the person on each page of the bar. What cannot be
// read is left out: the page itself says why. After a form was sent it counts again.
func (s *Site) countWaiting(r *http.Request) map[string]int {
	began := time.Now()
	if last := s.counted.Load(); last != nil && began.Before(last.until) {
		return last.counts
	}
	counts, ctx := map[string]int{}, r.Context()
	for path, find := range map[string][]func(context.Context, *today, []observation.Activity, int64) error{
		"/records": {s.openQuestions}, "/mail": {s.unacknowledged}, "/reservations": {s.overlaps}, "/memories": {s.conflicts}, "/status": {s.setAside, s.findings},
	} {
		var p today
		for _, part := range find {
			if err := part(ctx, &p, nil, s.now().Unix()); err != nil {
				p.Needs = nil
				break
			}
		}
		counts[path] = len(p.Needs)
	}
	s.counted.Store(&waiting{time.Now().Add(waitingShare * time.Since(began)), counts})
	return counts
}
