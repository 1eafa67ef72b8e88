// Command cairn-hook is what agent programs call at their events. It does what
// `cairn record` does and links only what that needs, so that it starts faster.
package main

import (
	"os"

	"cairn/internal/hook"
	"cairn/internal/veto"
)

// version is set by the build: -ldflags "-X main.version=…".
var version = "dev"

func main() {
	veto.Prevent()
	os.Exit(hook.Run(hook.Process{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv}, os.Args[0], version, os.Args[1:]))
}
