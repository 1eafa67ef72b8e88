package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"cairn/internal/store"
	"cairn/internal/store/storetest"

	"pgregory.net/rapid"
)

func sampleChange() store.Change {
	return store.Change{
		Seq: 1, Device: "device", DeviceSeq: 2, Project: "project", Stream: "stream", Kind: "kind", ID: "id", Op: "op",
		Doc: []byte("{}"), Session: "session", Agent: "agent", At: 3, DocHash: []byte("doc hash"), PrevHash: []byte("previous"),
	}
}

func TestEveryFieldButPositionAndDocumentIsInTheHash(t *testing.T) {
	t.Parallel()
	base := sampleChange()
	fields := reflect.TypeFor[store.Change]()
	for i := range fields.NumField() {
		c := sampleChange()
		switch v := reflect.ValueOf(&c).Elem().Field(i); v.Kind() {
		case reflect.Int64:
			v.SetInt(v.Int() + 1)
		case reflect.String:
			v.SetString(v.String() + "x")
		case reflect.Slice:
			v.SetBytes(append(slices.Clone(v.Bytes()), 'x'))
		default:
			t.Fatalf("a field of kind %v", v.Kind())
		}
		name := fields.Field(i).Name
		same := name == "Seq" || name == "Doc"
		if bytes.Equal(c.Hash(), base.Hash()) != same {
			t.Errorf("%s: hash unchanged must be %v", name, same)
		}
	}
	shifted := sampleChange()
	shifted.Stream, shifted.Kind = "strea", "mkind"
	if bytes.Equal(shifted.Hash(), base.Hash()) {
		t.Error("two fields of the same joined text hash the same")
	}
	const want = "67aff198ed923262f105f970e545bc62f8e6d1bfc9eba4e71587334aa2284149" // computed independently, from the comment of Hash
	if got := fmt.Sprintf("%x", base.Hash()); got != want {
		t.Errorf("the hash is %s, in stored chains it is %s", got, want)
	}
}

func TestBlankedDocumentKeepsTheChainAndTamperingBreaksIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ sql, finding string }{
		"blanked":            {"UPDATE changes SET doc = NULL WHERE seq = 2", ""},
		"document altered":   {"UPDATE changes SET doc = '{}' WHERE seq = 2", "altered"},
		"hash altered":       {"UPDATE changes SET doc_hash = x'00' WHERE seq = 2", "altered"},
		"id altered":         {"UPDATE changes SET id = 'z' WHERE seq = 2", "chain"},
		"time altered":       {"UPDATE changes SET at = at + 1 WHERE seq = 2", "chain"},
		"kind altered":       {"UPDATE changes SET kind = stream WHERE seq = 2", "chain"},
		"removed":            {"DELETE FROM changes WHERE seq = 2", "number 3"},
		"beginning replaced": {"UPDATE changes SET prev_hash = x'01' WHERE seq = 1", "first"},
		"beginning trimmed":  {"DELETE FROM changes WHERE seq = 1", ""},
		"follower ahead":     {"INSERT INTO followers (name, lane, position, updated_at) VALUES ('f', '', 99, 0)", "follower f"},
		"orphan":             {"PRAGMA foreign_keys=OFF; UPDATE changes SET session = 999 WHERE seq = 3", "symbols"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := open(t.Context(), store.Config{Path: storetest.Path(t)})
			if err != nil {
				t.Fatal(err)
			}
			storetest.MustWrite(t, s, "a")
			storetest.MustWrite(t, s, "b", "c")
			storetest.RawExec(t, storetest.Raw(t, s.Path()), c.sql)
			found, err := s.Check(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if text := strings.Join(found, "\n"); c.finding == "" && text != "" || !strings.Contains(text, c.finding) {
				t.Errorf("found %q, want %q", text, c.finding)
			}
			storetest.Closed(t, s)
		})
	}
}

