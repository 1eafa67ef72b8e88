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

// FindArgs is a question for Find.
type FindArgs struct {
	SearchArgs
	Asker string // the session that asks, whose rows come last; "" for none
	Each  bool   // rows with equal texts are not folded into one
}

// FoundRow is a row of Find.
type FoundRow struct {
	Hit
	Excerpt   string            `json:"excerpt"`             // at most 160 characters in one line, around what matched
	Matched   string            `json:"matched,omitempty"`   // MatchedSome: the row holds some words of the query, or its turn does
	Count     int               `json:"count,omitempty"`     // how many rows of this type have this text, if more than one
	Corrected map[string]string `json:"corrected,omitempty"` // words of the query that nothing holds, and the words that replaced them
}

const (
	selectFoundRow = `SELECT o.id, o.timestamp, o.obs_type, substr(o.content, 1, 120), o.file_path, s.id, p.id, o.is_pinned, o.content
FROM observation_rows o
JOIN sessions s ON s.key = o.session_key
JOIN projects p ON p.key = o.project_key
WHERE o.id = ?`

	// foldDepth is how many matches Find reads at most to fill a page with different
	// texts.
	foldDepth = 2000
)

// Find answers a query in two tiers (amendments §A.1). Tier 1 is what Search finds, in its
// order; in a query of words alone stop words do not count. Tier 2 follows if tier 1 has
// fewer rows than asked for and the query is words alone: rows of the turns that hold the
// most and the rarest of the words, in the order of RecallRows, at most 100. These rows
// say MatchedSome. The tier 2 of a query with operators, quotes or * has only the rows that
// printed a line of it: pasted lines often hold such characters.
//
// Rows of one type with equal texts are one row with a count, the first of them. Rows of
// the session that asks come after all others. Errors are those of Search.
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

// checkSearch returns the error of a search that cannot be run.
func checkSearch(a SearchArgs) error {
	if _, err := observation.ParseQuery(a.Query); err != nil {
		return err
	}
	return checkOrder(a)
}

// finding is one run of Find.
type finding struct {
	args                FindArgs
	asked               string // the query as it was given
	query               string // in FTS5's language
	finder              *words.Finder
	need, limit, offset int
	rows, own           []FoundRow     // of other sessions, of the session that asks
	seen                map[int64]bool // rows of tier 1, folded ones included
	texts               map[string]int // type and text of the rows, and their number in rows; -1-n in own
}

// exact finds tier 1.
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

// readFound reads a row and its text.
func readFound(ctx context.Context, tx *store.Tx, id int64) (h Hit, content string, err error) {
	err = tx.Get(ctx, []any{&h.ID, &h.Timestamp, &h.ObsType, &h.ContentPreview, &h.FilePath, &h.SessionID, &h.Project, &h.IsPinned, &content}, selectFoundRow, id)
	return h, content, err
}

// add takes a row into the result, or counts it where its text is there already.
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

// some finds tier 2.
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

// DescribeSessions describes sessions in the order of their ids, as Recall does but without
// items and score; When is when the session began. Sessions without rows are left out.
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
