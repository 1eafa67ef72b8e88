package documents

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

// entities returns one document of each kind. Each comes after those that it refers to.
func entities() []mail.Document {
	at := mail.TimeOf(time.Date(2026, 3, 1, 9, 30, 5, 123456000, time.UTC))
	uid, thread, via, session := "0123456789abcdef0123", "FEAT-1", "UserPromptSubmit", (*string)(nil)
	first, second := "01hqwa0000000000000000000a", "01hqwa0000000000000000000b"
	one := int64(1)
	message := func(id int64, uid0 string) *mail.Message {
		return &mail.Message{
			ID: id, UID: uid0, ProjectUID: uid, From: "GreenLake", To: []string{"BlueDog"}, CC: []string{}, BCC: []string{"RedFox"},
			ThreadID: &thread, Importance: "high", AckRequired: true, Created: at + mail.Time(id)*1000, Subject: "Build plan", Attachments: json.RawMessage("[]"),
			Body: "---\nsee `a/b.go`\r\n", Ordinal: id, ArchivePath: mail.MessagePath(at, "Build plan", id, id),
		}
	}
	reply := message(2, second)
	reply.ReplyTo, reply.ReplyToUID = &one, &first
	all := []mail.Document{&mail.Project{ID: 1, UID: uid, Slug: "w-app", HumanKey: "/w/app", Created: at, IdentityMode: "dir", ProductID: "app", Format: 1}}
	for i, name := range []string{"GreenLake", "BlueDog", "RedFox"} {
		all = append(all, &mail.Agent{
			ID: int64(i + 1), Name: name, Program: "claude-code", Model: "m", Inception: at, AttachmentsPolicy: "auto", ContactPolicy: "auto", ProjectUID: uid,
		})
	}
	return append(all, message(1, first), reply,
		&mail.Delivery{MessageID: 1, UID: first, ProjectUID: uid, Agent: "BlueDog", Recipient: "to", Shown: at, ShownVia: &via, Read: at, ArchivePath: "agents/BlueDog/state/2026/03/1.json"},
		&mail.Contact{From: "GreenLake", FromProjectUID: uid, To: "BlueDog", ToProjectUID: uid, Status: "approved", Reason: "x", Created: at, Updated: at, ArchivePath: "contacts/GreenLake__w-app__BlueDog.json"},
		&mail.Reservation{ID: 1, UID: "01hqwa0000000000000000000c", ProjectUID: uid, Agent: "BlueDog", PathPattern: "src/**", Exclusive: true, Source: "tool", Session: session,
			Reason: "r", Created: at, Expires: at + 1e9, Ordinal: 1, ArchivePath: "file_reservations/id-1.json", LitPrefix: "src"})
}

// stored returns an entity's document as read from its rows.
func stored(ctx context.Context, tx *store.Tx, d mail.Document) (mail.Document, error) {
	switch d := d.(type) {
	case *mail.Project:
		return found(mail.ProjectByUID(ctx, tx, d.UID))
	case *mail.Agent:
		return found(mail.AgentByName(ctx, tx, 1, d.Name))
	case *mail.Message:
		return found(mail.QueryMessage(ctx, tx, mail.SelectMessageByUID, d.UID))
	case *mail.Delivery:
		return found(mail.DeliveryOf(ctx, tx, d.UID, d.ProjectUID, d.Agent))
	case *mail.Contact:
		from, err := mail.AgentByName(ctx, tx, 1, d.From)
		if err != nil {
			return nil, err
		}
		to, err := mail.AgentByName(ctx, tx, 1, d.To)
		if err != nil {
			return nil, err
		}
		return found(mail.QueryContact(ctx, tx, from.ID, to.ID))
	case *mail.Reservation:
		return found(mail.QueryReservation(ctx, tx, mail.SelectReservationByID, d.ID))
	}
	return nil, nil
}

func found[T mail.Document](d T, err error) (mail.Document, error) { return d, err }

func TestEveryDocumentComesBackFromItsRowsAndFromTheLog(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{})
	ctx := t.Context()
	for round := range 2 {
		for _, d := range entities() {
			err := s.Write(ctx, store.Full, func(ctx context.Context, tx *store.Tx) error {
				added, err := Apply(ctx, tx, mail.Actor{}, mail.Archive{}, d, true)
				if err == nil && added != (round == 0) {
					t.Errorf("%s %s: added %v in round %d", d.Kind(), d.Key(), added, round)
				}
				return err
			})
			if err != nil {
				t.Fatalf("%s %s: %v", d.Kind(), d.Key(), err)
			}
		}
	}
	err := s.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		changes, err := tx.Changes(ctx, 0, 100)
		if err != nil {
			return err
		}
		var logged []store.Change
		for _, c := range changes {
			if c.Stream == mail.Stream("0123456789abcdef0123") {
				logged = append(logged, c)
			}
		}
		for i, d := range entities() {
			want, err := json.Marshal(d)
			if err != nil {
				return err
			}
			row, err := stored(ctx, tx, d)
			if err != nil {
				return err
			}
			if got, _ := json.Marshal(row); string(got) != string(want) {
				t.Errorf("the row of %s is\n%s, want\n%s", d.Kind(), got, want)
			}
			read, err := mail.Decode(logged[i].Kind, logged[i].Doc)
			if err != nil {
				return err
			}
			if !reflect.DeepEqual(read, d) {
				t.Errorf("the log has\n%+v, want\n%+v", read, d)
			}
		}
		a, err := mail.AgentByName(ctx, tx, 1, "bluedog")
		if err == nil && (a.Received != 2 || a.Unread != 1 || a.AckDue != 2) {
			t.Errorf("BlueDog has received %d, unread %d, to acknowledge %d", a.Received, a.Unread, a.AckDue)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestDocumentsInAnyOrderAndTwiceGiveAnEqualStore applies documents in any order. A document that
// comes before one it refers to is rejected as a whole and can be applied later. The test holds a
// reply back until its message is applied. Apply does not, since that message may be lost.
func TestDocumentsInAnyOrderAndTwiceGiveAnEqualStore(t *testing.T) {
	t.Parallel()
	data := []byte("attached")
	docs := func() []mail.Document {
		all := append(entities(), entities()...)
		return append(all, &mail.Blob{SHA1: mail.SHA1(data), ProjectUID: uid, MediaType: "text/plain", Bytes: int64(len(data)), Data: data})
	}
	want := exported(t, filled(t, docs()[len(docs())-1]))
	for seed := range uint64(20) {
		s := storetest.Open(t, store.Config{})
		waiting := docs()
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(waiting), func(i, j int) { waiting[i], waiting[j] = waiting[j], waiting[i] })
		applied := map[string]bool{}
		for rounds := 0; len(waiting) > 0; rounds++ {
			if rounds > len(entities()) {
				t.Fatalf("seed %d: %d documents wait for nothing", seed, len(waiting))
			}
			waiting = slices.DeleteFunc(waiting, func(d mail.Document) bool {
				if m, ok := d.(*mail.Message); ok && m.ReplyToUID != nil && !applied[*m.ReplyToUID] {
					return false
				}
				err := s.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
					_, err := Apply(ctx, tx, mail.Actor{}, mail.Archive{}, d, true)
					return err
				})
				if err != nil && !fault.HasCode(err, mail.CodeIncomplete) {
					t.Fatalf("seed %d: %s %s: %v", seed, d.Kind(), d.Key(), err)
				}
				applied[d.Key()] = applied[d.Key()] || err == nil
				return err == nil
			})
		}
		if got := exported(t, s); !slices.Equal(got, want) {
			t.Fatalf("seed %d:\n%s\nwant\n%s", seed, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}
