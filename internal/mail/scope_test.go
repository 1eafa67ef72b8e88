package mail

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"cairn/internal/fault"
)

func TestACallThatFailsLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	y := newYard(t, Config{})
	root := y.repo("app")
	refused := errors.New("refused")
	err := y.writeIn(t.Context(), Caller{Session: "s1"}, root, func(ctx context.Context, s *callTx) error {
		if _, err := s.register(ctx, profile{program: "p", model: "m", policy: "auto"}, false); err != nil {
			t.Error(err)
		}
		return refused
	})
	if !errors.Is(err, refused) {
		t.Errorf("the error is %v", err)
	}
	want(t, "changes", y.changes(), 0)
	var rows int
	y.query(&rows, "SELECT (SELECT count(*) FROM mail_projects) + (SELECT count(*) FROM mail_agents) + (SELECT count(*) FROM mail_sessions) + (SELECT count(*) FROM sessions)")
	want(t, "rows", rows, 0)
}

func TestOnlyAnAgentsOwnWritesStampItsActivity(t *testing.T) {
	t.Parallel()
	y := newYard(t, Config{})
	made := y.register(shared, "GreenLake")
	active := func() (at Time) {
		y.query(&at, "SELECT last_active_ts FROM mail_agents WHERE name = 'GreenLake'")
		return at
	}
	y.clock.Move(time.Hour)
	must(y.Whois(t.Context(), Caller{}, WhoisArgs{ProjectKey: shared, AgentName: "GreenLake"}))(t)
	must(y.ListAgents(t.Context(), Caller{}, ListAgentsArgs{ProjectKey: shared}))(t)
	err := y.readIn(t.Context(), Caller{Session: "s1", Transport: "T"}, shared, func(ctx context.Context, s *callTx) error {
		if _, err := s.reader(ctx, "GreenLake"); err != nil {
			return err
		}
		_, err := s.actor(ctx, "GreenLake") // of a reading tool: it binds nothing
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	y.register(shared, "BlueDog")
	want(t, "after reading, and after another's writing", active(), made.LastActive)
	want(t, "bonds by reading", y.bonds(), "")
	must(y.RotateToken(t.Context(), Caller{}, shared, "GreenLake"))(t)
	if active() < made.LastActive+Time(time.Hour) {
		t.Errorf("not active by writing: %s", active())
	}
}

func TestACallReachesAnotherProjectInItsTransaction(t *testing.T) {
	t.Parallel()
	y := newYard(t, Config{})
	y.register(shared, "GreenLake")
	there := y.ensure("/nowhere/there")
	err := y.writeIn(t.Context(), Caller{}, shared, func(ctx context.Context, s *callTx) error {
		if _, err := s.actor(ctx, "GreenLake"); err != nil {
			return err
		}
		p, err := s.findOther(ctx, "/nowhere/there")
		if err != nil {
			return err
		}
		other := s.other(p)
		if _, err := other.added(ctx, other.strangerCalled("GreenLake")); err != nil {
			return err
		}
		_, err = s.findOther(ctx, "/nowhere/at/all")
		wantError(t, "an unknown project", err, CodeNotFound, `"tool":"ensure_project"`)
		_, err = s.findOther(ctx, "{PROJECT}")
		wantError(t, "a placeholder", err, CodeConfiguration)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	got := must(y.Whois(t.Context(), Caller{}, WhoisArgs{ProjectKey: there.Slug, AgentName: "GreenLake"}))(t)
	want(t, "project of the other agent", got.ProjectID, there.ID)
	y.rebuilt()
}

func (s *callTx) strangerCalled(name string) *Agent {
	a := s.newAgent(name)
	a.Program, a.Model = "p", "m"
	return a
}

func TestTextsAreCheckedCleanedAndCut(t *testing.T) {
	t.Parallel()
	y := newYard(t, Config{})
	secret := "ghp_" + strings.Repeat("aB3x", 9)
	for text, wanted := range map[string]string{
		" a\tb\r\nc\x1b[31m\x7f\u0085 ": "a b  c [31m", "é" + strings.Repeat("ü", 20): "é" + strings.Repeat("ü", 10), "": "", "\u2029x": "x",
	} {
		want(t, text, must(y.line("subject", text, 11))(t), wanted)
	}
	if got := must(y.text("body_md", "line\r\n\t"+secret))(t); strings.Contains(got, secret) || !strings.HasPrefix(got, "line\r\n\t") {
		t.Errorf("body: %q", got)
	}
	for _, text := range []string{"\x00", "a\xff", "\xed\xa0\x80"} {
		_, err := y.text("body_md", text)
		wantError(t, text, err, CodeInvalid, `"field":"body_md"`)
		_, err = y.line("subject", text, 200)
		wantError(t, text, err, CodeInvalid, `"field":"subject"`)
	}
	want(t, "cut", cut("aéb", 2), "aé")
	want(t, "cut to nothing", cut("aéb", 0), "")
	want(t, "not cut", cut("aéb", 3), "aéb")
}

func TestLimits(t *testing.T) {
	t.Parallel()
	for given, wanted := range map[int]int{1: 1, 20: 20, 1000: 1000, 1001: 1000, 1 << 40: 1000} {
		want(t, "limit", must(limit(&given, 20))(t), wanted)
	}
	want(t, "none given", must(limit(nil, 20))(t), 20)
	for _, given := range []int{0, -1, -1 << 40} {
		_, err := limit(&given, 20)
		wantError(t, "too low", toFault(err), CodeLimit, "Use a positive integer.", `"max":1000,"min":1`)
	}
}

func TestEveryCodeHasAKind(t *testing.T) {
	t.Parallel()
	for code, kind := range map[string]fault.Kind{
		CodeConfiguration: fault.Invalid, CodeMissing: fault.Invalid, CodeEmptyModel: fault.Invalid, CodeAgentName: fault.Invalid,
		CodeNotFound: fault.NotFound, CodeDenied: fault.Denied, CodeDiskFull: fault.Unavailable,
	} {
		want(t, code, kindOf(code), kind)
	}
}
