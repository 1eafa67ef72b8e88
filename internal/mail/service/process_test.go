package service

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/mailtest"
	"cairn/internal/store/storetest"
)

// child starts a process that runs one of children.
func child(t *testing.T, y *yard, does, name string) *storetest.Process {
	t.Helper()
	return storetest.StartProcess(t, storetest.Command("", childVar+"="+does, pathVar+"="+y.Store.Path(), nameVar+"="+name))
}

const childProject = "/nowhere/shared"

func registerOnce(ctx context.Context, o *Mail, name string) error {
	return enter(ctx, name, o.RegisterAgent)
}

func createOnce(ctx context.Context, o *Mail, name string) error {
	return enter(ctx, name, o.CreateAgent)
}

func enter(ctx context.Context, name string, how func(context.Context, mail.Caller, agents.RegisterArgs) (agents.Registered, error)) error {
	storetest.Tell("ready")
	storetest.Hear(bufio.NewReader(os.Stdin))
	out, err := how(ctx, mail.Caller{}, agents.RegisterArgs{ProjectKey: childProject, Program: "p", Model: "m", Name: name})
	if fault.HasCode(err, mail.CodeInvalid) {
		storetest.Tell("refused")
		return nil
	}
	if err == nil {
		storetest.Tell(fmt.Sprint(out.ProjectID, " ", out.ID, " ", out.Name))
	}
	return err
}

// race starts four processes that run the same function concurrently.
func race(t *testing.T, y *yard, does, name string) (answers []string) {
	t.Helper()
	var all []*storetest.Process
	for range 4 {
		p := child(t, y, does, name)
		p.Expect(t, "ready")
		all = append(all, p)
	}
	for _, p := range all {
		p.Send("go")
	}
	for _, p := range all {
		lines, err := p.Wait(t)
		if err != nil || len(lines) != 1 {
			t.Fatalf("%q, %v", lines, err)
		}
		answers = append(answers, lines[0])
	}
	return answers
}

func TestProcessesThatRegisterOneNameAtOnceAreOneAgentOfOneProject(t *testing.T) {
	t.Parallel()
	y := newYard(t, mail.Config{})
	for _, answer := range race(t, y, "register", "GreenLake") {
		mailtest.Want(t, "answer", answer, "1 1 GreenLake")
	}
	y.rebuilt()
}

func TestOfProcessesThatCreateOneNameAtOnceExactlyOneSucceeds(t *testing.T) {
	t.Parallel()
	y := newYard(t, mail.Config{})
	got := strings.Join(race(t, y, "create", "GreenLake"), ",")
	mailtest.Want(t, "refused", strings.Count(got, "refused"), 3)
	mailtest.Want(t, "made", strings.Count(got, "1 1 GreenLake"), 1)
	y.rebuilt()
}
