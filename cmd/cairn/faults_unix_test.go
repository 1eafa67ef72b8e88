//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"cairn/internal/doctor"
)

// nobody is a user id without a home directory in any test.
const nobody = 65534

// asNobody makes all processes of the home run as a user to whom file modes apply, if the test runs
// as root. It reports whether file modes apply to the processes of the home.
func (h *home) asNobody() bool {
	h.t.Helper()
	if os.Getuid() != 0 {
		return true
	}
	// Only root can access the folders of the test binary and of its files.
	bin := filepath.Dir(h.program)
	for _, dir := range []string{filepath.Dir(bin), bin, filepath.Dir(h.dir), h.dir} {
		if err := os.Chmod(dir, 0o755); err != nil {
			h.t.Fatal(err)
		}
	}
	err := filepath.WalkDir(h.dir, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Chown(path, nobody, nobody))
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.as = nobody
	cmd := h.command("--version")
	return cmd.Run() == nil
}

// TestReadOnlyStoreCanBeReadAndIsNotWritten covers a read-only folder and a read-only file. The
// store is closed, held open by a server, or left with its log by a killed server.
func TestReadOnlyStoreCanBeReadAndIsNotWritten(t *testing.T) {
	t.Parallel()
	for name, modes := range map[string]struct{ dir, file os.FileMode }{
		"folder":          {0o500, 0o600},
		"file":            {0o700, 0o400},
		"folder and file": {0o500, 0o400},
	} {
		for _, state := range []string{"closed", "held", "left"} {
			t.Run(name+" "+state, func(t *testing.T) {
				t.Parallel()
				h := newHome(t)
				if !h.asNobody() {
					t.Skip("this user's programs cannot be run by another one")
				}
				h.worked()
				found := 6
				h.storeFile() // moves the log that the hooks have left
				if state != "closed" {
					c := h.dial("", nil)
					t.Cleanup(func() {
						if err := c.Close(); err != nil && state == "held" {
							t.Errorf("closing the client: %v", err)
						}
					})
					c.rows("search", fields{"query": "refund"})
					h.recorded(h.shell("log", "make refund")) // this row is written to the log and stays there
					found = 7
					if state == "left" {
						if err := c.server.Process.Kill(); err != nil {
							t.Fatal(err)
						}
						if err := c.Wait(); err == nil && c.server.ProcessState == nil {
							t.Fatal("the server was not killed")
						}
					}
				}
				h.protect(modes.dir, modes.file)
				e := h.record(h.shell("t9", "make more"))
				if e.code != 0 || state == "closed" || modes.file == 0o400 {
					h.fails("record", e, 1, "cannot write")
				}
				if out := h.cairn("search", "refund", "--ids"); strings.Count(out, "\n") != found {
					t.Errorf("a reader finds %q", out)
				}
				if state == "closed" {
					h.fails("pin", h.run(h.command("pin", "1"), nil), 2, "cannot write", "check the permissions")
					d, code := h.diagnosed()
					wants(t, d, "rights", doctor.Problem, "this user cannot write", "nothing is recorded")
					if code != 1 {
						t.Errorf("doctor: exit %d", code)
					}
				}
			})
		}
	}
}

// protect sets the modes of the data directory and the database. The directory becomes writable
// again when the test ends.
func (h *home) protect(dir, file os.FileMode) {
	h.t.Helper()
	err := errors.Join(os.Chmod(h.db(), file), os.Chmod(h.dataDir(), dir))
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		if err := os.Chmod(h.dataDir(), 0o700); err != nil {
			h.t.Error(err)
		}
	})
}

// TestMissingStoreInAReadOnlyFolderIsNoStore checks writers and readers.
func TestMissingStoreInAReadOnlyFolderIsNoStore(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	if !h.asNobody() {
		t.Skip("this user's programs cannot be run by another one")
	}
	if err := os.Chmod(h.dir, 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Chmod(h.dir, 0o755); err != nil {
			t.Error(err)
		}
	})
	h.fails("record", h.record(h.shell("t1", "make")), 1, "cannot write")
	h.fails("search", h.run(h.command("search", "make"), nil), 2, "there is no store yet")
	h.fails("init", h.run(h.command("init", "--claude"), nil), 2, h.dataDir(), "cannot be written: permission denied", "check the rights")
}

