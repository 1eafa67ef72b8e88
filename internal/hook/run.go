package hook

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"cairn/internal/fault"
	"cairn/internal/store"
)

const usage = `cairn-hook reads one hook payload, a JSON object, from standard input and stores what
it tells. It does what "cairn record" does, in less time. "cairn init" writes it into the
settings of agents; "cairn record --help" explains the rest.

Usage: cairn-hook record [flags] < PAYLOAD

  --from string   the agent that sends the event: %s
                  (default "auto")
  --assist        also help with prompts and before tool calls
  --db string     the database file (default: CAIRN_DB, else cairn.db in the data directory)
  --version       print the version
`

// VersionLine is what `cairn-hook --version` prints, without the line break.
func VersionLine(version string) string {
	return fmt.Sprintf("cairn-hook %s (%s)", version, store.Driver)
}

// Run runs the program cairn-hook with the arguments of `cairn record`, "record" included
// or not, and returns its exit code.
func Run(p Process, version string, args []string) (code int) {
	defer func() {
		if defect := recover(); defect != nil {
			fmt.Fprintln(p.Err, "cairn: "+fault.Line("defect", fault.Panic(defect)))
			code = 1
		}
	}()
	if len(args) > 0 && args[0] == "record" {
		args = args[1:]
	}
	var o Options
	var showsVersion bool
	flags := flag.NewFlagSet("cairn-hook", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.From, "from", "auto", "")
	flags.BoolVar(&o.Assist, "assist", false, "")
	flags.StringVar(&o.DB, "db", "", "")
	flags.BoolVar(&showsVersion, "version", false, "")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(p.Out, usage, Sources())
		return 0
	case err != nil && p.IsOff():
		return 0
	case err != nil:
		return p.Fail(fault.New(fault.Invalid, "usage", err.Error()).WithHint("`cairn-hook --help` shows the flags"))
	case showsVersion:
		fmt.Fprintln(p.Out, VersionLine(version))
		return 0
	case flags.NArg() > 0 && !p.IsOff():
		fmt.Fprintln(p.Err, "cairn: "+fault.Line("record", TakesNoArgument(flags.Arg(0))))
		return 2
	}
	return p.Record(context.Background(), o)
}
