package search

import (
	"cmp"
	"database/sql"
	"errors"
	"math"
	"slices"

	"cairn/internal/observation"
	"cairn/internal/oneline"
	"cairn/internal/words"
)

// rankSessions groups turns by session and ranks the sessions. Sessions with a row that printed a
// line of the question are added.
func (r *recalling) rankSessions(turns []*foundTurn) ([]*foundSession, error) {
	all, byKey := r.group(turns)
	all, err := r.addPasted(all, byKey)
	if len(all) == 0 || err != nil {
		return nil, err
	}
	if err := r.weighSessions(all); err != nil {
		return nil, err
	}
	r.order(all)
	if err := r.weighRows(r.contenders(all)); err != nil {
		return nil, err
	}
	r.order(all)
	return all, nil
}

// group groups turns by session, the sessions with the best turns first. If a session has turns in
// the question's period, only these count.
func (r *recalling) group(turns []*foundTurn) (all []*foundSession, byKey map[int64]*foundSession) {
	byKey = map[int64]*foundSession{}
	slices.SortFunc(turns, func(a, b *foundTurn) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.id, a.id))
	})
	from, to, bounded := r.bounds()
	for _, t := range turns {
		s := byKey[t.session]
		if s == nil {
			s = &foundSession{key: t.session, at: t.at}
			byKey[t.session] = s
			all = append(all, s)
		}
		if bounded && t.at >= from && t.at < to && !s.inside {
			s.inside, s.at, s.sum, s.turns = true, t.at, 0, nil
		}
		if s.inside && (t.at < from || t.at >= to) {
			continue
		}
		if n := len(s.turns); n < 3 {
			s.sum += t.score * math.Pow(secondTurn, float64(n))
		}
		s.turns = append(s.turns, t)
	}
	return all, byKey
}

// contenders returns the sessions whose rows must be scored: those that their best row can lift
// into the requested number of results. It considers the first rowSessions sessions.
func (r *recalling) contenders(all []*foundSession) []*foundSession {
	all = all[:min(len(all), r.rowSessions)]
	n := min(min(max(cmp.Or(r.args.Limit, 5), 1), 100), len(all))
	if n == 0 {
		return nil
	}
	last := all[n-1]
	for n < len(all) && all[n].pasted == last.pasted && all[n].inside == last.inside && all[n].score+r.rowShare() > last.score {
		n++
	}
	return all[:n]
}

// weighSessions scores each of the first 100 sessions as one text.
func (r *recalling) weighSessions(all []*foundSession) error {
	const most = 100
	some := all[:min(len(all), most)]
	ids := make([]int64, len(some))
	lengths := map[int64]float64{}
	counts := map[int64][]float64{}
	for i, s := range some {
		ids[i] = s.key
		counts[s.key] = make([]float64, len(r.terms))
	}
	list, err := observation.IdList(ids)
	if err != nil {
		return err
	}
	err = r.tx.Each(r.ctx, func(rows *sql.Rows) error {
		var session int64
		var length float64
		var list string
		if err := rows.Scan(&session, &length, &list); err != nil {
			return err
		}
		lengths[session] = length
		sum := counts[session]
		for _, id := range appendIDs(nil, list) {
			if t := r.found[id]; t != nil {
				for i, n := range t.counts {
					sum[i] += n
				}
			}
		}
		return nil
	}, selectSessionTurns, list)
	if err != nil {
		return err
	}
	mean := 0.0
	for _, l := range lengths {
		mean += l / float64(len(lengths))
	}
	mean = max(mean, r.length, 1)
	for _, s := range some {
		s.whole = r.score(counts[s.key], max(lengths[s.key], r.length), mean)
	}
	return nil
}

// order combines the scores of each session and sorts the sessions. Sessions with a printed line
// come first, then those with a turn in the period.
func (r *recalling) order(all []*foundSession) {
	sum, whole, row := 1e-9, 1e-9, 1e-9
	for _, s := range all {
		sum, whole = max(sum, s.sum), max(whole, s.whole)
		if s.pasted == 0 {
			row = max(row, s.row)
		}
	}
	for _, s := range all {
		s.score = s.sum/sum + sessionShare*s.whole/whole + r.rowShare()*min(s.row/row, 1) + pastedSession*s.pasted
	}
	slices.SortStableFunc(all, func(a, b *foundSession) int {
		if a.pasted != b.pasted {
			return cmp.Compare(b.pasted, a.pasted)
		}
		if a.inside != b.inside {
			return before(a.inside, b.inside)
		}
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.at, a.at))
	})
}

