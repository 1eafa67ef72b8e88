package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// program is a program to be started again and again, in the same way.
type program struct {
	path string
	args []string
	env  []string
	dir  string
}

// launch is one run of a program.
type launch struct {
	wall time.Duration // from just before its start until it was waited for
	cpu  time.Duration // user and system time that it used
	out  []byte        // its standard output
	said []byte        // its standard error
}

// pipeRoom is what a pipe surely holds before anybody reads from it.
const pipeRoom = 32 << 10

// run starts the program with stdin and waits for it. Nothing but the start and
// the wait lies inside the measured time: what is to be read stands in the pipe
// already, if it fits, and what was written is taken out afterwards, so that the
// program must not write more than a pipe holds. An exit code other than 0 is an
// error that quotes its standard error.
func (p program) run(stdin []byte) (l launch, err error) {
	var opened []*os.File
	defer func() {
		for _, f := range opened {
			f.Close()
		}
	}()
	pipe := func() (r, w *os.File) {
		if err == nil {
			r, w, err = os.Pipe()
			opened = append(opened, r, w)
		}
		return r, w
	}
	inRead, inWrite := pipe()
	outRead, outWrite := pipe()
	errRead, errWrite := pipe()
	if err != nil {
		return l, err
	}
	fed := feed(inWrite, stdin)
	began := time.Now()
	proc, err := os.StartProcess(p.path, append([]string{p.path}, p.args...), &os.ProcAttr{
		Dir: p.dir, Env: p.env, Files: []*os.File{inRead, outWrite, errWrite},
	})
	if err != nil {
		return l, err
	}
	state, err := proc.Wait()
	l.wall = time.Since(began)
	if err != nil {
		return l, err
	}
	l.cpu = state.UserTime() + state.SystemTime()
	inRead.Close() // or who still feeds a program that did not read would wait for ever
	<-fed
	outWrite.Close()
	errWrite.Close()
	if l.out, err = io.ReadAll(outRead); err != nil {
		return l, err
	}
	if l.said, err = io.ReadAll(errRead); err != nil {
		return l, err
	}
	if !state.Success() {
		return l, fmt.Errorf("%s: %s: %s", filepath.Base(p.path), state, bytes.TrimSpace(l.said))
	}
	return l, nil
}

// feed writes stdin into a pipe and closes it, on the side if it may not fit.
// What the reader does not want is not an error here.
func feed(w *os.File, stdin []byte) (done chan struct{}) {
	done = make(chan struct{})
	write := func() {
		defer close(done)
		if _, err := w.Write(stdin); err == nil {
			w.Close()
		}
	}
	if len(stdin) <= pipeRoom {
		write()
	} else {
		go write()
	}
	return done
}

// buildLike builds a package of this module with the settings of another
// program, so that the two differ in their source alone.
func buildLike(ctx context.Context, like, pkg, output string) error {
	info, err := buildinfo.ReadFile(like)
	if err != nil {
		return err
	}
	args, env := []string{"-ldflags", linkerFlags(like)}, []string{}
	for _, s := range info.Settings {
		switch s.Key {
		case "-tags":
			args = append(args, "-tags", s.Value)
		case "-trimpath":
			args = append(args, "-trimpath")
		case "CGO_ENABLED":
			env = append(env, "CGO_ENABLED="+s.Value)
		}
	}
	return build(ctx, args, env, pkg, output)
}

func build(ctx context.Context, args, env []string, pkg, output string) error {
	cmd := exec.CommandContext(ctx, "go", append(append([]string{"build", "-o", output}, args...), pkg)...)
	cmd.Env = append(os.Environ(), env...)
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w: %s", pkg, err, bytes.TrimSpace(said))
	}
	return nil
}

// linkerFlags are those of a program, as far as its file tells: without symbols,
// and static if it names no dynamic linker.
func linkerFlags(path string) string {
	flags := []string{"-s", "-w"}
	f, err := elf.Open(path)
	if err != nil {
		return strings.Join(flags, " ") // not Linux
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return strings.Join(flags, " ")
		}
	}
	return strings.Join(append(flags, "-linkmode", "external", "-extldflags", "-static"), " ")
}
