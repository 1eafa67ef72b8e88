package recall

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"cairn/internal/fault"
	"cairn/internal/observation"
	observations "cairn/internal/observation/search"
	"cairn/internal/words"
)

// sessions finds matching rows, grouped by session.
func (r *search) sessions(ctx context.Context) (out Answer, err error) {
	out = Answer{Query: neutralLine(r.args.Query, maxQuery), Results: []Group{}}
	if !r.plain {
		if err := r.exact(ctx, &out); fault.KindOf(err) != fault.Invalid {
			return out, err
		}
		r.asPlain("This is no query with operators, so it was searched for as plain words.")
	}
	out.Note = r.note
	if len(words.Identifiers(r.args.Query+" "+r.args.Words)) == 0 {
		_, err := observations.Search(ctx, r.Observations, observations.SearchArgs{Query: r.args.Query, Limit: 1})
		return out, err
	}
	r.args.Progress("searching " + PartObservations)
	q := observations.RecallArgs{
		Query: r.args.Query, Words: r.args.Words, Scope: observation.Scope{Project: r.args.Project},
		Limit: min(3*r.args.Limit, maxResults), Items: maxItems, Session: r.args.Asker, Similar: min(r.args.Limit, maxSimilar),
	}
	found, err := observations.Recall(ctx, r.Observations, q)
	if err == nil && found.Matched != observations.MatchedWords && q.Session != "" {
		q.Session = ""
		var own observations.Recalled
		if own, err = observations.Recall(ctx, r.Observations, q); own.Matched == observations.MatchedWords {
			found = own
		}
	}
	if err != nil {
		return out, err
	}
	r.correct(found.Corrected)
	if found.Period != nil {
		out.Range = rangeText(found.Period)
	}
	groups := r.groupsOf(observations.WithSimilar(r.nearFirst(found.Sessions), found.Similar, r.args.Limit))
	if found.Matched == observations.MatchedNewest {
		out.Newest = groups
	} else {
		out.Results = groups
	}
	return out, nil
}

// asPlain turns the question into one in plain words.
func (r *search) asPlain(note string) {
	var plain []string
	for _, id := range words.Identifiers(r.args.Query) {
		plain = append(plain, id.Whole)
	}
	r.plain, r.note, r.asked, r.keys = true, note, nil, nil
	r.ask(r.args.Words)
	r.ask(strings.Join(plain, " "))
	r.finder = words.FinderOf(r.asked...)
}

// exact finds the rows that match a query with operators, by session. Sessions that
// printed a line of the query come first, because a pasted line often contains a quote or
// an asterisk.
func (r *search) exact(ctx context.Context, out *Answer) error {
	sessions, err := r.printed(ctx)
	if err != nil {
		return err
	}
	hits, err := observations.Find(ctx, r.Observations, observations.FindArgs{SearchArgs: observations.SearchArgs{
		Query: r.args.Query, Scope: observation.Scope{Project: r.args.Project}, Limit: maxRows,
	}})
	if err != nil {
		return err
	}
	var ids []string
	rows := map[string][]observations.RecalledItem{}
	for _, h := range hits {
		if len(rows[h.SessionID]) == 0 {
			ids = append(ids, h.SessionID)
		}
		if len(rows[h.SessionID]) < maxItems {
			rows[h.SessionID] = append(rows[h.SessionID], observations.RecalledItem{Hit: h.Hit, Excerpt: h.Excerpt, Matched: MatchedAll})
		}
	}
	if i := slices.Index(ids, r.args.Asker); i >= 0 && len(ids) > 1 {
		ids = slices.Delete(ids, i, i+1)
	}
	for _, s := range sessions {
		ids = slices.DeleteFunc(ids, func(id string) bool { return id == s.SessionID })
	}
	found, err := observations.DescribeSessions(ctx, r.Observations, ids[:min(len(ids), r.args.Limit-len(sessions))])
	for i := range found {
		found[i].Items = rows[found[i].SessionID]
	}
	out.Results = r.groupsOf(append(sessions, found...))
	return err
}

