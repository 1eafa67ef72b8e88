package observation

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"cairn/internal/words"
)

// Words of the index that begin with one of some prefixes and are as long as a word may be
// that is near, or longer and begin with the word itself; each with its turns.
const selectVocabulary = `SELECT ifnull(group_concat(term || ' ' || doc, char(10)), '')
FROM json_each(?1) p CROSS JOIN turn_vocabulary v
WHERE v.term >= p.value AND v.term < p.value || char(1114111)
  AND length(v.term) >= ?2 AND (length(v.term) <= ?3 OR substr(v.term, 1, length(?4)) = ?4)
  AND unicode(substr(v.term, -1)) NOT BETWEEN 57344 AND 63743`

// The least letters of a word that is corrected, the letters of a short one, in which
// one edit is allowed, and those of a prefix; how many words of a question are corrected
// at most.
const (
	minCorrected = 4
	shortWord    = 7
	minPrefix    = 4
	maxCorrected = 6
)

// correct replaces a word that no turn holds by the nearest one that some turn holds
// and reports whether there is one: a word with one edit, two in a long word, or one
// that it begins; of equally near ones the word of most turns. The first letter is taken
// to be right. A number and an identifier are not corrected.
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
	edits int // of best; above most without one
	turns int // that hold best
}

// findNear looks for a nearer word among those with some prefixes.
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

// nearPrefixes are the beginnings of the words that are near a key and have its first two
// letters; just its first letter in other alphabets than the Latin one.
func nearPrefixes(key string) []string {
	if _, size := utf8.DecodeRuneInString(key); !isLatin(key) {
		return []string{key[:size]}
	}
	return []string{key[:2]}
}

// otherPrefixes are those of the words that are near a key of Latin letters and have
// another second letter: it was swapped with the third one, left out, added or replaced.
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

// isLatin reports whether the first four letters of a key are of the Latin alphabet,
// without accents.
func isLatin(key string) bool {
	return len(key) >= 4 && !strings.ContainsFunc(key[:4], func(r rune) bool { return r < 'a' || r > 'z' })
}

// spell gives the words that were corrected to stems the form in which the answer has
// them.
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

// maxFresh is how many rows of each word are looked at that are in no turn of the index.
const maxFresh = 300

// freshRow is a row whose turn is not in the index as it is.
type freshRow struct{ id, session, at, project, turn int64 }

// collectFresh adds the rows that no turn of the index holds yet, by the index of rows:
// what a hook has recorded is found by whoever asks after it.
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

// freshRows are those of the rows that belong to sessions that the index does not hold
// as they are.
func (r *recalling) freshRows(ids []int64, since map[int64]int64) (out []freshRow, err error) {
	list, err := idList(ids)
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

	// pastedScore puts a row that printed a line of the question before others.
	pastedScore = 1e6
	// pastedSession is what a pasted line that no other row printed counts for a session.
	pastedSession = 100
)

// readPasted reads the rows that printed a line of the question, once. A filter of rows
// leaves lines out.
func (r *recalling) readPasted() (err error) {
	if r.pasted == nil && r.args.ObsType == "" {
		r.pasted, err = r.journal.pastedLines(r.ctx, r.tx, r.args.Query, r.project)
		if r.pasted == nil {
			r.pasted = []pastedRow{}
		}
	}
	return err
}

// addPasted marks the sessions of which a row printed a line of the question, and adds
// those that hold none of its words.
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

// pastedItem is the row of a session that printed lines of the question.
func (r *recalling) pastedItem(s *foundSession, finder *words.Finder) error {
	item := RecalledItem{Matched: MatchedAll, Score: pastedScore}
	var content string
	h := &item.Hit
	err := r.tx.Get(r.ctx, []any{&h.ID, &h.Timestamp, &h.ObsType, &content, &h.FilePath, &h.SessionID, &h.Project, &h.IsPinned}, selectPastedRow, s.pastedRow)
	if err != nil {
		return err
	}
	h.ContentPreview = cutRunes(content, 120)
	printed, err := outputOf(r.ctx, r.tx, h.ID)
	e := finder.Excerpt(cmp.Or(printed, content), maxExcerpt)
	item.Excerpt, item.Marks = e.Text, e.Marks
	s.items = append(s.items, item)
	return err
}
