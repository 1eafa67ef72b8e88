// Command cairn gives coding agents a memory that outlives a session.
package main

import (
	"os"

	"cairn/internal/cli"
	"cairn/internal/cli/command"
	"cairn/internal/veto"
)

// version is set by the build: -ldflags "-X main.version=…".
var version = "dev"

func main() {
	veto.Prevent()
	os.Exit(cli.Run(command.Process{
		Args: os.Args[1:], Program: os.Args[0], Version: version,
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Getenv: os.Getenv,
	}))
}