// printed returns the sessions that printed a line of the query.
func (r *search) printed(ctx context.Context) ([]observations.RecalledSession, error) {
	found, err := observations.Recall(ctx, r.Observations, observations.RecallArgs{
		Query: r.args.Query, Scope: observation.Scope{Project: r.args.Project}, Limit: r.args.Limit, Items: maxItems, Session: r.args.Asker,
	})
	return slices.DeleteFunc(found.Sessions, func(s observations.RecalledSession) bool { return !s.Printed }), err
}

// correct makes the other parts also search for the words that replaced unknown ones.
func (r *search) correct(corrected map[string]string) {
	if len(corrected) == 0 {
		return
	}
	if r.corrected == nil {
		r.corrected = map[string]string{}
	}
	maps.Copy(r.corrected, corrected)
	for _, text := range slices.Clone(r.asked) {
		var changed []string
		for _, t := range words.Ask(text).Terms {
			changed = append(changed, cmp.Or(corrected[t.Word], t.Word))
		}
		r.ask(strings.Join(changed, " "))
	}
	r.finder = words.FinderOf(r.asked...)
}

// nearFirst prefers sessions of the project in which the question is asked, and keeps at
// most Limit of them. A rise of the scores in the list ends a group of sessions that come
// first for another reason, such as a requested time or a pasted line. These stay first.
func (r *search) nearFirst(sessions []observations.RecalledSession) []observations.RecalledSession {
	score := func(s observations.RecalledSession) float64 {
		if s.Project == r.args.Near {
			return s.Score * nearWeight
		}
		return s.Score
	}
	for from, to := 0, 1; from < len(sessions); from, to = to, to+1 {
		for to < len(sessions) && sessions[to].Score <= sessions[to-1].Score {
			to++
		}
		slices.SortStableFunc(sessions[from:to], func(x, y observations.RecalledSession) int { return cmp.Compare(score(y), score(x)) })
	}
	return sessions[:min(len(sessions), r.args.Limit)]
}

// addSessions adds empty groups for sessions of hits that have no group. If a session has
// no rows, its hits count as hits without a session.
func (r *search) addSessions(ctx context.Context, out *Answer, hits []partHit) error {
	var ids []string
	for _, h := range hits {
		if h.session != "" && out.group(h.session) < 0 && !slices.Contains(ids, h.session) {
			ids = append(ids, h.session)
		}
	}
	if len(ids) > 0 {
		sessions, err := observations.DescribeSessions(ctx, r.Observations, ids)
		if err != nil {
			return err
		}
		for _, g := range r.groupsOf(sessions) {
			g.score = 0
			out.Results = append(out.Results, g)
		}
	}
	for i := range hits {
		if hits[i].session != "" && out.group(hits[i].session) < 0 {
			hits[i].session = ""
		}
	}
	return nil
}

// groupsOf returns the groups of sessions with their scores, in order.
func (r *search) groupsOf(sessions []observations.RecalledSession) (groups []Group) {
	shared := 0.0
	for _, s := range sessions[:min(len(sessions), 3)] {
		for _, item := range s.Items {
			if shared = max(shared, r.share(item.Excerpt)); item.Matched == observations.MatchedAll {
				shared = 1
			}
		}
	}
	for i, s := range sessions {
		when := time.Unix(s.When, 0).UTC()
		g := Group{
			SessionID: s.SessionID, When: &when, Project: s.Project, Agent: neutralLine(s.Harness, maxLine),
			Branch: neutralLine(s.Branch, maxLine), About: neutralLine(s.About, maxLine), Asker: s.SessionID == r.args.Asker,
			score: placeScore(i, shared), here: s.Project == r.args.Near,
		}
		for _, item := range s.Items {
			g.Items = append(g.Items, Item{
				Part: PartObservations, ID: strconv.FormatInt(item.ID, 10), Type: item.ObsType, When: time.Unix(item.Timestamp, 0).UTC(),
				Excerpt: neutralLine(item.Excerpt, excerptChars), Matched: item.Matched,
			})
		}
		groups = append(groups, g)
	}
	return groups
}
