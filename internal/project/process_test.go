package project_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"cairn/internal/project"
)

// report is what a hook process finds about its ancestors.
type report struct {
	PID       int // of the process that plays the harness
	Harness   project.Process
	Ancestors []project.Process
}

// TestMain lets the test program play a harness and its hook: only real processes can
// test this package.
func TestMain(m *testing.M) {
	var err error
	switch os.Getenv("CAIRN_TEST_ROLE") {
	case "harness":
		err = playHarness()
	case "hook":
		err = json.NewEncoder(os.Stdout).Encode(report{
			PID: os.Getpid(), Harness: project.HarnessProcess(), Ancestors: project.Ancestors(),
		})
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// playHarness runs a hook, adds its own number to the hook's report, and stays
// until its input ends.
func playHarness() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	hook := exec.Command(self)
	if shell := os.Getenv("CAIRN_TEST_SHELL"); shell != "" {
		hook = exec.Command(shell, "-c", `"$0"; exit $?`, self)
	}
	hook.Env = append(os.Environ(), "CAIRN_TEST_ROLE=hook")
	hook.Stderr = os.Stderr
	out, err := hook.Output()
	if err != nil {
		return err
	}
	var r report
	if err := json.Unmarshal(out, &r); err != nil {
		return err
	}
	r.PID = os.Getpid()
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// startHarness runs a harness that lives until the test ends and returns what
// its hook, started through a shell if one is given, has seen.
func startHarness(t *testing.T, shell string) (r report) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), "CAIRN_TEST_ROLE=harness", "CAIRN_TEST_SHELL="+shell)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(out).Decode(&r); err != nil {
		t.Fatalf("the harness said nothing: %v", err)
	}
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	return r
}

func TestHarnessIsTheParentOfItsHook(t *testing.T) {
	t.Parallel()
	r := startHarness(t, "")
	if r.Harness.PID != r.PID || r.Harness.Start == 0 || len(r.Ancestors) < 2 ||
		r.Ancestors[0] != r.Harness || r.Ancestors[1].PID != os.Getpid() {
		t.Errorf("%+v", r)
	}
}

func TestHarnessIsFoundThroughAShell(t *testing.T) {
	t.Parallel()
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell here")
	}
	r := startHarness(t, shell)
	if r.Harness.PID != r.PID || len(r.Ancestors) < 3 || r.Ancestors[0].PID == r.PID || r.Ancestors[1] != r.Harness {
		t.Errorf("%+v", r)
	}
}

func TestAllChildrenReportTheSameProcess(t *testing.T) {
	t.Parallel()
	a, b := startHarness(t, ""), startHarness(t, "")
	if a.Ancestors[1] != b.Ancestors[1] || a.Ancestors[1].PID != os.Getpid() {
		t.Errorf("this process is %+v to one child and %+v to another", a.Ancestors[1], b.Ancestors[1])
	}
	if len(a.Ancestors) > 16 {
		t.Errorf("%d ancestors", len(a.Ancestors))
	}
}

func TestReusedProcessNumberNeverMatches(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.locate(w.repo(w.path("a")))
	first := startHarness(t, "").Harness
	second := first
	for second.Start == first.Start { // the clock of starts may be coarse
		second = startHarness(t, "").Harness
	}
	w.saw(project.SessionEvent{ID: "s", Place: p, PID: first.PID, PIDStart: first.Start})
	w.want("the process", w.current(first), "s")
	w.want("another one with its number", w.current(project.Process{PID: first.PID, Start: second.Start}), "")
	w.want("another one", w.current(second), "")
}

func BenchmarkHarnessProcess(b *testing.B) {
	for b.Loop() {
		project.HarnessProcess()
	}
}

func BenchmarkAncestors(b *testing.B) {
	for b.Loop() {
		project.Ancestors()
	}
}
