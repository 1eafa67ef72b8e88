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

// program is a program that is started repeatedly in the same way.
type program struct {
	path string
	args []string
	env  []string
	dir  string
}

// launch is one run of a program.
type launch struct {
	wall time.Duration // from just before the start until the wait returned
	cpu  time.Duration // user and system time that it used
	out  []byte        // its standard output
	said []byte        // its standard error
}

// pipeRoom is the number of bytes that a pipe can hold without a reader.
const pipeRoom = 32 << 10

// run starts the program with stdin and waits for it. The measured time contains only the start
// and the wait. Input is written to the pipe before, if it fits, and output is read afterwards.
// So the program must not write more than a pipe holds. An exit code other than 0 is an error
// that quotes its standard error.
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
	inRead.Close() // otherwise feed would block forever if the program did not read its input
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

// feed writes stdin to a pipe and closes it. It uses a goroutine if the input may not fit.
// Input that the reader does not read is not an error here.
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

// buildLike builds a package of this module with the settings of another program, so that the
// two differ only in their source.
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

// linkerFlags returns the linker flags of a program, derived from its file: without symbols,
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
