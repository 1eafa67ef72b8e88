package capture

import (
	"context"
	"database/sql"

	"cairn/internal/observation"
	"cairn/internal/store"
)

// equalityKey returns the equality key of a call on the file with this path key.
func (d *draft) equalityKey(pathKey string) observation.EqualityKey {
	command, ok := d.Meta["command"].(string)
	if !ok {
		command = d.Content
	}
	return observation.EqualityKeyOf(d.Type, pathKey, command, d.Content)
}

// callCounts counts the equal calls of one session: those stored before the transcript was read,
// and those read from it so far.
type callCounts struct {
	stored, read map[observation.EqualityKey]int
}

// sessionCounts contains the counts of a transcript's sessions by session id. It ignores rows
// before since, because the import skips the transcript's calls before that time.
type sessionCounts struct {
	since int64
	of    map[string]*callCounts
}

func countStored(ctx context.Context, tx *store.Tx, session, since int64) (*callCounts, error) {
	t := &callCounts{stored: map[observation.EqualityKey]int{}, read: map[observation.EqualityKey]int{}}
	err := tx.Each(ctx, func(r *sql.Rows) error {
		var obsType, path, command, content string
		if err := r.Scan(&obsType, &path, &command, &content); err != nil {
			return err
		}
		t.stored[observation.EqualityKeyOf(obsType, path, command, content)]++
		return nil
	}, selectCallsToCount, session, since)
	return t, err
}

// callOrdinal contains the number of equal calls stored before the transcript was read, and the
// call's position among the transcript's equal calls. Both are 0 where ids identify calls.
type callOrdinal struct{ stored, nth int }

// count counts a call of a transcript and returns its ordinal.
func (w *writing) count(ctx context.Context, tx *store.Tx, d draft) (n callOrdinal, err error) {
	if w.event.Match == observation.MatchID {
		return n, nil
	}
	t := w.counts.of[w.session.ID]
	if t == nil {
		if t, err = countStored(ctx, tx, w.session.Key, w.counts.since); err != nil {
			return n, err
		}
		w.counts.of[w.session.ID] = t
	}
	path, _ := w.pathKey(d).(string)
	like := d.equalityKey(path)
	t.read[like]++
	return callOrdinal{t.stored[like], t.read[like]}, nil
}

// isEqual reports whether a call without a row of its id is already stored (see Match), or is a
// read or search to be dropped because of an equal one at nearly the same time.
func (w *writing) isEqual(ctx context.Context, tx *store.Tx, d draft, n callOrdinal) (found bool, err error) {
	known := n.nth <= n.stored
	switch {
	case !observation.IsRepeatable(d.Type, d.Failed) || w.window == 0:
		found = known
	case w.event.Match == observation.MatchText: // the time of the read is unknown, so one row is enough
		known = n.stored > 0
		found = known || n.nth > 1
	case known:
		found = true
	default:
		var id int64
		id, err = observation.LookUp(ctx, tx, selectRecentTwin, w.session.Key, w.at-w.window, w.at+w.window, d.Type, w.pathKey(d), d.Content)
		found = id != 0
	}
	switch {
	case found && known:
		w.done.Known++
	case found:
		w.done.Deduped++
	}
	return found, err
}

// sameWords returns the stored prompt or message that an imported event repeats, 0 if there is
// none. It serves transcripts without the hooks' ids, and possibly without times. Candidates
// have the same words and no transcript line yet; the nearest in time wins. A stored message may
// begin with earlier text of the turn.
func (w *writing) sameWords(ctx context.Context, tx *store.Tx, d draft) (int64, error) {
	from, to := w.at-observation.PromptTwin, w.at+observation.PromptTwin
	if w.event.Match == observation.MatchText {
		from, to = 0, 1<<60
	}
	words, before := []rune(d.Content), "\n"
	switch {
	case w.event.Kind == observation.Prompt:
		before = ""
	case len(words) > observation.MessageEnd:
		words, before = words[len(words)-observation.MessageEnd:], ""
	}
	return observation.LookUp(ctx, tx, selectSameWords, w.session.Key, d.Type, from, to, d.Content,
		w.event.Kind == observation.Message, before+string(words), before+string(words), w.at)
}
