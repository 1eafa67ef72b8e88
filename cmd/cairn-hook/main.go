// Command cairn-hook records one event of an agent program. It does the same as
// `cairn record`, but links only the packages for that, so it starts faster. A hook
// uses one processor, so the runtime need not read the limits of the control group.
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0
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
