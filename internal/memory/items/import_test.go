package items_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cairn/internal/memory"
	"cairn/internal/memory/entries"
	"cairn/internal/memory/memorytest"
)

func TestAnExportIsImportedOnceAndKeepsItsTimes(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	ctx := t.Context()
	for i := range 7 {
		d.Add(fmt.Sprint("e", i))
		d.Clock.Move(time.Hour)
	}
	var lines []string
	for cursor, more := "", true; more; {
		page := memorytest.Must(d.Export(ctx, memory.Caller{}, d.MemoryID, cursor, 3))(t)
		for _, e := range page.Entries {
			lines = append(lines, memorytest.AsJSON(t, e))
		}
		cursor, more = page.Next, page.Next != ""
	}
	memorytest.Want(t, "lines", len(lines), 7)
	file := strings.Join(lines, "\n") + "\n\n{\"rawEntry\":\" \"}\nno json\n{\"rawEntry\":\"\\ud800\"}"
	far := d.With(d.NewMemory(memory.Caller{}, d.VaultID, "far"))
	read := 0
	out := memorytest.Must(d.Import(ctx, memory.Caller{}, far.MemoryID, strings.NewReader(file), func(n int) { read = n }))(t)
	memorytest.Want(t, "added", fmt.Sprint(out.Added, out.Known, len(out.Refused), out.Refused[0].Line, read), "7 0 3 9 11")
	memorytest.Want(t, "list", far.Texts(), d.Texts())
	a := memorytest.Must(d.ListEntries(ctx, memory.Caller{}, entries.ListArgs{MemoryID: d.MemoryID}))(t).Entries[3]
	b := memorytest.Must(d.ListEntries(ctx, memory.Caller{}, entries.ListArgs{MemoryID: far.MemoryID}))(t).Entries[3]
	memorytest.Want(t, "capturedTime", b.CapturedTime, a.CapturedTime)
	memorytest.Want(t, "an id of its own", a.EntryID != b.EntryID, true)
	if _, err := d.DeleteEntry(ctx, memory.Caller{}, far.MemoryID, b.EntryID); err != nil {
		t.Fatal(err)
	}
	out = memorytest.Must(d.Import(ctx, memory.Caller{}, far.MemoryID, strings.NewReader(file), nil))(t)
	memorytest.Want(t, "again, also of what was deleted since", fmt.Sprint(out.Added, out.Known), "0 7")
	_, err := d.Import(ctx, memory.Caller{}, far.MemoryID, strings.NewReader(`{"rawEntry":"`+strings.Repeat("x", 1<<20)+`"}`), nil)
	memorytest.WantError(t, "a line beyond all", err, 400, memory.CodeInvalid, "line 1")
	_, err = d.Import(ctx, memory.Caller{Level: memory.Write}, far.MemoryID, strings.NewReader(file), nil)
	memorytest.WantError(t, "level", err, 403, memory.CodeForbidden)
}
