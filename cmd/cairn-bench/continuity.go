package main

import (
	"context"
	"errors"
	"flag"
	"io"

	"cairn/cmd/cairn-bench/continuity"
)

// measureContinuity is the command of that name.
func measureContinuity(ctx context.Context, args []string, progress io.Writer) error {
	var o continuity.Options
	f := flag.NewFlagSet("cairn-bench continuity", flag.ContinueOnError)
	f.SetOutput(progress)
	f.StringVar(&o.Dump, "dump", "", "write the events, reduced and redacted, to this `file` as JSON lines and measure nothing")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() != 1 {
		return errors.New("continuity takes the folder of the transcripts")
	}
	o.Dir = f.Arg(0)
	return continuity.Run(ctx, o)
}
