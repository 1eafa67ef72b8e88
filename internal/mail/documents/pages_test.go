package documents

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"cairn/internal/mail"
	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

const uid = "0123456789abcdef0123"

// filled returns a store with one document of each kind.
func filled(t *testing.T, more ...mail.Document) *store.Store {
	t.Helper()
	s := storetest.Open(t, store.Config{})
	for _, d := range append(entities(), more...) {
		restore(t, s, d)
	}
	return s
}

func restore(t *testing.T, s *store.Store, d mail.Document) {
	t.Helper()
	err := s.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		_, err := Apply(ctx, tx, mail.Actor{}, mail.Archive{}, d, true)
		return err
	})
	if err != nil {
		t.Fatalf("%s %s: %v", d.Kind(), d.Key(), err)
	}
}

// rendered returns the files rendered from the whole log.
func rendered(t *testing.T, s *store.Store) (pages RenderedFiles, files map[string]string) {
	t.Helper()
	err := s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		changes, err := tx.Changes(ctx, 0, 10_000)
		if err == nil {
			pages, err = Render(ctx, tx, changes)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	files = map[string]string{}
	for _, f := range pages.Files {
		if _, twice := files[f.Path]; twice {
			t.Errorf("%s comes twice", f.Path)
		}
		files[f.Path] = string(f.Content)
	}
	return pages, files
}

func TestEveryEntityHasItsFiles(t *testing.T) {
	t.Parallel()
	pages, files := rendered(t, filled(t))
	if len(pages.Refused) > 0 {
		t.Errorf("refused: %v", pages.Refused)
	}
	name := "2026-03-01T09-30-05Z__build-plan__"
	want := []string{
		"agents/BlueDog/inbox/2026/03/" + name + "1.md", "agents/BlueDog/inbox/2026/03/" + name + "2.md",
		"agents/BlueDog/profile.json", "agents/BlueDog/state/2026/03/1.json",
		"agents/GreenLake/outbox/2026/03/" + name + "1.md", "agents/GreenLake/outbox/2026/03/" + name + "2.md", "agents/GreenLake/profile.json",
		"agents/RedFox/inbox/2026/03/" + name + "1.md", "agents/RedFox/inbox/2026/03/" + name + "2.md", "agents/RedFox/profile.json",
		"agents/RedFox/state/2026/03/1.json", "agents/RedFox/state/2026/03/2.json",
		"contacts/GreenLake__w-app__BlueDog.json",
		"file_reservations/61fd5ecd6bd8eba1e0ac8e6e0f4a9a7cf5fb9aa4.json", "file_reservations/id-1.json",
		"messages/2026/03/" + name + "1.md", "messages/2026/03/" + name + "2.md",
		"messages/threads/FEAT-1.md", "project.json",
	}
	got := slices.Sorted(maps.Keys(files))
	for i, path := range got { // the name of the pattern's file contains a hash
		if strings.HasPrefix(path, "file_reservations/") && !strings.Contains(path, "id-") {
			want[13] = path
			if len(path) != len("file_reservations/")+40+len(".json") {
				t.Errorf("the pattern's file is %s", got[i])
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the files are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if files[want[0]] != files["messages/2026/03/"+name+"1.md"] {
		t.Error("the copy differs from the canonical file")
	}
	wantOps := []string{
		"project: w-app", "agent: profile GreenLake", "agent: profile BlueDog", "agent: profile RedFox",
		"mail: GreenLake -> BlueDog | Build plan", "mail: GreenLake -> BlueDog | Build plan", "contact: GreenLake -> BlueDog approved",
		"file_reservation: BlueDog src/**", "state: 1 deliveries",
	}
	if !slices.Equal(pages.Ops, wantOps) {
		t.Errorf("the commit says %q", pages.Ops)
	}
}

// TestABlindCopyIsToldInItsOwnFolderAlone checks that only a blind copy's own folder names its
// recipient (mail §1, G8).
func TestABlindCopyIsToldInItsOwnFolderAlone(t *testing.T) {
	t.Parallel()
	pages, files := rendered(t, filled(t))
	for path, text := range files {
		if !strings.HasPrefix(path, "agents/RedFox/") && strings.Contains(text, "RedFox") {
			t.Errorf("%s names RedFox:\n%s", path, text)
		}
	}
	for _, line := range pages.Ops {
		if strings.Contains(line, "RedFox") && !strings.HasPrefix(line, "agent: ") {
			t.Errorf("the commit says %q", line)
		}
	}
}

func TestRenderingTheLogAndTheRowsIsTheSame(t *testing.T) {
	t.Parallel()
	var more []mail.Document
	thread := "long.thread"
	base := mail.TimeOf(time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC))
	for n := range int64(120) {
		id := 10 + n
		created := base + mail.Time(n)*mail.Time(time.Minute)
		more = append(more, &mail.Message{
			ID: id, UID: fmt.Sprintf("01hqwb00000000000000000%03d", n), ProjectUID: uid, From: "BlueDog", To: []string{"GreenLake"}, CC: []string{}, BCC: []string{},
			ThreadID: &thread, Importance: "normal", Created: created, Subject: fmt.Sprint("step ", n), Attachments: json.RawMessage("[]"),
			Body: strings.Repeat("word ", 400), Ordinal: n + 950, ArchivePath: mail.MessagePath(created, fmt.Sprint("step ", n), id, n+950),
		})
	}
	s := filled(t, more...)
	_, files := rendered(t, s)
	every := map[string]string{}
	err := s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return RenderAll(ctx, tx, uid, func(_ mail.Document, list []File) error {
			for _, f := range list {
				if old, ok := every[f.Path]; ok && old != string(f.Content) {
					t.Errorf("%s comes twice, and differs", f.Path)
				}
				every[f.Path] = string(f.Content)
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	for path := range files {
		if files[path] != every[path] {
			t.Errorf("%s is by the log\n%.300s\nand by the rows\n%.300s", path, files[path], every[path])
		}
	}
	if len(files) != len(every) {
		t.Errorf("the log has %d files, the rows %d", len(files), len(every))
	}
	for _, path := range []string{
		"messages/threads/long.thread.md", "messages/threads/_parts/long.thread/0002.md", "messages/threads/_parts/long.thread/0003.md",
		"messages/2026/04/2026-04-01T00-00-00Z__step-0__10.md", "messages/2026/04/001/2026-04-01T01-00-00Z__step-60__70.md",
		"agents/GreenLake/inbox/2026/04/001/2026-04-01T01-00-00Z__step-60__70.md",
	} {
		if files[path] == "" {
			t.Errorf("%s is missing", path)
		}
	}
	part := files["messages/threads/_parts/long.thread/0003.md"]
	if n := strings.Count(part, "\n## "); n != 20 || !strings.Contains(part, "](../../../2026/04/001/2026-04-01T01-40-00Z__step-100__110.md)") {
		t.Errorf("the third part has %d messages:\n%.600s", n, part)
	}
}

// TestFilesReadBackAreTheEntities compares parsed files with their entities, except for values
// that other files contain.
func TestFilesReadBackAreTheEntities(t *testing.T) {
	t.Parallel()
	_, files := rendered(t, filled(t))
	read := map[string]mail.Document{}
	for path, text := range files {
		d, err := parse(path, []byte(text), uid)
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if d != nil {
			read[d.Kind()+" "+d.Key()] = d
		}
	}
	for _, d := range entities() {
		got := read[d.Kind()+" "+d.Key()]
		want := d
		switch d := want.(type) {
		case *mail.Message: // blind copies, the replied-to message's uid and the exact ordinal are in other files
			m := *d
			m.BCC, m.ReplyToUID, m.Ordinal = []string{}, nil, 0
			want = &m
		case *mail.Reservation:
			r := *d
			r.Ordinal, r.LitPrefix = 0, ""
			want = &r
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s %s reads back as\n%+v, want\n%+v", d.Kind(), d.Key(), got, want)
		}
	}
}

func TestAChangeThatCannotBeRenderedIsRefusedAlone(t *testing.T) {
	t.Parallel()
	s := filled(t)
	err := s.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		for _, doc := range []string{`{"uid":`, `{"sha1":"ffff","project_uid":"` + uid + `"}`, `{"project_uid":"none"}`} {
			if _, err := tx.Append(ctx, store.Change{Stream: mail.Stream(uid), Kind: mail.KindBlob, ID: "x", Op: store.OpPut, Doc: json.RawMessage(doc)}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	pages, files := rendered(t, s)
	if len(pages.Refused) != 3 || len(files) != 19 {
		t.Errorf("%d refused, %d files", len(pages.Refused), len(files))
	}
}

func FuzzMessagePage(f *testing.F) {
	f.Add("Build plan", "body", "BlueDog", "FEAT-1")
	f.Add("---json", "---json\n{}\n---\n\nx", "a", "")
	f.Add("</b>\x1b[31m", "\r\n---\n\n", "a,b", "..")
	f.Add(strings.Repeat("é", 200), "", "", "con")
	f.Fuzz(func(t *testing.T, subject, body, to, thread string) {
		for _, text := range []string{subject, body, to, thread} {
			if !utf8.ValidString(text) {
				t.Skip()
			}
		}
		at := mail.TimeOf(time.Date(2026, 3, 1, 9, 30, 5, 1000, time.UTC))
		m := &mail.Message{
			ID: 7, UID: "u", From: "GreenLake", To: []string{to}, CC: []string{}, BCC: []string{}, ThreadID: &thread, Importance: "low", Created: at,
			Subject: subject, Body: body, Attachments: json.RawMessage(`[{"type":"file"}]`), ArchivePath: mail.MessagePath(at, subject, 7, 7),
		}
		path := m.ArchivePath
		if strings.Count(path, "/") != 3 || strings.Contains(path, "..") || strings.ContainsFunc(path, func(r rune) bool {
			return r > 'z' || !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789./_-TZ", r)
		}) || len(path) > 150 {
			t.Errorf("the path is %q", path)
		}
		text, err := page(m, &mail.Project{HumanKey: "/w/app", Slug: "w-app"})
		if err != nil {
			t.Fatal(err)
		}
		read, err := parseMessage(path, text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if !reflect.DeepEqual(read, m) {
			t.Errorf("reads back as\n%+v, want\n%+v", read, m)
		}
		line := oneLine(subject)
		if strings.ContainsAny(line, "\n\r\x1b\x00") || utf8.RuneCountInString(line) > maxLine {
			t.Errorf("the line is %q", line)
		}
	})
}

func FuzzParseFile(f *testing.F) {
	s := []string{"project.json", "agents/A/profile.json", "agents/A/state/2026/03/1.json", "messages/2026/03/x.md", "messages/tombstones/1.json", "contacts/x.json", "file_reservations/id-1.json"}
	for _, path := range s {
		f.Add(path, []byte(`{"id":1}`))
		f.Add(path, []byte("---json\n{}\n---\n\nx"))
	}
	f.Fuzz(func(t *testing.T, path string, content []byte) {
		if d, err := parse(path, content, uid); err == nil && d != nil {
			if _, err := json.Marshal(d); err != nil {
				t.Error(err)
			}
		}
	})
}
