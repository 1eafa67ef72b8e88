package archive

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cairn/internal/fault"
)

// Codes of the errors that this room makes.
const (
	CodeNoGit = "git_missing"    // there is no git program
	CodeGone  = "archive_gone"   // where the repository should be is none
	CodePath  = "archive_path"   // a path that an archive cannot hold
	CodeFiles = "archive_files"  // the work tree cannot be written
	CodeGit   = "archive_git"    // git refused; the message says why
	CodeBusy  = "archive_busy"   // others move main all the time
	CodeFull  = "archive_paused" // the volume is nearly full
)

// git starts the program for one repository.
type git struct {
	program string
	dir     string // the work tree, absolute; the repository is .git in it

	stale time.Duration // how old a lock of git must be that nobody can hold any more; 0 for staleAfter
}

// settings apply to every git that is started, over those of the repository.
var settings = [...]string{
	"core.hooksPath=" + os.DevNull, "core.attributesFile=" + os.DevNull, "core.excludesFile=" + os.DevNull,
	"core.fsmonitor=false", "core.autocrlf=false", "core.safecrlf=false", "core.quotePath=false", "core.logAllRefUpdates=false",
	"core.fsync=committed,derived-metadata", "core.fsyncMethod=fsync",
	"commit.gpgSign=false", "log.showSignature=false", "gc.auto=0", "maintenance.auto=false", "fastimport.unpackLimit=0",
}

func (g git) command(ctx context.Context, args ...string) *exec.Cmd {
	var all []string
	for _, s := range settings {
		all = append(all, "-c", s)
	}
	cmd := exec.CommandContext(ctx, g.program, append(all, args...)...)
	cmd.Dir = filepath.VolumeName(g.dir) + string(filepath.Separator) // not the work tree: see owned
	cmd.Env = append(environment(cmd.Environ()), "GIT_DIR="+filepath.Join(g.dir, ".git"), "GIT_WORK_TREE="+g.dir)
	cmd.WaitDelay = time.Second
	return cmd
}

// environment is that of the process without anything that is meant for git.
func environment(process []string) []string {
	kept := slices.DeleteFunc(slices.Clone(process), func(v string) bool {
		name, _, _ := strings.Cut(strings.ToUpper(v), "=")
		return strings.HasPrefix(name, "GIT_") || name == "LC_ALL" || name == "LANGUAGE"
	})
	return append(kept, "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1", "GIT_NO_REPLACE_OBJECTS=1", "GIT_LITERAL_PATHSPECS=1", "GIT_PAGER=cat",
		"GIT_AUTHOR_NAME=cairn", "GIT_AUTHOR_EMAIL=cairn@localhost", "GIT_COMMITTER_NAME=cairn", "GIT_COMMITTER_EMAIL=cairn@localhost")
}

// run returns what one git prints.
func (g git) run(ctx context.Context, args ...string) ([]byte, error) {
	cmd := g.command(ctx, args...)
	told := &bounded{left: maxTold}
	cmd.Stderr = told
	out, err := cmd.Output()
	if err != nil {
		return nil, g.refused(ctx, args[0], told.String(), err)
	}
	return out, nil
}

// exitCode is how the git ended that an error of run tells of, -1 if it did not.
func exitCode(err error) int {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	return -1
}

// refused describes the failure of a git for a user.
func (g git) refused(ctx context.Context, what, told string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if _, look := exec.LookPath(g.program); look != nil {
		return fault.Wrap(err, fault.Unavailable, CodeNoGit, "git is not installed").
			WithHint("install git, or put it on the PATH; the archive then catches up by itself")
	}
	if gone := g.gone(); gone != nil && what != "init" {
		return gone
	}
	line := lastWords(told)
	if line == "" {
		line = err.Error()
	}
	return fault.Wrap(err, fault.Unavailable, CodeGit, "archive "+g.dir+": git "+what+": "+line).
		WithHint("look at it with `git -C " + g.dir + " fsck`; the archive catches up once git can work there again")
}

