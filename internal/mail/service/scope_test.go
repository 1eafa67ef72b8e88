package service

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/mailtest"
)

// register registers a new agent. An empty name generates one.
func register(ctx context.Context, s *mail.CallTx, name string) error {
	r, err := agents.NewRegistration(s.Kernel, s.Caller, agents.RegisterArgs{Name: name, Program: "p", Model: "m"})
	if err == nil {
		_, err = agents.Register(ctx, s, r, true)
	}
	return err
}

func TestACallThatFailsLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	y := newYard(t, mail.Config{})
	root := y.repo("app")
	refused := errors.New("refused")
	err := y.WriteIn(t.Context(), mail.Caller{Session: "s1"}, root, func(ctx context.Context, s *mail.CallTx) error {
		if err := register(ctx, s, ""); err != nil {
			t.Error(err)
		}
		return refused
	})
	if !errors.Is(err, refused) {
		t.Errorf("the error is %v", err)
	}
	mailtest.Want(t, "changes", y.changes(), 0)
	var rows int
	y.query(&rows, "SELECT (SELECT count(*) FROM mail_projects) + (SELECT count(*) FROM mail_agents) + (SELECT count(*) FROM mail_sessions) + (SELECT count(*) FROM sessions)")
	mailtest.Want(t, "rows", rows, 0)
}

func TestOnlyAnAgentsOwnWritesStampItsActivity(t *testing.T) {
	t.Parallel()
	y := newYard(t, mail.Config{})
	made := y.register(shared, "GreenLake")
	active := func() (at mail.Time) {
		y.query(&at, "SELECT last_active_ts FROM mail_agents WHERE name = 'GreenLake'")
		return at
	}
	y.clock.Move(time.Hour)
	mailtest.Must(y.Whois(t.Context(), mail.Caller{}, agents.WhoisArgs{ProjectKey: shared, AgentName: "GreenLake"}))(t)
	mailtest.Must(y.ListAgents(t.Context(), mail.Caller{}, agents.ListAgentsArgs{ProjectKey: shared}))(t)
	err := y.ReadIn(t.Context(), mail.Caller{Session: "s1", Transport: "T"}, shared, func(ctx context.Context, s *mail.CallTx) error {
		if _, err := s.ReadAs(ctx, "GreenLake"); err != nil {
			return err
		}
		_, err := s.ActAs(ctx, "GreenLake") // a reading call does not bind the session
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	y.register(shared, "BlueDog")
	mailtest.Want(t, "after reading, and after another's writing", active(), made.LastActive)
	mailtest.Want(t, "bonds by reading", y.bonds(), "")
	mailtest.Must(y.RotateToken(t.Context(), mail.Caller{}, shared, "GreenLake"))(t)
	if active() < made.LastActive+mail.Time(time.Hour) {
		t.Errorf("not active by writing: %s", active())
	}
}

func TestACallReachesAnotherProjectInItsTransaction(t *testing.T) {
	t.Parallel()
	y := newYard(t, mail.Config{})
	y.register(shared, "GreenLake")
	there := y.ensure("/nowhere/there")
	err := y.WriteIn(t.Context(), mail.Caller{}, shared, func(ctx context.Context, s *mail.CallTx) error {
		if _, err := s.ActAs(ctx, "GreenLake"); err != nil {
			return err
		}
		p, err := mail.ProjectByUID(ctx, s.Tx, there.UID)
		if err != nil {
			return err
		}
		return register(ctx, s.InProject(p), "GreenLake")
	})
	if err != nil {
		t.Fatal(err)
	}
	got := mailtest.Must(y.Whois(t.Context(), mail.Caller{}, agents.WhoisArgs{ProjectKey: there.Slug, AgentName: "GreenLake"}))(t)
	mailtest.Want(t, "project of the other agent", got.ProjectID, there.ID)
	y.rebuilt()
}

func TestTextsAreCheckedCleanedAndCut(t *testing.T) {
	t.Parallel()
	y := newYard(t, mail.Config{})
	secret := "ghp_" + strings.Repeat("aB3x", 9)
	for text, wanted := range map[string]string{
		" a\tb\r\nc\x1b[31m\x7f\u0085 ": "a b  c [31m", "é" + strings.Repeat("ü", 20): "é" + strings.Repeat("ü", 10), "": "", "\u2029x": "x",
	} {
		mailtest.Want(t, text, mailtest.Must(y.Line("subject", text, 11))(t), wanted)
	}
	if got := mailtest.Must(y.Text("body_md", "line\r\n\t"+secret))(t); strings.Contains(got, secret) || !strings.HasPrefix(got, "line\r\n\t") {
		t.Errorf("body: %q", got)
	}
	for _, text := range []string{"\x00", "a\xff", "\xed\xa0\x80"} {
		_, err := y.Text("body_md", text)
		wantError(t, text, err, mail.CodeInvalid, `"field":"body_md"`)
		_, err = y.Line("subject", text, 200)
		wantError(t, text, err, mail.CodeInvalid, `"field":"subject"`)
	}
	mailtest.Want(t, "cut", mail.Truncate("aéb", 2), "aé")
	mailtest.Want(t, "cut to nothing", mail.Truncate("aéb", 0), "")
	mailtest.Want(t, "not cut", mail.Truncate("aéb", 3), "aéb")
}

func TestLimits(t *testing.T) {
	t.Parallel()
	for given, wanted := range map[int]int{1: 1, 20: 20, 1000: 1000, 1001: 1000, 1 << 40: 1000} {
		mailtest.Want(t, "limit", mailtest.Must(mail.CheckLimit(&given, 20))(t), wanted)
	}
	mailtest.Want(t, "none given", mailtest.Must(mail.CheckLimit(nil, 20))(t), 20)
	for _, given := range []int{0, -1, -1 << 40} {
		_, err := mail.CheckLimit(&given, 20)
		wantError(t, "too low", mail.Fault(err), mail.CodeLimit, "Use a positive integer.", `"max":1000,"min":1`)
	}
}
