package service

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/mailtest"
	"cairn/internal/mail/reservations"
	"cairn/internal/project"
	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

// seen stores an event of a session in the desk's repository. The harness is claude and the
// process unknown, unless e sets them.
func (d *desk) seen(e project.SessionEvent) {
	d.Helper()
	if e.Harness == "" {
		e.Harness = "claude"
	}
	e.Place = d.at(d.root).Place
	err := d.Store.Write(d.Context(), store.Normal, func(ctx context.Context, tx *store.Tx) error {
		_, _, err := project.RecordSession(ctx, tx, e)
		return err
	})
	if err != nil {
		d.Fatal(err)
	}
}

// begin starts a session and returns its context lines.
func (d *desk) begin(id string) string {
	d.Helper()
	d.seen(project.SessionEvent{ID: id, Begins: true})
	if err := d.BeginSession(d.Context(), id, false); err != nil {
		d.Fatal(err)
	}
	return d.told(d.Context(), id)
}

// told returns the lines about a session's agents.
func (d *desk) told(ctx context.Context, session string) string {
	d.Helper()
	var lines []string
	for _, a := range mailtest.Must(d.Acting(ctx, session))(d) {
		lines = append(lines, a.Lines()...)
	}
	return strings.Join(lines, "; ")
}

func (d *desk) end(id string) {
	d.Helper()
	d.seen(project.SessionEvent{ID: id, Closes: true})
	mailtest.Must(d.EndSession(d.Context(), id))(d)
}

// working starts a session that registers as an agent and reserves paths.
func (d *desk) working(session, name string, paths ...string) {
	d.Helper()
	d.begin(session)
	d.registerIn(session, name)
	if len(paths) > 0 {
		d.reserveIn(session, name, paths...)
	}
}

func (d *desk) registerIn(session, name string) string {
	d.Helper()
	return mailtest.Must(d.RegisterAgent(d.Context(), mail.Caller{Session: session}, agents.RegisterArgs{ProjectKey: d.key, Program: "p", Model: "m", Name: name}))(d).Name
}

func (d *desk) reserveIn(session, name string, paths ...string) reservations.GrantedReservations {
	d.Helper()
	return mailtest.Must(d.FileReservationPaths(d.Context(), mail.Caller{Session: session}, reservations.ReserveArgs{ProjectKey: d.key, AgentName: name, Paths: paths}))(d)
}

func (d *desk) released() int {
	d.Helper()
	return mailtest.Must(d.ReleaseOrphans(d.Context()))(d)
}

func TestReservationsOfAnEndedSessionAreReleasedAfterTheGracePeriod(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.working("s1", "RedFox", "src/**")
	d.reserve("RedFox", "b.go") // outside a session
	d.seen(project.SessionEvent{ID: "x", Harness: "codex"})
	d.clock.Move(10 * time.Minute)
	mailtest.Want(t, "while its session lives", d.released(), 0)
	d.end("s1")
	d.clock.Move(5*time.Minute - 5*time.Second)
	mailtest.Want(t, "within the grace period", d.released(), 0)
	mailtest.Want(t, "another harness within it", met(d.guard("x", "src/a.go")), "src/a.go<RedFox:src/**")
	mailtest.Want(t, "its own lineage within it", met(d.guard("s1", "src/a.go")), "")
	d.clock.Move(5 * time.Second)
	mailtest.Want(t, "another harness after it", met(d.guard("x", "src/a.go", "b.go")), "b.go<RedFox:b.go")
	before := d.changes()
	mailtest.Want(t, "after the grace period", d.released(), 1)
	mailtest.Want(t, "again", d.released(), 0)
	mailtest.Want(t, "changes", d.changes()-before, 1)
	all := storetest.Changes(t, d.Store)
	last := all[len(all)-1]
	if last.Kind != mail.KindReservation || last.Session != "s1" || !strings.Contains(string(last.Doc), `"release_kind":"session_end"`) {
		t.Errorf("the log has %+v %s", last, last.Doc)
	}
	listed := mailtest.Must(d.FileReservations(t.Context(), mail.Caller{}, d.key, true))(t)
	if len(listed) != 2 || !listed[0].Ended || listed[0].Released == 0 || listed[1].Ended || listed[1].Released != 0 {
		t.Errorf("listed: %+v", listed)
	}
	mailtest.Want(t, "the next session", d.begin("s2"), "you are RedFox: 0 unread, 0 to acknowledge; RedFox holds b.go; RedFox no longer holds src/**: its session had ended")
	d.reserveIn("s2", "RedFox", "src/**")
	mailtest.Want(t, "which reserves again", d.told(t.Context(), "s2"), "you are RedFox: 0 unread, 0 to acknowledge; RedFox holds b.go, src/**")
	d.rebuilt()
}

