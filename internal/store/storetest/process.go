package storetest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// patience is the timeout of tests that hang; no test needs that long.
const patience = 2 * time.Minute

// mark begins the lines that a child sends to its parent, to distinguish them from other
// output.
const mark = "@ "

// Process is a child process of a test, running the test's own binary.
type Process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr bytes.Buffer // complete once lines is closed
	lines  chan string  // closed when the child has ended
	err    error        // how it ended, once lines is closed
}

// Command returns a command that runs the test's own binary, for StartProcess. With a test's
// name it runs only that test. env contains additional variables ("NAME=value"), with which
// TestMain or the test recognises its task.
func Command(test string, env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.count=1")
	if test != "" {
		cmd.Args = append(cmd.Args, "-test.run=^"+strings.ReplaceAll(regexp.QuoteMeta(test), "/", "$/^")+"$")
	}
	if *encryptedFlag {
		cmd.Args = append(cmd.Args, "-encrypted")
	}
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

// StartProcess starts a child. The child is killed at the end of the test if it is still
// running.
func StartProcess(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	p := &Process{cmd: cmd, lines: make(chan string, 64)}
	cmd.Stderr = &p.stderr
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		p.stdin, err = cmd.StdinPipe()
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatalf("start a child: %v", err)
	}
	go p.read(stdout)
	t.Cleanup(func() { p.Kill() })
	return p
}

func (p *Process) read(stdout io.Reader) {
	in := bufio.NewReader(stdout)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			break // an incomplete last line was not sent
		}
		if text, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), mark); ok {
			p.lines <- text
		}
	}
	p.err = p.cmd.Wait()
	close(p.lines)
}

// Line returns the next line that the child sent, or false once it has ended and all its
// lines were read. A child blocks until its lines are read.
func (p *Process) Line(t testing.TB) (line string, ok bool) {
	t.Helper()
	select {
	case line, ok = <-p.lines:
		return line, ok
	case <-time.After(patience):
		p.Kill()
		t.Fatalf("a child sent nothing for %v; its standard error: %s", patience, &p.stderr)
		return "", false
	}
}

// Expect fails the test unless the child's next line is want.
func (p *Process) Expect(t testing.TB, want string) {
	t.Helper()
	switch line, ok := p.Line(t); {
	case !ok:
		t.Fatalf("the child ended (%v) instead of sending %q; its standard error: %s", p.err, want, &p.stderr)
	case line != want:
		t.Fatalf("the child sent %q, want %q", line, want)
	}
}

// Send writes a line to the child's standard input, unless it has ended.
func (p *Process) Send(line string) {
	if _, err := io.WriteString(p.stdin, line+"\n"); err != nil {
		return
	}
}

// Signal kills the child like kill -9 and does not wait; its lines can still be read.
func (p *Process) Signal() error { return p.cmd.Process.Kill() }

// Kill kills the child and waits for its end, dropping unread lines. A child that has
// already ended is not an error.
func (p *Process) Kill() {
	if err := p.Signal(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return
	}
	for range p.lines {
	}
}

// Finish closes the child's standard input, which must make it exit, and fails the test
// if it exits with an error.
func (p *Process) Finish(t testing.TB) {
	t.Helper()
	if err := p.stdin.Close(); err != nil {
		t.Errorf("the input of a child: %v", err)
	}
	if _, err := p.Wait(t); err != nil {
		t.Errorf("a child failed: %v", err)
	}
}

// Wait reads the rest of the child's lines and returns its result: nil for exit code 0, else
// the error with its standard error.
func (p *Process) Wait(t testing.TB) ([]string, error) {
	t.Helper()
	var left []string
	for {
		line, ok := p.Line(t)
		if !ok {
			break
		}
		left = append(left, line)
	}
	if p.err != nil {
		return left, fmt.Errorf("%w: %s", p.err, &p.stderr)
	}
	return left, nil
}

// Tell sends a line from a child to its parent.
func Tell(line string) {
	if _, err := fmt.Fprintln(os.Stdout, mark+line); err != nil {
		os.Exit(3) // the parent has ended
	}
}

// Hear returns the next line from a child's parent. If the parent has ended, the child exits.
func Hear(in *bufio.Reader) string {
	line, err := in.ReadString('\n')
	if err != nil {
		os.Exit(3)
	}
	return strings.TrimSuffix(line, "\n")
}

// Die ends a child immediately, like kill -9.
func Die() {
	if p, err := os.FindProcess(os.Getpid()); err == nil && p.Kill() == nil {
		select {}
	}
	os.Exit(9)
}
