package follow

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"cairn/internal/fault"
	"cairn/internal/store"
	"cairn/internal/store/disk"
)

// The statements of the followers' account.
const (
	selectCursor = `SELECT position, ifnull(mark, ''), error IS NOT NULL FROM followers WHERE name = ? AND lane = ?`

	upsertCursor = `INSERT INTO followers (name, lane, position, mark, updated_at) VALUES (?, ?, ?, nullif(?, ''), ?)
ON CONFLICT (name, lane) DO UPDATE SET position = max(position, excluded.position), mark = excluded.mark,
updated_at = excluded.updated_at, error = NULL, attempts = 0, since = NULL, next_try = NULL`

	upsertFailure = `INSERT INTO followers (name, lane, position, updated_at, error, attempts, since, next_try) VALUES (?1, ?2, 0, ?4, ?3, 1, ?4, ?5)
ON CONFLICT (name, lane) DO UPDATE SET error = excluded.error, attempts = attempts + 1, since = ifnull(since, excluded.since), next_try = excluded.next_try`

	clearFailure = `UPDATE followers SET error = NULL, attempts = 0, since = NULL, next_try = NULL WHERE name = ? AND lane = ? AND error IS NOT NULL`

	selectAttempts = `SELECT attempts FROM followers WHERE name = ? AND lane = ?`

	// A row of a lane without a stored cursor exists only while the lane fails.
	dropFailing  = `DELETE FROM followers WHERE name = ?1 AND lane = ?2 AND position = 0 AND mark IS NULL`
	dropLanes    = `DELETE FROM followers WHERE name = ?1 AND lane IN (SELECT value FROM json_each(?2))`
	dropAsidesIn = `DELETE FROM set_aside WHERE follower = ?1 AND lane IN (SELECT value FROM json_each(?2))`

	selectFollowers = `SELECT name, lane, position, updated_at, ifnull(error, ''), attempts, ifnull(since, 0), ifnull(next_try, 0) FROM followers ORDER BY name, lane`
	selectFirstTime = `SELECT at FROM changes WHERE seq > ? ORDER BY seq LIMIT 1`

	insertAside   = `INSERT INTO set_aside (follower, seq, lane, error, detail, attempts, since, next_try) VALUES (?, ?, ?, ?, nullif(?, ''), ?, ?, ?)`
	updateAside   = `UPDATE set_aside SET error = ?, detail = nullif(?, ''), attempts = ?, next_try = ? WHERE follower = ? AND seq = ?`
	selectAttempt = `SELECT attempts FROM set_aside WHERE follower = ? AND seq = ?`
	deleteAside   = `DELETE FROM set_aside WHERE follower = ? AND seq = ?`

	selectAsides      = `SELECT follower, seq, lane, error, attempts, since, ifnull(next_try, 0) FROM set_aside `
	selectAside       = selectAsides + `ORDER BY follower, seq`
	selectAsideDue    = selectAsides + `WHERE follower = ? AND next_try <= ? ORDER BY seq LIMIT 500`
	selectAsideIn     = selectAsides + `WHERE follower = ? AND lane = ? ORDER BY seq`
	selectLanesDue    = `SELECT DISTINCT lane FROM set_aside WHERE follower = ? AND next_try <= ?`
	makeAsideDue      = `UPDATE set_aside SET next_try = 0 WHERE ?1 IN ('', follower) AND next_try IS NOT NULL`
	makeLaneDue       = `UPDATE followers SET next_try = 0 WHERE ?1 IN ('', name) AND error IS NOT NULL AND next_try IS NOT NULL`
	selectLanesWanted = `SELECT lane FROM followers WHERE name = ? AND next_try = 0 AND error IS NOT NULL`
	existsFollower    = `SELECT EXISTS (SELECT 1 FROM followers WHERE name = ?1) OR EXISTS (SELECT 1 FROM set_aside WHERE follower = ?1)`

	dropOtherLanes  = `DELETE FROM followers WHERE name = ?1 AND lane NOT IN (SELECT value FROM json_each(?2))`
	dropOtherAsides = `DELETE FROM set_aside WHERE follower = ?1 AND lane NOT IN (SELECT value FROM json_each(?2))`

	dropLane  = `DELETE FROM followers WHERE name = ?1 AND lane = ?3 AND EXISTS (SELECT 1 FROM followers WHERE name = ?1 AND lane = ?2)`
	moveLane  = `UPDATE followers SET lane = ?3 WHERE name = ?1 AND lane = ?2`
	moveAside = `UPDATE set_aside SET lane = ?3 WHERE follower = ?1 AND lane = ?2`
)

