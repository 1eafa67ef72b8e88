package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cairn/internal/mail"
	"cairn/internal/mail/mailtest"
	"cairn/internal/mail/messages"
	"cairn/internal/mail/reservations"
)

// newOldDesk returns a desk whose clock starts at this machine's time, because file times use it.
// GreenLake has two reservations and has been inactive for 31 minutes.
func newOldDesk(t testing.TB) *desk {
	t.Helper()
	d := newDesk(t)
	d.clock.Move(time.Since(d.clock.Now()))
	d.reserve("GreenLake", "src/**")
	d.reserve("GreenLake", "none/*.go")
	d.clock.Move(31 * time.Minute)
	return d
}

// old writes a file whose modification time is the given age before d's clock.
func (d *desk) old(path string, age time.Duration) {
	d.Helper()
	d.write(path, "x\n")
	at := d.clock.Now().Add(-age)
	for file := path; file != d.root; file = filepath.Dir(file) {
		if err := os.Chtimes(file, at, at); err != nil {
			d.Fatal(err)
		}
	}
}

func (d *desk) list(ended bool) []reservations.ListedReservation {
	d.Helper()
	return mailtest.Must(d.FileReservations(d.Context(), mail.Caller{}, d.key, ended))(d)
}

func TestAReservationIsStaleOnceItsHolderIsSilentAndNothingHappensToItsFiles(t *testing.T) {
	t.Parallel()
	d := newOldDesk(t)
	d.old(filepath.Join(d.root, "src", "deep", "a.go"), time.Hour)
	changes := d.changes()
	got := d.list(false)
	mailtest.WantFields(t, "reservation", got[0], "id", "agent", "path_pattern", "exclusive", "reason", "created_ts", "expires_ts", "released_ts",
		"stale", "stale_reasons", "last_agent_activity_ts", "last_mail_activity_ts", "last_filesystem_activity_ts", "last_git_activity_ts")
	mailtest.Want(t, "stale", got[0].Stale, true)
	mailtest.Want(t, "reasons", strings.Join(got[0].Reasons, " "),
		"agent_inactive>1800s no_recent_mail_activity>900s no_recent_filesystem_activity>900s no_recent_git_activity>900s")
	mailtest.Want(t, "a pattern without files", got[1].Stale, true)
	mailtest.Want(t, "its reasons", strings.Join(got[1].Reasons, " "), "agent_inactive>1800s no_recent_mail_activity>900s path_pattern_unmatched")
	mailtest.Want(t, "writes", d.changes(), changes)

	checked := mailtest.Must(d.CheckFileReservationConflicts(t.Context(), mail.Caller{}, reservations.CheckArgs{ProjectKey: d.key, AgentName: "BlueDog", Paths: []string{"src/x", "free"}}))(t)
	mailtest.Want(t, "free", fmt.Sprint(checked.Free), "[free]")
	mailtest.WantFields(t, "holder", checked.Conflicts[0].Holders[0], "id", "agent", "path_pattern", "exclusive", "advisory", "reason", "created_ts", "expires_ts",
		"branch", "worktree", "stale")
	mailtest.Want(t, "checked", checked.Conflicts[0].Holders[0].Stale, true)

	d.old(filepath.Join(d.root, "src", "deep", "a.go"), time.Minute)
	got = d.list(false)
	mailtest.Want(t, "with a changed file", got[0].Stale, false)
	mailtest.Want(t, "reason", got[0].Reasons[2], "filesystem_activity_recent")
}

