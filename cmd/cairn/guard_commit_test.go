package main

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"cairn/internal/mail"
	"cairn/internal/store"
)

// office calls do with the mail over the store of a script.
func office(ts *testscript.TestScript, do func(ctx context.Context, o *mail.Office) error) {
	ctx := context.Background()
	s, err := store.Open(ctx, store.Config{Path: ts.Getenv("DB")})
	ts.Check(err)
	ts.Check(errors.Join(do(ctx, mail.New(s, mail.Config{})), s.Close()))
}

// reserved makes an agent reserve patterns of a project: reserved FOLDER AGENT
// PATTERN... Before the patterns --shared and --advisory may stand.
func reserved(ts *testscript.TestScript, _ bool, args []string) {
	a := mail.ReserveArgs{ProjectKey: ts.MkAbs(args[0]), AgentName: args[1], Reason: "in the middle of it"}
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
	office(ts, func(ctx context.Context, o *mail.Office) error {
		_, err := o.FileReservationPaths(ctx, mail.Caller{}, a)
		return err
	})
}

// registered makes an agent known to a project: registered FOLDER AGENT.
func registered(ts *testscript.TestScript, _ bool, args []string) {
	office(ts, func(ctx context.Context, o *mail.Office) error {
		r, err := o.RegisterAgent(ctx, mail.Caller{}, mail.RegisterArgs{ProjectKey: ts.MkAbs(args[0]), Program: "claude-code", Model: "m1", Name: args[1]})
		if err == nil && r.Name != args[1] {
			err = errors.New("the agent was named " + r.Name)
		}
		return err
	})
}

// nul makes a file of words, each ended by NUL: nul FILE WORD... In a word \n and \e
// stand for the characters.
func nul(ts *testscript.TestScript, _ bool, args []string) {
	var text strings.Builder
	for _, word := range args[1:] {
		text.WriteString(strings.NewReplacer(`\n`, "\n", `\e`, "\x1b").Replace(word) + "\x00")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text.String()), 0o600))
}

// bound makes a session act as an agent of a project: bound FOLDER AGENT SESSION.
func bound(ts *testscript.TestScript, _ bool, args []string) {
	office(ts, func(ctx context.Context, o *mail.Office) error {
		return o.Bind(ctx, mail.Caller{}, ts.MkAbs(args[0]), mail.Bond{Session: args[2], Agent: args[1], Source: mail.SourceCall})
	})
}

// freed releases all that an agent of a project holds: freed FOLDER AGENT.
func freed(ts *testscript.TestScript, _ bool, args []string) {
	office(ts, func(ctx context.Context, o *mail.Office) error {
		_, err := o.ReleaseFileReservations(ctx, mail.Caller{}, mail.ReleaseArgs{ProjectKey: ts.MkAbs(args[0]), AgentName: args[1]})
		return err
	})
}
