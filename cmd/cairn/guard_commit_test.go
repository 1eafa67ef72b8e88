package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/reservations"
	"cairn/internal/mail/service"
	"cairn/internal/project"
	"cairn/internal/store"

	"github.com/rogpeppe/go-internal/testscript"
)

// inOffice calls do with the mail service of a script's store.
func inOffice(ts *testscript.TestScript, do func(ctx context.Context, o *service.Mail) error) {
	ctx := context.Background()
	s, err := store.Open(ctx, store.Config{Path: ts.Getenv("DB")})
	ts.Check(err)
	ts.Check(errors.Join(do(ctx, service.New(s, mail.Config{})), s.Close()))
}

// reserved makes an agent reserve patterns of a project: reserved FOLDER AGENT PATTERN... The
// options --shared and --advisory may precede the patterns.
func reserved(ts *testscript.TestScript, _ bool, args []string) {
	a := reservations.ReserveArgs{ProjectKey: ts.MkAbs(args[0]), AgentName: args[1], Reason: "in the middle of it"}
	for _, word := range args[2:] {
		switch {
		case word == "--shared":
			a.Shared = true
		case word == "--advisory":
			a.Advisory = true
		default:
			a.Paths = append(a.Paths, strings.ReplaceAll(word, `\n`, "\n"))
		}
	}
	registered(ts, false, args[:2])
	inOffice(ts, func(ctx context.Context, o *service.Mail) error {
		_, err := o.FileReservationPaths(ctx, mail.Caller{}, a)
		return err
	})
}

// reservedIn is like reserved, in a folder that is a separate project.
func reservedIn(ts *testscript.TestScript, neg bool, args []string) {
	inOffice(ts, func(ctx context.Context, o *service.Mail) error {
		_, err := o.EnsureProject(ctx, mail.Caller{}, agents.EnsureArgs{HumanKey: ts.MkAbs(args[0]), IdentityMode: "dir"})
		return err
	})
	reserved(ts, neg, args)
}

// registered registers an agent in a project: registered FOLDER AGENT.
func registered(ts *testscript.TestScript, _ bool, args []string) {
	inOffice(ts, func(ctx context.Context, o *service.Mail) error {
		r, err := o.RegisterAgent(ctx, mail.Caller{}, agents.RegisterArgs{ProjectKey: ts.MkAbs(args[0]), Program: "claude-code", Model: "m1", Name: args[1]})
		if err == nil && r.Name != args[1] {
			err = errors.New("the agent was named " + r.Name)
		}
		return err
	})
}

// nul creates a file of words, each terminated by NUL: nul FILE WORD... In a word, \n and \e are
// replaced by newline and escape.
func nul(ts *testscript.TestScript, _ bool, args []string) {
	var text strings.Builder
	for _, word := range args[1:] {
		text.WriteString(strings.NewReplacer(`\n`, "\n", `\e`, "\x1b").Replace(word) + "\x00")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text.String()), 0o600))
}

// bound binds a session to an agent of a project: bound FOLDER AGENT SESSION.
func bound(ts *testscript.TestScript, _ bool, args []string) {
	ctx := context.Background()
	s, err := store.Open(ctx, store.Config{Path: ts.Getenv("DB")})
	ts.Check(err)
	place, err := project.Locate(ts.MkAbs(args[0]), "")
	ts.Check(err)
	var q project.Project
	ts.Check(s.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		q, _, err = project.Current(ctx, tx, place)
		return err
	}))
	err = service.New(s, mail.Config{}).Bind(ctx, mail.Caller{}, q, agents.Binding{Session: args[2], Agent: args[1], Source: mail.SourceCall})
	ts.Check(errors.Join(err, s.Close()))
}

// freed releases all reservations of an agent in a project: freed FOLDER AGENT.
func freed(ts *testscript.TestScript, _ bool, args []string) {
	inOffice(ts, func(ctx context.Context, o *service.Mail) error {
		_, err := o.ReleaseFileReservations(ctx, mail.Caller{}, reservations.ReleaseArgs{ProjectKey: ts.MkAbs(args[0]), AgentName: args[1]})
		return err
	})
}

// TestAGuardIsNotFeltInALargeCommit commits thousands of files against a thousand reservations. The
// guard must not delay the commit.
func TestAGuardIsNotFeltInALargeCommit(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	h := newHome(t)
	repo := filepath.Join(h.dir, "repo")
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=Ana", "-c", "user.email=a@example.org", "-C", repo}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	for i := range 5000 {
		name := filepath.Join(repo, fmt.Sprintf("d%d/sub/f%d.go", i%100, i))
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte("x"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "-q")
	git("add", "-A")
	ctx := t.Context()
	s, err := store.Open(ctx, store.Config{Path: h.db()})
	if err != nil {
		t.Fatal(err)
	}
	o := service.New(s, mail.Config{})
	if _, err = o.RegisterAgent(ctx, mail.Caller{}, agents.RegisterArgs{ProjectKey: repo, Program: "p", Model: "m", Name: "BlueLake"}); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		a := reservations.ReserveArgs{ProjectKey: repo, AgentName: "BlueLake"}
		for j := range 200 {
			a.Paths = append(a.Paths, fmt.Sprintf("d%d/sub/[a-e]*%d-%d.go", j%100, i, j))
		}
		a.Paths[0] = fmt.Sprintf("d7/sub/f%d.go", 7+100*i)
		if _, err = o.FileReservationPaths(ctx, mail.Caller{}, a); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	h.vars["CAIRN_AGENT"] = "RedFox"
	best := time.Hour
	for range 3 {
		cmd := h.command("guard", "check", "--json")
		cmd.Dir = repo
		e := h.run(cmd, nil)
		best = min(best, e.took)
		if n := strings.Count(e.stdout, `"holder"`); e.code != 1 || n != 5 {
			t.Fatalf("exit %d, %d conflicts, %s", e.code, n, e.stderr)
		}
	}
	t.Logf("%v for 5,000 files and 1,000 reservations", best)
	if best > 5*time.Second {
		t.Errorf("%v", best)
	}
}
