package hook

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/store"
)

const usage = `cairn-hook reads one hook payload, a JSON object, from standard input and stores its
event. It does the same as "cairn record" in less time. "cairn init" writes it into the
settings of agents; "cairn record --help" explains the rest.

Usage: cairn-hook record [flags] < PAYLOAD

  --from string   the agent that sends the event: %s
                  (default "auto")
  --assist        also help with prompts and before tool calls
  --db string     the database file (default: CAIRN_DB, else cairn.db in the data directory)
  --version       print the version
`

// VersionLine returns the output of `cairn-hook --version`, without the line break.
func VersionLine(version string) string {
	return fmt.Sprintf("cairn-hook %s (%s)", version, store.Driver)
}

// Run runs the program cairn-hook and returns its exit code. args are the arguments of
// `cairn record`, with or without "record". program is the path of the called program.
//
// If cairn-hook cannot open the store, the cairn next to program records the event. This
// happens if a newer cairn has written the store, as after an upgrade of cairn only, or if
// the store is encrypted: in builds with C, cairn-hook has no SQLite for that.
func Run(p Process, program, version string, args []string) (code int) {
	defer func() {
		if defect := recover(); defect != nil {
			fmt.Fprintln(p.Err, "cairn: "+fault.Line("defect", fault.Panic(defect)))
			code = 1
		}
	}()
	if len(args) > 0 && args[0] == "record" {
		args = args[1:]
	}
	p.OpenStore = store.OpenWithDriver
	p.HandOver = func(payload []byte) (code int, done bool) { return p.handOver(program, args, payload) }
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

// handOver runs the `cairn record` next to program with a payload.
func (p *Process) handOver(program string, args []string, payload []byte) (code int, done bool) {
	if !strings.ContainsAny(program, `/\`) { // found in the PATH
		if own, err := os.Executable(); err == nil {
			program = own
		}
	}
	folder, name := filepath.Split(program)
	whole := strings.Replace(name, "cairn-hook", "cairn", 1)
	if whole == name {
		return 0, false // the user has renamed it, so the matching cairn is unknown
	}
	cmd := exec.Command(folder+whole, append([]string{"record"}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(payload), p.Out, p.Err
	if err := cmd.Run(); err != nil && (cmd.ProcessState == nil || cmd.ProcessState.ExitCode() < 0) {
		return 0, false
	}
	return cmd.ProcessState.ExitCode(), true
}