func TestEditsCommitsMailAndTheAgentItselfAreSignsOfLife(t *testing.T) {
	t.Parallel()
	d := newOldDesk(t)
	d.old(filepath.Join(d.root, "src", "a.go"), time.Hour)
	at := d.clock.Now()
	touched := func(path string, fail error) func(context.Context, string, time.Time) ([]mail.Touch, error) {
		return func(_ context.Context, _ string, since time.Time) ([]mail.Touch, error) {
			if want := at.Add(-15 * time.Minute); since.Before(want.Add(-time.Second)) || since.After(want.Add(time.Second)) {
				t.Errorf("asked since %v, want %v", since, want)
			}
			return []mail.Touch{{Path: path, At: at.Add(-time.Minute)}}, fail
		}
	}
	reasons := func(c mail.Config) string {
		t.Helper()
		return strings.Join(mailtest.Must(d.with(c).FileReservations(t.Context(), mail.Caller{}, d.key, false))(t)[0].Reasons[1:], " ")
	}
	const none = "no_recent_mail_activity>900s no_recent_filesystem_activity>900s "
	mailtest.Want(t, "an edit", reasons(mail.Config{Edits: touched("src/gone.go", nil)}), "no_recent_mail_activity>900s filesystem_activity_recent no_recent_git_activity>900s")
	mailtest.Want(t, "an edit elsewhere", reasons(mail.Config{Edits: touched("lib/a.go", nil)}), none+"no_recent_git_activity>900s")
	mailtest.Want(t, "a commit", reasons(mail.Config{Commits: touched("src/a.go", nil)}), none+"git_activity_recent")
	mailtest.Want(t, "commits that cannot be read", reasons(mail.Config{Commits: touched("x", errors.New("no git"))}), none+"git_activity_recent")
	mailtest.Want(t, "other limits", reasons(mail.Config{Grace: time.Minute}), "no_recent_mail_activity>60s no_recent_filesystem_activity>60s no_recent_git_activity>60s")
	d.register(d.key, "GreenLake")
	mailtest.Want(t, "the agent", d.list(false)[0].Reasons[0], "agent_recently_active")
	mailtest.Want(t, "not stale", d.list(false)[0].Stale, false)
}

func TestFilesAndCommitsInEveryCloneAreSignsOfLife(t *testing.T) {
	t.Parallel()
	d := newOldDesk(t)
	d.git(d.root, "remote", "add", "origin", "https://example.org/acme/app")
	d.old(filepath.Join(d.root, "src", "a.go"), time.Hour)
	clone := d.repo("clone")
	d.git(clone, "remote", "add", "origin", "git@example.org:acme/app.git")
	d.ensure(d.root)
	mailtest.Want(t, "project of the clone", d.ensure(clone).Slug, d.ensure(d.root).Slug)
	mailtest.Want(t, "stale", d.list(false)[0].Stale, true)
	var asked []string
	mailtest.Must(d.with(mail.Config{Commits: func(_ context.Context, root string, _ time.Time) ([]mail.Touch, error) {
		asked = append(asked, root)
		return nil, nil
	}}).FileReservations(t.Context(), mail.Caller{}, d.key, false))(t)
	mailtest.Want(t, "repositories that are asked", strings.Join(asked, " "), d.root+" "+clone)
	changed := filepath.Join(clone, "src", "a.go")
	d.write(changed, "x\n")
	at := d.clock.Now().Add(-time.Minute)
	if err := os.Chtimes(changed, at, at); err != nil {
		t.Fatal(err)
	}
	mailtest.Want(t, "with a file that was changed in the clone", d.list(false)[0].Stale, false)
}

func TestLookingAtFilesStopsAfter200AndThenCountsAsActive(t *testing.T) {
	t.Parallel()
	d := newOldDesk(t)
	for i := range 250 {
		d.old(filepath.Join(d.root, "src", fmt.Sprintf("f%d.go", i)), time.Hour)
	}
	got := d.list(false)
	mailtest.Want(t, "stale", got[0].Stale, false)
	mailtest.Want(t, "reason", got[0].Reasons[2], "filesystem_activity_recent")
	d.old(filepath.Join(d.root, "other", "x.go"), time.Hour)
	mailtest.Must(d.ReleaseFileReservations(t.Context(), mail.Caller{}, reservations.ReleaseArgs{ProjectKey: d.key, AgentName: "GreenLake"}))(t)
	d.reserve("GreenLake", "src/f1.go")
	d.clock.Move(31 * time.Minute)
	mailtest.Want(t, "one file among many", d.list(false)[0].Stale, true)
}

