package main

import (
	"os"
	"runtime/debug"
	"slices"
)

// isHook reports whether the arguments call the hook, `cairn record`, also behind
// flags.
func isHook(args []string) bool {
	return slices.Contains(args[:min(len(args), hookArguments)], "record")
}

// hookArguments is how many arguments are searched for the hook's name.
const hookArguments = 4

// preventVeto keeps a hook from ending with exit code 2 because the Go runtime gives
// up: without memory, threads or descriptors, or with a stack that is too deep. Hosts
// read 2 as a veto (contract observations §4.1). The runtime now raises SIGABRT
// instead, and leaves no core file in the user's folder.
//
// Go code runs too late for what happens before main; see veto_linux.go.
func preventVeto() {
	if isHook(os.Args[1:]) {
		debug.SetTraceback("crash")
		leaveNoCore()
		catchAbort()
	}
}
