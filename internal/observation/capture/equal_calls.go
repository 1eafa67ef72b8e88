package capture

import (
	"context"
	"database/sql"

	"cairn/internal/observation"
	"cairn/internal/store"
)

// equalityKey of a call to a file with this key.
func (d *draft) equalityKey(pathKey string) observation.EqualityKey {
	command, ok := d.Meta["command"].(string)
	if !ok {
		command = d.Content
	}
	return observation.EqualityKeyOf(d.Type, pathKey, command, d.Content)
}

// callCounts counts the equal calls of one session: those that were stored when the
// transcript came, and those that it has told so far.
type callCounts struct {
	stored, read map[observation.EqualityKey]int
}

// sessionCounts are those of the sessions of one transcript, by id. Only rows from
// since on are counted, for of the transcript's calls no earlier one is told.
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

// callOrdinal says of a call how many equal ones were stored before its transcript
// was read, and the how manieth it is in there; zero where ids decide.
type callOrdinal struct{ stored, nth int }

// count takes a call into the tally of its session.
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

// isEqual reports whether a call whose id no row has is stored anyway (see
// Match), or is a read or search to be dropped for an equal one near it.
func (w *writing) isEqual(ctx context.Context, tx *store.Tx, d draft, n callOrdinal) (found bool, err error) {
	known := n.nth <= n.stored
	switch {
	case !observation.IsRepeatable(d.Type, d.Failed) || w.window == 0:
		found = known
	case w.event.Match == observation.MatchText: // when it was read nobody knows: once is enough
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

// sameWords finds the prompt or message that an event of a transcript repeats
// whose harness tells neither hooks' ids nor, it may be, times: one that no line
// of a transcript has claimed yet, with the same words, the nearest in time. Of a
// message, hooks may tell the turn's earlier words as well.
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
