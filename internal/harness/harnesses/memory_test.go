package harnesses_test

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"cairn/internal/harness/harnesses"
	"cairn/internal/harness/harnesstest"
	"cairn/internal/harness/lazyjson"
)

const hookChild = "CAIRN_TEST_HOOK_CHILD"

// TestHookChild is the process that the next test measures. It prints its peak memory in the
// format of Linux.
func TestHookChild(t *testing.T) {
	if os.Getenv(hookChild) == "" {
		t.Skip("only as a child")
	}
	payload, err := lazyjson.ReadPayload(os.Stdin)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := harnesses.Hook(payload, "auto", ""); err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("this system does not tell the memory of a process")
	}
	if _, err := os.Stdout.Write(status); err != nil {
		t.Fatal(err)
	}
}

func peakMemory(status []byte) (int64, bool) {
	_, rest, found := bytes.Cut(status, []byte("VmHWM:"))
	number, _, _ := bytes.Cut(rest, []byte("kB"))
	kib, err := strconv.ParseInt(string(bytes.TrimSpace(number)), 10, 64)
	return kib << 10, found && err == nil
}

// A payload of 50 MB needs at most twice its size and 64 MiB (observations §13).
func TestHookHoldsItsMemoryBound(t *testing.T) {
	t.Parallel()
	if testing.Short() || harnesstest.Raced {
		t.Skip("feeds 50 MB to child processes, which the race detector would make three times as large")
	}
	const size = 50_000_000
	head := `{"session_id":"s","cwd":"/k","hook_event_name":"PostToolUse","tool_name":`
	fill := func(part string, share int) string { return strings.Repeat(part, size/share/len(part)) }
	for name, body := range map[string]string{
		"file":        `"Write","tool_input":{"file_path":"/k/a","content":"` + fill("x", 1) + `"}}`,
		"output":      `"Bash","tool_input":{"command":"` + fill(`\u00e9`, 4) + `","description":"` + fill("é", 4) + `"},"tool_response":{"stdout":"` + fill(`a\n`, 4) + `","stderr":"` + fill("\xff", 4) + `"}}`,
		"arguments":   `"mcp__a__b","tool_input":{"x":0` + fill(`,"k":[1,{}]`, 1) + `}}`,
		"patch":       `"apply_patch","tool_input":{"command":"*** Begin Patch` + fill(`\n*** Add File: a\n+x`, 1) + `"},"turn_id":"t"}`,
		"words":       `"shell","tool_input":{"command":["x"` + fill(`,"y"`, 2) + `]},"tool_response":"{\"output\":\"` + fill("x", 2) + `\"}","turn_id":"t"}`,
		"gemini":      `"run_shell_command","tool_response":{"llmContent":["x"` + fill(`,{"text":"a"}`, 2) + `],"returnDisplay":"` + fill("x", 2) + `"},"hook_event_name":"AfterTool"}`,
		"gemini said": `"run_shell_command","tool_response":{"llmContent":"` + fill(`x\n`, 1) + `"},"hook_event_name":"AfterTool"}`,
		"cursor":      `"Shell","tool_input":{"command":"x"},"tool_output":"{\"stdout\":\"` + fill("x", 1) + `\"}","conversation_id":"c","hook_event_name":"postToolUse"}`,
		"cursor file": `"","file_path":"/k/a","edits":[{}` + fill(`,{"new_string":"x"}`, 1) + `],"conversation_id":"c","hook_event_name":"afterFileEdit"}`,
	} {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHookChild$")
		child.Env = append(os.Environ(), hookChild+"=1")
		child.Stdin = strings.NewReader(head + body)
		out, err := child.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		peak, ok := peakMemory(out)
		if !ok {
			t.Skip("this system does not tell the memory of a child")
		}
		bytes := int64(len(head) + len(body))
		t.Logf("%s: %d MB for %d MB", name, peak/1e6, bytes/1e6)
		if limit := 2*bytes + 64<<20; peak > limit {
			t.Errorf("%s: %d bytes, over %d", name, peak, limit)
		}
	}
}
