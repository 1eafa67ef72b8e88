package observation

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"cairn/internal/store"
)

// printing returns a finished command with what it printed.
func printing(command, printed string) Call {
	return Call{Tool: "Bash", Action: Shell, Command: command, Stdout: printed}
}

// pasted returns the ids of the rows that printed lines of a query, best first.
func (b bench) pasted(query string) (ids []int64) {
	b.t.Helper()
	err := b.read(b.t.Context(), func(ctx context.Context, tx *store.Tx) error {
		rows, err := b.pastedLines(ctx, tx, query, 0)
		for _, r := range rows {
			ids = append(ids, r.id)
		}
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return ids
}

// output returns the digest that Get returns with a row.
func (b bench) output(id int64) string {
	b.t.Helper()
	rows, err := b.Get(b.t.Context(), []int64{id})
	if err != nil || len(rows) != 1 {
		b.t.Fatalf("%v %v", rows, err)
	}
	return rows[0].Output
}

func TestAPrintedLineFindsTheCallThatPrintedIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.call(printing("./seed", "seeded 48 pots into shelf 7 in 1.32s\nshelf is ready\n"), "").IDs[0]
	middle := strings.Builder{}
	for i := range 200 {
		fmt.Fprintf(&middle, "glaze %s takes %c hours to dry\n", strings.Repeat("x", i+1), 'a'+i%26)
	}
	second := b.call(printing("./dry", middle.String()), "").IDs[0]
	third := b.call(Call{Tool: "Agent", Action: Spawn, Description: "count", Output: "The kiln holds nine shelves of stoneware."}, "").IDs[0]
	fourth := b.call(Call{Tool: "Bash", Action: Shell, Command: "./fire", Failed: true, Error: "Exit code 1\nkiln door is open, refusing to fire"}, "").IDs[0]
	b.call(printing("./seed again", "shelf is ready\n"), "")
	for query, want := range map[string]int64{
		"seeded 48 pots into shelf 7 in 1.32s":                           first,
		"  seeded  48 pots into shelf 7 in 1.32s":                        first,
		"seeded 51 pots into shelf 12 in 20s":                            first,
		"glaze " + strings.Repeat("x", 100) + " takes v hours to dry":    second, // not in the digest
		"The kiln holds nine shelves of stoneware.":                      third,
		"where did `kiln door is open, refusing to fire` come from?":     fourth,
		"shelf is ready\nseeded 48 pots into shelf 7 in 1.32s\nand then": first,
		"\x1b[32mseeded 48 pots into shelf 7 in 1.32s\x1b[0m":            first,
	} {
		if got := b.pasted(query); len(got) == 0 || got[0] != want {
			t.Errorf("%q: %v, want %d first", query, got, want)
		}
	}
	for _, query := range []string{"", "nothing printed this line", "short", "12345678901234567890"} {
		if got := b.pasted(query); len(got) != 0 {
			t.Errorf("%q finds %v", query, got)
		}
	}
}
