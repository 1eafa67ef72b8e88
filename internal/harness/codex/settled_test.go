package codex_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cairn/internal/harness"
	"cairn/internal/harness/harnesses"
	"cairn/internal/harness/harnesstest"
)

// TestTheEndOfARolloutTellsHowCallsEnded reads rollouts of many sizes: from the beginning, from
// the middle of a line, and only the latest turn.
func TestTheEndOfARolloutTellsHowCallsEnded(t *testing.T) {
	t.Parallel()
	const session = "0a1b2c3d-0000-7000-8000-00000000c0de"
	for name, c := range map[string]struct {
		turns, bytes int // bytes: size of the output of a turn's commands
		latest       bool
		want         int
	}{
		"small":               {3, 100, false, 3},
		"small, its last":     {3, 100, true, 1},
		"cut in a line":       {30, 100_000, false, harness.MaxSettled / 100_000},
		"cut, its last":       {30, 100_000, true, 1},
		"a turn over the cut": {1, 3 << 20, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := new(rollout).meta(nil)
			for i := range c.turns {
				w.event("task_started", harnesstest.Object{"turn_id": fmt.Sprint("t", i)}).event("item_completed", harnesstest.Object{"item": harnesstest.Object{
					"type": "CommandExecution", "id": fmt.Sprint("exec-", i), "command": []string{"/bin/bash", "-lc", "make fire"},
					"status": "failed", "aggregated_output": strings.Repeat("cold ", c.bytes/5), "exit_code": 2,
				}})
			}
			path := filepath.Join(t.TempDir(), "rollout-2026-03-02T09-00-00-"+session+".jsonl")
			if err := os.WriteFile(path, []byte(w.String()), 0o600); err != nil {
				t.Fatal(err)
			}
			events, err := harnesses.Settled(t.Context(), path, session, c.latest)
			if err != nil || len(events) != c.want {
				t.Fatalf("%d events, %v", len(events), err)
			}
			for _, e := range events {
				if !e.Settled || !e.Calls[0].Failed || *e.Calls[0].ExitCode != 2 || e.Session != "s" {
					t.Errorf("%s of %s: %v, %v", e.Calls[0].ID, e.Session, e.Settled, e.Calls[0].Failed)
				}
			}
		})
	}
}
