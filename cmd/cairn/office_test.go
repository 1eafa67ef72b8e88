package main

import (
	"context"
	"errors"
	"strings"

	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/messages"
	"cairn/internal/mail/reservations"
	"cairn/internal/mail/service"
	"cairn/internal/project"
	"cairn/internal/store"

	"github.com/rogpeppe/go-internal/testscript"
)

// office uses mail in the project $WORK/repo as a server would, between hooks:
//
//	office register SESSION NAME     the session acts as the agent
//	office reserve NAME PATH REASON  for an hour, exclusively
//	office advise NAME PATH REASON   the same, advisory
//	office send FROM TO IMPORTANCE SUBJECT BODY
//	office force NAME ID             as the human at this machine
//	office read NAME                 marks all messages as read
func office(ts *testscript.TestScript, neg bool, args []string) {
	ctx := context.Background()
	s, err := store.Open(ctx, store.Config{Path: ts.Getenv("DB"), Role: store.Server})
	ts.Check(err)
	err = correspond(ctx, service.New(s, mail.Config{}), ts.MkAbs("repo"), ts.Getenv("HOME"), args)
	ts.Check(s.Close())
	if (err != nil) != neg {
		ts.Fatalf("office %s: %v", strings.Join(args, " "), err)
	}
}

func correspond(ctx context.Context, o *service.Mail, repo, home string, args []string) error {
	place, err := project.Locate(repo, home)
	if err != nil {
		return err
	}
	c := mail.Caller{Place: place}
	switch args[0] {
	case "register":
		c.Session = args[1]
		_, err = o.RegisterAgent(ctx, c, agents.RegisterArgs{ProjectKey: repo, Program: "claude-code", Model: "m", Name: args[2]})
	case "reserve", "advise":
		var g reservations.GrantedReservations
		g, err = o.FileReservationPaths(ctx, c, reservations.ReserveArgs{
			ProjectKey: repo, AgentName: args[1], Paths: []string{args[2]}, Reason: args[3], Advisory: args[0] == "advise",
		})
		if err == nil && len(g.Granted) == 0 {
			err = errors.New("not granted")
		}
	case "send":
		_, err = o.SendMessage(ctx, c, messages.SendArgs{
			ProjectKey: repo, SenderName: args[1], To: []string{args[2]}, Importance: args[3], Subject: args[4], Body: args[5], AckRequired: args[3] == "high",
		})
	case "force":
		c.Owner = true
		_, err = o.ForceReleaseFileReservation(ctx, c, reservations.ForceArgs{ProjectKey: repo, AgentName: mail.Overseer, ID: 1, Note: "needed elsewhere"})
	case "read":
		var all []messages.Item
		all, err = o.FetchInbox(ctx, c, messages.InboxArgs{ProjectKey: repo, AgentName: args[1], UnreadOnly: true})
		for _, m := range all {
			_, more := o.MarkMessageRead(ctx, c, repo, args[1], m.ID)
			err = errors.Join(err, more)
		}
	default:
		err = errors.New("no such word")
	}
	return err
}
