package mail

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// newOldDesk is a desk by the clock of this machine, since files have its times, with
// two reservations of GreenLake, who has been silent for 31 minutes.
func newOldDesk(t testing.TB) *desk {
	t.Helper()
	d := newDesk(t)
	d.clock.Move(time.Since(d.clock.Now()))
	d.reserve("GreenLake", "src/**")
	d.reserve("GreenLake", "none/*.go")
	d.clock.Move(31 * time.Minute)
	return d
}

// old writes a file that was last changed some time before d's clock.
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

func (d *desk) list(ended bool) []ListedReservation {
	d.Helper()
	return must(d.FileReservations(d.Context(), Caller{}, d.key, ended))(d)
}

func TestAReservationIsStaleOnceItsHolderIsSilentAndNothingHappensToItsFiles(t *testing.T) {
	t.Parallel()
	d := newOldDesk(t)
	d.old(filepath.Join(d.root, "src", "deep", "a.go"), time.Hour)
	changes := d.changes()
	got := d.list(false)
	wantFields(t, "reservation", got[0], "id", "agent", "path_pattern", "exclusive", "reason", "created_ts", "expires_ts", "released_ts",
		"stale", "stale_reasons", "last_agent_activity_ts", "last_mail_activity_ts", "last_filesystem_activity_ts", "last_git_activity_ts")
	want(t, "stale", got[0].Stale, true)
	want(t, "reasons", strings.Join(got[0].Reasons, " "),
		"agent_inactive>1800s no_recent_mail_activity>900s no_recent_filesystem_activity>900s no_recent_git_activity>900s")
	want(t, "a pattern without files", got[1].Stale, true)
	want(t, "its reasons", strings.Join(got[1].Reasons, " "), "agent_inactive>1800s no_recent_mail_activity>900s path_pattern_unmatched")
	want(t, "writes", d.changes(), changes)

	checked := must(d.CheckFileReservationConflicts(t.Context(), Caller{}, CheckArgs{ProjectKey: d.key, AgentName: "BlueDog", Paths: []string{"src/x", "free"}}))(t)
	want(t, "free", fmt.Sprint(checked.Free), "[free]")
	wantFields(t, "holder", checked.Conflicts[0].Holders[0], "id", "agent", "path_pattern", "exclusive", "advisory", "reason", "created_ts", "expires_ts",
		"branch", "worktree", "stale")
	want(t, "checked", checked.Conflicts[0].Holders[0].Stale, true)

	d.old(filepath.Join(d.root, "src", "deep", "a.go"), time.Minute)
	got = d.list(false)
	want(t, "with a changed file", got[0].Stale, false)
	want(t, "reason", got[0].Reasons[2], "filesystem_activity_recent")
}

func TestEditsCommitsMailAndTheAgentItselfAreSignsOfLife(t *testing.T) {
	t.Parallel()
	d := newOldDesk(t)
	d.old(filepath.Join(d.root, "src", "a.go"), time.Hour)
	at := d.clock.Now()
	touched := func(path string, fail error) func(context.Context, string, time.Time) ([]Touch, error) {
		return func(_ context.Context, _ string, since time.Time) ([]Touch, error) {
			if want := at.Add(-15 * time.Minute); since.Before(want.Add(-time.Second)) || since.After(want.Add(time.Second)) {
				t.Errorf("asked since %v, want %v", since, want)
			}
			return []Touch{{path, at.Add(-time.Minute)}}, fail
		}
	}
	reasons := func(c Config) string {
		t.Helper()
		return strings.Join(must(d.with(c).FileReservations(t.Context(), Caller{}, d.key, false))(t)[0].Reasons[1:], " ")
	}
	const none = "no_recent_mail_activity>900s no_recent_filesystem_activity>900s "
	want(t, "an edit", reasons(Config{Edits: touched("src/gone.go", nil)}), "no_recent_mail_activity>900s filesystem_activity_recent no_recent_git_activity>900s")
	want(t, "an edit elsewhere", reasons(Config{Edits: touched("lib/a.go", nil)}), none+"no_recent_git_activity>900s")
	want(t, "a commit", reasons(Config{Commits: touched("src/a.go", nil)}), none+"git_activity_recent")
	want(t, "commits that cannot be read", reasons(Config{Commits: touched("x", errors.New("no git"))}), none+"git_activity_recent")
	want(t, "other limits", reasons(Config{Grace: time.Minute}), "no_recent_mail_activity>60s no_recent_filesystem_activity>60s no_recent_git_activity>60s")
	d.register(d.key, "GreenLake")
	want(t, "the agent", d.list(false)[0].Reasons[0], "agent_recently_active")
	want(t, "not stale", d.list(false)[0].Stale, false)
}

