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

// What a search ranks is the turn. The index holds each word of a turn once, without
// positions, in a form that reports how often it stands there; three rows say what is
// missing from it (stale_turns), so that a hook only notes that its session's last turn
// has grown. The turn's end, a sweep or a server brings the index up to date.
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

// staleTurn notes that a row came or is about to go.
func staleTurn(ctx context.Context, tx *store.Tx, session, at, id int64) error {
	_, err := tx.Exec(ctx, upsertStale, session, at, id)
	return err
}

// ForgetTurn takes the turn of a row that is about to go, or to change, out of the index;
// what remains of the turn gets into it again later.
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

// ForgetTurns takes all turns of a session out of the index.
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

// The bounds of one transaction that indexes turns: a hook at the end of its turn does
// little, everything else some more.
const (
	TurnRowsInHook = 200
	TurnRowsAtOnce = 2000
)

// ErrEnough ends the reading of rows.
var ErrEnough = errors.New("enough")

// IndexSession brings the turns of a session up to date. It ends behind the turn with
// which it has read most rows; done says whether it came to the end. When all is false it
// does nothing at all if the end is farther than that.
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

// turnStart is where the turn of a row begins, as far as the index knows: at the row
// itself if that is a prompt, else at its turn's first row, 0 without one.
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

// TurnReader makes the turns of a session from its rows.
type TurnReader struct {
	Session int64
	Most    int

	Turns []*turnText
	rows  int
	More  bool // there are rows behind the last turn
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

// replace puts the turns that were read in the place of those from a row on.
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

// turnRow is a row as the index of turns reads it.
type turnRow struct {
	id, at           int64
	obsType, content string
}

// turnText collects the words of a turn.
type turnText struct {
	Id, at int64
	counts map[string]int
	length int

	printed map[string]bool // words of what tools printed
}

// add takes the words of a row and of what it printed.
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

// maxPrintedWords is how many different words that tools printed a turn has at most.
const maxPrintedWords = 4000

// PrintedMark stands before a word that a tool printed and that the turn has in no other
// place.
const PrintedMark = "\uE000"

// OftenMarks are the marks that a word has at its end in the index if it stands in a turn
// so often, beside its entry without one.
func OftenMarks() [3]oftenMark {
	return [...]oftenMark{{2, "\uE001", 2.5}, {4, "\uE002", 5}, {8, "\uE003", 11}}
}

type oftenMark struct {
	least int     // how often it stands there at least
	Mark  string  // one private character
	About float64 // how often it is taken to stand there
}

// Words is the turn as the index holds it: each word once, sorted.
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

// IndexTurns brings the index of turns up to date, the newest sessions first, until it
// has read limit rows, and returns how many it has read; 0 when nothing is missing. Each
// transaction is short. It is safe to retry and to run in several processes. Errors are
// those of store.Write.
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

// NoteTurn notes that a row came. A prompt of an earlier time, as an import tells it, divides
// the turn in which what followed it was indexed.
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
