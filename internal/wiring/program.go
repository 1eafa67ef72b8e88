package wiring

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Program returns the path by which agents should call the running program. It is the entry on
// the PATH that leads to the program, with links unresolved. So it survives an upgrade that
// moves the link's target (a Homebrew cellar, a version manager). Without such an entry it is
// args0, the path by which the program was called. The last choice is executable, the system's
// path. The result is absolute if executable is.
func Program(args0, executable, path string, windows bool) string {
	name := filepath.Base(args0)
	if windows && !strings.EqualFold(filepath.Ext(name), ".exe") {
		name += ".exe"
	}
	for _, dir := range filepath.SplitList(path) {
		if at := filepath.Join(dir, name); filepath.IsAbs(dir) && sameFile(at, executable) {
			return at
		}
	}
	if strings.ContainsAny(args0, `/\`) {
		if at, err := filepath.Abs(args0); err == nil && sameFile(at, executable) {
			return at
		}
	}
	return executable
}

// hookName is the name of the program that only records.
const hookName = "cairn-hook"

// HookProgram returns the path of cairn-hook, which hooks should call. It returns "" if
// cairn-hook is not next to program or has another version. versionLine is the expected output
// of --version.
func HookProgram(ctx context.Context, program, versionLine string, windows bool) string {
	at := filepath.Join(filepath.Dir(program), hookName)
	if windows {
		at += ".exe"
	}
	if said, err := VersionLine(ctx, at); err != nil || said != versionLine {
		return ""
	}
	return at
}

// versionTime is the time limit for a program to print its version.
const versionTime = 5 * time.Second

// VersionLine returns a program's output for --version. Errors: those of starting it, and of its
// exit code.
func VersionLine(ctx context.Context, program string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "--version")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}