// TestUserDatabaseIsAskedWhereHomeIsNotSet covers a user who is in the user database and one who is
// not.
func TestUserDatabaseIsAskedWhereHomeIsNotSet(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.vars["HOME"] = ""
	me, err := user.Current()
	if err != nil || me.HomeDir == "" {
		t.Skipf("this user has no home in the user database: %v", err)
	}
	h.vars["CAIRN_HOME"] = "~/no-such-folder-of-cairn" // status creates nothing
	if out := h.cairn("status"); !strings.Contains(out, filepath.Join(me.HomeDir, "no-such-folder-of-cairn", "cairn.db")) {
		t.Errorf("status: %s", out)
	}
	h.vars["CAIRN_HOME"] = ""
	if os.Getuid() != 0 || !h.asNobody() {
		return
	}
	h.as = 54321
	if _, err := user.LookupId("54321"); err == nil {
		t.Skip("there is a user 54321")
	}
	h.fails("record", h.record(h.shell("t1", "make")), 1, "set CAIRN_HOME")
	h.fails("search", h.run(h.command("search", "make"), nil), 2, "set CAIRN_HOME")
}

// TestServerEndsOnTheSignalToEnd sends the signal while the client waits.
func TestServerEndsOnTheSignalToEnd(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	h.worked()
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		c := h.connect("", nil)
		c.rows("search", fields{"query": "refund"})
		began := time.Now()
		if err := c.server.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if err := c.Wait(); err != nil && c.server.ProcessState == nil {
			t.Logf("the client: %v", err)
		}
		c.leave()
		t.Logf("%v: ended after %v", signal, time.Since(began))
	}
}

// TestFiftyMegabytesAreRecordedInLittleMemory measures the program itself. The race detector would
// multiply its memory use.
func TestFiftyMegabytesAreRecordedInLittleMemory(t *testing.T) {
	t.Parallel()
	size := 50_000_000
	if racing() { // with the race detector, time and memory differ from a real hook's
		size /= 10
	}
	h := newHome(t)
	path := filepath.Join(h.dir, "payload.json")
	shell := h.payload("PostToolUse", fields{
		"tool_name": "Bash", "tool_use_id": "huge", "tool_input": fields{"command": "cat big.log"},
		"tool_response": fields{"stdout": "@", "stderr": ""},
	})
	write := h.payload("PostToolUse", fields{
		"tool_name": "Write", "tool_use_id": "hugefile", "tool_input": fields{"file_path": "big.txt", "content": "@"},
	})
	prompt := h.payload("UserPromptSubmit", fields{"prompt": "look: @"})
	for name, payload := range map[string][]byte{"output": shell, "file": write, "prompt": prompt} {
		if err := writeInflated(path, payload, size); err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		cmd := h.measured("record")
		var said gathered
		cmd.Stdin, cmd.Stderr = file, &said
		began := time.Now()
		out, err := cmd.Output()
		took := time.Since(began)
		if err := errors.Join(err, file.Close()); err != nil {
			t.Fatalf("%s: %v, %s", name, err, &said)
		}
		var peak int64
		if _, err := fmt.Sscan(string(out), &peak); err != nil {
			t.Fatalf("%s: %v in %q", name, err, out)
		}
		t.Logf("%s of %d MB: %v, peak %d MB", name, size/1_000_000, took, peak/1_000_000)
		if took > hookBudget {
			t.Errorf("%s took %v", name, took)
		}
		if limit := int64(2*size + 64<<20); peak > limit && !racing() {
			t.Errorf("%s: peak %d, want at most %d", name, peak, limit)
		}
	}
	h.check()
	h.wantRows(`SELECT count(*), max(length(CAST(content AS BLOB)) + length(CAST(ifnull(metadata, '') AS BLOB))) <= 16384
		FROM observations`, "3|1")
	info, err := os.Stat(h.db())
	if err != nil || info.Size() > 1<<20 {
		t.Errorf("the store: %v, %v", info, err)
	}
}

// writeInflated writes a payload and replaces its @ by size bytes of lines. It does not hold them
// in memory, because a child process inherits its parent's peak.
func writeInflated(path string, payload []byte, size int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	head, tail, _ := strings.Cut(string(payload), "@")
	line := `All work and no play \"makes\" Jack <b>dull</b>.\n`
	_, err = f.WriteString(head)
	for n := 0; n < size && err == nil; n += len(line) {
		_, err = f.WriteString(line)
	}
	_, werr := f.WriteString(tail)
	return errors.Join(err, werr, f.Close())
}

// measured returns a command that runs cairn and prints its peak memory in bytes. It is an
// intermediate process, because a child process inherits the peak of this one.
func (h *home) measured(args ...string) *exec.Cmd {
	h.t.Helper()
	program, err := exec.LookPath("measured")
	if err != nil {
		h.t.Fatal(err)
	}
	cmd := h.command(args...)
	cmd.Args = append([]string{"measured", cmd.Path}, args...)
	cmd.Path = program
	return cmd
}

// peakMemory returns a process's peak memory in bytes.
func peakMemory(state *os.ProcessState) int64 {
	usage, ok := state.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return int64(usage.Maxrss)
	}
	return int64(usage.Maxrss) * 1024
}

// actAs makes a command run as another user.
func actAs(cmd *exec.Cmd, uid uint32) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
}
