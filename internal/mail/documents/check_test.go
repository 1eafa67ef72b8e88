package documents

import (
	"context"
	"slices"
	"strings"
	"testing"

	"cairn/internal/store"
)

// findings returns the findings of Check for a store.
func findings(t testing.TB, s *store.Store) (found []string) {
	t.Helper()
	err := s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		found, err = Check(ctx, tx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// soundMail fails the test if Check reports findings for a store.
func soundMail(t testing.TB, s *store.Store) {
	t.Helper()
	if found := findings(t, s); len(found) > 0 {
		t.Errorf("the mail is not sound:\n%s", strings.Join(found, "\n"))
	}
}

// TestTheCheckNamesEveryKindOfDamage alters rows directly in the database, one kind of damage at a
// time.
func TestTheCheckNamesEveryKindOfDamage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		damage []string
		want   string
	}{
		"counters":         {[]string{`UPDATE mail_agents SET unread = unread + 1 WHERE id = 1`}, "counts"},
		"repeated columns": {[]string{`UPDATE mail_recipients SET importance = 'low' WHERE message_id = 1`}, "do not repeat"},
		"body":             {[]string{`UPDATE mail_messages SET body_md = 'x' WHERE id = 1`}, "is not what the change log says"},
		"profile":          {[]string{`UPDATE mail_agents SET model = 'other' WHERE id = 1`}, "mail.agent GreenLake"},
		"state":            {[]string{`UPDATE mail_recipients SET read_ts = read_ts + 1000 WHERE read_ts NOTNULL`}, "mail.delivery"},
		"a stamp":          {[]string{`UPDATE mail_recipients SET read_ts = 5000 WHERE read_ts IS NULL`}, "is not in the change log"},
		"contact":          {[]string{`UPDATE mail_contacts SET status = 'blocked'`}, "mail.contact"},
		"lease":            {[]string{`UPDATE mail_reservations SET renewals = 9`}, "mail.reservation"},
		"half a release":   {[]string{`UPDATE mail_reservations SET released_ts = 5000`}, "without saying how"},
		"a lost row":       {[]string{`DELETE FROM mail_reservations`}, "has no row"},
		"threads":          {[]string{`UPDATE mail_threads SET messages = 7`}, "does not count"},
		"a lost thread":    {[]string{`DELETE FROM mail_threads`}, "does not count"},
		"numbers":          {[]string{`UPDATE sqlite_sequence SET seq = 1 WHERE name = 'mail_messages'`}, "given again"},
		"index":            {[]string{`DELETE FROM mail_fts WHERE rowid = 1`}, "not in the index"},
		"too much index":   {[]string{`INSERT INTO mail_fts (rowid, subject, body) VALUES (99, 'a', 'b')`}, "no message"},
		"reply":            {[]string{`UPDATE mail_messages SET reply_to = 77 WHERE id = 2`}, "replies to"},
		"paths":            {[]string{`UPDATE mail_messages SET archive_path = (SELECT archive_path FROM mail_messages WHERE id = 1)`}, "file of another"},
		"notices": {[]string{`INSERT INTO sessions (id, project_id, started_at, last_seen) VALUES ('s', 'app', 1, 1)`,
			`INSERT INTO mail_notices (subject_uid, agent_id, notice, session_key, event, ts) SELECT 'gone', 1, 'new', key, 'Stop', 1 FROM sessions`}, "a notice is about"},
		"an unknown row": {[]string{`INSERT INTO mail_agents (project_id, name, program, model, task_description, inception_ts, last_active_ts, attachments_policy, contact_policy)
VALUES (1, 'OddOne', 'p', 'm', '', 1000, 1000, 'auto', 'auto')`}, "OddOne of project w-app is not in the change log"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := filled(t)
			soundMail(t, s)
			err := s.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
				for _, q := range c.damage {
					if _, err := tx.Exec(ctx, q); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			found := findings(t, s)
			if !slices.ContainsFunc(found, func(f string) bool { return strings.Contains(f, c.want) }) {
				t.Errorf("found %q, want one with %q", found, c.want)
			}
			err = s.Write(t.Context(), store.Full, Repair)
			if err != nil {
				t.Fatal(err)
			}
			soundMail(t, s)
			err = s.Write(t.Context(), store.Full, Repair)
			if err != nil {
				t.Fatal(err)
			}
			soundMail(t, s)
		})
	}
}
