package search

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"cairn/internal/observation"
	"cairn/internal/observation/forget"
	"cairn/internal/observation/integrity"
	"cairn/internal/observation/observationtest"
	"cairn/internal/store"
	"cairn/internal/tooloutput"
)

// pasted returns the ids of the rows that printed lines of a query, best first.
func pasted(b observationtest.Bench, query string) (ids []int64) {
	b.T.Helper()
	err := b.Read(b.T.Context(), func(ctx context.Context, tx *store.Tx) error {
		rows, err := pastedLines(ctx, b.Service, tx, query, 0)
		for _, r := range rows {
			ids = append(ids, r.id)
		}
		return err
	})
	if err != nil {
		b.T.Fatal(err)
	}
	return ids
}

// output returns the digest of a row's output.
func output(b observationtest.Bench, id int64) (digest string) {
	b.T.Helper()
	err := b.Read(b.T.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		digest, err = observation.OutputOf(ctx, tx, id)
		return err
	})
	if err != nil {
		b.T.Fatal(err)
	}
	return digest
}

func TestAPrintedLineFindsTheCallThatPrintedIt(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	first := b.Call(observationtest.Printing("./seed", "seeded 48 pots into shelf 7 in 1.32s\nshelf is ready\n"), "").IDs[0]
	middle := strings.Builder{}
	for i := range 200 {
		fmt.Fprintf(&middle, "glaze %s takes %c hours to dry\n", strings.Repeat("x", i+1), 'a'+i%26)
	}
	second := b.Call(observationtest.Printing("./dry", middle.String()), "").IDs[0]
	third := b.Call(observation.Call{Tool: "Agent", Action: observation.Spawn, Description: "count", Output: "The kiln holds nine shelves of stoneware."}, "").IDs[0]
	fourth := b.Call(observation.Call{Tool: "Bash", Action: observation.Shell, Command: "./fire", Failed: true, Error: "Exit code 1\nkiln door is open, refusing to fire"}, "").IDs[0]
	b.Call(observationtest.Printing("./seed again", "shelf is ready\n"), "")
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
		if got := pasted(b, query); len(got) == 0 || got[0] != want {
			t.Errorf("%q: %v, want %d first", query, got, want)
		}
	}
	for _, query := range []string{"", "nothing printed this line", "short", "12345678901234567890"} {
		if got := pasted(b, query); len(got) != 0 {
			t.Errorf("%q finds %v", query, got)
		}
	}
}

func TestModesKeepOutputsOfAllCallsOfFailedOnesOrOfNone(t *testing.T) {
	t.Parallel()
	for mode, want := range map[observation.OutputMode][2]bool{"": {true, true}, observation.OutputDigest: {true, true}, observation.OutputErrors: {false, true}, observation.OutputOff: {}} {
		b := observationtest.New(t)
		b.Config.Output = mode
		passed := b.Call(observationtest.Printing("./a", "all nine kilns are at cone six"), "").IDs[0]
		failed := b.Call(observation.Call{Tool: "Bash", Action: observation.Shell, Command: "./b", Failed: true, Error: "the tenth kiln is cold"}, "").IDs[0]
		if got := [2]bool{output(b, passed) != "", output(b, failed) != ""}; got != want {
			t.Errorf("%q: %v, want %v", mode, got, want)
		}
		if got := [2]bool{len(pasted(b, "all nine kilns are at cone six")) > 0, len(pasted(b, "the tenth kiln is cold")) > 0}; got != want {
			t.Errorf("%q: lines %v, want %v", mode, got, want)
		}
	}
}

func TestFilesAndOwnToolsLeaveNoOutput(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	const body = "a line that stands in the file"
	for _, c := range []observation.Call{
		{Tool: "Read", Action: observation.Read, Path: "a.txt", Output: body, Stdout: body},
		{Tool: "Write", Action: observation.Write, Path: "a.txt", Output: body},
		{Tool: "Edit", Action: observation.Edit, Path: "a.txt", Output: body},
		{Tool: "Grep", Action: observation.Search, Pattern: "line", Output: body},
		{Tool: "Skill", Action: observation.Skill, SkillName: "throwing", Output: body},
		{Tool: "mcp__cairn__search", Action: observation.MCP, Server: "cairn", Method: "search", Output: body},
		observationtest.Printing("cairn search line", body),
	} {
		for _, id := range b.Call(c, "").IDs {
			if got := output(b, id); got != "" {
				t.Errorf("%s: %q", c.Tool, got)
			}
		}
	}
	if got := pasted(b, body); len(got) != 0 {
		t.Errorf("found %v", got)
	}
}

// plantedKey has the shape of an AWS key id. It is built at run time, because scanners must not
// find it in this source.
func plantedKey() string { return "AKIA" + strings.Repeat("Q3ZT", 4) }

