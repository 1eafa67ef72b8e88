package wiring

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Program returns the path by which agents are to call the running program: the entry
// on the PATH that leads to it, with links left as they are, so that it outlives
// an upgrade that moves what they lead to (a Homebrew cellar, a version manager).
// Without one it is the path by which it was called, args0, and at last
// executable, what the system says. It is absolute if executable is.
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

// HookProgram returns the program that hooks are to call: cairn-hook, where it is next to
// program and is of the same version, else "". versionLine is what it is to print for
// --version.
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

// versionTime is the time limit of a program for printing its version.
const versionTime = 5 * time.Second

// VersionLine is what a program prints for --version. Errors: those of starting it, and of
// its exit code.
func VersionLine(ctx context.Context, program string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "--version")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}