// Cursor is the position of a follower, or of one of its lanes.
type Cursor struct {
	Position int64  // seq of the last change that was handled
	Mark     string // further state of the follower, such as a commit; "" for none

	failing bool // the last attempt failed
}

// Cursor returns the cursor of a lane; lane "" is a follower without lanes. If none was ever
// stored, ok is false and the cursor is zero.
func CursorOf(ctx context.Context, tx *store.Tx, follower, lane string) (c Cursor, ok bool, err error) {
	err = tx.Get(ctx, []any{&c.Position, &c.Mark, &c.failing}, selectCursor, follower, lane)
	if errors.Is(err, sql.ErrNoRows) {
		return Cursor{}, false, nil
	}
	return c, err == nil, err
}

// Advance stores the cursor of a lane and ends its failing state. The position never
// decreases; the mark is always replaced. It is idempotent.
func Advance(ctx context.Context, tx *store.Tx, follower, lane string, c Cursor) error {
	_, err := tx.Exec(ctx, upsertCursor, follower, lane, c.Position, c.Mark, tx.Now().UnixNano())
	return err
}

// MoveLane moves the account of one lane to another lane, and replaces the account there. If
// there is no account to move, it does nothing. It is idempotent.
func MoveLane(ctx context.Context, tx *store.Tx, follower, from, into string) error {
	for _, move := range [...]string{dropLane, moveLane, moveAside} {
		if _, err := tx.Exec(ctx, move, follower, from, into); err != nil {
			return err
		}
	}
	return nil
}

// KeepLanes deletes all lanes of a follower except the given ones, with their set-aside
// changes. It is idempotent.
func KeepLanes(ctx context.Context, tx *store.Tx, follower string, lanes []string) error {
	return eachOf(ctx, tx, follower, lanes, dropOtherLanes, dropOtherAsides)
}

// failed stores a failure of a lane, which is retried after delay.
func failed(ctx context.Context, tx *store.Tx, follower, lane string, why error, delay time.Duration) error {
	return Fail(ctx, tx, follower, lane, why, tx.Now().Add(delay))
}

// Fail stores another failure of a lane and the time of its next attempt. The zero time means
// that it waits for the user. Advance and Recover end the failing state.
func Fail(ctx context.Context, tx *store.Tx, follower, lane string, why error, next time.Time) error {
	_, err := tx.Exec(ctx, upsertFailure, follower, lane, reasonOf(why), tx.Now().UnixNano(), timeOrNull(next))
	return err
}

// Postpone stores another failure of a lane, which is retried after wait. If wait is 0, it is
// retried after the back-off of followers. Postpone uses the real clock.
func Postpone(ctx context.Context, tx *store.Tx, follower, lane string, why error, wait time.Duration) error {
	attempts := 0
	err := tx.Get(ctx, []any{&attempts}, selectAttempts, follower, lane)
	if ignoreNoRows(err) != nil {
		return err
	}
	if wait == 0 {
		wait = Delay(attempts + 1)
	}
	return Fail(ctx, tx, follower, lane, why, time.Now().Add(wait))
}

// Recover ends the failing state of a lane. Its cursor stays. It is idempotent.
func Recover(ctx context.Context, tx *store.Tx, follower, lane string) error {
	_, err := tx.Exec(ctx, dropFailing, follower, lane)
	if err == nil {
		_, err = tx.Exec(ctx, clearFailure, follower, lane)
	}
	return err
}

// DropLanes deletes lanes of a follower, with their failures and set-aside changes. It is
// idempotent.
func DropLanes(ctx context.Context, tx *store.Tx, follower string, lanes ...string) error {
	return eachOf(ctx, tx, follower, lanes, dropLanes, dropAsidesIn)
}

// eachOf runs statements for the given lanes of a follower.
func eachOf(ctx context.Context, tx *store.Tx, follower string, lanes []string, queries ...string) error {
	list, err := json.Marshal(lanes)
	for _, query := range queries {
		if err == nil {
			_, err = tx.Exec(ctx, query, follower, string(list))
		}
	}
	return err
}

// timeOrNull returns a time as Unix nanoseconds, or NULL for the zero time.
func timeOrNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixNano()
}

