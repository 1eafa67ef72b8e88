//go:build linux && cgo

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// limited returns a command that the shell starts under a limit. "-v" limits the address
// space in KiB. "-n" limits the number of descriptors, "-u" the number of processes and
// threads.
func (h *home) limited(limit string, n int, args ...string) *exec.Cmd {
	h.t.Helper()
	shell, err := exec.LookPath("bash")
	if err != nil {
		h.t.Skip("no bash, which knows all limits")
	}
	cmd := h.command(args...)
	cmd.Args = append([]string{"bash", "-c", fmt.Sprintf(`ulimit %s %d && exec "$0" "$@"`, limit, n), cmd.Path}, args...)
	cmd.Path = shell
	return cmd
}

// vetoable returns events for which a host may treat exit code 2 as a veto.
func vetoable() []string { return []string{"PreToolUse", "UserPromptSubmit", "Stop", "PostToolUse"} }

// TestAHookWithoutResourcesIsNoVeto runs hooks with little address space, few descriptors,
// no threads, and a payload that does not fit into memory. Go's runtime would exit with 2,
// which a host treats as a veto (observations §4.1).
func TestAHookWithoutResourcesIsNoVeto(t *testing.T) {
	t.Parallel()
	if racing() {
		t.Skip("the race detector has a runtime of its own, and reserves terabytes")
	}
	h := newHome(t)
	h.recorded(h.shell("first", "make"))
	failed, stored := 0, 0
	try := func(cmd *exec.Cmd, payload []byte, what string) {
		t.Helper()
		switch e := h.run(cmd, payload); e.code {
		case 0:
			stored++
		case 1:
			failed++
		default:
			t.Errorf("%s: exit %d, %s", what, e.code, e.stderr)
		}
	}
	for _, event := range vetoable() {
		for mb := 100; mb <= 1500; mb += 100 {
			try(h.limited("-v", mb<<10, "record", "--assist"), h.anyEvent(event), fmt.Sprintf("%s with %d MB", event, mb))
		}
		for n := 4; n <= 40; n += 1 + n/12 {
			try(h.limited("-n", n, "record", "--assist"), h.anyEvent(event), fmt.Sprintf("%s with %d descriptors", event, n))
		}
	}
	huge := h.payload("PreToolUse", fields{"tool_name": "Bash", "tool_input": fields{"command": strings.Repeat("x", 60<<20)}})
	for mb := 1350; mb <= 1600; mb += 50 {
		try(h.limited("-v", mb<<10, "record"), huge, fmt.Sprintf("60 MB with %d MB", mb))
	}
	if failed == 0 || stored == 0 {
		t.Errorf("%d hooks failed and %d did not: the limits show nothing", failed, stored)
	}
	if cores, err := filepath.Glob(filepath.Join(h.repo, "core*")); err != nil || len(cores) > 0 {
		t.Errorf("core files: %v, %v", cores, err)
	}
	h.check()
}

// TestAHookWithoutThreadsIsNoVeto runs the hook as a user who must not start another
// thread.
func TestAHookWithoutThreadsIsNoVeto(t *testing.T) {
	t.Parallel()
	if racing() {
		t.Skip("the race detector has a runtime of its own")
	}
	if os.Getuid() != 0 {
		t.Skip("only root can become a user who has no other process")
	}
	h := newHome(t)
	const other = nobody - 7 // a user without other processes
	if !h.asNobody() {
		t.Skip("this user's programs cannot be run by another one")
	}
	h.as = 0
	for _, n := range []int{1, 4} {
		cmd := h.limited("-u", n, "record")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: other, Gid: other}}
		if e := h.run(cmd, h.anyEvent("PreToolUse")); e.code == 2 || e.code == -1 {
			t.Errorf("%d threads: exit %d, %s", n, e.code, e.stderr)
		}
	}
}
