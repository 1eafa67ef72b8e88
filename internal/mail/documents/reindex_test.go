package documents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

// folder returns an archive folder in memory.
func folder(files map[string]string) Folder {
	return Folder{Name: "w-app", Paths: slices.Sorted(maps.Keys(files)), Read: func(_ context.Context, path string) ([]byte, error) {
		if text, ok := files[path]; ok {
			return []byte(text), nil
		}
		return nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	}}
}

// exported returns all documents of a store's project, as JSON.
func exported(t *testing.T, s *store.Store) (out []string) {
	t.Helper()
	err := s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		p, err := mail.ProjectByUID(ctx, tx, uid)
		if err != nil {
			return err
		}
		return eachDocument(ctx, tx, p, func(d mail.Document) error {
			text, err := json.Marshal(d)
			out = append(out, d.Kind()+" "+string(text))
			return err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAStoreIsRestoredFromItsArchive(t *testing.T) {
	t.Parallel()
	data := []byte("\x89PNG not really")
	blob := &mail.Blob{SHA1: mail.SHA1(data), ProjectUID: uid, MediaType: "image/png", Bytes: int64(len(data)), Data: data}
	withFile := entities()[4].(*mail.Message)
	withFile.ID, withFile.UID, withFile.Ordinal = 9, "01hqwa000000000000000000zz", 3
	withFile.ArchivePath = mail.MessagePath(withFile.Created, withFile.Subject, 9, 3)
	withFile.Created += 5_000_000
	withFile.Attachments = json.RawMessage(`[{"sha1":"` + blob.SHA1 + `"}]`)
	s := filled(t, blob, withFile)
	_, files := rendered(t, s)
	fresh := storetest.Open(t, store.Config{})
	for round := range 2 {
		r := NewReindexer(fresh, mail.Archive{}, false)
		if err := r.Add(t.Context(), folder(files)); err != nil {
			t.Fatal(err)
		}
		out, err := r.Finish(t.Context(), map[string]int64{"messages": 41, "agents": 2})
		if err != nil || len(out.Conflicts)+len(out.Unparseable) > 0 {
			t.Fatalf("%v, %+v", err, out)
		}
		want := map[string]int{mail.KindProject: 1, mail.KindAgent: 3, mail.KindMessage: 3, mail.KindDelivery: 1, mail.KindContact: 1, mail.KindReservation: 1, mail.KindBlob: 1}
		if round > 0 {
			want = map[string]int{}
		}
		if !maps.Equal(out.Inserted, want) {
			t.Errorf("round %d inserted %v, want %v", round, out.Inserted, want)
		}
	}
	if got, want := exported(t, fresh), exported(t, s); !slices.Equal(got, want) {
		t.Errorf("restored is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if _, again := rendered(t, fresh); !maps.Equal(again, files) {
		t.Error("the files of the restored store differ")
	}
	err := fresh.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		next, err := mail.NextID(ctx, tx, "mail_messages")
		agent, aerr := mail.NextID(ctx, tx, "mail_agents")
		if next != 42 || agent != 4 {
			t.Errorf("the next message is %d, the next agent %d", next, agent)
		}
		return errors.Join(err, aerr)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestDamagedFilesArePassedOverByName(t *testing.T) {
	t.Parallel()
	_, files := rendered(t, filled(t))
	name := "messages/2026/03/2026-03-01T09-30-05Z__build-plan__2.md"
	files[name] = "hand-edited"
	files["messages/2026/03/copy.md"] = files["messages/2026/03/2026-03-01T09-30-05Z__build-plan__1.md"]
	files["contacts/x.json"] = "{"
	fresh := storetest.Open(t, store.Config{})
	r := NewReindexer(fresh, mail.Archive{}, false)
	if err := r.Add(t.Context(), folder(files)); err != nil {
		t.Fatal(err)
	}
	out, err := r.Finish(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, u := range append(out.Unparseable, out.Conflicts...) {
		paths = append(paths, u.Path)
	}
	// The state file of the unreadable message has no message that it could belong to.
	if want := []string{"contacts/x.json", name, "messages/2026/03/copy.md", "agents/RedFox/state/2026/03/2.json"}; !slices.Equal(paths, want) || out.Inserted[mail.KindMessage] != 1 {
		t.Errorf("passed over %q, inserted %v", paths, out.Inserted)
	}
}

// TestWhatRefersToALostFileIsNotHalfRestored breaks the profile of a recipient.
func TestWhatRefersToALostFileIsNotHalfRestored(t *testing.T) {
	t.Parallel()
	_, files := rendered(t, filled(t))
	files["agents/RedFox/profile.json"] = "{"
	fresh := storetest.Open(t, store.Config{})
	r := NewReindexer(fresh, mail.Archive{}, false)
	if err := r.Add(t.Context(), folder(files)); err != nil {
		t.Fatal(err)
	}
	out, err := r.Finish(t.Context(), nil)
	if err != nil || len(out.Conflicts) == 0 || out.Inserted[mail.KindMessage]+len(out.Conflicts) < 2 {
		t.Fatalf("%v, %+v", err, out)
	}
	err = fresh.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		found, err := Check(ctx, tx)
		for _, f := range found {
			t.Error(f)
		}
		var rows int
		if err := tx.Get(ctx, []any{&rows}, "SELECT count(*) FROM mail_messages"); rows != out.Inserted[mail.KindMessage] {
			t.Errorf("%d messages, %d inserted: %v", rows, out.Inserted[mail.KindMessage], err)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestANewerArchiveIsRefusedWithItsFormat(t *testing.T) {
	t.Parallel()
	_, files := rendered(t, filled(t))
	files["project.json"] = strings.Replace(files["project.json"], `"format": 1`, `"format": 7`, 1)
	fresh := storetest.Open(t, store.Config{})
	err := NewReindexer(fresh, mail.Archive{}, false).Add(t.Context(), folder(files))
	if !fault.HasCode(err, mail.CodeFormat) || !strings.Contains(err.Error(), "format 7") {
		t.Errorf("got %v", err)
	}
}

func TestADryRunWritesNothing(t *testing.T) {
	t.Parallel()
	_, files := rendered(t, filled(t))
	fresh := storetest.Open(t, store.Config{})
	r := NewReindexer(fresh, mail.Archive{}, true)
	if err := r.Add(t.Context(), folder(files)); err != nil {
		t.Fatal(err)
	}
	out, err := r.Finish(t.Context(), map[string]int64{"messages": 41})
	if err != nil || out.Inserted[mail.KindMessage] != 2 {
		t.Errorf("%v, %+v", err, out)
	}
	if changes := storetest.Changes(t, fresh); len(changes) > 0 {
		t.Errorf("%d changes were written", len(changes))
	}
}
