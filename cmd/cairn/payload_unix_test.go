//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// hugePayload returns a payload of about 100 MB: head, then part repeated, then end.
func hugePayload(head, part, end string) io.Reader {
	chunk := strings.Repeat(part, 1<<20/len(part))
	readers := []io.Reader{strings.NewReader(head)}
	for size := 0; size < 100_000_000; size += len(chunk) {
		readers = append(readers, strings.NewReader(chunk))
	}
	return io.MultiReader(append(readers, strings.NewReader(end))...)
}

// hookOn runs the hook on an input that need not be in memory. It fails the test if the
// hook does not read all of the input. It returns the exit code, the errors and the hook's
// peak memory in bytes.
func (h *home) hookOn(input io.Reader) (code int, stderr string, peak int64) {
	h.t.Helper()
	cmd := h.measured("record", "--assist")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		h.t.Fatal(err)
	}
	_, err = io.Copy(in, input)
	err = errors.Join(err, in.Close())
	if werr := cmd.Wait(); werr != nil {
		if _, ok := errors.AsType[*exec.ExitError](werr); !ok {
			h.t.Fatal(werr)
		}
	}
	if err != nil {
		h.t.Errorf("the hook did not read its input to the end: %v", err)
	}
	peak, err = strconv.ParseInt(strings.TrimSpace(out.String()), 10, 64)
	if err != nil {
		h.t.Fatal(err, errs.String())
	}
	return cmd.ProcessState.ExitCode(), errs.String(), peak
}

// TestAPayloadOf100MBNeedsLimitedMemory also checks that the fields around the long part
// are stored. A payload that is not JSON is refused and reports the limit, never with a
// veto.
func TestAPayloadOf100MBNeedsLimitedMemory(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("feeds 100 MB to each of several processes")
	}
	h := newHome(t)
	_, _, usual := h.hookOn(bytes.NewReader(h.shell("usual", "make")))
	head := func(event, own string) string {
		return fmt.Sprintf(`{"session_id":"s1","cwd":%q,"hook_event_name":%q,%s`, h.repo, event, own)
	}
	tool := head("PostToolUse", `"tool_name":"Bash","tool_input":{"command":"make huge"},"tool_response":`)
	for _, c := range []struct {
		name  string
		input io.Reader
		said  string // "" if the event is stored
	}{
		{"a string as response", hugePayload(tool+`"`, `line\n`, `","tool_use_id":"string"}`), ""},
		{"a long output", hugePayload(tool+`{"stdout":"`, `line\n`, `","stderr":"x"},"tool_use_id":"output"}`), ""},
		{"many elements", hugePayload(tool+`[{"text":"a"}`, `,{"text":"a"}`, `],"tool_use_id":"elements"}`), ""},
		{"a prompt", hugePayload(head("UserPromptSubmit", `"prompt":"a huge prompt `), `words and words `, `","prompt_id":"p"}`), ""},
		{"a guarded edit", hugePayload(head("PreToolUse", `"tool_name":"Write","tool_input":{"content":"`), `line\n`, `","file_path":"a.go"}}`), ""},
		{"junk", hugePayload(`{"`, `junk `, ``), "64 MiB"},
		{"an open object", hugePayload(tool+`{"stdout":"`, `line\n`, `"`), "64 MiB"},
		{"brackets", hugePayload(tool, `[`, ``), "64 MiB"},
		{"spaces", hugePayload(``, ` `, ``), "64 MiB"},
	} {
		code, said, peak := h.hookOn(c.input)
		t.Logf("%s: exit %d, %d MiB of memory, usually %d", c.name, code, peak>>20, usual>>20)
		switch {
		case c.said == "" && (code != 0 || said != ""):
			t.Errorf("%s: exit %d, %s", c.name, code, said)
		case c.said != "" && (code != 1 || !strings.Contains(said, c.said) || strings.Count(said, "\n") != 1):
			t.Errorf("%s: exit %d, %s", c.name, code, said)
		}
		if !racing() && peak > usual+(64+64)<<20 {
			t.Errorf("%s: %d bytes of memory, usually %d", c.name, peak, usual)
		}
	}
	h.wantRows(`SELECT group_concat(tool_use_id) FROM observations WHERE content = 'make huge' ORDER BY id`, "string,output,elements")
	h.wantRows(`SELECT count(*) FROM observations WHERE obs_type = 'user_prompt' AND content LIKE 'a huge prompt words%'`, "1")
}
