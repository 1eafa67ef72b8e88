package service

import (
	"context"
	"fmt"
	"testing"
	"time"

	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/documents"
	"cairn/internal/mail/mailtest"
	"cairn/internal/mail/messages"
	"cairn/internal/mail/reservations"
	"cairn/internal/store"
)

func TestAnInboxOfThePastMarksNothingAndSaysWhatWasPurged(t *testing.T) {
	t.Parallel()
	s := newStreet(t, mail.Config{})
	s.sent(messages.SendArgs{Body: "first"})
	s.sent(messages.SendArgs{Body: "second"})
	then := s.clock.Now().UTC().Format(time.RFC3339Nano)
	mailtest.Must(s.MarkMessageRead(t.Context(), mail.Caller{}, s.app, "BlueDog", 1))(t)
	s.sent(messages.SendArgs{Body: "third"})
	args := messages.InboxArgs{ProjectKey: s.app, AgentName: "BlueDog", UnreadOnly: true, IncludeBodies: true, At: then}
	before := s.changes()
	got := mailtest.Must(s.InboxAt(t.Context(), mail.Caller{}, args))(t)
	mailtest.Want(t, "unread then", ids(got.Result), "2 1")
	mailtest.Want(t, "nothing is written", s.changes(), before)
	mailtest.Want(t, "what is plain is not mentioned", got.At.Note, "")
	mailtest.Must(s.Purge(t.Context(), mail.Caller{Owner: true}, documents.PurgeArgs{IDs: []int64{1}, Confirm: true}))(t)
	got = mailtest.Must(s.InboxAt(t.Context(), mail.Caller{}, args))(t)
	mailtest.Want(t, "after the purge", ids(got.Result), "2 1")
	mailtest.Want(t, "without the text", *got.Result[1].Body, "")
	mailtest.Want(t, "and says so", got.At.Note, "purged since, and without a text here: 1 of the messages")
}

func TestReservationsOfThePastHaveNotExpired(t *testing.T) {
	t.Parallel()
	s := newStreet(t, mail.Config{})
	reserve := func(path string, seconds int64) {
		mailtest.Must(s.FileReservationPaths(t.Context(), mail.Caller{}, reservations.ReserveArgs{ProjectKey: s.app, AgentName: "BlueDog", Paths: []string{path}, TTLSeconds: &seconds}))(t)
	}
	reserve("a", 60)
	reserve("b", 6000)
	began := s.clock.Now()
	s.clock.Move(time.Hour)
	mailtest.Must(s.SweepReservations(t.Context()))(t)
	for after, n := range map[time.Duration]int{0: 2, 50 * time.Second: 2, 2 * time.Minute: 1, 59 * time.Minute: 1} {
		got := mailtest.Must(s.FileReservationsAt(t.Context(), mail.Caller{}, s.app, false, began.Add(after).UTC().Format(time.RFC3339Nano)))(t)
		mailtest.Want(t, fmt.Sprint("after ", after), len(got.Result), n)
		mailtest.Want(t, "signs", got.Result[0].Reasons[0], "not_known_of_the_past")
	}
	_, err := s.FileReservationsAt(t.Context(), mail.Caller{}, s.app, false, "2200-01-01T00:00:00Z")
	wantError(t, "the future", err, mail.CodeTimestamp)
	mailtest.Want(t, "kind", fault.KindOf(err), fault.Invalid)
}

// BenchmarkPast queries the beginning, the middle and the end of 100,000 changes of one project.
// The agent, one of ten, has received 2,500 messages or all 25,000.
func BenchmarkPast(b *testing.B) {
	y := newYard(b, mail.Config{})
	key := y.repo("big")
	for i := range 10 {
		y.register(key, fmt.Sprint([]string{"Green", "Blue", "Red", "Amber", "Black", "White", "Gold", "Gray", "Pink", "Teal"}[i], "Lake"))
	}
	names := mailtest.Must(y.ListAgents(b.Context(), mail.Caller{Owner: true}, agents.ListAgentsArgs{ProjectKey: key}))(b)
	p := y.ensure(key)
	began := y.clock.Now()
	for block := range 250 {
		err := y.Store.Write(b.Context(), store.Normal, func(ctx context.Context, tx *store.Tx) error {
			s := &mail.CallTx{Kernel: y.Kernel, Tx: tx, Now: mail.Now(tx), Writes: true}
			var err error
			if s.Project, err = mail.QueryProject(ctx, tx, mail.SelectProjectByID, p.ID); err != nil {
				return err
			}
			return benchBlock(ctx, s, names, block)
		})
		if err != nil {
			b.Fatal(err)
		}
		y.clock.Move(4 * time.Minute)
	}
	whole := y.clock.Now().Sub(began)
	for _, at := range []float64{0.01, 0.5, 1} {
		text := began.Add(time.Duration(at * float64(whole))).UTC().Format(time.RFC3339Nano)
		for _, name := range []string{names[0].Name, names[1].Name} {
			for _, unread := range []bool{false, true} {
				b.Run(fmt.Sprintf("inbox of %s/unread=%v/at %v", name, unread, at), func(b *testing.B) {
					for b.Loop() {
						if _, err := y.InboxAt(b.Context(), mail.Caller{Owner: true}, messages.InboxArgs{ProjectKey: key, AgentName: name, UnreadOnly: unread, At: text}); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
		b.Run(fmt.Sprintf("reservations/at %v", at), func(b *testing.B) {
			for b.Loop() {
				if _, err := y.FileReservationsAt(b.Context(), mail.Caller{Owner: true}, key, false, text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// benchBlock logs 400 changes: messages to the first agent and to another one, their reading, and
// reservations with their release.
func benchBlock(ctx context.Context, s *mail.CallTx, names []agents.ListedAgent, block int) error {
	released := reservations.ReleasedByOwner
	for i := range 100 {
		n := int64(block*100 + i + 1)
		other := names[1+i%9].Name
		m := &mail.Message{
			ID: n, UID: store.NewID(), ProjectUID: s.Project.UID, From: other, To: []string{names[0].Name, other}, CC: []string{}, BCC: []string{}, Importance: "normal",
			Created: s.Now, Subject: "subject", Attachments: []byte("[]"), Body: "a body of some words", Ordinal: n, ArchivePath: fmt.Sprintf("messages/2023/11/%d.md", n),
		}
		r := &mail.Reservation{
			ID: n, UID: store.NewID(), ProjectUID: s.Project.UID, Agent: other, PathPattern: fmt.Sprint("src/", n), LitPrefix: fmt.Sprint("src/", n), Exclusive: true,
			Source: reservations.ReservedByTool, Created: s.Now, Expires: s.Now + mail.Time(time.Hour), Ordinal: n, ArchivePath: fmt.Sprint("reservations/", n),
		}
		ended := *r
		ended.Released, ended.ReleaseKind = s.Now, &released
		for _, d := range []mail.Document{m, &mail.Delivery{MessageID: n, UID: m.UID, ProjectUID: s.Project.UID, Agent: other, Recipient: "to", Read: s.Now}, r, &ended} {
			if d == &ended && i%50 == 0 {
				d = &mail.Delivery{MessageID: n, UID: m.UID, ProjectUID: s.Project.UID, Agent: names[0].Name, Recipient: "to", Read: s.Now}
			}
			if err := s.Put(ctx, d); err != nil {
				return err
			}
		}
	}
	return nil
}
