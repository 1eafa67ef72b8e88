package mail

import (
	"context"
	"fmt"
	"testing"
	"time"

	"cairn/internal/fault"
	"cairn/internal/store"
)

func TestAnInboxOfThePastMarksNothingAndSaysWhatWasPurged(t *testing.T) {
	t.Parallel()
	s := newStreet(t, Config{})
	s.sent(SendArgs{Body: "first"})
	s.sent(SendArgs{Body: "second"})
	then := s.clock.Now().UTC().Format(time.RFC3339Nano)
	must(s.MarkMessageRead(t.Context(), Caller{}, s.app, "BlueDog", 1))(t)
	s.sent(SendArgs{Body: "third"})
	args := InboxArgs{ProjectKey: s.app, AgentName: "BlueDog", UnreadOnly: true, IncludeBodies: true, At: then}
	before := s.changes()
	got := must(s.InboxAt(t.Context(), Caller{}, args))(t)
	want(t, "unread then", ids(got.Result), "2 1")
	want(t, "nothing is written", s.changes(), before)
	want(t, "what is plain is not mentioned", got.At.Note, "")
	must(s.Purge(t.Context(), Caller{Owner: true}, PurgeArgs{IDs: []int64{1}, Confirm: true}))(t)
	got = must(s.InboxAt(t.Context(), Caller{}, args))(t)
	want(t, "after the purge", ids(got.Result), "2 1")
	want(t, "without the text", *got.Result[1].Body, "")
	want(t, "and says so", got.At.Note, "purged since, and without a text here: 1 of the messages")
}

func TestReservationsOfThePastHaveNotExpired(t *testing.T) {
	t.Parallel()
	s := newStreet(t, Config{})
	reserve := func(path string, seconds int64) {
		must(s.FileReservationPaths(t.Context(), Caller{}, ReserveArgs{ProjectKey: s.app, AgentName: "BlueDog", Paths: []string{path}, TTLSeconds: &seconds}))(t)
	}
	reserve("a", 60)
	reserve("b", 6000)
	began := s.clock.Now()
	s.clock.Move(time.Hour)
	must(s.SweepReservations(t.Context()))(t)
	for after, n := range map[time.Duration]int{0: 2, 50 * time.Second: 2, 2 * time.Minute: 1, 59 * time.Minute: 1} {
		got := must(s.FileReservationsAt(t.Context(), Caller{}, s.app, false, began.Add(after).UTC().Format(time.RFC3339Nano)))(t)
		want(t, fmt.Sprint("after ", after), len(got.Result), n)
		want(t, "signs", got.Result[0].Reasons[0], notKnown)
	}
	_, err := s.FileReservationsAt(t.Context(), Caller{}, s.app, false, "2200-01-01T00:00:00Z")
	wantError(t, "the future", err, CodeTimestamp)
	want(t, "kind", fault.KindOf(err), fault.Invalid)
}

// BenchmarkPast asks about the beginning, the middle and the end of 100,000 changes of one
// project, of which an agent among ten has got 2,500 messages, or all 25,000.
func BenchmarkPast(b *testing.B) {
	y := newYard(b, Config{})
	key := y.repo("big")
	for i := range 10 {
		y.register(key, fmt.Sprint([]string{"Green", "Blue", "Red", "Amber", "Black", "White", "Gold", "Gray", "Pink", "Teal"}[i], "Lake"))
	}
	names := must(y.ListAgents(b.Context(), Caller{Owner: true}, ListAgentsArgs{ProjectKey: key}))(b)
	p := y.ensure(key)
	began := y.clock.Now()
	for block := range 250 {
		err := y.store.Write(b.Context(), store.Normal, func(ctx context.Context, tx *store.Tx) error {
			s := &callTx{Service: y.Service, tx: tx, now: now(tx), writes: true}
			var err error
			if s.p, err = findProject(ctx, tx, selectProjectByID, p.ID); err != nil {
				return err
			}
			return s.benchBlock(ctx, names, block)
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
						if _, err := y.InboxAt(b.Context(), Caller{Owner: true}, InboxArgs{ProjectKey: key, AgentName: name, UnreadOnly: unread, At: text}); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
		b.Run(fmt.Sprintf("reservations/at %v", at), func(b *testing.B) {
			for b.Loop() {
				if _, err := y.FileReservationsAt(b.Context(), Caller{Owner: true}, key, false, text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// benchBlock logs 400 changes: messages to the first agent and to another one, which read
// them, and reservations, which are released.
func (s *callTx) benchBlock(ctx context.Context, names []ListedAgent, block int) error {
	released := releasedByOwner
	for i := range 100 {
		n := int64(block*100 + i + 1)
		other := names[1+i%9].Name
		m := &Message{
			ID: n, UID: store.NewID(), ProjectUID: s.p.UID, From: other, To: []string{names[0].Name, other}, CC: []string{}, BCC: []string{}, Importance: "normal",
			Created: s.now, Subject: "subject", Attachments: []byte("[]"), Body: "a body of some words", Ordinal: n, ArchivePath: fmt.Sprintf("messages/2023/11/%d.md", n),
		}
		r := &Reservation{
			ID: n, UID: store.NewID(), ProjectUID: s.p.UID, Agent: other, PathPattern: fmt.Sprint("src/", n), LitPrefix: fmt.Sprint("src/", n), Exclusive: true,
			Source: ReservedByTool, Created: s.now, Expires: s.now + Time(time.Hour), Ordinal: n, ArchivePath: fmt.Sprint("reservations/", n),
		}
		ended := *r
		ended.Released, ended.ReleaseKind = s.now, &released
		for _, d := range []Document{m, &Delivery{MessageID: n, UID: m.UID, ProjectUID: s.p.UID, Agent: other, Recipient: "to", Read: s.now}, r, &ended} {
			if d == &ended && i%50 == 0 {
				d = &Delivery{MessageID: n, UID: m.UID, ProjectUID: s.p.UID, Agent: names[0].Name, Recipient: "to", Read: s.now}
			}
			if err := s.put(ctx, d); err != nil {
				return err
			}
		}
	}
	return nil
}