func TestTheGracePeriodIsASettingAndEndsWithASuccessor(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.yard = d.with(mail.Config{OrphanGrace: time.Minute})
	d.working("s1", "RedFox", "src/**")
	d.end("s1")
	mailtest.Want(t, "the successor", d.begin("s2"), "you are RedFox: 0 unread, 0 to acknowledge; RedFox holds src/**")
	d.clock.Move(30 * time.Minute)
	mailtest.Want(t, "taken over", d.released(), 0)
	d.end("s2")
	d.clock.Move(61 * time.Second)
	mailtest.Want(t, "the sweep of a server", mailtest.Must(d.SweepReservations(t.Context()))(t), 1)
}

func TestTheGracePeriodOfAKilledSessionBeginsWhenItIsNoticed(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.seen(project.SessionEvent{ID: "k", PID: os.Getpid(), PIDStart: 1}) // the PID was reused: the start time differs
	d.registerIn("k", "RedFox")
	d.reserveIn("k", "RedFox", "src/**")
	d.seen(project.SessionEvent{ID: "x", Harness: "codex"})
	d.registerIn("x", "PinkDeer")
	d.clock.Move(20 * time.Minute)
	mailtest.Want(t, "not noticed yet", met(d.guard("x", "src/a.go")), "src/a.go<RedFox:src/**")
	mailtest.Want(t, "noticed by a conflict", len(d.reserveIn("x", "PinkDeer", "src/a.go").Granted), 0)
	d.clock.Move(4 * time.Minute)
	mailtest.Want(t, "within the grace period", d.released(), 0)
	d.clock.Move(2 * time.Minute)
	mailtest.Want(t, "a conflict after it", len(d.reserveIn("x", "PinkDeer", "src/a.go").Granted), 1)
	var kind string
	d.query(&kind, `SELECT release_kind FROM mail_reservations WHERE path_pattern = 'src/**'`)
	mailtest.Want(t, "released", kind, "session_end")
}

func TestAgentsAreTakenOverFromTheNewestEndedSession(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, name := range []string{"RedFox", "PinkDeer"} {
		d.working("of "+name, name)
		d.clock.Move(time.Minute)
	}
	d.end("of RedFox")
	d.clock.Move(time.Minute)
	d.end("of PinkDeer")
	mailtest.Want(t, "the first", d.begin("n1"), "you are PinkDeer: 0 unread, 0 to acknowledge")
	mailtest.Want(t, "again", d.begin("n1"), "you are PinkDeer: 0 unread, 0 to acknowledge")
	mailtest.Want(t, "the second", d.begin("n2"), "you are RedFox: 0 unread, 0 to acknowledge")
	mailtest.Want(t, "the third", d.begin("n3"), "")
	mailtest.Want(t, "by a name of its own", d.registerIn("n2", "GrayOwl"), "GrayOwl")
	mailtest.Want(t, "without one", d.registerIn("n2", ""), "RedFox")
	d.end("n1")
	mailtest.Want(t, "registering after another one ended", d.registerIn("n3", ""), "PinkDeer")
	mailtest.Want(t, "an own session is told of both", d.begin("n2"), "you are RedFox: 0 unread, 0 to acknowledge; you are GrayOwl: 0 unread, 0 to acknowledge")
}

