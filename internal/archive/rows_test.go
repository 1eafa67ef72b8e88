package archive

import (
	"context"
	"slices"
	"strings"
	"testing"

	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

// commitsOf returns the summaries of commits.
func commitsOf(commits []Commit) (out []string) {
	for _, c := range commits {
		out = append(out, c.Summary)
	}
	return out
}

func TestCommitsAreFoundByChangeAndByAgentAndFollowAMerge(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{})
	err := s.Write(t.Context(), store.Normal, func(ctx context.Context, tx *store.Tx) error {
		for _, q := range []string{
			`INSERT INTO projects (key, id, name, created_at) VALUES (1, 'a', 'a', 0), (2, 'b', 'b', 0)`,
			`INSERT INTO followers (name, lane, position, mark, updated_at) VALUES ('archive', 'a', 3, 'x', 0), ('archive', 'b', 9, 'y', 0)`,
			`INSERT INTO set_aside (follower, seq, lane, error, attempts, since, next_try) VALUES ('archive', 2, 'a', 'e', 1, 0, 0)`,
			`INSERT INTO archive_commits (project_key, last_seq, first_seq, hexsha, summary, authored_ts)
VALUES (1, 1, 1, 'h1', 'mail: A -> B | secret', 7), (1, 4, 3, 'h2', 'agent: profile', 8)`,
		} {
			if _, err := tx.Exec(ctx, q); err != nil {
				return err
			}
		}
		for _, agent := range []string{"A", "B", "A", "B (by owner)"} {
			if _, err := tx.Append(ctx, store.Change{Stream: "mail/x", Kind: "k", ID: agent, Op: store.OpPut, Doc: []byte("{}"), Agent: agent}); err != nil {
				return err
			}
		}
		if err := ForgetSubject(ctx, tx, 1, 1); err != nil {
			return err
		}
		if err := MoveRows(ctx, tx, 1, 2); err != nil {
			return err
		}
		for seq, want := range map[int64]string{1: "mail: A -> B | (purged)", 2: "", 3: "agent: profile", 4: "agent: profile", 5: ""} {
			c, ok, err := CommitOf(ctx, tx, 2, seq)
			if err != nil || ok != (want != "") || ok && c.Summary != want {
				t.Errorf("commit of %d: %+v %v %v", seq, c, ok, err)
			}
		}
		for agents, want := range map[string][]string{
			"A": {"agent: profile", "mail: A -> B | (purged)"}, "B": nil, "B,B (by owner)": {"agent: profile"},
		} {
			found, err := CommitsBy(ctx, tx, 2, "mail/x", strings.Split(agents, ","), 5)
			if got := commitsOf(found); err != nil || !slices.Equal(got, want) {
				t.Errorf("commits by %s: %q %v, want %q", agents, got, err, want)
			}
		}
		cursor, err := tx.Texts(ctx, `SELECT lane || ' ' || mark FROM followers UNION ALL SELECT lane || ' ' || seq FROM set_aside`)
		if want := []string{"b x", "b 2"}; !slices.Equal(cursor, want) {
			t.Errorf("cursor and aside %q, want %q", cursor, want)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
