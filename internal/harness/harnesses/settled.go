package harnesses

import (
	"context"

	"cairn/internal/observation"
)

// Settled returns the calls in the last part of a transcript whose outcome is final (see
// observation.Event.Settled). They are imported events in the order of the file. For Cline, whose
// hooks only report calls, Settled returns all events.
//
// It reads at most the last 2 MiB, and 1 MiB at the beginning for facts about the whole file. The
// file must be a regular file with a name for a transcript of the session. For other names Settled
// returns no events. With latest it reads only the newest turn. The errors are those of reading.
func Settled(ctx context.Context, path, session string, latest bool) ([]observation.Event, error) {
	if path == "" || session == "" {
		return nil, nil
	}
	for _, h := range All() {
		if h.Settled == nil {
			continue
		}
		if events, err := h.Settled(ctx, path, session, latest); err != nil || len(events) > 0 {
			return events, err
		}
	}
	return nil, nil
}
