package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestAHookChecksEveryFileOfAPatch (mail §14): the last of 5,000 files is reserved. Files outside
// all worktrees are not checked. An invalid payload is rejected with empty standard output.
// internal/mail/service checks the limit of 50 ms.
func TestAHookChecksEveryFileOfAPatch(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	h.settle("[guard]\nmode = \"block\"\nmax_ms = 20000\n")
	h.cairn("agents", "register", "BlueDog", "--program", "codex", "--model", "m1")
	h.cairn("reserve", "src/last.go", "**/x.go", "--as", "BlueDog")
	patch := func(dir, last string) ending {
		var text strings.Builder
		text.WriteString("*** Begin Patch\n")
		for i := range 4999 {
			fmt.Fprintf(&text, "*** Update File: %s\n@@\n-a\n+b\n", filepath.Join(dir, fmt.Sprintf("lib/p%d/f%d.go", i%50, i)))
		}
		fmt.Fprintf(&text, "*** Update File: %s\n@@\n-a\n+b\n*** End Patch", filepath.Join(dir, last))
		return h.run(h.command("record", "--from", "codex"), h.payload("PreToolUse", fields{
			"session_id": "c", "turn_id": "t", "tool_name": "apply_patch", "tool_input": fields{"command": text.String()},
		}))
	}
	e := patch("", "src/last.go")
	if e.code != 0 || !strings.Contains(e.stdout, `"permissionDecision":"deny"`) || !strings.Contains(e.stdout, "src/last.go") || !strings.Contains(e.stdout, "BlueDog") {
		t.Errorf("exit %d, %.300q, %s", e.code, e.stdout, e.stderr)
	}
	t.Logf("the whole hook took %v", e.took)
	if e := patch("", "src/other.go"); e.code != 0 || e.stdout != "" {
		t.Errorf("no conflict: exit %d, %.300q, %s", e.code, e.stdout, e.stderr)
	}
	if e := patch(h.dir, "x.go"); e.code != 0 || e.stdout != "" {
		t.Errorf("outside of every worktree: exit %d, %.300q, %s", e.code, e.stdout, e.stderr)
	}
	for _, payload := range []string{`{"hook_event_name":"PreToolUse","session_id":"c"`, `[]`, `{"hook_event_name":"PreToolUse","cwd":7}`} {
		if e := h.record([]byte(payload)); e.code != 1 || e.stdout != "" || strings.Count(e.stderr, "\n") != 1 {
			t.Errorf("%s: exit %d, %q, %q", payload, e.code, e.stdout, e.stderr)
		}
	}
}