// gone is the error for a folder that is not a repository any more, nil if it is one.
func (g git) gone() error {
	for _, name := range []string{"", ".git"} {
		info, err := os.Stat(filepath.Join(g.dir, name))
		if err == nil && info.IsDir() {
			continue
		}
		if err == nil {
			err = errors.New("not a folder")
		}
		return fault.Wrap(err, fault.Unavailable, CodeGone, "archive "+g.dir+" is gone: "+reason(err)).
			WithHint("put it back, or move what is there away and run `cairn reconcile --rebuild`")
	}
	return nil
}

// reason is an error of the system without the path.
func reason(err error) string {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err.Error()
	}
	if l, ok := errors.AsType[*os.LinkError](err); ok {
		return l.Err.Error()
	}
	return err.Error()
}

// lastWords is why git says that it ends: the line of its fatal error, else the last error, else its last line.
func lastWords(told string) string {
	var words string
	rank := 0
	for line := range strings.Lines(told) {
		line = strings.TrimSpace(line)
		for i, prefix := range []string{"", "error: ", "fatal: "} {
			if rest, ok := strings.CutPrefix(line, prefix); ok && rest != "" && i >= rank {
				words, rank = rest, i
			}
		}
	}
	return words
}

const maxTold = 16 << 10

// bounded keeps the beginning of what is written to it.
type bounded struct {
	bytes.Buffer
	left int
}

func (b *bounded) Write(p []byte) (int, error) {
	n := min(len(p), b.left)
	b.Buffer.Write(p[:n])
	b.left -= n
	return len(p), nil
}

// ReadFrom would pass the bound, and io.Copy take 32 KiB as long as a git lives.
func (b *bounded) ReadFrom(r io.Reader) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{b}, struct{ io.Reader }{r}, make([]byte, 1<<10))
}

// talkBuffer is what a talk keeps in each direction. A server has a git for every
// project that is written to; longer texts go past the buffer.
const talkBuffer = 8 << 10

// talk is a git that stays and answers.
type talk struct {
	git  git
	what string
	cmd  *exec.Cmd
	pipe io.WriteCloser
	in   *bufio.Writer
	out  *bufio.Reader
	told *bounded
}

// talk starts a git that lives until end or until a conversation with it fails.
func (g git) talk(args ...string) (*talk, error) {
	t := &talk{git: g, what: args[0], cmd: g.command(context.Background(), args...), told: &bounded{left: maxTold}}
	t.cmd.Stderr = t.told
	pipe, err := t.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := t.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := t.cmd.Start(); err != nil {
		return nil, g.refused(context.Background(), t.what, "", err)
	}
	lowerPriority(t.cmd.Process.Pid)
	t.pipe, t.in, t.out = pipe, bufio.NewWriterSize(pipe, talkBuffer), bufio.NewReaderSize(out, talkBuffer)
	return t, nil
}

// within runs one conversation. When it fails or ctx ends, the git is gone and
// the error says why.
func (t *talk) within(ctx context.Context, conversation func() error) error {
	stop := context.AfterFunc(ctx, func() { _ = t.cmd.Process.Kill() })
	defer stop()
	err := conversation()
	if err == nil {
		return nil
	}
	if ended := t.kill(); ended != nil {
		err = ended
	}
	return t.git.refused(ctx, t.what, t.told.String(), err)
}

func (t *talk) line() (string, error) {
	line, err := t.out.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}

// kill closes the git's input, after which it has a second to say its last words,
// and returns how it ended.
func (t *talk) kill() error {
	_ = t.pipe.Close()
	late := time.AfterFunc(time.Second, func() { _ = t.cmd.Process.Kill() })
	defer late.Stop()
	return t.cmd.Wait()
}

// end lets the git finish after a last command, which may be empty. How it ends
// does not matter: what was answered is done.
func (t *talk) end(command string) {
	_, _ = t.in.WriteString(command)
	_ = t.in.Flush()
	_ = t.kill()
}
