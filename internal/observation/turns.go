package observation

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"

	"cairn/internal/store"
	"cairn/internal/words"
)

// Search ranks turns. The index contains each word of a turn once, without positions, with marks
// for its frequency. The table stale_turns contains, for each session, where its index is out of
// date. A hook therefore only records that the last turn of its session has grown. The end of
// the turn, a sweep or a server updates the index.
const (
	upsertStale = `INSERT INTO stale_turns (session_key, since, first_row) VALUES (?, ?, ?)
ON CONFLICT (session_key) DO UPDATE SET since = min(since, excluded.since), first_row = min(first_row, excluded.first_row)
WHERE excluded.since < since OR excluded.first_row < first_row`

	selectStale        = `SELECT since, first_row FROM stale_turns WHERE session_key = ?`
	selectSomeStale    = `SELECT session_key FROM stale_turns ORDER BY first_row DESC, session_key DESC LIMIT 1`
	advanceStale       = `UPDATE stale_turns SET since = ?, first_row = ? WHERE session_key = ?`
	deleteStale        = `DELETE FROM stale_turns WHERE session_key = ?`
	MarkAllStale       = `INSERT OR REPLACE INTO stale_turns (session_key, since, first_row) SELECT key, 0, 0 FROM sessions WHERE key IN (SELECT session_key FROM observation_rows)`
	DeleteAllTurns     = `DELETE FROM turns`
	DeleteAllTurnWords = `DELETE FROM turn_words`

	selectTurnOf = `SELECT id, at FROM turns WHERE session_key = ? AND (at, id) <= (?, ?) ORDER BY at DESC, id DESC LIMIT 1`

	selectIsPrompt = `SELECT EXISTS (SELECT 1 FROM observation_rows WHERE id = ? AND session_key = ? AND timestamp = ? AND obs_type = 'user_prompt')`

	selectTurnsFrom = `SELECT id FROM turns WHERE session_key = ? AND (at, id) >= (?, ?)`
	deleteTurn      = `DELETE FROM turns WHERE id = ?`
	deleteTurnWords = `DELETE FROM turn_words WHERE rowid = ?`
	insertTurn      = `INSERT INTO turns (id, session_key, at, length) VALUES (?, ?, ?, ?)`
	InsertTurnWords = `INSERT INTO turn_words (rowid, words) VALUES (?, ?)`

	selectTurnRows = `SELECT id, timestamp, obs_type, content
FROM observation_rows WHERE session_key = ? AND (timestamp, id) >= (?, ?) ORDER BY timestamp, id`
)

// staleTurn records that the index of a session is out of date from a row on.
func staleTurn(ctx context.Context, tx *store.Tx, session, at, id int64) error {
	_, err := tx.Exec(ctx, upsertStale, session, at, id)
	return err
}

// ForgetTurn removes the turn of a deleted or changed row from the index; it may be called
// before the change. A later update indexes the rest of the turn again.
func ForgetTurn(ctx context.Context, tx *store.Tx, session, at, id int64) error {
	var turn, begins int64
	err := tx.Get(ctx, []any{&turn, &begins}, selectTurnOf, session, at, id)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if err == nil {
		if err := dropTurn(ctx, tx, turn); err != nil {
			return err
		}
		at, id = min(at, begins), min(id, turn)
	}
	return staleTurn(ctx, tx, session, at, id)
}

// ForgetTurns removes all turns of a session from the index.
func ForgetTurns(ctx context.Context, tx *store.Tx, session int64) error {
	r := TurnReader{Session: session}
	return r.replace(ctx, tx, 0, 0)
}

func dropTurn(ctx context.Context, tx *store.Tx, turn int64) error {
	_, err := tx.Exec(ctx, deleteTurnWords, turn)
	if err == nil {
		_, err = tx.Exec(ctx, deleteTurn, turn)
	}
	return err
}

// The limits of one transaction that indexes turns. A hook at the end of its turn does less than
// other callers.
const (
	TurnRowsInHook = 200
	TurnRowsAtOnce = 2000
)

// ErrEnough stops the reading of rows.
var ErrEnough = errors.New("enough")

// IndexSession updates the index of a session's turns. It stops after the turn that reaches most
// rows; rows counts those read, done reports whether the index is up to date. If all is false
// and one call cannot index everything, it changes nothing.
func IndexSession(ctx context.Context, tx *store.Tx, session int64, most int, all bool) (rows int, done bool, err error) {
	var at, id int64
	err = tx.Get(ctx, []any{&at, &id}, selectStale, session)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, true, nil
	}
	if err != nil {
		return 0, false, err
	}
	if at, id, err = turnStart(ctx, tx, session, at, id); err != nil {
		return 0, false, err
	}
	r := TurnReader{Session: session, Most: most}
	err = r.Read(ctx, tx, at, id)
	if err != nil || r.More && !all {
		return r.rows, false, err
	}
	return r.rows, !r.More, r.replace(ctx, tx, at, id)
}

// turnStart returns the time and id at which the turn of a row begins, according to the index.
// If the row is a prompt, that is the row itself, else the first row of its turn. It returns
// zeros if the index has no such turn.
func turnStart(ctx context.Context, tx *store.Tx, session, at, id int64) (int64, int64, error) {
	var isPrompt bool
	err := tx.Get(ctx, []any{&isPrompt}, selectIsPrompt, id, session, at)
	if err != nil || isPrompt {
		return at, id, err
	}
	var turn, begins int64
	err = tx.Get(ctx, []any{&turn, &begins}, selectTurnOf, session, at, id)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, 0, nil
	}
	return begins, turn, err
}

// TurnReader builds the turns of a session from its rows.
type TurnReader struct {
	Session int64
	Most    int

	Turns []*turnText
	rows  int
	More  bool // there are rows after the last turn
	Next  [2]int64
}