func TestFilesAndCommitsInEveryCloneAreSignsOfLife(t *testing.T) {
	t.Parallel()
	d := newOldDesk(t)
	d.git(d.root, "remote", "add", "origin", "https://example.org/acme/app")
	d.old(filepath.Join(d.root, "src", "a.go"), time.Hour)
	clone := d.repo("clone")
	d.git(clone, "remote", "add", "origin", "git@example.org:acme/app.git")
	d.ensure(d.root)
	want(t, "project of the clone", d.ensure(clone).Slug, d.ensure(d.root).Slug)
	want(t, "stale", d.list(false)[0].Stale, true)
	var asked []string
	must(d.with(Config{Commits: func(_ context.Context, root string, _ time.Time) ([]Touch, error) {
		asked = append(asked, root)
		return nil, nil
	}}).FileReservations(t.Context(), Caller{}, d.key, false))(t)
	want(t, "repositories that are asked", strings.Join(asked, " "), d.root+" "+clone)
	changed := filepath.Join(clone, "src", "a.go")
	d.write(changed, "x\n")
	at := d.clock.Now().Add(-time.Minute)
	if err := os.Chtimes(changed, at, at); err != nil {
		t.Fatal(err)
	}
	want(t, "with a file that was changed in the clone", d.list(false)[0].Stale, false)
}

func TestLookingAtFilesStopsAfter200AndThenCountsAsActive(t *testing.T) {
	t.Parallel()
	d := newOldDesk(t)
	for i := range 250 {
		d.old(filepath.Join(d.root, "src", fmt.Sprintf("f%d.go", i)), time.Hour)
	}
	got := d.list(false)
	want(t, "stale", got[0].Stale, false)
	want(t, "reason", got[0].Reasons[2], "filesystem_activity_recent")
	d.old(filepath.Join(d.root, "other", "x.go"), time.Hour)
	must(d.ReleaseFileReservations(t.Context(), Caller{}, ReleaseArgs{ProjectKey: d.key, AgentName: "GreenLake"}))(t)
	d.reserve("GreenLake", "src/f1.go")
	d.clock.Move(31 * time.Minute)
	want(t, "one file among many", d.list(false)[0].Stale, true)
}

func TestForceReleasesWhatIsStaleOrExpiredAndTellsTheHolder(t *testing.T) {
	t.Parallel()
	d := newOldDesk(t)
	force := func(a ForceArgs, owner bool) (ForceReleased, error) {
		a.ProjectKey = d.key
		return d.ForceReleaseFileReservation(t.Context(), Caller{Owner: owner}, a)
	}
	live := d.reserveAs(ReserveArgs{AgentName: "BlueDog", Paths: []string{"live"}}).Granted[0]
	before := d.changes()
	_, err := force(ForceArgs{AgentName: "GreenLake", ID: live.ID}, false)
	wantError(t, "a live one", err, CodeReserved, `"holder":"BlueDog"`, `"expires_ts":"20`, `"stale_reasons":["agent_recently_active"`, `"tool":"send_message"`)
	for _, id := range []int64{0, -1, 99, 1 << 62} {
		_, err := force(ForceArgs{AgentName: "BlueDog", ID: id}, false)
		wantError(t, fmt.Sprint("number ", id), err, CodeNotFound, "not found")
	}
	_, err = force(ForceArgs{AgentName: Overseer, ID: live.ID}, false)
	wantError(t, "a person, unproved", err, CodeNotFound)
	want(t, "changes upon refusals", d.changes(), before)

	out, err := force(ForceArgs{AgentName: "BlueDog", ID: 1, Note: "on top of it"}, false)
	if err != nil {
		t.Fatal(err)
	}
	wantFields(t, "answer", out, "released", "released_at", "reservation")
	wantFields(t, "reservation", *out.Reservation, "id", "agent", "path_pattern", "exclusive", "reason", "created_ts", "expires_ts", "released_ts",
		"stale_reasons", "last_agent_activity_ts", "last_mail_activity_ts", "last_filesystem_activity_ts", "last_git_activity_ts", "notified")
	want(t, "notified", out.Reservation.Notified, true)
	inbox := must(d.FetchInbox(t.Context(), Caller{}, InboxArgs{ProjectKey: d.key, AgentName: "GreenLake", IncludeBodies: true}))(t)
	want(t, "subject", inbox[0].Subject, "[file-reservations] Released stale lock on src/**")
	want(t, "note", strings.Contains(*inbox[0].Body, "on top of it"), true)
	again, err := force(ForceArgs{AgentName: "BlueDog", ID: 1}, false)
	want(t, "again", fmt.Sprint(again.Released, again.Already, again.At == out.At, err), "0 true true <nil>")
	wantFields(t, "again", again, "released", "released_at", "already_released")

	d.clock.Move(time.Hour)
	out, err = force(ForceArgs{AgentName: "GreenLake", ID: live.ID, Quiet: true}, false)
	want(t, "expired, quietly", fmt.Sprint(out.Released, out.Reservation.Notified, err), "1 false <nil>")
	live = d.reserve("BlueDog", "again").Granted[0]
	out, err = force(ForceArgs{AgentName: "humanoverseer", ID: live.ID}, true)
	want(t, "a person", fmt.Sprint(out.Released, out.Reservation.Notified, err), "1 true <nil>")
	want(t, "all that there were", len(d.list(true)), 4)
	want(t, "still active", len(d.list(false)), 0)
	d.rebuilt()
}

