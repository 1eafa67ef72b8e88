package search

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"cairn/internal/observation"
	"cairn/internal/project"
	"cairn/internal/store"
	"cairn/internal/words"
)

// FindArgs are the arguments of Find.
type FindArgs struct {
	SearchArgs
	Asker string // the calling session, whose rows come last; "" for none
	Each  bool   // do not merge rows with equal texts
}

// FoundRow is one row of Find's result.
type FoundRow struct {
	Hit
	Excerpt   string            `json:"excerpt"`             // around the match, on one line of at most 160 characters
	Matched   string            `json:"matched,omitempty"`   // MatchedSome: the row or its turn contains some words of the query
	Count     int               `json:"count,omitempty"`     // number of rows with this type and text, if more than one
	Corrected map[string]string `json:"corrected,omitempty"` // words of the query that no turn contains, and their replacements
}

const (
	selectFoundRow = `SELECT o.id, o.timestamp, o.obs_type, substr(o.content, 1, 120), o.file_path, s.id, p.id, o.is_pinned, o.content
FROM observation_rows o
JOIN sessions s ON s.key = o.session_key
JOIN projects p ON p.key = o.project_key
WHERE o.id = ?`

	// foldDepth is the maximum number of matches that Find reads to fill a page with different
	// texts.
	foldDepth = 2000
)

// Find returns the rows that match a query, in two tiers (amendments §A.1). Tier 1 has the rows of
// Search, in its order. In a query of words alone, stop words do not count. Tier 2 follows if tier
// 1 has fewer rows than requested. It has rows of the turns that contain the most and the rarest
// of the words, in the order of RecallRows, at most 100. These rows have Matched set to
// MatchedSome. If the query has operators, quotes or *, tier 2 has only the rows that printed a
// line of it. Pasted lines often contain such characters.
//
// Rows with equal types and texts are merged into the first of them, with a count. Rows of the
// calling session come after all others. Errors are those of Search.
func Find(ctx context.Context, svc *observation.Service, a FindArgs) (rows []FoundRow, err error) {
	if err := checkSearch(a.SearchArgs); err != nil {
		return nil, err
	}
	f := finding{args: a, rows: []FoundRow{}, limit: min(max(a.Limit, 1), 100), offset: min(max(a.Offset, 0), 1<<30), asked: a.Query, finder: words.FinderOf(a.Query), texts: map[string]int{}, seen: map[int64]bool{}}
	f.need = f.offset + f.limit
	plain := words.IsPlain(a.Query)
	if plain {
		f.args.Query = strings.Join(words.PlainWords(a.Query), " ")
	}
	if f.query, err = observation.ParseQuery(f.args.Query); err != nil {
		return nil, err
	}
	err = svc.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		key, ok, err := observation.ScopeKey(ctx, tx, a.Scope)
		if err != nil || !ok {
			return err
		}
		return f.exact(ctx, tx, key)
	})
	if err == nil && len(f.rows) < f.need {
		err = f.some(ctx, svc, plain)
	}
	rows = append(f.rows, f.own...)
	return rows[min(f.offset, len(rows)):min(f.need, len(rows))], err
}

// checkSearch returns an error if the arguments of a search are invalid.
func checkSearch(a SearchArgs) error {
	if _, err := observation.ParseQuery(a.Query); err != nil {
		return err
	}
	return checkOrder(a)
}

// finding is the state of one call of Find.
type finding struct {
	args                FindArgs
	asked               string // the query as given
	query               string // the query in FTS5's syntax
	finder              *words.Finder
	need, limit, offset int
	rows, own           []FoundRow     // rows of other sessions, and of the calling session
	seen                map[int64]bool // rows of tier 1, merged ones included
	texts               map[string]int // by type and text, the index in rows or own
}

// exact finds the rows of tier 1.
func (f *finding) exact(ctx context.Context, tx *store.Tx, key int64) error {
	done := 0
	for n := f.need + 20; ; n *= 8 {
		best, err := matchesInOrder(ctx, tx, f.query, key, f.args.SearchArgs, min(n, foldDepth))
		if err != nil {
			return err
		}
		for ; done < len(best) && len(f.rows) < f.need; done++ {
			h, content, err := readFound(ctx, tx, best[done].id)
			if err != nil {
				return err
			}
			f.seen[h.ID] = true
			f.add(FoundRow{Hit: h, Excerpt: f.finder.Excerpt(content, maxExcerpt).Text}, content)
		}
		if len(f.rows) >= f.need || len(best) < n || n >= foldDepth {
			return nil
		}
	}
}

// readFound returns a row and its text.
func readFound(ctx context.Context, tx *store.Tx, id int64) (h Hit, content string, err error) {
	err = tx.Get(ctx, []any{&h.ID, &h.Timestamp, &h.ObsType, &h.ContentPreview, &h.FilePath, &h.SessionID, &h.Project, &h.IsPinned, &content}, selectFoundRow, id)
	return h, content, err
}

// add appends a row to the result, or counts it if its text is there already.
func (f *finding) add(row FoundRow, text string) {
	list := &f.rows
	if row.SessionID == f.args.Asker {
		list = &f.own
	}
	key := row.ObsType + "\x00" + text
	if row.SessionID == f.args.Asker {
		key += "\x00own"
	}
	if at, known := f.texts[key]; known && !f.args.Each {
		(*list)[at].Count = max((*list)[at].Count, 1) + 1
		return
	}
	f.texts[key] = len(*list)
	*list = append(*list, row)
}

// some finds the rows of tier 2.
func (f *finding) some(ctx context.Context, svc *observation.Service, plain bool) error {
	found, err := RecallRows(ctx, svc, RecallArgs{
		Query: f.asked, Scope: f.args.Scope, ObsType: f.args.ObsType, Before: f.args.Before, After: f.args.After,
		Limit: f.need, Session: f.args.Asker,
	})
	if err != nil {
		return err
	}
	for _, item := range found.Rows {
		if len(f.rows) >= f.need {
			break
		}
		if f.seen[item.ID] || !plain && item.Score < pastedScore {
			continue
		}
		row := FoundRow{Hit: item.Hit, Excerpt: item.Excerpt, Matched: MatchedSome}
		if len(found.Corrected) > 0 {
			row.Corrected = found.Corrected
		}
		f.add(row, item.Excerpt)
	}
	return nil
}

// DescribeSessions describes sessions like Recall, in the order of their ids, without items and
// score. When is the start of the session. Unknown sessions and sessions without rows are left
// out.
func DescribeSessions(ctx context.Context, svc *observation.Service, ids []string) (list []RecalledSession, err error) {
	err = svc.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		r := recalling{ctx: ctx, tx: tx, args: &RecallArgs{}}
		for _, id := range ids {
			s, ok, err := project.FindSession(ctx, tx, id)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			told, err := r.describeSession(&foundSession{key: s.Key, at: s.StartedAt}, 0)
			if errors.Is(err, sql.ErrNoRows) { // it has no rows
				continue
			}
			if err != nil {
				return err
			}
			list = append(list, told)
		}
		return nil
	})
	return list, err
}