func TestForceReleasesWhatIsStaleOrExpiredAndTellsTheHolder(t *testing.T) {
	t.Parallel()
	d := newOldDesk(t)
	force := func(a reservations.ForceArgs, owner bool) (reservations.ForceReleased, error) {
		a.ProjectKey = d.key
		return d.ForceReleaseFileReservation(t.Context(), mail.Caller{Owner: owner}, a)
	}
	live := d.reserveAs(reservations.ReserveArgs{AgentName: "BlueDog", Paths: []string{"live"}}).Granted[0]
	before := d.changes()
	_, err := force(reservations.ForceArgs{AgentName: "GreenLake", ID: live.ID}, false)
	wantError(t, "a live one", err, mail.CodeReserved, `"holder":"BlueDog"`, `"expires_ts":"20`, `"stale_reasons":["agent_recently_active"`, `"tool":"send_message"`)
	for _, id := range []int64{0, -1, 99, 1 << 62} {
		_, err := force(reservations.ForceArgs{AgentName: "BlueDog", ID: id}, false)
		wantError(t, fmt.Sprint("number ", id), err, mail.CodeNotFound, "not found")
	}
	_, err = force(reservations.ForceArgs{AgentName: mail.Overseer, ID: live.ID}, false)
	wantError(t, "a person, unproved", err, mail.CodeNotFound)
	mailtest.Want(t, "changes upon refusals", d.changes(), before)

	out, err := force(reservations.ForceArgs{AgentName: "BlueDog", ID: 1, Note: "on top of it"}, false)
	if err != nil {
		t.Fatal(err)
	}
	mailtest.WantFields(t, "answer", out, "released", "released_at", "reservation")
	mailtest.WantFields(t, "reservation", *out.Reservation, "id", "agent", "path_pattern", "exclusive", "reason", "created_ts", "expires_ts", "released_ts",
		"stale_reasons", "last_agent_activity_ts", "last_mail_activity_ts", "last_filesystem_activity_ts", "last_git_activity_ts", "notified")
	mailtest.Want(t, "notified", out.Reservation.Notified, true)
	inbox := mailtest.Must(d.FetchInbox(t.Context(), mail.Caller{}, messages.InboxArgs{ProjectKey: d.key, AgentName: "GreenLake", IncludeBodies: true}))(t)
	mailtest.Want(t, "subject", inbox[0].Subject, "[file-reservations] Released stale lock on src/**")
	mailtest.Want(t, "note", strings.Contains(*inbox[0].Body, "on top of it"), true)
	again, err := force(reservations.ForceArgs{AgentName: "BlueDog", ID: 1}, false)
	mailtest.Want(t, "again", fmt.Sprint(again.Released, again.Already, again.At == out.At, err), "0 true true <nil>")
	mailtest.WantFields(t, "again", again, "released", "released_at", "already_released")

	d.clock.Move(time.Hour)
	out, err = force(reservations.ForceArgs{AgentName: "GreenLake", ID: live.ID, Quiet: true}, false)
	mailtest.Want(t, "expired, quietly", fmt.Sprint(out.Released, out.Reservation.Notified, err), "1 false <nil>")
	live = d.reserve("BlueDog", "again").Granted[0]
	out, err = force(reservations.ForceArgs{AgentName: "humanoverseer", ID: live.ID}, true)
	mailtest.Want(t, "a person", fmt.Sprint(out.Released, out.Reservation.Notified, err), "1 true <nil>")
	mailtest.Want(t, "all that there were", len(d.list(true)), 4)
	mailtest.Want(t, "still active", len(d.list(false)), 0)
	d.rebuilt()
}