func TestTheSweeperMarksWhatHasExpiredWithAChangeEach(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	paths := make([]string, 150)
	for i := range paths {
		paths[i] = fmt.Sprint("f", i)
	}
	d.reserveAs(ReserveArgs{AgentName: "GreenLake", Paths: paths, TTLSeconds: i64(60)})
	d.reserveAs(ReserveArgs{AgentName: "BlueDog", Paths: []string{"g"}, TTLSeconds: i64(60)})
	for i := range paths {
		paths[i] = fmt.Sprint("h", i)
	}
	d.reserveAs(ReserveArgs{AgentName: "GreenLake", Paths: paths, TTLSeconds: i64(60)})
	keep := d.reserve("GreenLake", "keep").Granted[0]
	want(t, "too early", must(d.SweepReservations(t.Context()))(t), 0)
	d.clock.Move(2 * time.Minute)
	before := d.changes()
	want(t, "marked", must(d.SweepReservations(t.Context()))(t), 301)
	want(t, "changes", d.changes()-before, 301)
	want(t, "again", must(d.SweepReservations(t.Context()))(t), 0)
	var kinds string
	d.query(&kinds, `SELECT group_concat(DISTINCT ifnull(release_kind, 'none') || (released_ts NOTNULL)) FROM mail_reservations`)
	want(t, "kinds", kinds, "expired1,none0")
	want(t, "the other", d.list(false)[0].ID, keep.ID)
	want(t, "without a store", must(New(nil, Config{}).SweepReservations(t.Context()))(t), 0)
	d.rebuilt()
}

func TestMacrosDoAllOrNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.reserve("BlueDog", "taken")
	start := func(a StartArgs) (Started, error) {
		a.Program, a.Model = "claude-code", "m"
		return d.MacroStartSession(t.Context(), Caller{Session: "s1"}, a)
	}
	out, err := start(StartArgs{HumanKey: d.root, AgentName: "RedFox", Paths: []string{"a", "taken"}})
	if err != nil {
		t.Fatal(err)
	}
	wantFields(t, "answer", out, "project", "agent", "file_reservations", "inbox")
	wantFields(t, "project", out.Project, "id", "slug", "human_key", "created_at")
	wantFields(t, "reservations", out.Reservations, "granted", "conflicts")
	want(t, "granted", out.Reservations.Granted[0].Reason, "macro-session")
	want(t, "conflict", out.Reservations.Conflicts[0].Holders[0].Agent, "BlueDog")
	want(t, "inbox", out.Inbox != nil && len(out.Inbox) == 0, true)
	var bound string
	d.query(&bound, `SELECT s.id || ' ' || a.name FROM mail_sessions b JOIN sessions s ON s.key = b.session_key JOIN mail_agents a ON a.id = b.agent_id`)
	want(t, "bound", bound, "s1 RedFox")
	before := d.changes()
	_, err = start(StartArgs{HumanKey: d.root, AgentName: "GrayOwl", Paths: []string{"b", "../c"}})
	wantError(t, "a bad path", err, CodePath)
	_, err = start(StartArgs{HumanKey: "relative/path"})
	wantError(t, "a relative path", err, CodeInvalid, "absolute directory path")
	_, err = start(StartArgs{HumanKey: d.root, InboxLimit: new(0)})
	wantError(t, "a bad limit", err, CodeLimit)
	want(t, "changes", d.changes(), before)

	cycle := func(a CycleArgs) Cycled {
		t.Helper()
		a.ProjectKey, a.AgentName = d.key, "RedFox"
		return must(d.MacroFileReservationCycle(t.Context(), Caller{}, a))(t)
	}
	held := cycle(CycleArgs{Paths: []string{"c"}})
	wantFields(t, "cycle", held, "file_reservations", "released")
	want(t, "kept", held.Released == nil, true)
	want(t, "reason", held.Reservations.Granted[0].Reason, "macro-file_reservation")
	freed := cycle(CycleArgs{Paths: []string{"d", "taken"}, AutoRelease: true})
	want(t, "freed", freed.Released.Released, 1)
	want(t, "nothing granted, nothing freed", cycle(CycleArgs{Paths: []string{"taken"}, AutoRelease: true}).Released.Released, 0)
	want(t, "others stay", len(d.list(false)), 3)
	d.rebuilt()
}