// reasonOf returns an error's text with its hint.
func reasonOf(err error) string {
	if err == nil {
		return "no reason was given"
	}
	if hint := fault.As(err).Hint; hint != "" && !strings.Contains(err.Error(), hint) {
		return err.Error() + " (" + hint + ")"
	}
	return err.Error()
}

// FailedChange is a change that a follower has set aside to retry it later.
type FailedChange struct {
	Follower string
	Lane     string // "" for a follower without lanes
	Seq      int64
	Error    string
	Attempts int
	Since    time.Time // when it was set aside
	NextTry  time.Time // zero if it waits for the user
}

// SetAside sets aside a change that a follower could not handle, or stores another failed
// attempt. It is retried after a minute. The delay doubles after each attempt, up to an hour.
// A final refusal is not retried.
func SetAside(ctx context.Context, tx *store.Tx, follower, lane string, r Refusal) error {
	attempts, now := 0, tx.Now()
	err := tx.Get(ctx, []any{&attempts}, selectAttempt, follower, r.Seq)
	again := err == nil
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	var next any
	if !r.Final {
		next = now.Add(asideBackoff.Delay(attempts + 1)).UnixNano()
	}
	if again {
		_, err = tx.Exec(ctx, updateAside, reasonOf(r.Err), r.Detail, attempts+1, next, follower, r.Seq)
		return err
	}
	_, err = tx.Exec(ctx, insertAside, follower, r.Seq, lane, reasonOf(r.Err), r.Detail, 1, now.UnixNano(), next)
	return err
}

// Settle deletes the record that a change was set aside. It is idempotent.
func Settle(ctx context.Context, tx *store.Tx, follower string, seq int64) error {
	_, err := tx.Exec(ctx, deleteAside, follower, seq)
	return err
}

// AsideIn lists the set-aside changes of a lane, by seq; nil if there are none.
func AsideIn(ctx context.Context, tx *store.Tx, follower, lane string) ([]FailedChange, error) {
	return asides(ctx, tx, selectAsideIn, follower, lane)
}

func asides(ctx context.Context, tx *store.Tx, query string, args ...any) (out []FailedChange, err error) {
	err = tx.Each(ctx, func(r *sql.Rows) error {
		var a FailedChange
		var since, next int64
		err := r.Scan(&a.Follower, &a.Seq, &a.Lane, &a.Error, &a.Attempts, &since, &next)
		if a.Since = time.Unix(0, since); next != 0 {
			a.NextTry = time.Unix(0, next)
		}
		out = append(out, a)
		return err
	}, query, args...)
	return out, err
}

// FailedChanges lists all set-aside changes, by follower and seq; empty if there are none.
func FailedChanges(ctx context.Context, s *store.Store) (out []FailedChange, err error) {
	err = s.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		out, err = asides(ctx, tx, selectAside)
		return err
	})
	return out, err
}

// due lists up to 500 set-aside changes of a follower that are due.
func due(ctx context.Context, s *store.Store, follower string) (out []FailedChange, err error) {
	err = s.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		out, err = asides(ctx, tx, selectAsideDue, follower, tx.Now().UnixNano())
		return err
	})
	return out, err
}

// changeAt returns the change with a seq; ok is false if it is not in the log.
func changeAt(ctx context.Context, s *store.Store, seq int64) (c store.Change, ok bool, err error) {
	err = s.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		found, err := tx.Changes(ctx, seq-1, 1)
		if ok = len(found) > 0 && found[0].Seq == seq; ok {
			c = found[0]
		}
		return err
	})
	return c, ok, err
}

