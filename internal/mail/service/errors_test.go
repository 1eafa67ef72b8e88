package service

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/mail/mailtest"
	"cairn/internal/mail/messages"
	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

func TestErrorsOfTheStoreHaveTheCodesOfMail(t *testing.T) {
	t.Parallel()
	for code, texts := range map[string]map[string][]string{
		mail.CodeBusy:       {"Resource is temporarily busy.": {store.CodeBusy, store.CodeOverloaded, store.CodeClosed}},
		mail.CodeDiskFull:   {"The disk is full.": {store.CodeFull}},
		mail.CodeCorruption: {"The database is damaged.": {store.CodeCorrupt, store.CodeUnsound}},
		mail.CodeDatabase:   {"A database error occurred.": {store.CodeReadOnly, store.CodeIO, store.CodeNewer, store.CodeReplaced, store.CodeMissing}},
	} {
		for text, codes := range texts {
			for _, of := range codes {
				err := mail.Fault(fmt.Errorf("around: %w", fault.New(fault.Unavailable, of, "why")))
				recoverable := fmt.Sprintf(`"recoverable":%v`, code != mail.CodeCorruption)
				wantError(t, of, err, code, text, recoverable)
			}
		}
	}
	wantError(t, "anything else", mail.Fault(errors.New("boom")), mail.CodeDatabase)
	if mail.Fault(nil) != nil {
		t.Error("no error is one")
	}
	own := mail.Errorf(mail.CodeLimit, "x").Hint("h")
	wantError(t, "our own", mail.Fault(own), mail.CodeLimit)
}

func TestAStoreThatCannotBeWrittenToRefusesEveryCallAndIsStillRead(t *testing.T) {
	t.Parallel()
	s := newStreet(t, mail.Config{})
	p := s.sent(messages.SendArgs{})
	reading, err := store.Open(t.Context(), storetest.Config(store.Config{Path: s.Store.Path(), ReadOnly: true}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := reading.Close(); err != nil {
			t.Error(err)
		}
	}()
	o, ctx, c := New(reading, mail.Config{}), t.Context(), mail.Caller{}
	for what, err := range map[string]error{
		"send":    second(o.SendMessage(ctx, c, messages.SendArgs{ProjectKey: s.app, SenderName: "GreenLake", To: []string{"BlueDog"}})),
		"ack":     second(o.AcknowledgeMessage(ctx, c, s.app, "BlueDog", p.ID)),
		"contact": second(o.RequestContact(ctx, c, messages.RequestArgs{ProjectKey: s.app, FromAgent: "BlueDog", ToAgent: "RedFox"})),
	} {
		wantError(t, what, err, mail.CodeDatabase, "A database error occurred.")
	}
	if got := mailtest.Must(o.FetchInbox(context.Background(), c, messages.InboxArgs{ProjectKey: s.app, AgentName: "BlueDog"}))(t); len(got) != 1 {
		t.Errorf("the inbox holds %d", len(got))
	}
}
