// Command cairn-bench measures the targets of the contracts (observations §14, mail §11,
// memories §14). It prints each figure with its target and with a reference measured in
// the same run: an empty Go program, a bare SQLite insert, a decoder that discards
// everything, the disk's own flush, or a git fast-import. A missed target is not a
// failure, but lost data and failed calls are. Do not compare figures from different
// machines or days.
//
// Usage:
//
//	cairn-bench [--cairn PROGRAM] [--only NAME,...] [--quick] [--mail-time LONG] [--mail-archive N] [--pages-time LONG] [--memory-entries N] [--json FILE] [--work DIR] [--corpus ARCHIVES] [--profile DIR]
//	cairn-bench replay [--cairn PROGRAM] [--json FILE] TRANSCRIPT...
//	cairn-bench redaction [--level LEVEL] [--show N] DIR
//	cairn-bench continuity [--json FILE] [--from DAY] [--until DAY] [--machines] [--dump FILE] DIR
//	cairn-bench locomo [--json FILE] FILE
//	cairn-bench chats [--json FILE] DIR FILE
//
// The experiments startup, hook, search, commit, import and size measure what their names
// say. The others are:
//
//   - recall searches large stores with sentences of ten words.
//   - questions searches generated sessions and reports how often the right session is
//     found (amendments §A.1).
//   - mail is the mix of calls on a server (--mail-time, --mail-rate), an overload, and a
//     check that all acknowledged writes are stored (mail §11).
//   - mail-writes measures durable writes.
//   - mail-archive measures archiving in Git (--mail-archive: maximum number of messages).
//   - mail-calls measures single calls on a store with many rows.
//   - mail-hooks measures the hooks of edits.
//   - mail-cost measures the CPU time of a server per call.
//   - past measures inboxes and reservations as of past moments.
//   - pages measures the web pages over a large store, on the server and in Chromium, and a
//     live page for --pages-time.
//   - memories measures acknowledgement, delivery to a hub, and search (--memory-entries:
//     maximum number of entries).
//
// The commands are:
//
//   - replay sends the sessions of transcripts, given as files or folders, through the hook.
//     It also imports them and reports what the import added.
//   - redaction counts and lists the strings of transcripts that the current rules change.
//   - continuity replays a folder of transcripts, ordered by time. At every start of a
//     session it compares the files that cairn would name with the files that the session
//     touches afterwards. See package continuity for the rules.
//   - locomo stores the conversations of a file in memories. It reports how much of the
//     evidence of its questions the search of memories finds (contract memories §11).
//   - chats stores the prompts and replies of a folder of transcripts as entries of one
//     memory. It reports how many of a file's questions its search answers, compared with
//     plain BM25.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "cairn-bench:", err)
		os.Exit(1)
	}
}

// options contains the command-line options.
type options struct {
	cairn     string
	only      string
	quick     bool
	json      string
	work      string
	corpus    string
	profile   string
	replaying bool
	mailTime  time.Duration
	mailRate  float64
	mailFiles int
	pagesTime time.Duration
	entries   int      // maximum number of entries in a memory benchmark
	files     []string // transcripts to replay
}

