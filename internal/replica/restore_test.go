package replica_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/entries"
	"cairn/internal/memory/rules"
	"cairn/internal/replica"
)

// copyHub copies an idle hub's files, as a backup does.
func copyHub(t *testing.T, from, to string) {
	t.Helper()
	for _, part := range []string{"", "-wal"} {
		data, err := os.ReadFile(from + part)
		if os.IsNotExist(err) {
			continue
		}
		if err == nil {
			err = os.WriteFile(to+part, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// An old backup of the hub is restored: devices send again what they hold beyond it,
// own or pulled, and all look as before (memories §13.2).
func TestAfterAnOldBackupIsRestoredDevicesSendAgainWhatItLacks(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/hub.db"
	o := open(t, "sqlite:"+file)
	a := o.desk().furnish()
	for i := range 5 {
		a.add(fmt.Sprint("a", i))
	}
	a.drain()
	b := o.desk().subscribe(a.memory).drain()
	b.memory = a.memory
	copyHub(t, file, file+"-old")

	for i := range 5 {
		a.add(fmt.Sprint("a", 5+i))
		b.add(fmt.Sprint("b", i))
		a.drain()
		b.drain()
	}
	late := a.newMemory(a.vault, "late")
	a.addTo(late, "l0")
	ids := a.all(a.memory)
	if _, _, err := a.PatchEntry(t.Context(), memory.Caller{}, a.memory, ids[1].EntryID, entries.Patch{Tags: map[string]string{"k": "v"}}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.UpdateContext(t.Context(), memory.Caller{}, entries.NewDocument{MemoryID: a.memory, SessionID: rules.NewID(), Markdown: "# c"}); err != nil {
		t.Fatal(err)
	}
	a.start()
	if _, err := a.DeleteEntry(t.Context(), memory.Caller{}, a.memory, ids[2].EntryID); err != nil {
		t.Fatal(err)
	}
	a.awaits(a.memory)
	a.awaits(late)
	a.end()
	b.subscribe(late).drain()
	a.drain()
	before, beforeLate := a.look(a.memory), a.look(late)
	want(t, "alike before", b.look(a.memory), before)

	old := open(t, "sqlite:"+file+"-old")
	old.user, old.secret = o.user, o.secret
	if _, err := old.hub.Restored(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(t, "the backup has", len(strings.Fields(old.texts(a.memory))), 5)
	for _, d := range []*desk{b, a} {
		d.office = old
		d.equip()
	}
	b.add("b5") // behind what is sent again
	b.drain()
	words := strings.Fields(old.texts(a.memory))
	if len(words) != 15 || words[14] != "b5" {
		t.Errorf("the hub has %v", words)
	}
	a.drain()
	b.drain()
	fresh := old.desk().subscribe(a.memory).subscribe(late).drain()
	want(t, "alike", a.look(a.memory), b.look(a.memory))
	want(t, "a new device is like them", fresh.look(a.memory), a.look(a.memory))
	want(t, "the later memory", fresh.look(late), beforeLate)
	want(t, "as before but for the new one", strings.Count(a.look(a.memory), "entryId"), strings.Count(before, "entryId")+1)
	for _, e := range a.all(a.memory) {
		if e.RawEntry != "b5" && !strings.Contains(before, `"`+e.EntryID+`"`) {
			t.Errorf("%s has another id", e.RawEntry)
		}
	}
	want(t, "failures", len(a.failures())+len(b.failures()), 0)
	sent := len(old.sent)
	a.drain()
	want(t, "nothing is sent twice", len(old.sent), sent)
}

// A hub that names no positions beyond its heads, as older ones do: that an old backup
// was restored shows by the number of the first new change. It counts for nothing, and
// after `hub restored` all is there.
func TestAnOldBackupShowsByTheNumbersOfNewChanges(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/hub.db"
	o := open(t, "sqlite:"+file)
	o.set(func(o *office) { o.old = true })
	a := o.desk().furnish()
	for i := range 5 {
		a.add(fmt.Sprint("a", i))
	}
	a.drain()
	copyHub(t, file, file+"-old")
	for i := range 5 {
		a.add(fmt.Sprint("b", i))
	}
	a.drain()
	b := o.desk().subscribe(a.memory).drain()
	want(t, "another device", b.texts(a.memory), a.texts(a.memory))

	restored := open(t, "sqlite:"+file+"-old")
	restored.user, restored.secret = o.user, o.secret
	restored.set(func(o *office) { o.old = true })
	a.office = restored
	a.equip()
	a.add("late")
	a.start()
	eventually(t, "the stop", func() bool { state, _ := a.one.State(); return state == replica.StateRestored })
	want(t, "still inflight", a.pending(a.memory), "late")
	var err error
	eventually(t, "await fails", func() bool { // once the stop is stored
		err = a.AwaitConsistency(t.Context(), memory.Caller{}, a.memory, 0)
		return fault.HasCode(err, memory.CodeReplicationFailed)
	})
	want(t, "await says why", fault.As(err).Details["state"], any(replica.StateRestored))
	a.end()
	a.equip() // another process
	sent := len(restored.sent)
	if _, err := restored.hub.Restored(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.start()
	eventually(t, "the end of the stop", func() bool { return a.AwaitConsistency(t.Context(), memory.Caller{}, a.memory, 0) == nil })
	if len(restored.sent) == sent {
		t.Error("nothing was sent again")
	}
	if words := strings.Fields(restored.texts(a.memory)); len(words) != 11 {
		t.Errorf("the hub has %v", words)
	}
	want(t, "the device", len(a.all(a.memory)), 11)
	want(t, "failures", len(a.failures()), 0)
}

// A backup that is older than an earlier `hub restored` has an epoch that devices have
// passed. The next one is above it anyway.
func TestAnEpochIsAboveThoseOfNewerBackups(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/hub.db"
	o := open(t, "sqlite:"+file)
	a := o.desk().furnish()
	a.add("one")
	a.drain()
	copyHub(t, file, file+"-old")
	if _, err := o.hub.Restored(t.Context()); err != nil { // an earlier restore
		t.Fatal(err)
	}
	a.add("two")
	a.drain()
	old := open(t, "sqlite:"+file+"-old")
	old.user, old.secret = o.user, o.secret
	a.office = old
	a.equip()
	if err := a.one.Drain(t.Context()); fault.As(err) == nil || fault.As(err).Code != replica.StateRestored {
		t.Fatalf("drain: %v", err)
	}
	for { // in another second than the earlier one
		epoch, err := old.hub.Restored(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if known, err := a.Epoch(t.Context(), a.me); err != nil || epoch > known {
			break
		}
	}
	a.drain()
	want(t, "the hub has", old.texts(a.memory), "one two")
}