func TestASecretInAnOutputIsGoneBeforeItIsHashedOrShown(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	line := "using the access key " + plantedKey() + " of the shop"
	id := b.Call(observationtest.Printing("./login", "logging in\n"+line+"\n"), "").IDs[0]
	if got := output(b, id); strings.Contains(got, plantedKey()) || !strings.Contains(got, "[REDACTED]") {
		t.Errorf("shown: %q", got)
	}
	if got := pasted(b, line); len(got) != 1 || got[0] != id { // the query is redacted the same way
		t.Errorf("found %v", got)
	}
	asItWas := tooloutput.Hashes(tooloutput.Lines(line))
	for _, h := range tooloutput.Hashes(tooloutput.Lines(output(b, id))) {
		if slices.Contains(asItWas, h) {
			t.Error("the line is hashed as it was")
		}
	}
}

func TestOutputsExpireBeforeTheirRows(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	b.Config.OutputDays = 30
	old := b.Call(observationtest.Printing("./a", "the first kiln was fired"), "").IDs[0]
	for i := range 60 { // more than a batch
		b.Call(observationtest.Printing("./more", fmt.Sprintf("shelf %d holds the blue bowls", i)), "")
	}
	b.Now.Add(31 * observation.SecondsPerDay)
	young := b.Call(observationtest.Printing("./b", "the second kiln was fired"), "").IDs[0]
	for _, dry := range []bool{true, false} {
		done, err := forget.Sweep(b.T.Context(), b.Service, forget.SweepArgs{DryRun: dry})
		if err != nil || done.Outputs != 61 || done.Rows != 0 {
			t.Fatalf("%+v %v", done, err)
		}
	}
	if output(b, old) != "" || output(b, young) == "" {
		t.Errorf("old %q, young %q", output(b, old), output(b, young))
	}
	if got := pasted(b, "the first kiln was fired"); len(got) != 0 {
		t.Errorf("the old line finds %v", got)
	}
	if got := pasted(b, "the second kiln was fired"); len(got) != 1 {
		t.Errorf("the young line finds %v", got)
	}
	if done, err := forget.Sweep(b.T.Context(), b.Service, forget.SweepArgs{}); err != nil || done.Outputs != 0 {
		t.Errorf("a second sweep: %+v %v", done, err)
	}
}

func TestAPurgeTakesTheOutputAlong(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	gone := b.Call(observationtest.Printing("./a", "the first kiln was fired"), "").IDs[0]
	b.Call(observationtest.Printing("./b", "the second kiln was fired"), "")
	if _, err := forget.Purge(b.T.Context(), b.Service, forget.PurgeArgs{IDs: []int64{gone}, Confirm: true}); err != nil {
		t.Fatal(err)
	}
	if got := pasted(b, "the first kiln was fired\nthe second kiln was fired"); len(got) != 1 || got[0] == gone {
		t.Errorf("found %v", got)
	}
	count(b, 0, `SELECT count(*) FROM output_rows WHERE observation_id = ?`, gone)
	count(b, 0, `SELECT count(*) FROM output_lines_data WHERE id >= 1 << 53`) // words of deleted rows
}

// count checks the number that a query returns.
func count(b observationtest.Bench, want int, query string, args ...any) {
	b.T.Helper()
	err := b.Read(b.T.Context(), func(ctx context.Context, tx *store.Tx) error {
		var n int
		err := tx.Get(ctx, []any{&n}, query, args...)
		if n != want {
			b.T.Errorf("%s: %d, want %d", query, n, want)
		}
		return err
	})
	if err != nil {
		b.T.Fatal(err)
	}
}

func TestDamagedOutputsAreNamedAndDeletedAndLostHashesMadeAnew(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	whole := b.Call(observationtest.Printing("./a", "the first kiln was fired"), "").IDs[0]
	hurt := b.Call(observationtest.Printing("./b", "the second kiln was fired\n"+strings.Repeat("and it was fired once more\n", 9)), "").IDs[0]
	lost := b.Call(observationtest.Printing("./c", "the third kiln was fired"), "").IDs[0]
	err := b.Store.Write(b.T.Context(), store.Normal, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE output_rows SET digest = replace(digest, 'second', 'seCond') WHERE observation_id = ?`, hurt)
		if err == nil {
			_, err = tx.Exec(ctx, `DELETE FROM output_lines WHERE rowid = ?`, lost)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	found, err := integrity.Check(b.T.Context(), b.Service)
	want := []string{
		fmt.Sprintf("the output of observation %d has no line hashes", lost),
		fmt.Sprintf("the output of observation %d is not what was written: its checksum differs", hurt),
	}
	if err != nil || strings.Join(found, "; ") != strings.Join(want, "; ") {
		t.Fatalf("%q %v", found, err)
	}
	if err := integrity.Repair(b.T.Context(), b.Service, func(table string, id int64) { t.Errorf("%s %d is altered", table, id) }); err != nil {
		t.Fatal(err)
	}
	if output(b, whole) == "" || output(b, hurt) != "" || output(b, lost) == "" {
		t.Errorf("%q, %q, %q", output(b, whole), output(b, hurt), output(b, lost))
	}
	if got := pasted(b, "the third kiln was fired"); len(got) != 1 || got[0] != lost {
		t.Errorf("found %v", got)
	}
}