// Retry makes the changes and failing lanes of a follower due immediately, or those of all
// followers for "". It excludes those that wait for the user. It returns their numbers. A
// running server retries them within a minute. It is idempotent. Errors: NotFound for a
// follower that has never run.
func Retry(ctx context.Context, s *store.Store, follower string) (changes, lanes int64, err error) {
	err = s.Write(ctx, store.Normal, func(ctx context.Context, tx *store.Tx) error {
		known := true
		if follower != "" {
			if err := tx.Get(ctx, []any{&known}, existsFollower, follower); err != nil {
				return err
			}
		}
		if !known {
			return fault.Newf(fault.NotFound, "not_found", "no follower named %q has ever run on this store", follower).WithHint("`cairn status` lists the followers")
		}
		for query, n := range map[string]*int64{makeAsideDue: &changes, makeLaneDue: &lanes} {
			done, err := tx.Exec(ctx, query, follower)
			if err == nil {
				*n, err = done.RowsAffected()
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	s.Wake()
	return changes, lanes, err
}

// Lag returns the number of changes that a follower without lanes has not read. If it has
// never run, these are all changes. It counts positions, including gaps.
func Lag(ctx context.Context, s *store.Store, follower string) (lag int64, err error) {
	err = s.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		head, err := tx.Head(ctx)
		if err != nil {
			return err
		}
		c, _, err := CursorOf(ctx, tx, follower, "")
		lag = head - c.Position
		return err
	})
	return lag, err
}

// Progress is the state of a follower, or of one of its lanes.
type Progress struct {
	Follower string
	Lane     string
	Live     bool  // a live follower of this process
	Position int64 // seq of the last handled change; 0 for a live follower
	Behind   int64 // positions up to the log's end; 0 for a lane, whose follower has the number
	Oldest   int64 // Unix nanoseconds of the first change after Position, 0 if there is none; 0 for a lane
	Updated  int64 // Unix nanoseconds of the last step, 0 if unknown

	Error    string // error of the last attempt, "" after a success
	Attempts int    // failed attempts since the last success
	Since    int64  // Unix nanoseconds of the first failed attempt, 0 if there is none
	NextTry  int64  // Unix nanoseconds, 0 if it does not fail
}

// Followers returns the state of all followers that have ever run on the store, and of this
// process's live followers. They are sorted by name and lane. The result is empty if no
// follower has run.
func Followers(ctx context.Context, s *store.Store) (out []Progress, err error) {
	err = s.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		out = nil
		head, err := tx.Head(ctx)
		if err != nil {
			return err
		}
		err = tx.Each(ctx, func(r *sql.Rows) error {
			var p Progress
			err := r.Scan(&p.Follower, &p.Lane, &p.Position, &p.Updated, &p.Error, &p.Attempts, &p.Since, &p.NextTry)
			out = append(out, p)
			return err
		}, selectFollowers)
		for i := range out {
			if p := &out[i]; err == nil && p.Lane == "" && p.Position < head {
				p.Behind = head - p.Position
				if err = tx.Get(ctx, []any{&p.Oldest}, selectFirstTime, p.Position); errors.Is(err, sql.ErrNoRows) {
					err = nil
				}
			}
		}
		return err
	})
	out = append(out, live(s)...)
	slices.SortStableFunc(out, func(a, b Progress) int {
		return cmp.Or(cmp.Compare(a.Follower, b.Follower), cmp.Compare(a.Lane, b.Lane))
	})
	return out, err
}

// IsFollowed reports whether a process runs a follower now. Then it holds the follower's
// lease, or the lanes are leased and a process that may hold such leases is alive. It does not
// create a file.
func IsFollowed(ctx context.Context, s *store.Store, name string) bool {
	if disk.Exists(lease(s, name).Path()) {
		if held, err := WithLease(s, name, func() error { return nil }); err == nil && !held {
			return true
		}
	}
	return hasLeases(ctx, s, name)
}

// live returns one row for each live follower of this process: of those with the same name,
// the one with the most failures.
func live(s *store.Store) []Progress {
	byName := map[string]Progress{}
	for _, about := range s.Listeners() {
		f, ok := about.(*following)
		if !ok || !f.Live {
			continue
		}
		p := f.report()
		if old, known := byName[p.Follower]; !known || p.Attempts > old.Attempts {
			byName[p.Follower] = p
		}
	}
	return slices.Collect(maps.Values(byName))
}

const selectBehind = `SELECT name, ?1 - position FROM followers
WHERE position < ?1 AND (lane = '' OR lane IN (SELECT value FROM json_each(?2))) ORDER BY name, lane`

// LaggingFollower is a follower that has not reached a change yet.
type LaggingFollower struct {
	Follower string `json:"follower"`
	Changes  int64  `json:"changes"` // number of positions to the change
}

// LaggingFollowers returns the followers that have not reached the change with this seq,
// ordered by name, or none. Of followers with lanes it returns only the given lanes.
func LaggingFollowers(ctx context.Context, s *store.Store, seq int64, lanes ...string) (list []LaggingFollower, err error) {
	of, err := json.Marshal(lanes)
	if err != nil {
		return nil, err
	}
	err = s.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Each(ctx, func(r *sql.Rows) error {
			var b LaggingFollower
			err := r.Scan(&b.Follower, &b.Changes)
			list = append(list, b)
			return err
		}, selectBehind, seq, string(of))
	})
	return list, err
}
