package search

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"cairn/internal/observation"
	"cairn/internal/oneline"
	"cairn/internal/words"
)

// Words of the index that begin with one of the prefixes ?1, each with its number of turns. They
// have ?2 to ?3 characters, or more if they begin with the word ?4. Forms with a mark are left
// out.
const selectVocabulary = `SELECT ifnull(group_concat(term || ' ' || doc, char(10)), '')
FROM json_each(?1) p CROSS JOIN turn_vocabulary v
WHERE v.term >= p.value AND v.term < p.value || char(1114111)
  AND length(v.term) >= ?2 AND (length(v.term) <= ?3 OR substr(v.term, 1, length(?4)) = ?4)
  AND unicode(substr(v.term, -1)) NOT BETWEEN 57344 AND 63743`

// minCorrected is the minimum number of letters of a word that is corrected. Words of up to
// shortWord letters may differ by one edit, longer words by two. Correction is tried for at most
// maxCorrected words of a question.
const (
	minCorrected = 4
	shortWord    = 7
	maxCorrected = 6
)

// correct replaces a word that no turn contains by the nearest word in the index, and reports
// whether it found one. A near word differs by one edit, in a long word by two, or begins with the
// word. Of equally near words, it takes the one in the most turns. The first letter is assumed to
// be right. Numbers and identifiers are not corrected.
func (r *recalling) correct(t *askedTerm) (bool, error) {
	letters := utf8.RuneCountInString(t.Key)
	if t.Torn || letters < minCorrected || strings.ContainsAny(t.Key, "0123456789") || r.tries >= maxCorrected {
		return false, nil
	}
	r.tries++
	near := nearWord{key: t.Key, most: 1}
	if letters > shortWord {
		near.most = 2
	}
	near.edits = near.most + 1
	err := r.findNear(&near, nearPrefixes(t.Key))
	if err == nil && near.edits > 1 {
		err = r.findNear(&near, otherPrefixes(t.Key))
	}
	if err != nil || near.best == "" {
		return false, err
	}
	r.corrected[t.Word] = near.best
	t.Key = near.best
	return true, nil
}

// nearWord is the word that is nearest to a key so far.
type nearWord struct {
	key   string
	most  int // edits that are allowed
	best  string
	edits int // edits of best; above most if there is no best
	turns int // number of turns that contain best
}

// findNear searches the index for a nearer word with one of the given prefixes.
func (r *recalling) findNear(n *nearWord, prefixes []string) error {
	list, err := json.Marshal(prefixes)
	if err != nil || len(prefixes) == 0 {
		return err
	}
	letters := utf8.RuneCountInString(n.key)
	var found string
	if err := r.tx.Get(r.ctx, []any{&found}, selectVocabulary, string(list), letters-n.most, letters+n.most, n.key); err != nil {
		return err
	}
	for line := range strings.Lines(found) {
		word, count, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		edits := words.Edits(n.key, word, n.most)
		if edits > 1 && strings.HasPrefix(word, n.key) {
			edits = 1
		}
		if edits > n.edits || edits > n.most {
			continue
		}
		turns, err := strconv.Atoi(count)
		if err != nil {
			return err
		}
		if edits < n.edits || turns > n.turns {
			n.best, n.edits, n.turns = word, edits, turns
		}
	}
	return nil
}

// nearPrefixes returns the prefixes of words that are near a key and share its first two letters.
// In alphabets other than the Latin one, it returns only the first letter.
func nearPrefixes(key string) []string {
	if _, size := utf8.DecodeRuneInString(key); !isLatin(key) {
		return []string{key[:size]}
	}
	return []string{key[:2]}
}

// otherPrefixes returns the prefixes of words that are near a key of Latin letters and differ in
// the second letter. That letter was swapped with the third, left out, added or replaced.
func otherPrefixes(key string) (all []string) {
	if !isLatin(key) {
		return nil
	}
	all = []string{key[:1] + key[2:3] + key[1:2], key[:1] + key[2:4]}
	for c := 'a'; c <= 'z'; c++ {
		all = append(all, key[:1]+string(c)+key[1:3], key[:1]+string(c)+key[2:4])
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(p string) bool { return p[:2] == key[:2] })
}

// isLatin reports whether the first four letters of a key are Latin, without accents.
func isLatin(key string) bool {
	return len(key) >= 4 && !strings.ContainsFunc(key[:4], func(r rune) bool { return r < 'a' || r > 'z' })
}

// spell replaces corrected stems by the word forms that occur in the result.
func (r *recalling) spell(sessions []RecalledSession) {
	for typed, key := range r.corrected {
		r.corrected[typed] = spelling(key, sessions)
	}
}

func spelling(key string, sessions []RecalledSession) string {
	for _, s := range sessions {
		for _, item := range s.Items {
			for _, m := range item.Marks {
				for _, id := range words.Identifiers(item.Excerpt[m[0]:m[1]]) {
					i := slices.IndexFunc(id.Parts, func(part string) bool { return words.Key(part) == key })
					if i >= 0 {
						return strings.ToLower(id.Parts[i])
					}
				}
			}
		}
	}
	return key
}

