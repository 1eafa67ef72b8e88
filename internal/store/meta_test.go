package store_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

func TestValuesUnderNamesAreFoundByNameAndByPrefix(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{})
	err := s.Write(t.Context(), store.Normal, func(ctx context.Context, tx *store.Tx) error {
		for _, m := range []store.Meta{{"salt", "a"}, {"salt/1", "b"}, {"salt/é", "c"}, {"salu", "d"}, {"sal", "e"}, {"salt", "f"}} {
			if err := tx.SetMeta(ctx, m.Name, m.Value); err != nil {
				return err
			}
		}
		list, err := tx.MetaUnder(ctx, "salt")
		if want := []store.Meta{{"salt", "f"}, {"salt/1", "b"}, {"salt/é", "c"}}; !reflect.DeepEqual(list, want) {
			t.Errorf("got %v, want %v", list, want)
		}
		err = errors.Join(err, tx.DeleteMeta(ctx, "salt/1"), tx.DeleteMeta(ctx, "salt/1"))
		for name, want := range map[string]string{"salt": "f", "salt/1": ""} {
			value, ok, found := tx.Meta(ctx, name)
			if value != want || ok != (want != "") {
				t.Errorf("%s: %q %v", name, value, ok)
			}
			err = errors.Join(err, found)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheLastWriteIsThatOfThisDevice(t *testing.T) {
	t.Parallel()
	clock := &storetest.Clock{}
	clock.Move(1_700_000_000 * time.Second)
	s := storetest.Open(t, store.Config{Clock: clock.Now})
	last := func() (at int64) {
		err := s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
			at, err = tx.LastWrite(ctx)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	if at := last(); at != 0 {
		t.Errorf("before any write: %d", at)
	}
	storetest.Append(t, s, store.Change{Stream: "a", Kind: "b", ID: "1", Op: store.OpPut})
	want := clock.Now().UnixNano()
	clock.Move(time.Hour)
	if at := last(); at != want {
		t.Errorf("got %d, want %d", at, want)
	}
}

func TestARowIsUnreferredOnlyIfNoTableRefersToIt(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{})
	err := s.Write(t.Context(), store.Normal, func(ctx context.Context, tx *store.Tx) error {
		for _, statement := range []string{
			`INSERT INTO projects (key, id, name, created_at) VALUES (-1, 'a', 'a', 0), (-2, 'b', 'b', 0), (-3, 'c', 'c', 0), (-4, 'd', 'd', 0)`,
			`INSERT INTO project_keys (text, project_key, added_at) VALUES ('k', -1, 0)`,
			`INSERT INTO sessions (id, project_id, started_at, last_seen) VALUES ('s', 'c', 0, 0)`,
			`INSERT INTO memory_vaults (vault_id, user_id, title, description, creation_ns) VALUES ('v', 'u', 't', '', 0)`,
			`INSERT INTO memories (memory_id, user_id, vault_id, memory_type, title, description, creation_ns, project_key) VALUES ('m', 'u', 'v', '', '', '', 0, -4)`,
		} {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return err
			}
		}
		free, err := tx.Unreferred(ctx, "projects", "key", []int64{-1, -2, -3, -4})
		if want := []int64{-2}; !reflect.DeepEqual(free, want) {
			t.Errorf("got %v, want %v", free, want)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