// before is a comparison function that sorts true before false.
func before(a, b bool) int {
	switch {
	case a && !b:
		return -1
	case b && !a:
		return 1
	}
	return 0
}

// weighRows sets the row score of sessions to the score of their best row.
func (r *recalling) weighRows(some []*foundSession) error {
	finder := r.finder()
	for _, s := range some {
		items, err := r.turnItems(s, finder)
		if err != nil {
			return err
		}
		for _, item := range items {
			s.row = max(s.row, item.Score)
		}
	}
	return nil
}

// rowShare returns the weight of a session's best row relative to its turns. It is doubled if the
// caller expects certain words: such words are close together, so a single row is stronger
// evidence.
func (r *recalling) rowShare() float64 {
	if r.args.Words != "" {
		return 2 * bestRowShare
	}
	return bestRowShare
}

// closeBytes is the span in bytes within which expected words count as close together.
const closeBytes = 200

// finder returns a finder for the words of the question.
func (r *recalling) finder() *words.Finder { return words.NewFinder(r.keys()) }

// keys returns the words of the question, without pairs, with their weights in a text.
func (r *recalling) keys() map[string]float64 {
	keys := map[string]float64{}
	for _, t := range r.terms {
		if !t.pair {
			keys[t.Key] = t.weight * max(t.rarity, 0.1)
		}
	}
	return keys
}

const (
	selectTurnItems = `SELECT o.id, o.timestamp, o.obs_type, o.content, o.file_path, s.id, p.id, o.is_pinned
FROM observation_rows o JOIN sessions s ON s.key = o.session_key JOIN projects p ON p.key = o.project_key
WHERE o.session_key = ? AND (o.timestamp, o.id) >= (?, ?) AND (o.timestamp, o.id) < (?, ?)
  AND o.obs_type NOT LIKE 'session_%'
ORDER BY o.timestamp, o.id LIMIT 400`

	selectNextTurn = `SELECT at, id FROM turns WHERE session_key = ? AND (at, id) > (?, ?) ORDER BY at, id LIMIT 1`
)

// turnItems returns the rows of a session's three best turns that contain words of the question.
// The row that printed a line of the question comes first. The result is cached in s.items.
func (r *recalling) turnItems(s *foundSession, finder *words.Finder) ([]RecalledItem, error) {
	if s.items != nil {
		return s.items, nil
	}
	s.items = []RecalledItem{}
	if s.pasted > 0 {
		if err := r.pastedItem(s, finder); err != nil {
			return nil, err
		}
	}
	for _, t := range s.turns[:min(3, len(s.turns))] {
		at, id := int64(math.MaxInt64), int64(0)
		err := r.tx.Get(r.ctx, []any{&at, &id}, selectNextTurn, s.key, t.at, t.id)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return nil, err
		}
		err = r.tx.Each(r.ctx, func(rows *sql.Rows) error {
			item, content, err := scanItem(rows)
			h := &item.Hit
			if err != nil || r.args.ObsType != "" && h.ObsType != r.args.ObsType || h.ID == s.pastedRow {
				return err
			}
			places := finder.Find(content)
			if len(places) == 0 {
				return nil
			}
			weight, keys := finder.Weigh(places)
			item.Score = weight / (1 + 0.002*float64(len(content))/10)
			if r.args.Words != "" {
				item.Score = finder.Closest(places, closeBytes)
			}
			item.telling = r.tellingAt(finder, places)
			item.content, item.Matched = content, MatchedSome
			if keys == finder.Keys() {
				item.Matched = MatchedAll
			}
			s.items = append(s.items, item)
			return nil
		}, selectTurnItems, s.key, t.at, t.id, at, id)
		if err != nil {
			return nil, err
		}
	}
	return s.items, nil
}

// scanItem reads a row of selectTurnItems and of queries with the same columns.
func scanItem(rows *sql.Rows) (item RecalledItem, content string, err error) {
	h := &item.Hit
	err = rows.Scan(&h.ID, &h.Timestamp, &h.ObsType, &content, &h.FilePath, &h.SessionID, &h.Project, &h.IsPinned)
	h.ContentPreview = oneline.Cut(content, 120)
	return item, content, err
}

func (t *askedTerm) share() float64 {
	if t.Common {
		return commonShare
	}
	return 1
}

// tellingAt returns the number of words of the question at the given places, without everyday
// words.
func (r *recalling) tellingAt(finder *words.Finder, places []words.Place) (n int) {
	seen := map[string]bool{}
	for _, p := range places {
		seen[finder.Key(p)] = true
	}
	for i := range r.terms {
		if t := &r.terms[i]; seen[t.Key] && !t.Common && !t.pair {
			n++
		}
	}
	return n
}