func (r *TurnReader) Read(ctx context.Context, tx *store.Tx, at, id int64) error {
	err := tx.Each(ctx, func(rows *sql.Rows) error {
		var row turnRow
		if err := rows.Scan(&row.id, &row.at, &row.obsType, &row.content); err != nil {
			return err
		}
		if len(r.Turns) == 0 || row.obsType == TypePrompt {
			if r.rows >= r.Most {
				r.More, r.Next = true, [2]int64{row.at, row.id}
				return ErrEnough
			}
			r.Turns = append(r.Turns, &turnText{Id: row.id, at: row.at, counts: map[string]int{}, printed: map[string]bool{}})
		}
		r.rows++
		return r.Turns[len(r.Turns)-1].add(ctx, tx, &row)
	}, selectTurnRows, r.Session, at, id)
	if errors.Is(err, ErrEnough) {
		return nil
	}
	return err
}

// replace replaces the indexed turns from a row on by those that were read.
func (r *TurnReader) replace(ctx context.Context, tx *store.Tx, at, id int64) error {
	var old []int64
	err := tx.Each(ctx, func(rows *sql.Rows) error {
		var turn int64
		err := rows.Scan(&turn)
		old = append(old, turn)
		return err
	}, selectTurnsFrom, r.Session, at, id)
	for _, turn := range old {
		if err == nil {
			err = dropTurn(ctx, tx, turn)
		}
	}
	for _, t := range r.Turns {
		if err == nil {
			_, err = tx.Exec(ctx, insertTurn, t.Id, r.Session, t.at, t.length)
		}
		if err == nil {
			_, err = tx.Exec(ctx, InsertTurnWords, t.Id, t.Words())
		}
	}
	if err == nil && r.More {
		_, err = tx.Exec(ctx, advanceStale, r.Next[0], r.Next[1], r.Session)
	} else if err == nil {
		_, err = tx.Exec(ctx, deleteStale, r.Session)
	}
	return err
}

// turnRow is a row as read for the index of turns.
type turnRow struct {
	id, at           int64
	obsType, content string
}

// turnText collects the words of a turn.
type turnText struct {
	Id, at int64
	counts map[string]int
	length int

	printed map[string]bool // words of tool output
}

// add adds the words of a row and of its output.
func (t *turnText) add(ctx context.Context, tx *store.Tx, row *turnRow) error {
	if strings.HasPrefix(row.obsType, "session_") {
		return nil
	}
	words.EachKey(row.content, func(key string) {
		t.counts[key]++
		t.length++
	})
	if !IsAction(row.obsType) {
		return nil
	}
	digest, err := OutputOf(ctx, tx, row.id)
	words.EachKey(digest, func(key string) {
		if len(t.printed) < maxPrintedWords {
			t.printed[key] = true
		}
	})
	return err
}

// maxPrintedWords is the maximum number of different words of tool output in a turn.
const maxPrintedWords = 4000

// PrintedMark precedes a word that occurs only in the tool output of the turn.
const PrintedMark = "\uE000"

// OftenMarks returns the suffixes that mark how often a word occurs in a turn. The index
// contains marked words in addition to the word without a mark.
func OftenMarks() [3]oftenMark {
	return [...]oftenMark{{2, "\uE001", 2.5}, {4, "\uE002", 5}, {8, "\uE003", 11}}
}

type oftenMark struct {
	least int     // minimum number of occurrences
	Mark  string  // one private character
	About float64 // assumed number of occurrences
}

// Words returns the turn's index text: each word once, sorted.
func (t *turnText) Words() string {
	all := make([]string, 0, len(t.counts)+len(t.counts)/2)
	for key, n := range t.counts {
		all = append(all, key)
		for _, m := range OftenMarks() {
			if n >= m.least {
				all = append(all, key+m.Mark)
			}
		}
	}
	for key := range t.printed {
		if t.counts[key] == 0 {
			all = append(all, PrintedMark+key)
		}
	}
	slices.SortFunc(all, cmp.Compare[string])
	return strings.Join(all, " ")
}

// IndexTurns updates the index of turns, the newest sessions first, until it has read at least
// limit rows. It returns the number of rows read, 0 if the index is up to date. Each transaction
// is short. It is safe to retry and to run in several processes. Errors are those of
// store.Write.
func (svc *Service) IndexTurns(ctx context.Context, limit int) (rows int, err error) {
	if svc.Store == nil {
		return 0, nil
	}
	for rows < limit {
		var session int64
		err := svc.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			session, err = LookUp(ctx, tx, selectSomeStale)
			return err
		})
		if err != nil || session == 0 {
			return rows, err
		}
		n := 0
		err = svc.Store.Write(ctx, store.Normal, func(ctx context.Context, tx *store.Tx) (err error) {
			n, _, err = IndexSession(ctx, tx, session, TurnRowsAtOnce, true)
			return err
		})
		if err != nil {
			return rows, err
		}
		rows += max(n, 1)
	}
	return rows, nil
}

// NoteTurn records that a row was added. An import may insert a prompt before rows that are
// already indexed. That splits their turn, so NoteTurn removes it from the index.
func NoteTurn(ctx context.Context, tx *store.Tx, session, at, id int64, earlierPrompt bool) error {
	divides := earlierPrompt
	if divides {
		if err := tx.Get(ctx, []any{&divides}, selectHasLater, session, at, id); err != nil {
			return err
		}
	}
	if divides {
		return ForgetTurn(ctx, tx, session, at, id)
	}
	return staleTurn(ctx, tx, session, at, id)
}

const selectHasLater = `SELECT EXISTS (SELECT 1 FROM observation_rows WHERE session_key = ? AND (timestamp, id) > (?, ?))`
