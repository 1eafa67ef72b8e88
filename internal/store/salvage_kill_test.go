package store_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/internal/fault"
	"cairn/internal/store"
	"cairn/internal/store/salvage"
	"cairn/internal/store/storetest"
)

func TestSalvageWhileAnotherProcessHasTheStoreOpenIsRefused(t *testing.T) {
	t.Parallel()
	path := populated(t)
	hasty := salvageConfig(path)
	hasty.Wait = 30 * time.Millisecond
	holder := child(t, "hold the lock", order{Path: path})
	holder.Expect(t, "held")
	broken := content(t, path)
	clear(broken[30*pageSize : 32*pageSize])
	place(t, path, broken)
	names := entries(t, filepath.Dir(path))
	_, err := salvage.Run(t.Context(), hasty)
	storetest.ExpectCode(t, err, store.CodeBusy)
	expectUnchanged(t, path, broken)
	if now := entries(t, filepath.Dir(path)); !slices.Equal(names, now) {
		t.Errorf("beside it: %q, was %q", now, names)
	}
	reader := child(t, "keep open", order{Path: path})
	reader.Expect(t, "open")
	holder.Kill()
	_, err = salvage.Run(t.Context(), hasty)
	storetest.ExpectCode(t, err, store.CodeBusy)
	expectUnchanged(t, path, broken)
	reader.Kill()
	salvaged(t, path)
}

// keepOpen reads once and stays connected, like a server.
func keepOpen(o order, in *bufio.Reader) error {
	ctx := context.Background()
	s, err := open(ctx, store.Config{Path: o.Path, Role: store.Server})
	if err != nil {
		return err
	}
	err = s.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Head(ctx)
		return err
	})
	storetest.Tell("open")
	storetest.Hear(in)
	return errors.Join(err, s.Close())
}

// salvageChild runs a salvage and asks the parent before each step whether to continue.
func salvageChild(o order, in *bufio.Reader) error {
	c := salvageConfig(o.Path)
	c.Progress = func(what string) {
		storetest.Tell(what)
		storetest.Hear(in)
	}
	_, err := salvage.Run(context.Background(), c)
	return err
}

// After a kill at any step, the path holds the complete old or new store, and the next salvage
// succeeds.
func TestKilledSalvageLeavesTheOldStoreOrTheNew(t *testing.T) {
	t.Parallel()
	origin, want := heldOpen(t)
	page := ruined(t, origin)
	broken, wal := content(t, origin), content(t, origin+"-wal")
	old, fresh := 0, 0
	every := 4 // steps that read a table are similar; a soak kills at each
	switch {
	case storetest.Key() != nil || testing.Short():
		every = 12
	case os.Getenv("CAIRN_SOAK_KILLS") != "":
		every = 1
	}
	for step := 0; ; step++ {
		path := storetest.Path(t)
		place(t, path, broken)
		place(t, path+"-wal", wal)
		place(t, path+"-shm", make([]byte, 32768))
		p := child(t, "salvage", order{Path: path})
		at, more := p.Line(t)
		for n, tables := 0, 0; more; n++ {
			reading := strings.HasPrefix(at, "reading ")
			if reading {
				tables++
			}
			if n >= step && (!reading || tables%every == 1%every) {
				step = n
				break
			}
			p.Send("go")
			at, more = p.Line(t)
		}
		p.Kill()
		expectNoPlainText(t, path)
		if !more { // the salvage ended before that step
			if old == 0 || fresh == 0 {
				t.Errorf("%d steps with the old store, %d with the new one", old, fresh)
			}
			return
		}
		if damageFound(t, path) {
			old++
			r := salvaged(t, path)
			if b := content(t, r.Kept); bytes.Equal(b, broken) && exists(r.Kept+"-wal") {
				expectUnchanged(t, r.Kept+"-wal", wal)
			}
		} else {
			fresh++
		}
		expectLostOnly(t, "killed at: "+at, want, changesOf(t, path), page)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// A process may have opened the old file at the last moment; its writes would be lost.
func TestWriteToAReplacedStoreIsRefused(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{})
	storetest.MustWrite(t, s, "a")
	other := populated(t)
	if err := os.Rename(other, s.Path()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(s.Path()+"-wal"), os.Remove(s.Path()+"-shm")); err != nil {
		t.Fatal(err)
	}
	err := storetest.Write(t.Context(), s, store.Full, "lost")
	storetest.ExpectCode(t, err, store.CodeReplaced)
	if fault.KindOf(err) != fault.Unavailable {
		t.Errorf("kind %v", fault.KindOf(err))
	}
}
