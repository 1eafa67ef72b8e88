package commands_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"cairn/internal/record"
	"cairn/internal/record/commands"
	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

// Environment variables of a child process.
const (
	childVar = "CAIRN_RECORD_CHILD"
	pathVar  = "CAIRN_RECORD_STORE"
	nameVar  = "CAIRN_RECORD_SESSION"
)

func childMain(name string) int {
	ctx := context.Background()
	s, err := store.Open(ctx, storetest.Config(store.Config{Path: os.Getenv(pathVar), Role: store.Server}))
	if err == nil {
		b, session := commands.New(s, record.Config{}), os.Getenv(nameVar)
		switch name {
		case "create":
			err = createMany(ctx, b, session)
		case "update":
			err = updateOnce(ctx, b, session)
		case "work until killed":
			err = workUntilKilled(ctx, b, session)
		}
		err = errors.Join(err, s.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func child(t *testing.T, name, path, session string) *storetest.Process {
	t.Helper()
	return storetest.StartProcess(t, storetest.Command("", childVar+"="+name, pathVar+"="+path, nameVar+"="+session))
}

const perProcess = 100

func createMany(ctx context.Context, b *commands.Commands, session string) error {
	storetest.Tell("ready")
	storetest.Hear(bufio.NewReader(os.Stdin))
	for n := range perProcess {
		out, err := b.Create(ctx, record.CreateArgs{Caller: as(session), Type: "note", Title: fmt.Sprint(session, n)})
		if err != nil {
			return err
		}
		storetest.Tell(out.Record.ID)
	}
	return nil
}

func TestConcurrentCreatesGetIdsAndTicksWithoutGapsOrDuplicates(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var all []*storetest.Process
	for n := range 8 {
		p := child(t, "create", d.store.Path(), fmt.Sprint("s", n))
		p.Expect(t, "ready")
		all = append(all, p)
	}
	for _, p := range all {
		p.Send("go")
	}
	var mu sync.Mutex
	var ids []string
	var wait sync.WaitGroup
	for _, p := range all {
		wait.Go(func() {
			lines, err := p.Wait(t)
			mu.Lock()
			defer mu.Unlock()
			ids = append(ids, lines...)
			if err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	slices.SortFunc(ids, func(a, b string) int { return number(t, a) - number(t, b) })
	for i, id := range ids {
		if number(t, id) != i+1 {
			t.Fatalf("id %d is %s", i+1, id)
		}
	}
	want(t, "ids", len(ids), 8*perProcess)
	want(t, "tick", d.tick(), 8*perProcess)
}

func number(t testing.TB, id string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(id, "R"))
	if err != nil {
		t.Error(err)
	}
	return n
}

// updateOnce loads R001, waits, and updates it.
func updateOnce(ctx context.Context, b *commands.Commands, session string) error {
	if _, err := b.Activate(ctx, record.ActivateArgs{Caller: as(session), ID: "R001"}); err != nil {
		return err
	}
	storetest.Tell("ready")
	storetest.Hear(bufio.NewReader(os.Stdin))
	out, err := b.Update(ctx, record.UpdateArgs{Caller: as(session), ID: "R001", Body: ptr("by " + session)})
	if err != nil {
		return err
	}
	if out.Conflict != nil {
		storetest.Tell("conflict with " + out.Conflict.OtherVersion.Body)
	} else {
		storetest.Tell("stored")
	}
	return nil
}

func TestExactlyOneOfConcurrentUpdatesIsStored(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.create("first", "", "a")
	var all []*storetest.Process
	for n := range 4 {
		p := child(t, "update", d.store.Path(), fmt.Sprint("s", n))
		p.Expect(t, "ready")
		all = append(all, p)
	}
	for _, p := range all {
		p.Send("go")
	}
	stored := 0
	for _, p := range all {
		lines, err := p.Wait(t)
		if err != nil || len(lines) != 1 {
			t.Fatalf("%q, %v", lines, err)
		}
		if lines[0] == "stored" {
			stored++
		} else if lines[0] != "conflict with "+d.get("R001").Body {
			t.Errorf("%q, but stored is %q", lines[0], d.get("R001").Body)
		}
	}
	want(t, "stored", stored, 1)
	want(t, "version", d.get("R001").Version, 2)
	want(t, "tick", d.tick(), 2)
}

// workUntilKilled creates, updates, moves, saves and closes, and prints each acknowledged
// version.
func workUntilKilled(ctx context.Context, b *commands.Commands, session string) error {
	for n := 0; ; n++ {
		c := as(fmt.Sprint(session, ".", n))
		made, err := b.Create(ctx, record.CreateArgs{Caller: c, Type: "note", Title: "t", Body: "v1"})
		if err != nil {
			return err
		}
		id := made.Record.ID
		storetest.Tell(id + " 1")
		up, err := b.Update(ctx, record.UpdateArgs{Caller: c, ID: id, Body: ptr("v2")})
		if err != nil {
			return err
		}
		storetest.Tell(fmt.Sprint(id, " ", up.Record.Version))
		moved, err := b.Transition(ctx, record.TransitionArgs{Caller: c, ID: id, ToState: record.Later, Reason: "because"})
		if err != nil {
			return err
		}
		storetest.Tell(fmt.Sprint(id, " ", moved.Record.Version))
		if _, err := b.Save(ctx, record.SaveArgs{Caller: c}); err != nil {
			return err
		}
		if _, err := b.Close(ctx, record.SaveArgs{Caller: c}); err != nil {
			return err
		}
	}
}

// kills returns the number of kills in a test: 20, fewer with -short (second driver),
// more in a soak.
func kills() int {
	if soak, err := strconv.Atoi(os.Getenv("CAIRN_SOAK_KILLS")); err == nil {
		return soak
	}
	if testing.Short() {
		return 8
	}
	return 20
}

func TestAChangeIsAtomicWhenKilledAtAnyInstant(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.create("first", "", "a")
	versions := map[string]int{}
	note := func(line string) {
		id, version, ok := strings.Cut(line, " ")
		if !ok {
			return
		}
		v, err := strconv.Atoi(version)
		if err != nil {
			t.Fatal(err)
		}
		versions[id] = v
	}
	for round := range kills() {
		p := child(t, "work until killed", d.store.Path(), fmt.Sprint("k", round))
		for range 1 + rand.IntN(12) {
			line, ok := p.Line(t)
			if !ok {
				_, err := p.Wait(t)
				t.Fatalf("the child ended by itself: %v", err)
			}
			note(line)
		}
		if err := p.Signal(); err != nil {
			t.Fatal(err)
		}
		left, _ := p.Wait(t)
		for _, line := range left {
			note(line)
		}
		found, err := checked(t.Context(), d.store)
		if err != nil || len(found) > 0 {
			t.Fatalf("round %d: %v %q", round, err, found)
		}
	}
	for id, v := range versions {
		if got := d.get(id).Version; got < v || got > v+1 {
			t.Errorf("%s is at version %d, acknowledged was %d", id, got, v)
		}
	}
	t.Logf("%d records acknowledged in %d kills", len(versions), kills())
}
