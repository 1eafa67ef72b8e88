package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/pprof"
	"time"

	"cairn/bench/workload"
)

// bench is one run of the program.
type bench struct {
	options
	sizes
	dir      string // folder of all generated files
	kept     bool   // dir is kept after the run
	load     *workload.Workload
	report   report
	out      io.Writer
	progress io.Writer
	began    time.Time
}

// sizes sets how much is measured.
type sizes struct {
	small, large int           // rows of the two stores
	runs         int           // sequential starts of a program, per round
	rounds       int           // rounds of alternating measurements
	searching    time.Duration // time per store
	transcripts  int64         // bytes to generate
}

func sizesFor(quick bool) sizes {
	if quick {
		return sizes{20_000, 100_000, 20, 3, 5 * time.Second, 20 << 20}
	}
	return sizes{100_000, 1_000_000, 60, 5, 40 * time.Second, 110 << 20}
}

// newBench creates the folder and the generated workload. The caller must call clean.
func newBench(o options, out, progress io.Writer) (b *bench, err error) {
	b = &bench{options: o, sizes: sizesFor(o.quick), out: out, progress: progress, began: time.Now(), kept: o.work != ""}
	if b.cairn, err = filepath.Abs(o.cairn); err != nil {
		return nil, err
	}
	if _, err := os.Stat(b.cairn); err != nil {
		return nil, fmt.Errorf("there is no program at %s: run `make build` first, or name one with --cairn", o.cairn)
	}
	if b.dir = o.work; b.kept {
		err = os.MkdirAll(b.dir, 0o700)
	} else {
		b.dir, err = os.MkdirTemp("", "cairn-bench-")
	}
	if err != nil {
		return nil, err
	}
	if err := b.prepare(); err != nil {
		return nil, errors.Join(err, b.clean())
	}
	return b, nil
}

func (b *bench) prepare() (err error) {
	if b.dir, err = filepath.Abs(b.dir); err != nil {
		return err
	}
	if b.dir, err = filepath.EvalSymlinks(b.dir); err != nil {
		return err
	}
	b.load = workload.New(filepath.Join(b.dir, "projects"), 1)
	if err := b.load.MakeRepositories(); err != nil {
		return err
	}
	if b.report.Machine, err = readMachine(program{path: b.cairn, env: b.environment("")}); err != nil {
		return err
	}
	_, err = fmt.Fprintln(b.out, b.report.Machine)
	return err
}

// clean removes the folder unless it should be kept.
func (b *bench) clean() error {
	if b.kept {
		return nil
	}
	return os.RemoveAll(b.dir)
}

// say prints the current activity to the progress output.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.progress, "[%4.0f s] %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}

// publish prints a finished table and stores it for the report.
func (b *bench) publish(t *table) error {
	b.report.Tables = append(b.report.Tables, t)
	return t.print(b.out)
}

// environment returns the whole environment of a program under measurement. db is cairn's
// database file, or "" for none.
func (b *bench) environment(db string) []string {
	env := []string{"HOME=" + b.dir, "USERPROFILE=" + b.dir, "CAIRN_HOME=" + filepath.Join(b.dir, "home")}
	if db != "" {
		env = append(env, "CAIRN_DB="+db)
	}
	return env
}

// cairnProgram returns cairn with arguments on the store at db.
func (b *bench) cairnProgram(db string, args ...string) program {
	return program{path: b.cairn, args: args, env: b.environment(db), dir: b.load.Projects[0].Root}
}

// hookProgram returns the program that init writes into agents' settings: cairn-hook if it is
// next to cairn, else cairn.
func (b *bench) hookProgram(db string, args ...string) program {
	p := b.cairnProgram(db, append([]string{"record"}, args...)...)
	beside := filepath.Join(filepath.Dir(b.cairn), "cairn-hook"+filepath.Ext(b.cairn))
	if _, err := os.Stat(beside); err == nil {
		p.path = beside
	}
	return p
}

// profiled runs an experiment, with a CPU profile if requested.
func (b *bench) profiled(ctx context.Context, e experiment) (err error) {
	if b.profile == "" {
		return e.run(b, ctx)
	}
	if err := os.MkdirAll(b.profile, 0o755); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(b.profile, e.name+".pprof"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	return e.run(b, ctx)
}
