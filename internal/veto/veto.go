// Package veto prevents a failing hook from blocking its agent. Hosts treat exit code 2 as a
// denial (contract observations §4.1), and Go's runtime also exits with 2 when it fails.
package veto

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
)

// isHook reports whether the arguments of a process, including its name, are those of a
// hook: the program cairn-hook, or `cairn record`, also after flags.
func isHook(args []string) bool {
	return strings.HasPrefix(filepath.Base(args[0]), "cairn-hook") || slices.Contains(args[:min(len(args), hookArguments+1)], "record")
}

// hookArguments is the number of arguments that are searched for the hook's name.
const hookArguments = 4

// Prevent prevents exit code 2 when the Go runtime fails in a hook: without memory, threads
// or descriptors, or with a stack that is too deep. The runtime then raises SIGABRT instead
// and writes no core file. In other processes Prevent does nothing.
//
// Go code runs too late for what happens before main; see veto_linux.go.
func Prevent() {
	if len(os.Args) > 0 && isHook(os.Args) {
		debug.SetTraceback("crash")
		leaveNoCore()
		catchAbort()
	}
}
