package repository

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

// Error codes of this package.
const (
	CodeNoGit = "git_missing"    // the git program is missing
	CodeGone  = "archive_gone"   // the repository is missing
	CodePath  = "archive_path"   // a path that an archive cannot contain
	CodeFiles = "archive_files"  // the work tree cannot be written
	CodeGit   = "archive_git"    // git failed; the message says why
	CodeBusy  = "archive_busy"   // other processes keep moving main
	CodeFull  = "archive_paused" // the volume is nearly full
)

// Git runs the git program for one repository.
type git struct {
	program string
	dir     string // the work tree, absolute; the repository is .git in it

	stale time.Duration // minimum age of an abandoned lock of git; 0 for staleAfter
}

// settings apply to every git process and override those of the repository.
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

// environment returns the environment of the process without git's variables.
func environment(process []string) []string {
	kept := slices.DeleteFunc(slices.Clone(process), func(v string) bool {
		name, _, _ := strings.Cut(strings.ToUpper(v), "=")
		return strings.HasPrefix(name, "GIT_") || name == "LC_ALL" || name == "LANGUAGE"
	})
	return append(kept, "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1", "GIT_NO_REPLACE_OBJECTS=1", "GIT_LITERAL_PATHSPECS=1", "GIT_PAGER=cat",
		"GIT_AUTHOR_NAME=cairn", "GIT_AUTHOR_EMAIL=cairn@localhost", "GIT_COMMITTER_NAME=cairn", "GIT_COMMITTER_EMAIL=cairn@localhost")
}

// run returns the output of one git process.
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

// exitCode returns git's exit code from an error of run, or -1 if git did not exit.
func exitCode(err error) int {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	return -1
}

// refused returns the error for a failed git process.
func (g git) refused(ctx context.Context, what, told string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if _, look := exec.LookPath(g.program); look != nil {
		return fault.Wrap(err, fault.Unavailable, CodeNoGit, "git is not installed").
			WithHint("install git, or put it on the PATH; the archive then catches up automatically")
	}
	if gone := g.gone(); gone != nil && what != "init" {
		return gone
	}
	line := lastWords(told)
	if line == "" {
		line = err.Error()
	}
	return fault.Wrap(err, fault.Unavailable, CodeGit, "archive "+g.dir+": git "+what+": "+line).
		WithHint("check it with `git -C " + g.dir + " fsck`; the archive catches up once git works there again")
}

// gone returns an error if the folder is no longer a repository, else nil.
func (g git) gone() error {
	for _, name := range []string{"", ".git"} {
		info, err := os.Stat(filepath.Join(g.dir, name))
		if err == nil && info.IsDir() {
			continue
		}
		if err == nil {
			err = errors.New("not a folder")
		}
		return fault.Wrap(err, fault.Unavailable, CodeGone, "archive "+g.dir+" is gone: "+Reason(err)).
			WithHint("restore it, or move the folder away and run `cairn reconcile --rebuild`")
	}
	return nil
}

// Reason returns the text of a system error without the path.
func Reason(err error) string {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err.Error()
	}
	if l, ok := errors.AsType[*os.LinkError](err); ok {
		return l.Err.Error()
	}
	return err.Error()
}

// lastWords returns the reason why git ended: the line of its fatal error, else the last
// error, else its last line.
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

// bounded keeps the beginning of the data written to it.
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

// ReadFrom would bypass the limit, and io.Copy would use 32 KiB as long as the git
// process lives.
func (b *bounded) ReadFrom(r io.Reader) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{b}, struct{ io.Reader }{r}, make([]byte, 1<<10))
}

// processBuffer is the buffer size of a gitProcess in each direction. A server has git
// processes for every active project. Longer texts bypass the buffer.
const talkBuffer = 8 << 10

// gitProcess is a long-lived git process that answers commands.
type gitProcess struct {
	git  git
	what string
	cmd  *exec.Cmd
	pipe io.WriteCloser
	in   *bufio.Writer
	out  *bufio.Reader
	told *bounded
}

// start starts a git process that lives until end or until an exchange with it fails.
func (g git) start(args ...string) (*gitProcess, error) {
	t := &gitProcess{git: g, what: args[0], cmd: g.command(context.Background(), args...), told: &bounded{left: maxTold}}
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

// within runs one exchange of commands and responses. If it fails or ctx ends, the
// process is killed, and the error says why.
func (t *gitProcess) within(ctx context.Context, conversation func() error) error {
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

func (t *gitProcess) line() (string, error) {
	line, err := t.out.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}

// kill closes the process's input, gives it a second to end, and returns how it ended.
func (t *gitProcess) kill() error {
	_ = t.pipe.Close()
	late := time.AfterFunc(time.Second, func() { _ = t.cmd.Process.Kill() })
	defer late.Stop()
	return t.cmd.Wait()
}

// end sends a last command, which may be empty, and waits for the process to end. Its
// exit code does not matter, because acknowledged work is done.
func (t *gitProcess) end(command string) {
	_, _ = t.in.WriteString(command)
	_ = t.in.Flush()
	_ = t.kill()
}
