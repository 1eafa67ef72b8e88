package memory

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"cairn/internal/crashpoint"
	"cairn/internal/fault"
	"cairn/internal/memory/rules"
	"cairn/internal/store"
)

// keep is how long results are kept (memories §9).
const keep = 24 * time.Hour

const (
	selectAnswer = `SELECT body_hash, status, body FROM memory_idempotency
WHERE user_id = ? AND method = ? AND path = ? AND key = ? AND expires_ns > ?`
	insertAnswer = `INSERT OR REPLACE INTO memory_idempotency (user_id, method, path, key, body_hash, status, body, expires_ns)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)`
	deleteAnswer = `DELETE FROM memory_idempotency WHERE user_id = ? AND method = ? AND path = ? AND key = ?`
	// Each stored result deletes up to two expired ones, so that no write deletes many.
	deleteAnswers = `DELETE FROM memory_idempotency WHERE expires_ns <= ? AND id IN (SELECT id FROM memory_idempotency ORDER BY id LIMIT 2)`
)

// Call is a writing call before it is checked.
type Call struct {
	Body  any    // the fields that identify the request, marshalled as JSON
	Shard string // the memory on whose shard it runs; "" for the priority lane
}

// Route is the HTTP form of a call. Calls by MCP and the command line have one, too.
type Route struct{ Method, Path string }

// Step is a writing call that is allowed and valid.
type Step[R any] struct {
	Route
	// Earlier returns the result from the row that a call with the same key created, after
	// the kept result has expired (memories §9). Nil for rows without a key.
	Earlier func(n Issued) (R, bool, error)
	// Do executes the call. It returns its errors before its first change.
	Do func(n Issued) (R, error)
}

// Issued contains a call's key, the key by which the hub identifies the call, and the hash of the
// body.
type Issued struct {
	Key, Hub string
	Hash     []byte
}

// refusal is the stored form of a refused call's error.
type refusal struct {
	Kind    fault.Kind     `json:"kind"`
	Code    string         `json:"code"`
	Message string         `json:"message"`
	Hint    string         `json:"hint"`
	Details map[string]any `json:"details"`
}

// Mutate runs a writing call as one job and one transaction, at most once per idempotency key:
// for 24 h, calls with the same key and body get the same result. prepare finds the object and
// checks the call; its errors are not kept. The errors of do are, because a failed do has changed
// nothing.
func Mutate[R any](ctx context.Context, b *Kernel, c Caller, k Call, prepare func(ctx context.Context, s *CallTx) (Step[R], error)) (out R, r WriteInfo, err error) {
	if err := c.CheckArgs(); err != nil {
		return out, r, err
	}
	r.Key = c.Key
	if r.Key == "" {
		r.Key = rules.NewID()
	}
	hash, err := rules.BodyHash(k.Body)
	if err != nil {
		return out, r, rules.Invalid("body", "a number cannot be represented")
	}
	var refused error
	job := func(ctx context.Context) error {
		stores := false
		err := b.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
			s, err := b.Enter(ctx, tx, c, true)
			if err != nil {
				return err
			}
			st, err := prepare(ctx, s)
			if err != nil {
				return err
			}
			out, r.Replayed, err = once(ctx, s, r.Key, hash, st)
			if refused = nil; keeps(err) {
				refused, err = err, nil
			}
			if stores = err == nil && refused == nil && !r.Replayed && b.Exists(); stores {
				crashpoint.Pass("before_local_commit")
			}
			return err
		})
		if err == nil && stores {
			crashpoint.Pass("after_local_commit")
		}
		return err
	}
	if k.Shard == "" {
		err = b.Jobs.RunFirst(ctx, job)
	} else {
		err = b.Jobs.Run(ctx, k.Shard, job)
	}
	return out, r, cmp.Or(err, refused)
}

// keeps reports whether an error is kept: 4xx except 401, 403, 408 and 429, and no 5xx.
func keeps(err error) bool {
	status := Status(err)
	return err != nil && status >= 400 && status < 500 && status != http.StatusTooManyRequests && fault.KindOf(err) != fault.Denied
}

// once returns the kept result, or executes the step and keeps its result.
func once[R any](ctx context.Context, s *CallTx, key string, hash []byte, st Step[R]) (out R, replayed bool, err error) {
	var before []byte
	var status int
	var body string
	err = s.Tx.Get(ctx, []any{&before, &status, &body}, selectAnswer, s.User.UserID, st.Method, st.Path, key, s.Tx.Now().UnixNano())
	switch {
	case err == nil && !bytes.Equal(before, hash):
		return out, false, Mismatch()
	case err == nil && status >= 400:
		var f refusal
		if err := json.Unmarshal([]byte(body), &f); err != nil {
			return out, false, err
		}
		return out, true, &fault.Error{Kind: f.Kind, Code: f.Code, Message: f.Message, Hint: f.Hint, Details: f.Details}
	case err == nil:
		return out, true, json.Unmarshal([]byte(body), &out)
	case !errors.Is(err, sql.ErrNoRows):
		return out, false, err
	}
	n := Issued{key, HubKey(st.Method, st.Path, key), hash}
	if st.Earlier != nil {
		if out, replayed, err = st.Earlier(n); err != nil || replayed {
			return out, replayed, err
		}
	}
	out, err = st.Do(n)
	if err != nil && !keeps(err) {
		return out, false, err
	}
	return out, false, cmp.Or(s.keepResult(ctx, st.Route, key, hash, out, err), err)
}

// Mismatch returns the error of a call whose key belongs to another call.
func Mismatch() error {
	return Conflict(CodeMismatch, "use a new key for a new call", "the idempotency key was used with another body")
}

// keepResult stores the result of a call, or the error by which it was refused.
func (s *CallTx) keepResult(ctx context.Context, k Route, key string, hash []byte, out any, refused error) error {
	if f := fault.As(refused); f != nil {
		out = refusal{f.Kind, f.Code, f.Message, f.Hint, f.Details}
	}
	text, err := json.Marshal(out)
	if err != nil {
		return err
	}
	now := s.Tx.Now().UnixNano()
	if err = s.Exec(ctx, deleteAnswers, now); err != nil {
		return err
	}
	return s.Exec(ctx, insertAnswer, s.User.UserID, k.Method, k.Path, key, hash, Status(refused), string(text), now+int64(keep))
}

// ForgetResult deletes the stored result of a call.
func ForgetResult(ctx context.Context, tx *store.Tx, user string, at Route, key string) error {
	_, err := tx.Exec(ctx, deleteAnswer, user, at.Method, at.Path, key)
	return err
}
