package web

import (
	"context"
	"net/http"
	"time"

	"cairn/internal/observation/browse"
)

// waitingShare sets how long the counts of the navigation bar are cached, as a multiple of
// the time to count. Counting takes milliseconds in a small store, and 1–2 s for over
// 100,000 records and messages.
const waitingShare = 20

// waiting counts the items that wait for the user, by the path of the page that shows
// them.
type waiting struct {
	until  time.Time
	counts map[string]int
}

// countWaiting returns how many items wait for the user on each page of the navigation
// bar. It omits counts that cannot be read, because the page itself shows the reason.
// After a submitted form it counts again.
func (s *Site) countWaiting(r *http.Request) map[string]int {
	began := time.Now()
	if last := s.counted.Load(); last != nil && began.Before(last.until) {
		return last.counts
	}
	counts, ctx := map[string]int{}, r.Context()
	for path, find := range map[string][]func(context.Context, *today, []browse.Activity, int64) error{
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