func TestAgentsThatAreNotTakenOver(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(d *desk){
		"retired": func(d *desk) {
			mailtest.Must(d.RetireAgent(d.Context(), mail.Caller{}, agents.RetireArgs{ProjectKey: d.key, AgentName: "RedFox"}))(d)
		},
		"protected": func(d *desk) {
			mailtest.Must(d.RegisterAgent(d.Context(), mail.Caller{}, agents.RegisterArgs{ProjectKey: d.key, Program: "p", Model: "m", Name: "RedFox", WantToken: true}))(d)
		},
		"used by another harness since": func(d *desk) {
			d.clock.Move(time.Minute)
			d.seen(project.SessionEvent{ID: "x", Harness: "codex"})
			d.registerIn("x", "RedFox")
			d.seen(project.SessionEvent{ID: "x", Harness: "codex", Closes: true})
		},
		"used by a live session": func(d *desk) {
			d.begin("live")
			d.registerIn("live", "RedFox")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.working("s1", "RedFox")
			d.end("s1")
			spoil(d)
			d.clock.Move(time.Minute)
			mailtest.Want(t, "the next session", d.begin("s2"), "")
			if got := d.registerIn("s2", ""); got == "RedFox" {
				t.Error("it registers as RedFox")
			}
		})
	}
	d := newDesk(t)
	d.working("s1", "RedFox")
	d.end("s1")
	d.seen(project.SessionEvent{ID: "s2"})
	if err := d.BeginSession(t.Context(), "s2", true); err != nil {
		t.Fatal(err)
	}
	mailtest.Want(t, "a session of CAIRN_AGENT", d.told(t.Context(), "s2"), "")
	mailtest.Want(t, "without a store", New(nil, mail.Config{}).BeginSession(t.Context(), "s2", false), nil)
}

// TestAFormerSelfYields continues a session under another name. Its old agent requires a token,
// which the session no longer has.
func TestAFormerSelfYields(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.working("s1", "RedFox", "src/**")
	mailtest.Must(d.RegisterAgent(t.Context(), mail.Caller{}, agents.RegisterArgs{ProjectKey: d.key, Program: "p", Model: "m", Name: "RedFox", WantToken: true}))(t)
	d.end("s1")
	d.begin("s2")
	mailtest.Want(t, "the guard", met(d.guard("s2", "src/a.go")), "")
	me := d.registerIn("s2", "")
	free := mailtest.Must(d.CheckFileReservationConflicts(t.Context(), mail.Caller{Session: "s2"}, reservations.CheckArgs{ProjectKey: d.key, Paths: []string{"src/a.go"}, AgentName: me}))(t)
	mailtest.Want(t, "checked", len(free.Free), 1)
	g := d.reserveIn("s2", me, "src/a.go")
	mailtest.Want(t, "granted", patterns(g), "src/a.go")
	var kind string
	d.query(&kind, `SELECT release_kind FROM mail_reservations WHERE path_pattern = 'src/**'`)
	mailtest.Want(t, "the former one is released", kind, "session_end")
	d.rebuilt()
}

// TestSessionsThatShareAnAgentByNameKeepIt registers two live sessions by the same name. One of
// them loses its context.
func TestSessionsThatShareAnAgentByNameKeepIt(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.working("s1", "RedFox")
	d.working("s2", "RedFox")
	const named = "you are RedFox: 0 unread, 0 to acknowledge"
	mailtest.Want(t, "after a compaction", d.begin("s1"), named)
	mailtest.Want(t, "the other one", d.told(t.Context(), "s2"), named)
}

// TestASessionThatMailNamesIsKept checks that a purge of observations keeps sessions that mail
// refers to.
func TestASessionThatMailNamesIsKept(t *testing.T) {
	t.Parallel()
	y := newYard(t, mail.Config{})
	y.register(shared, "GreenLake")
	err := y.Store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		q, err := project.Ensure(ctx, tx, "p")
		if err != nil {
			return err
		}
		var keys []int64
		for i, statement := range []string{
			`INSERT INTO mail_sessions (session_key, agent_id, source, bound_ts) VALUES (?, 1, 'call', 1000)`,
			`INSERT INTO mail_notices (subject_uid, agent_id, notice, session_key, event, ts) VALUES ('u', 1, 'n', ?, 'e', 1000)`,
			`INSERT INTO mail_reservations (session_key, uid, project_id, agent_id, path_pattern, lit_prefix, exclusive, advisory, source, reason,
created_ts, expires_ts, ordinal, archive_path) VALUES (?, 'r', 1, 1, 'a', 'a', 1, 0, 'call', '', 1000, 2000, 1, 'x')`,
			`SELECT ?`,
		} {
			s, err := project.NewSession(ctx, tx, strconv.Itoa(i), q)
			if err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, statement, s.Key); err != nil {
				return err
			}
			keys = append(keys, s.Key)
		}
		kept, err := agents.Kept(ctx, tx, append(keys, 4711))
		if !slices.Equal(kept, keys[:3]) {
			t.Errorf("got %v of %v", kept, keys)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