func TestChangesOfOtherDevicesKeepChainsOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{})
	for _, device := range []string{"", "hub", "hub", "", "other", "hub", ""} {
		err := s.Write(t.Context(), store.Normal, func(ctx context.Context, tx *store.Tx) error {
			for range 2 {
				c := store.Change{Device: device, Stream: "s", Kind: "k", ID: "i", Op: store.OpPut, Doc: []byte("{}")}
				if _, err := tx.Append(ctx, c); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, c := range storetest.Changes(t, s) {
		name := c.Device
		if len(name) == 26 {
			name = "own"
		}
		got = append(got, fmt.Sprint(name, c.DeviceSeq))
	}
	if want := "own1 own2 hub1 hub2 hub3 hub4 own3 own4 other1 other2 hub5 hub6 own5 own6"; strings.Join(got, " ") != want {
		t.Errorf("the log is %v, want %s", got, want)
	}
	if found, err := s.Check(t.Context()); err != nil || len(found) > 0 {
		t.Errorf("damaged: %v %q", err, found)
	}
}

func TestChangesComeFromAPositionInPieces(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{})
	storetest.MustWrite(t, s, "a", "b", "c", "d")
	err := s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		for _, c := range []struct {
			after int64
			limit int
			want  string
		}{{0, 2, "[1 2]"}, {2, 2, "[3 4]"}, {3, 9, "[4]"}, {4, 9, "[]"}, {-5, 1, "[1]"}, {0, 0, "[]"}} {
			got, err := tx.Changes(ctx, c.after, c.limit)
			if err != nil {
				return err
			}
			seqs := []int64{}
			for _, c := range got {
				seqs = append(seqs, c.Seq)
			}
			if fmt.Sprint(seqs) != c.want {
				t.Errorf("after %d, at most %d: %v, want %s", c.after, c.limit, seqs, c.want)
			}
		}
		head, err := tx.Head(ctx)
		if head != 4 {
			t.Errorf("the head is %d", head)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestLongTextsAndNumbersAtTheirLimitsAreReadBack(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{})
	want := []store.Change{
		{Stream: "s", Kind: "k", Op: "o", ID: "", At: 1<<63 - 1},
		{Stream: "s", Kind: "k", Op: "o", ID: strings.Repeat("é", 1<<16), At: -1 << 63, Doc: []byte("")},
		{Stream: "s\x00t", Kind: "k\x00", Op: "o", ID: "a\x00b", At: 5, Doc: []byte("\x00\xff")},
	}
	for _, c := range want {
		err := s.Write(t.Context(), store.Normal, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Append(ctx, c)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, got := range storetest.Changes(t, s) {
		w := want[i]
		if got.ID != w.ID || got.At != w.At || got.Stream != w.Stream || got.Kind != w.Kind || !bytes.Equal(got.Doc, w.Doc) || (got.Doc == nil) != (w.Doc == nil) {
			t.Errorf("change %d came back as %.200v", i, got)
		}
	}
}

// model is the expected content of the log.
type model struct {
	log  []store.Change
	docs map[string]string // last document of each entity
}

func (m *model) add(c store.Change) {
	m.log = append(m.log, c)
	apply(m.docs, c)
}

func apply(docs map[string]string, c store.Change) {
	if c.Op == store.OpPut {
		docs[c.Kind+"/"+c.ID] = string(c.Doc)
	} else {
		delete(docs, c.Kind+"/"+c.ID)
	}
}

func anyChange() *rapid.Generator[store.Change] {
	word := rapid.SampledFrom([]string{"", "a", "b", "é", "with space", "z\x00", "\xff"})
	named := rapid.SampledFrom([]string{"a", "b", "c"})
	return rapid.Custom(func(t *rapid.T) store.Change {
		c := store.Change{
			Project: word.Draw(t, "project"), Stream: named.Draw(t, "stream"), Kind: named.Draw(t, "kind"),
			ID: rapid.OneOf(named, rapid.String()).Draw(t, "id"), Op: rapid.SampledFrom([]string{store.OpPut, store.OpDelete}).Draw(t, "op"),
			Session: word.Draw(t, "session"), Agent: word.Draw(t, "agent"), At: rapid.Int64Min(1).Draw(t, "at"),
		}
		if c.Op == store.OpPut {
			c.Doc = []byte(rapid.String().Draw(t, "doc"))
		}
		return c
	})
}

func TestLogEqualsAModelOverAnySequence(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	count := 0
	rapid.Check(t, func(rt *rapid.T) {
		count++
		path := filepath.Join(dir, fmt.Sprint(count), "cairn.db")
		s, err := open(t.Context(), store.Config{Path: path})
		if err != nil {
			rt.Fatal(err)
		}
		defer func() {
			if err := s.Close(); err != nil {
				rt.Error(err)
			}
		}()
		m := &model{docs: map[string]string{}}
		submit := func(rt *rapid.T, end func() error) ([]store.Change, error) {
			changes := rapid.SliceOfN(anyChange(), 1, 4).Draw(rt, "changes")
			return changes, s.Write(t.Context(), store.Sync(rapid.IntRange(0, 1).Draw(rt, "sync")), func(ctx context.Context, tx *store.Tx) error {
				for _, c := range changes {
					if _, err := tx.Append(ctx, c); err != nil {
						return err
					}
				}
				return end()
			})
		}
		failed := errors.New("failed")
		rt.Repeat(map[string]func(*rapid.T){
			"write": func(rt *rapid.T) {
				changes, err := submit(rt, func() error { return nil })
				if err != nil {
					rt.Fatal(err)
				}
				for _, c := range changes {
					m.add(c)
				}
			},
			"fail": func(rt *rapid.T) {
				if _, err := submit(rt, func() error { return failed }); !errors.Is(err, failed) {
					rt.Fatal(err)
				}
			},
			"panic": func(rt *rapid.T) {
				if _, err := submit(rt, func() error { panic("defect") }); storetest.CodeOf(err) != "internal" {
					rt.Fatal(err)
				}
			},
			"reopen": func(rt *rapid.T) {
				if err := s.Close(); err != nil {
					rt.Fatal(err)
				}
				if s, err = open(t.Context(), store.Config{Path: path}); err != nil {
					rt.Fatal(err)
				}
			},
		})
		expectModel(rt, t, s, m)
	})
}

func expectModel(rt *rapid.T, t *testing.T, s *store.Store, m *model) {
	if found, err := s.Check(t.Context()); err != nil || len(found) > 0 {
		rt.Fatalf("check: %v %q", err, found)
	}
	got := storetest.Changes(t, s)
	if len(got) != len(m.log) {
		rt.Fatalf("the log holds %d changes, the model %d", len(got), len(m.log))
	}
	docs := map[string]string{}
	for i, c := range got {
		w := m.log[i]
		w.Seq, w.Device, w.DeviceSeq, w.DocHash, w.PrevHash = c.Seq, c.Device, int64(i+1), c.DocHash, c.PrevHash
		if !reflect.DeepEqual(c, w) {
			rt.Fatalf("change %d is\n%+v, the model's\n%+v", i, c, w)
		}
		if i > 0 && (c.Seq <= got[i-1].Seq || !bytes.Equal(c.PrevHash, got[i-1].Hash())) {
			rt.Fatalf("change %d does not follow its predecessor", i)
		}
		apply(docs, c)
	}
	if !reflect.DeepEqual(docs, m.docs) {
		rt.Fatalf("replayed, the log gives %v, the model %v", docs, m.docs)
	}
}