func parse(args []string, out io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("cairn-bench", flag.ContinueOnError)
	f.SetOutput(out)
	if len(args) > 0 && args[0] == "replay" {
		o.replaying, args = true, args[1:]
	}
	f.StringVar(&o.cairn, "cairn", filepath.Join("..", "bin", "cairn"), "the cairn `program` to measure")
	f.StringVar(&o.json, "json", "", "also write the figures to this `file`")
	f.StringVar(&o.work, "work", "", "keep what is generated in this `folder`, and use it again; else it goes to a temporary one")
	if !o.replaying {
		f.StringVar(&o.only, "only", "", "only these experiments, `names` separated by commas: "+strings.Join(experimentNames(), ", "))
		f.BoolVar(&o.quick, "quick", false, "smaller stores and fewer repetitions")
		f.StringVar(&o.corpus, "corpus", filepath.Join("..", "..", "shared", "corpus", "*.tar.gz"), "`archives` of real transcripts to import as well, if they are there")
		f.StringVar(&o.profile, "profile", "", "write CPU profiles of what runs in this process to this `folder`")
		f.DurationVar(&o.mailTime, "mail-time", time.Minute, "how `long` the mix of mail runs at its pace")
		f.Float64Var(&o.mailRate, "mail-rate", 400, "how many `calls` a second that is")
		f.IntVar(&o.mailFiles, "mail-archive", 10_000, "up to how many `messages` the archive is measured with")
		f.DurationVar(&o.pagesTime, "pages-time", time.Minute, "how `long` a live page is watched")
		f.IntVar(&o.entries, "memory-entries", 10_000, "up to how many `entries` memories are measured with")
	}
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.files = f.Args()
	switch {
	case o.replaying && len(o.files) == 0:
		return o, errors.New("replay takes the transcripts to replay")
	case !o.replaying && (o.mailTime <= 0 || o.mailRate <= 0 || o.pagesTime <= 0):
		return o, errors.New("--mail-time, --mail-rate and --pages-time are more than 0")
	case !o.replaying && len(o.files) > 0:
		return o, fmt.Errorf("unexpected argument %q", o.files[0])
	}
	return o, nil
}

// experiment is one measurement of the contract.
type experiment struct {
	name string
	run  func(*bench, context.Context) error
}

func experiments() []experiment {
	return []experiment{
		{"startup", (*bench).startup},
		{"hook", (*bench).hook},
		{"search", (*bench).search},
		{"recall", (*bench).recall},
		{"questions", (*bench).questionsAsked},
		{"commit", (*bench).commit},
		{"import", (*bench).imports},
		{"size", (*bench).size},
		{"mail", (*bench).mail},
		{"mail-writes", (*bench).mailWrites},
		{"mail-archive", (*bench).mailArchive},
		{"mail-calls", (*bench).mailCalls},
		{"mail-hooks", (*bench).mailHooks},
		{"mail-cost", (*bench).mailCost},
		{"past", (*bench).past},
		{"pages", (*bench).pages},
		{"memories", (*bench).memories},
	}
}

func experimentNames() (names []string) {
	for _, e := range experiments() {
		names = append(names, e.name)
	}
	return names
}

// selected returns the experiments named by --only, in the order of the program.
func selected(only string) (chosen []experiment, err error) {
	wanted := map[string]bool{}
	for name := range strings.SplitSeq(only, ",") {
		wanted[name] = true
	}
	for _, e := range experiments() {
		if only == "" || wanted[e.name] {
			chosen = append(chosen, e)
			delete(wanted, e.name)
		}
	}
	if only != "" && len(wanted) > 0 {
		return nil, fmt.Errorf("--only knows %s", strings.Join(experimentNames(), ", "))
	}
	return chosen, nil
}

func run(ctx context.Context, args []string, out, progress io.Writer) (err error) {
	if len(args) > 0 && args[0] == "redaction" {
		return measureRedaction(ctx, args[1:], out, progress)
	}
	if len(args) > 0 && args[0] == "continuity" {
		return measureContinuity(ctx, args[1:], out, progress)
	}
	if len(args) > 0 && args[0] == "locomo" {
		return measureLocomo(ctx, args[1:], out, progress)
	}
	if len(args) > 0 && args[0] == "chats" {
		return measureChats(ctx, args[1:], out, progress)
	}
	o, err := parse(args, progress)
	if err != nil {
		return err
	}
	chosen, err := selected(o.only)
	if err != nil {
		return err
	}
	b, err := newBench(o, out, progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.clean()) }()
	if o.replaying {
		chosen = []experiment{{"replay", (*bench).replay}}
	}
	for _, e := range chosen {
		b.say("%s", e.name)
		if err := b.profiled(ctx, e); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	if o.json == "" {
		return nil
	}
	return b.report.save(o.json)
}
