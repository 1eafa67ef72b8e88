package mail

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"cairn/internal/fault"
	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

func TestErrorsOfTheStoreHaveTheCodesOfMail(t *testing.T) {
	t.Parallel()
	for code, texts := range map[string]map[string][]string{
		CodeBusy:       {"Resource is temporarily busy.": {store.CodeBusy, store.CodeOverloaded, store.CodeClosed}},
		CodeDiskFull:   {"The disk is full.": {store.CodeFull}},
		CodeCorruption: {"The database is damaged.": {store.CodeCorrupt, store.CodeUnsound}},
		CodeDatabase:   {"A database error occurred.": {store.CodeReadOnly, store.CodeIO, store.CodeNewer, store.CodeReplaced, store.CodeMissing}},
	} {
		for text, codes := range texts {
			for _, of := range codes {
				err := toFault(fmt.Errorf("around: %w", fault.New(fault.Unavailable, of, "why")))
				recoverable := fmt.Sprintf(`"recoverable":%v`, code != CodeCorruption)
				wantError(t, of, err, code, text, recoverable)
			}
		}
	}
	wantError(t, "anything else", toFault(errors.New("boom")), CodeDatabase)
	if toFault(nil) != nil {
		t.Error("no error is one")
	}
	own := problemf(CodeLimit, "x").hint("h")
	wantError(t, "our own", toFault(own), CodeLimit)
}

func TestAStoreThatCannotBeWrittenToRefusesEveryCallAndIsStillRead(t *testing.T) {
	t.Parallel()
	s := newStreet(t, Config{})
	p := s.sent(SendArgs{})
	reading, err := store.Open(t.Context(), storetest.Config(store.Config{Path: s.store.Path(), ReadOnly: true}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := reading.Close(); err != nil {
			t.Error(err)
		}
	}()
	o, ctx, c := New(reading, Config{}), t.Context(), Caller{}
	for what, err := range map[string]error{
		"send":    second(o.SendMessage(ctx, c, SendArgs{ProjectKey: s.app, SenderName: "GreenLake", To: []string{"BlueDog"}})),
		"ack":     second(o.AcknowledgeMessage(ctx, c, s.app, "BlueDog", p.ID)),
		"contact": second(o.RequestContact(ctx, c, RequestArgs{ProjectKey: s.app, FromAgent: "BlueDog", ToAgent: "RedFox"})),
	} {
		wantError(t, what, err, CodeDatabase, "A database error occurred.")
	}
	if got := must(o.FetchInbox(context.Background(), c, InboxArgs{ProjectKey: s.app, AgentName: "BlueDog"}))(t); len(got) != 1 {
		t.Errorf("the inbox holds %d", len(got))
	}
}
