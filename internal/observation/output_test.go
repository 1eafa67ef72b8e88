package observation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"cairn/internal/store"
	"cairn/internal/tooloutput"
)

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

// output returns the digest of what a row printed.
func (b bench) output(id int64) (digest string) {
	b.t.Helper()
	err := b.read(b.t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		digest, err = outputOf(ctx, tx, id)
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return digest
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

func TestModesKeepOutputsOfAllCallsOfFailedOnesOrOfNone(t *testing.T) {
	t.Parallel()
	for mode, want := range map[OutputMode][2]bool{"": {true, true}, OutputDigest: {true, true}, OutputErrors: {false, true}, OutputOff: {}} {
		b := newBench(t)
		b.config.Output = mode
		passed := b.call(printing("./a", "all nine kilns are at cone six"), "").IDs[0]
		failed := b.call(Call{Tool: "Bash", Action: Shell, Command: "./b", Failed: true, Error: "the tenth kiln is cold"}, "").IDs[0]
		if got := [2]bool{b.output(passed) != "", b.output(failed) != ""}; got != want {
			t.Errorf("%q: %v, want %v", mode, got, want)
		}
		if got := [2]bool{len(b.pasted("all nine kilns are at cone six")) > 0, len(b.pasted("the tenth kiln is cold")) > 0}; got != want {
			t.Errorf("%q: lines %v, want %v", mode, got, want)
		}
	}
}

func TestFilesAndOwnToolsLeaveNoOutput(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const body = "a line that stands in the file"
	for _, c := range []Call{
		{Tool: "Read", Action: Read, Path: "a.txt", Output: body, Stdout: body},
		{Tool: "Write", Action: Write, Path: "a.txt", Output: body},
		{Tool: "Edit", Action: Edit, Path: "a.txt", Output: body},
		{Tool: "Grep", Action: Search, Pattern: "line", Output: body},
		{Tool: "Skill", Action: Skill, SkillName: "throwing", Output: body},
		{Tool: "mcp__cairn__search", Action: MCP, Server: "cairn", Method: "search", Output: body},
		printing("cairn search line", body),
	} {
		for _, id := range b.call(c, "").IDs {
			if got := b.output(id); got != "" {
				t.Errorf("%s: %q", c.Tool, got)
			}
		}
	}
	if got := b.pasted(body); len(got) != 0 {
		t.Errorf("found %v", got)
	}
}

func TestASecretInAnOutputIsGoneBeforeItIsHashedOrShown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	line := "using the access key " + plantedKey() + " of the shop"
	id := b.call(printing("./login", "logging in\n"+line+"\n"), "").IDs[0]
	if got := b.output(id); strings.Contains(got, plantedKey()) || !strings.Contains(got, "[REDACTED]") {
		t.Errorf("shown: %q", got)
	}
	if got := b.pasted(line); len(got) != 1 || got[0] != id { // the question is redacted the same way
		t.Errorf("found %v", got)
	}
	asItWas := tooloutput.Hashes(tooloutput.Lines(line))
	for _, h := range tooloutput.Hashes(tooloutput.Lines(b.output(id))) {
		if slices.Contains(asItWas, h) {
			t.Error("the line is hashed as it was")
		}
	}
}

func TestOutputsExpireBeforeTheirRows(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.config.OutputDays = 30
	old := b.call(printing("./a", "the first kiln was fired"), "").IDs[0]
	for i := range 60 { // more than a batch
		b.call(printing("./more", fmt.Sprintf("shelf %d holds the blue bowls", i)), "")
	}
	b.now.Add(31 * secondsPerDay)
	young := b.call(printing("./b", "the second kiln was fired"), "").IDs[0]
	for _, dry := range []bool{true, false} {
		done, err := b.Sweep(b.t.Context(), SweepArgs{DryRun: dry})
		if err != nil || done.Outputs != 61 || done.Rows != 0 {
			t.Fatalf("%+v %v", done, err)
		}
	}
	if b.output(old) != "" || b.output(young) == "" {
		t.Errorf("old %q, young %q", b.output(old), b.output(young))
	}
	if got := b.pasted("the first kiln was fired"); len(got) != 0 {
		t.Errorf("the old line finds %v", got)
	}
	if got := b.pasted("the second kiln was fired"); len(got) != 1 {
		t.Errorf("the young line finds %v", got)
	}
	if done, err := b.Sweep(b.t.Context(), SweepArgs{}); err != nil || done.Outputs != 0 {
		t.Errorf("a second sweep: %+v %v", done, err)
	}
}

func TestAPurgeTakesTheOutputAlong(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	gone := b.call(printing("./a", "the first kiln was fired"), "").IDs[0]
	b.call(printing("./b", "the second kiln was fired"), "")
	if _, err := b.Purge(b.t.Context(), PurgeArgs{IDs: []int64{gone}, Confirm: true}); err != nil {
		t.Fatal(err)
	}
	if got := b.pasted("the first kiln was fired\nthe second kiln was fired"); len(got) != 1 || got[0] == gone {
		t.Errorf("found %v", got)
	}
	b.count(0, `SELECT count(*) FROM output_rows WHERE observation_id = ?`, gone)
	b.count(0, `SELECT count(*) FROM output_lines_data WHERE id >= 1 << 53`) // words of deleted rows
}

// count compares the number that a query returns.
func (b bench) count(want int, query string, args ...any) {
	b.t.Helper()
	err := b.read(b.t.Context(), func(ctx context.Context, tx *store.Tx) error {
		var n int
		err := tx.Get(ctx, []any{&n}, query, args...)
		if n != want {
			b.t.Errorf("%s: %d, want %d", query, n, want)
		}
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

func TestDamagedOutputsAreNamedAndDeletedAndLostHashesMadeAnew(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	whole := b.call(printing("./a", "the first kiln was fired"), "").IDs[0]
	hurt := b.call(printing("./b", "the second kiln was fired\n"+strings.Repeat("and it was fired once more\n", 9)), "").IDs[0]
	lost := b.call(printing("./c", "the third kiln was fired"), "").IDs[0]
	err := b.store.Write(b.t.Context(), store.Normal, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE output_rows SET digest = replace(digest, 'second', 'seCond') WHERE observation_id = ?`, hurt)
		if err == nil {
			_, err = tx.Exec(ctx, `DELETE FROM output_lines WHERE rowid = ?`, lost)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	found, err := b.Check(b.t.Context())
	want := []string{
		fmt.Sprintf("the output of observation %d has no line hashes", lost),
		fmt.Sprintf("the output of observation %d is not what was written: its checksum differs", hurt),
	}
	if err != nil || strings.Join(found, "; ") != strings.Join(want, "; ") {
		t.Fatalf("%q %v", found, err)
	}
	if err := b.Mend(b.t.Context(), func(table string, id int64) { t.Errorf("%s %d is altered", table, id) }); err != nil {
		t.Fatal(err)
	}
	if b.output(whole) == "" || b.output(hurt) != "" || b.output(lost) == "" {
		t.Errorf("%q, %q, %q", b.output(whole), b.output(hurt), b.output(lost))
	}
	if got := b.pasted("the third kiln was fired"); len(got) != 1 || got[0] != lost {
		t.Errorf("found %v", got)
	}
}
