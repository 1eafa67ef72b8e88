package service

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

type counted struct {
	N  int       `json:"n"`
	At mail.Time `json:"at"`
}

// repeated runs a counting call with an idempotency key.
func repeated(t *testing.T, o *Mail, agent, key, argument string, fail error) (out counted, err error) {
	t.Helper()
	err = o.WriteIn(t.Context(), mail.Caller{}, "app", func(ctx context.Context, s *mail.CallTx) error {
		if _, err := s.ActAs(ctx, agent); err != nil {
			return err
		}
		out, err = mail.RunOnce(ctx, s, "tool", key, argument, func() (counted, error) {
			if _, err := s.Tx.Exec(ctx, `UPDATE mail_agents SET received = received + 1 WHERE id = ?`, s.Me.ID); err != nil || fail != nil {
				return counted{}, errors.Join(err, fail)
			}
			var n int
			return counted{n, s.Now}, s.Tx.Get(ctx, []any{&n}, `SELECT received FROM mail_agents WHERE id = ?`, s.Me.ID)
		})
		return err
	})
	return out, err
}

func TestAnIdempotencyKeyGivesTheFirstAnswerForADayAndOnlyToTheSameCallOfTheSameAgent(t *testing.T) {
	t.Parallel()
	clock := &storetest.Clock{}
	clock.Move(1_000_000 * time.Hour / 3)
	o := New(storetest.Open(t, store.Config{Clock: clock.Now}), mail.Config{})
	if err := o.WriteIn(t.Context(), mail.Caller{}, t.TempDir(), func(ctx context.Context, s *mail.CallTx) error {
		for _, name := range []string{"GreenLake", "BlueDog"} {
			if err := register(ctx, s, name); err != nil {
				return err
			}
		}
		s.Project.Slug = "app"
		_, err := s.Tx.Exec(ctx, `UPDATE mail_projects SET slug = 'app'`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	call := func(agent, key, argument string, want int) {
		t.Helper()
		if got, err := repeated(t, o, agent, key, argument, nil); err != nil || got.N != want {
			t.Errorf("%s %s %s: run %d, want %d; %v", agent, key, argument, got.N, want, err)
		}
	}
	if _, err := repeated(t, o, "GreenLake", "k", "a", errors.New("no")); err == nil {
		t.Error("a failure is no failure")
	}
	call("GreenLake", "k", "a", 1) // failed results are not kept
	first, _ := repeated(t, o, "GreenLake", "k", "a", nil)
	clock.Move(time.Hour)
	if again, err := repeated(t, o, "GreenLake", "k", "a", nil); again != first || err != nil {
		t.Errorf("again it is %+v, first it was %+v: %v", again, first, err)
	}
	call("GreenLake", "K", "b", 2) // another key
	call("GreenLake", "", "a", 3)
	call("GreenLake", "", "a", 4) // without a key nothing is kept
	call("BlueDog", "k", "b", 1)  // another agent
	_, err := repeated(t, o, "GreenLake", "k", "b", nil)
	if f := fault.As(err); f.Code != mail.CodeIdempotency || f.Kind != fault.Conflict || f.Details["first_used_ts"] != first.At {
		t.Errorf("other arguments: %+v", f)
	}
	for _, key := range []string{"a b", "é", "a/b", strings.Repeat("x", 129)} {
		if _, err := repeated(t, o, "GreenLake", key, "a", nil); !fault.HasCode(err, mail.CodeInvalid) {
			t.Errorf("key %q: %v", key, err)
		}
	}
	call("GreenLake", strings.Repeat("x", 128), "a", 5)
	clock.Move(23 * time.Hour) // one day after the first call
	call("GreenLake", "k", "b", 6)
	clock.Move(25 * time.Hour)
	call("GreenLake", "new", "b", 7)
	call("GreenLake", "newer", "b", 8)
	call("GreenLake", "newest", "b", 9)
	var kept int
	if err := o.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return tx.Get(ctx, []any{&kept}, `SELECT count(*) FROM mail_idempotency`)
	}); err != nil || kept != 3 {
		t.Errorf("%d answers are kept, want those of today: %v", kept, err)
	}
}
