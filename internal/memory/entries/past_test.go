package entries_test

import (
	"fmt"
	"testing"
	"time"

	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/entries"
	"cairn/internal/memory/memorytest"
	"cairn/internal/memory/rules"
	"cairn/internal/store"
)

func TestAContextOfThePastIsTheNewestOfThen(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	ctx := t.Context()
	session := rules.NewID()
	began := d.Clock.Now()
	var times []time.Time
	for i := range 3 {
		d.Clock.Move(time.Minute)
		_, _, err := d.UpdateContext(ctx, memory.Caller{}, entries.NewDocument{MemoryID: d.MemoryID, SessionID: session, Markdown: fmt.Sprint("version ", i)})
		if err != nil {
			t.Fatal(err)
		}
		times = append(times, d.Clock.Now())
	}
	d.Clock.Move(time.Minute)
	at := func(text string) entries.PastDocument {
		t.Helper()
		return memorytest.Must(d.GetContextAt(ctx, memory.Caller{}, d.MemoryID, text))(t)
	}
	for i, when := range times {
		got := at(when.Add(30 * time.Second).UTC().Format(time.RFC3339Nano))
		if got.Markdown != fmt.Sprint("version ", i) || got.SessionID != session || got.At.Tick == 0 || got.At.Note != "" {
			t.Errorf("%d: %+v", i, got)
		}
		if same := at(fmt.Sprint("#", got.At.Tick)); same.Markdown != got.Markdown {
			t.Errorf("%d by its tick: %+v", i, same)
		}
	}
	if got := at(began.Format(time.RFC3339Nano)); got.Markdown != "" || got.At.Note != "no context had been written by then" {
		t.Errorf("before the first: %+v", got)
	}
	if got := at("2001-01-01T00:00:00Z"); got.Markdown != "" || got.At.Note != store.BeforeFirst {
		t.Errorf("before the store: %+v", got)
	}
	for _, text := range []string{"", "soon", "2200-01-01T00:00:00Z", "#99999"} {
		if _, err := d.GetContextAt(ctx, memory.Caller{}, d.MemoryID, text); !fault.HasCode(err, memory.CodeInvalid) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestAContextOfThePastThatWasPurgedIsSaidToBe(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t).Joined()
	h := memorytest.NewHub(d)
	ctx := t.Context()
	var first entries.PastDocument
	for i := range 2 {
		_, _, err := d.UpdateContext(ctx, memory.Caller{}, entries.NewDocument{MemoryID: d.MemoryID, SessionID: rules.NewID(), Markdown: fmt.Sprint("version ", i)})
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = memorytest.Must(d.GetContextAt(ctx, memory.Caller{}, d.MemoryID, "now"))(t)
		}
	}
	d.Drain(h)
	memorytest.Want(t, "purged", memorytest.Must(d.Purge(ctx, true))(t).Contexts, 1)
	got := memorytest.Must(d.GetContextAt(ctx, memory.Caller{}, d.MemoryID, fmt.Sprint("#", first.At.Tick)))(t)
	if got.Markdown != "" || got.At.Note != "the contexts of that time were purged" {
		t.Errorf("%+v", got)
	}
}
