package mail

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
	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

// entities are one document of each kind, in the order in which they refer to each
// other.
func entities() []Document {
	at := timeOf(time.Date(2026, 3, 1, 9, 30, 5, 123456000, time.UTC))
	uid, thread, via, session := "0123456789abcdef0123", "FEAT-1", "UserPromptSubmit", (*string)(nil)
	first, second := "01hqwa0000000000000000000a", "01hqwa0000000000000000000b"
	one := int64(1)
	message := func(id int64, uid0 string) *Message {
		return &Message{
			ID: id, UID: uid0, ProjectUID: uid, From: "GreenLake", To: []string{"BlueDog"}, CC: []string{}, BCC: []string{"RedFox"},
			ThreadID: &thread, Importance: "high", AckRequired: true, Created: at + Time(id)*1000, Subject: "Build plan", Attachments: json.RawMessage("[]"),
			Body: "---\nsee `a/b.go`\r\n", Ordinal: id, ArchivePath: messagePath(at, "Build plan", id, id),
		}
	}
	reply := message(2, second)
	reply.ReplyTo, reply.ReplyToUID = &one, &first
	all := []Document{&Project{ID: 1, UID: uid, Slug: "w-app", HumanKey: "/w/app", Created: at, IdentityMode: "dir", ProductID: "app", Format: 1}}
	for i, name := range []string{"GreenLake", "BlueDog", "RedFox"} {
		all = append(all, &Agent{
			ID: int64(i + 1), Name: name, Program: "claude-code", Model: "m", Inception: at, AttachmentsPolicy: "auto", ContactPolicy: "auto", ProjectUID: uid,
		})
	}
	return append(all, message(1, first), reply,
		&Delivery{MessageID: 1, UID: first, ProjectUID: uid, Agent: "BlueDog", Recipient: "to", Shown: at, ShownVia: &via, Read: at, ArchivePath: "agents/BlueDog/state/2026/03/1.json"},
		&Contact{From: "GreenLake", FromProjectUID: uid, To: "BlueDog", ToProjectUID: uid, Status: "approved", Reason: "x", Created: at, Updated: at, ArchivePath: "contacts/GreenLake__w-app__BlueDog.json"},
		&Reservation{ID: 1, UID: "01hqwa0000000000000000000c", ProjectUID: uid, Agent: "BlueDog", PathPattern: "src/**", Exclusive: true, Source: "tool", Session: session,
			Reason: "r", Created: at, Expires: at + 1e9, Ordinal: 1, ArchivePath: "file_reservations/id-1.json", LitPrefix: "src"})
}

// stored is the document of an entity as its rows tell it.
func stored(ctx context.Context, tx *store.Tx, d Document) (Document, error) {
	switch d := d.(type) {
	case *Project:
		return found(projectByUID(ctx, tx, d.UID))
	case *Agent:
		return found(agentByName(ctx, tx, 1, d.Name))
	case *Message:
		return found(findMessage(ctx, tx, selectMessageByUID, d.UID))
	case *Delivery:
		return found(deliveryOf(ctx, tx, d.UID, d.ProjectUID, d.Agent))
	case *Contact:
		from, err := agentByName(ctx, tx, 1, d.From)
		if err != nil {
			return nil, err
		}
		to, err := agentByName(ctx, tx, 1, d.To)
		if err != nil {
			return nil, err
		}
		return found(findContact(ctx, tx, from.ID, to.ID))
	case *Reservation:
		return found(findReservation(ctx, tx, selectReservationByID, d.ID))
	}
	return nil, nil
}

func found[T Document](d T, err error) (Document, error) { return d, err }

func TestEveryDocumentComesBackFromItsRowsAndFromTheLog(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{})
	ctx := t.Context()
	for round := range 2 {
		for _, d := range entities() {
			err := s.Write(ctx, store.Full, func(ctx context.Context, tx *store.Tx) error {
				added, err := Apply(ctx, tx, Actor{}, Archive{}, d, true)
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
			if c.Stream == Stream("0123456789abcdef0123") {
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
			read, err := Decode(logged[i].Kind, logged[i].Doc)
			if err != nil {
				return err
			}
			if !reflect.DeepEqual(read, d) {
				t.Errorf("the log has\n%+v, want\n%+v", read, d)
			}
		}
		a, err := agentByName(ctx, tx, 1, "bluedog")
		if err == nil && (a.Received != 2 || a.Unread != 1 || a.AckDue != 2) {
			t.Errorf("BlueDog has received %d, unread %d, to acknowledge %d", a.Received, a.Unread, a.AckDue)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestDocumentsInAnyOrderAndTwiceGiveAnEqualStore: one that comes before what it refers to is
// refused whole, and can be applied later. An answer waits for its message by itself, since
// that may be gone for good.
func TestDocumentsInAnyOrderAndTwiceGiveAnEqualStore(t *testing.T) {
	t.Parallel()
	data := []byte("attached")
	docs := func() []Document {
		all := append(entities(), entities()...)
		return append(all, &Blob{SHA1: sha1Of(data), ProjectUID: uid, MediaType: "text/plain", Bytes: int64(len(data)), data: data})
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
			waiting = slices.DeleteFunc(waiting, func(d Document) bool {
				if m, ok := d.(*Message); ok && m.ReplyToUID != nil && !applied[*m.ReplyToUID] {
					return false
				}
				err := s.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
					_, err := Apply(ctx, tx, Actor{}, Archive{}, d, true)
					return err
				})
				if err != nil && !fault.HasCode(err, CodeIncomplete) {
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
