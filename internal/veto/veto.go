// Package veto keeps a hook that fails from stopping its agent: hosts read exit code 2 as
// a refusal (contract observations §4.1), and it is the code with which Go's runtime ends.
package veto

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
)

// isHook reports whether the arguments of a process, its name included, are those of a hook:
// the program cairn-hook, or `cairn record`, also behind flags.
func isHook(args []string) bool {
	return strings.HasPrefix(filepath.Base(args[0]), "cairn-hook") || slices.Contains(args[:min(len(args), hookArguments+1)], "record")
}

// hookArguments is how many arguments are searched for the hook's name.
const hookArguments = 4

// Prevent keeps a hook from ending with exit code 2 because the Go runtime gives
// up: without memory, threads or descriptors, or with a stack that is too deep. The runtime
// now raises SIGABRT instead, and leaves no core file in the user's folder. It does nothing
// in a process that is no hook.
//
// Go code runs too late for what happens before main; see veto_linux.go.
func Prevent() {
	if len(os.Args) > 0 && isHook(os.Args) {
		debug.SetTraceback("crash")
		leaveNoCore()
		catchAbort()
	}
}