const (
	selectStaleSessions = `SELECT session_key, since, first_row FROM stale_turns ORDER BY first_row DESC LIMIT 1000`

	selectFreshRows = `SELECT count(*), 0, ifnull(group_concat(id), '')
FROM (SELECT rowid AS id FROM observations_fts WHERE observations_fts MATCH ? AND rowid >= ? ORDER BY rowid DESC LIMIT +?)`

	selectRowsTurns = `SELECT o.id, o.session_key, o.timestamp, o.project_key,
ifnull((SELECT p.id FROM observation_rows p WHERE p.session_key = o.session_key AND (p.timestamp, p.id) <= (o.timestamp, o.id)
  AND p.obs_type = 'user_prompt' ORDER BY p.timestamp DESC, p.id DESC LIMIT 1), o.id)
FROM json_each(?) j CROSS JOIN observation_rows o ON o.id = j.value`

	selectRowTime = `SELECT timestamp FROM observation_rows WHERE id = ?`
)

// maxFresh is the number of rows outside the index of turns that are read per word.
const maxFresh = 300

// freshRow is a row whose turn is missing from the index or outdated there.
type freshRow struct{ id, session, at, project, turn int64 }

// collectFresh adds the rows that are not in an indexed turn yet, using the index of rows. A row
// that a hook has stored is therefore found immediately.
func (r *recalling) collectFresh() error {
	since := map[int64]int64{}
	first := int64(0)
	err := r.tx.Each(r.ctx, func(rows *sql.Rows) error {
		var session, at int64
		err := rows.Scan(&session, &at, &first)
		since[session] = at
		return err
	}, selectStaleSessions)
	if err != nil || len(since) == 0 {
		return err
	}
	for i := range r.terms {
		t := &r.terms[i]
		p, _, err := r.read(selectFreshRows, `"`+t.Word+`"`, first, maxFresh)
		if err != nil || len(p.ids) == 0 {
			if err != nil {
				return err
			}
			continue
		}
		rows, err := r.freshRows(p.ids, since)
		if err != nil {
			return err
		}
		held := map[int64]bool{}
		for _, row := range rows {
			f := r.turn(row.turn)
			if f.counts[i] < 1 {
				f.counts[i] = 0
			}
			f.counts[i]++
			f.session, f.project, f.length, f.known = row.session, row.project, max(f.length, r.length), true
			if f.at == 0 || row.turn == row.id {
				f.at = row.at
			}
			held[row.turn] = true
		}
		t.count += float64(len(held))
	}
	return nil
}

// freshRows returns those of the given rows that the index of turns does not contain yet.
func (r *recalling) freshRows(ids []int64, since map[int64]int64) (out []freshRow, err error) {
	list, err := observation.IdList(ids)
	if err != nil {
		return nil, err
	}
	err = r.tx.Each(r.ctx, func(rows *sql.Rows) error {
		var f freshRow
		err := rows.Scan(&f.id, &f.session, &f.at, &f.project, &f.turn)
		if at, ok := since[f.session]; ok && f.at >= at {
			out = append(out, f)
		}
		return err
	}, selectRowsTurns, list)
	return out, err
}

const (
	selectPastedRow = `SELECT o.id, o.timestamp, o.obs_type, o.content, o.file_path, s.id, p.id, o.is_pinned
FROM observation_rows o JOIN sessions s ON s.key = o.session_key JOIN projects p ON p.key = o.project_key WHERE o.id = ?`

	// pastedScore ranks a row that printed a line of the question before all others.
	pastedScore = 1e6
	// pastedSession is the weight, for a session, of a pasted line that no other row printed.
	pastedSession = 100
)

// readPasted reads the rows that printed a line of the question, once per question. It reads none
// if the question filters by row type.
func (r *recalling) readPasted() (err error) {
	if r.pasted == nil && r.args.ObsType == "" {
		r.pasted, err = pastedLines(r.ctx, r.service, r.tx, r.args.Query, r.project)
		if r.pasted == nil {
			r.pasted = []pastedRow{}
		}
	}
	return err
}

// addPasted marks the sessions that have a row that printed a line of the question. It appends
// such sessions if none of their turns was found.
func (r *recalling) addPasted(all []*foundSession, byKey map[int64]*foundSession) ([]*foundSession, error) {
	if err := r.readPasted(); err != nil {
		return nil, err
	}
	for _, row := range r.pasted {
		var at int64
		if err := r.tx.Get(r.ctx, []any{&at}, selectRowTime, row.id); err != nil {
			return nil, err
		}
		if !r.wants(&foundTurn{session: row.session, at: at, project: r.project}) {
			continue
		}
		s := byKey[row.session]
		if s == nil {
			s = &foundSession{key: row.session, at: at}
			byKey[row.session] = s
			all = append(all, s)
		}
		if row.weight > s.pasted {
			s.pasted, s.pastedRow, s.at = row.weight, row.id, at
		}
	}
	return all, nil
}

// pastedItem adds the row of a session that printed lines of the question to its items.
func (r *recalling) pastedItem(s *foundSession, finder *words.Finder) error {
	item := RecalledItem{Matched: MatchedAll, Score: pastedScore}
	var content string
	h := &item.Hit
	err := r.tx.Get(r.ctx, []any{&h.ID, &h.Timestamp, &h.ObsType, &content, &h.FilePath, &h.SessionID, &h.Project, &h.IsPinned}, selectPastedRow, s.pastedRow)
	if err != nil {
		return err
	}
	h.ContentPreview = oneline.Cut(content, 120)
	printed, err := observation.OutputOf(r.ctx, r.tx, h.ID)
	e := finder.Excerpt(cmp.Or(printed, content), maxExcerpt)
	item.Excerpt, item.Marks = e.Text, e.Marks
	s.items = append(s.items, item)
	return err
}