func TestTheSweeperMarksWhatHasExpiredWithAChangeEach(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	paths := make([]string, 150)
	for i := range paths {
		paths[i] = fmt.Sprint("f", i)
	}
	d.reserveAs(reservations.ReserveArgs{AgentName: "GreenLake", Paths: paths, TTLSeconds: i64(60)})
	d.reserveAs(reservations.ReserveArgs{AgentName: "BlueDog", Paths: []string{"g"}, TTLSeconds: i64(60)})
	for i := range paths {
		paths[i] = fmt.Sprint("h", i)
	}
	d.reserveAs(reservations.ReserveArgs{AgentName: "GreenLake", Paths: paths, TTLSeconds: i64(60)})
	keep := d.reserve("GreenLake", "keep").Granted[0]
	mailtest.Want(t, "too early", mailtest.Must(d.SweepReservations(t.Context()))(t), 0)
	d.clock.Move(2 * time.Minute)
	before := d.changes()
	mailtest.Want(t, "marked", mailtest.Must(d.SweepReservations(t.Context()))(t), 301)
	mailtest.Want(t, "changes", d.changes()-before, 301)
	mailtest.Want(t, "again", mailtest.Must(d.SweepReservations(t.Context()))(t), 0)
	var kinds string
	d.query(&kinds, `SELECT group_concat(DISTINCT ifnull(release_kind, 'none') || (released_ts NOTNULL)) FROM mail_reservations`)
	mailtest.Want(t, "kinds", kinds, "expired1,none0")
	mailtest.Want(t, "the other", d.list(false)[0].ID, keep.ID)
	mailtest.Want(t, "without a store", mailtest.Must(New(nil, mail.Config{}).SweepReservations(t.Context()))(t), 0)
	d.rebuilt()
}

func TestMacrosDoAllOrNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.reserve("BlueDog", "taken")
	start := func(a StartArgs) (Started, error) {
		a.Program, a.Model = "claude-code", "m"
		return d.MacroStartSession(t.Context(), mail.Caller{Session: "s1"}, a)
	}
	out, err := start(StartArgs{HumanKey: d.root, AgentName: "RedFox", Paths: []string{"a", "taken"}})
	if err != nil {
		t.Fatal(err)
	}
	mailtest.WantFields(t, "answer", out, "project", "agent", "file_reservations", "inbox")
	mailtest.WantFields(t, "project", out.Project, "id", "slug", "human_key", "created_at")
	mailtest.WantFields(t, "reservations", out.Reservations, "granted", "conflicts")
	mailtest.Want(t, "granted", out.Reservations.Granted[0].Reason, "macro-session")
	mailtest.Want(t, "conflict", out.Reservations.Conflicts[0].Holders[0].Agent, "BlueDog")
	mailtest.Want(t, "inbox", out.Inbox != nil && len(out.Inbox) == 0, true)
	var bound string
	d.query(&bound, `SELECT s.id || ' ' || a.name FROM mail_sessions b JOIN sessions s ON s.key = b.session_key JOIN mail_agents a ON a.id = b.agent_id`)
	mailtest.Want(t, "bound", bound, "s1 RedFox")
	before := d.changes()
	_, err = start(StartArgs{HumanKey: d.root, AgentName: "GrayOwl", Paths: []string{"b", "../c"}})
	wantError(t, "a bad path", err, mail.CodePath)
	_, err = start(StartArgs{HumanKey: "relative/path"})
	wantError(t, "a relative path", err, mail.CodeInvalid, "absolute directory path")
	_, err = start(StartArgs{HumanKey: d.root, InboxLimit: new(0)})
	wantError(t, "a bad limit", err, mail.CodeLimit)
	mailtest.Want(t, "changes", d.changes(), before)

	cycle := func(a CycleArgs) Cycled {
		t.Helper()
		a.ProjectKey, a.AgentName = d.key, "RedFox"
		return mailtest.Must(d.MacroFileReservationCycle(t.Context(), mail.Caller{}, a))(t)
	}
	held := cycle(CycleArgs{Paths: []string{"c"}})
	mailtest.WantFields(t, "cycle", held, "file_reservations", "released")
	mailtest.Want(t, "kept", held.Released == nil, true)
	mailtest.Want(t, "reason", held.Reservations.Granted[0].Reason, "macro-file_reservation")
	freed := cycle(CycleArgs{Paths: []string{"d", "taken"}, AutoRelease: true})
	mailtest.Want(t, "freed", freed.Released.Released, 1)
	mailtest.Want(t, "nothing granted, nothing freed", cycle(CycleArgs{Paths: []string{"taken"}, AutoRelease: true}).Released.Released, 0)
	mailtest.Want(t, "others stay", len(d.list(false)), 3)
	d.rebuilt()
}
