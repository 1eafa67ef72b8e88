package mail

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"strings"
)

const (
	selectAnswer = `SELECT arguments, result, ts FROM mail_idempotency
WHERE project_id = ? AND agent_id = ? AND tool = ? AND key = ? AND ts > ?`
	insertAnswer = `INSERT INTO mail_idempotency (project_id, agent_id, tool, key, arguments, result, ts) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (project_id, agent_id, tool, key) DO UPDATE SET arguments = excluded.arguments, result = excluded.result, ts = excluded.ts`
	// Each result that is stored deletes two old ones.
	deleteAnswers = `DELETE FROM mail_idempotency WHERE (project_id, agent_id, tool, key) IN
(SELECT project_id, agent_id, tool, key FROM mail_idempotency WHERE ts <= ? ORDER BY ts LIMIT 2)`

	maxKey = 128 // characters of an idempotency key
)

// RunOnce runs fn and stores its result under an idempotency key of a tool and of the actor,
// s.Me. A later call with the same key returns the stored result and does not run fn (mail
// §1). With an empty key nothing is stored.
//
// args are the arguments that must match: all except the project, the actor, the token and the
// key. They are checked, but otherwise as given. args and the result must survive a JSON round
// trip. If fn fails, nothing is stored.
//
// Errors besides those of fn: INVALID_ARGUMENT for an invalid key, IDEMPOTENCY_CONFLICT for a
// key that was used with other arguments within Config.Idempotency.
func RunOnce[R any](ctx context.Context, s *CallTx, tool, key string, args any, fn func() (R, error)) (out R, err error) {
	if key == "" {
		return fn()
	}
	if err := checkKey(key); err != nil {
		return out, err
	}
	text, err := json.Marshal(args)
	if err != nil {
		return out, err
	}
	sum := sha256.Sum256(text)
	oldest := s.Now - Time(s.Config.Idempotency)
	var before []byte
	var answer string
	var used Time
	found, err := QueryOne(ctx, s.Tx, []any{&before, &answer, &used}, selectAnswer, s.Project.ID, s.Me.ID, tool, key, oldest)
	switch {
	case err != nil:
		return out, err
	case found && subtle.ConstantTimeCompare(before, sum[:]) == 0:
		return out, Errorf(CodeIdempotency, "the idempotency_key %s was used with other arguments", Quoted(key)).
			With("first_used_ts", used).With("idempotency_key", key).Hint("use a new key for a new call; the same call with the same key is safe to repeat")
	case found:
		return out, json.Unmarshal([]byte(answer), &out)
	}
	if out, err = fn(); err != nil {
		return out, err
	}
	if text, err = json.Marshal(out); err != nil {
		return out, err
	}
	if _, err = s.Tx.Exec(ctx, deleteAnswers, oldest); err != nil {
		return out, err
	}
	_, err = s.Tx.Exec(ctx, insertAnswer, s.Project.ID, s.Me.ID, tool, key, sum[:], string(text), s.Now)
	return out, err
}

func checkKey(key string) error {
	odd := strings.ContainsFunc(key, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._:-", r))
	})
	if !odd && len(key) <= maxKey {
		return nil
	}
	return InvalidArgument("idempotency_key", key, "idempotency_key has 1 to %d of the characters A-Z a-z 0-9 . _ : -", maxKey)
}
