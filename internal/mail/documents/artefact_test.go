package documents

import (
	"encoding/json"
	"reflect"
	"testing"
	"unicode/utf8"

	"cairn/internal/mail"
)

// FuzzEveryArtefactReadsBackAsItsEntity (mail §15.4) tests the renderer and the parser of each
// kind except messages. FuzzMessagePage tests messages.
func FuzzEveryArtefactReadsBackAsItsEntity(f *testing.F) {
	f.Add("GreenLake", "Refactor the cart", "src/**", int64(1_772_357_405_123_456), int64(7), byte(0))
	f.Add("", "", "", int64(0), int64(0), byte(255))
	f.Add("A</b>\u2028", "\x1b[31m\r\n---\n", "\"\\\x00", int64(-5), int64(-1), byte(7))
	f.Add("null", "\U0001F600", "[a-z]{1,2}", int64(1)<<62, int64(1)<<62, byte(3))
	f.Fuzz(func(t *testing.T, name, text, pattern string, at, n int64, flags byte) {
		for _, s := range []string{name, text, pattern} {
			if !utf8.ValidString(s) {
				t.Skip()
			}
		}
		moment := mail.Time(at % 9_000_000_000_000_000 * 1000) // times have microsecond precision
		has := func(bit int) bool { return flags>>bit&1 == 1 }
		maybe := func(bit int) *string {
			if has(bit) {
				return &text
			}
			return nil
		}
		later := func(bit int) mail.Time {
			if has(bit) {
				return max(moment, 0)
			}
			return 0
		}
		p := &mail.Project{
			ID: n, UID: uid, Slug: name, HumanKey: text, Created: max(moment, 0), IdentityMode: pattern, Remote: maybe(0), FoldsCase: has(1), ProductID: name, Format: 1,
		}
		for _, d := range []mail.Document{
			p,
			&mail.Agent{
				ID: n, Name: "GreenLake", Program: name, Model: text, TaskDescription: pattern, Inception: max(moment, 0), AttachmentsPolicy: name, ContactPolicy: text,
				ProjectUID: uid, Branch: maybe(0), Worktree: maybe(1), TokenSHA256: maybe(2), Home: maybe(3), Retired: later(4),
			},
			&mail.Delivery{
				MessageID: n, UID: name, ProjectUID: uid, Agent: text, Recipient: "bcc", Shown: later(0), ShownVia: maybe(1), Read: later(2), Ack: later(3),
				ArchivePath: "agents/GreenLake/state/2026/03/1.json",
			},
			&mail.Contact{
				From: name, FromProjectUID: uid, To: text, ToProjectUID: pattern, Status: name, Reason: text, Created: max(moment, 0), Updated: later(0), Expires: later(1),
				ArchivePath: "contacts/a__b__c.json",
			},
			&mail.Reservation{
				ID: n, UID: name, ProjectUID: uid, Agent: name, PathPattern: pattern, Exclusive: has(0), Advisory: has(1), Source: name, Reason: text, Created: max(moment, 0),
				Expires: later(2), Renewals: n, Released: later(3), ReleaseKind: maybe(4), ArchivePath: "file_reservations/id-1.json",
			},
		} {
			files, err := filesOf(d, p)
			if err != nil || len(files) == 0 {
				t.Fatalf("%s: %d files, %v", d.Kind(), len(files), err)
			}
			read, err := parse(files[0].Path, files[0].Content, uid)
			if err != nil {
				t.Fatalf("%s: %v\n%s", d.Kind(), err, files[0].Content)
			}
			if !reflect.DeepEqual(read, d) {
				t.Errorf("%s reads back as\n%+v, want\n%+v", d.Kind(), read, d)
			}
			again, err := filesOf(read, p)
			if err != nil || !reflect.DeepEqual(again, files) {
				t.Errorf("%s is rendered anew as %s, %v", d.Kind(), again, err)
			}
		}
		manifestReadsBack(t, name, n)
	})
}

// filesOf returns the files of an entity that are rendered from its document alone.
func filesOf(d mail.Document, p *mail.Project) ([]File, error) {
	switch d := d.(type) {
	case *mail.Project:
		return projectFiles(d)
	case *mail.Agent:
		return agentFiles(d)
	case *mail.Delivery:
		return deliveryFiles(d)
	case *mail.Contact:
		return contactFiles(d)
	case *mail.Reservation:
		return reservationFiles(d, p, "")
	}
	return nil, nil
}

func manifestReadsBack(t *testing.T, mediaType string, bytes int64) {
	t.Helper()
	m := manifest{SHA1: mail.SHA1([]byte(mediaType)), MediaType: mediaType, Bytes: bytes}
	content, err := jsonFile(m)
	var read manifest
	if err == nil {
		err = strictly(content, &read)
	}
	if err != nil || !reflect.DeepEqual(read, m) || !json.Valid(content) {
		t.Errorf("%+v, %v, want %+v", read, err, m)
	}
}
