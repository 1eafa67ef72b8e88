package gitread

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"cairn/internal/fault"
)

// Error codes of this package.
const (
	CodeNoGit  = "git_missing" // the git program is missing
	CodeSlow   = "git_slow"    // git exceeded its time limit
	CodeFailed = "git_failed"  // git failed; the message says why
)

// Time is git's time limit for one call.
const Time = 5 * time.Second

const (
	hookTime = 30 * time.Second // commits and pushes may wait longer

	maxOutput     = 4 << 20 // maximum bytes of git's output
	maxHookOutput = 64 << 20
	maxError      = 4 << 10
)

// Repository is a working tree whose history can be read.
type Repository struct {
	git  string // path of the program
	root string
	time time.Duration
	most int  // maximum bytes of its output
	hook bool // use the repository that the environment names
}

// Open finds the git program. root is the root of a working tree. A missing program is
// CodeNoGit (Unavailable).
func Open(root string) (Repository, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return Repository{}, fault.Wrap(err, fault.Unavailable, CodeNoGit, "git is not installed").
			WithHint("install git, or put it on the PATH")
	}
	return Repository{git: git, root: root, time: Time, most: maxOutput}, nil
}

// OpenHook is Open for a process that git runs as a hook, or that replaces one. It uses
// the repository, the worktree and the index that git names in the environment, or else
// those of dir. Its limits for time and output are higher. It returns the errors of Open.
func OpenHook(dir string) (Repository, error) {
	r, err := Open(dir)
	r.time, r.most, r.hook = hookTime, maxHookOutput, true
	return r, err
}

// settings override settings that start a program, read a missing or endless file, or
// change git's output.
var settings = [...]string{
	"core.fsmonitor=false", "core.quotePath=false", "log.showSignature=false", "diff.orderFile=/dev/null",
	"mailmap.file=", "mailmap.blob=", "log.mailmap=false", "log.date=default", "log.showRoot=true", "format.pretty=medium",
	"i18n.logOutputEncoding=UTF-8",
}

// run returns git's output. It overrides repository settings that can start a program,
// except content filters. Without filters, working files cannot be compared with committed
// ones.
func (r Repository) run(ctx context.Context, args ...string) ([]byte, error) {
	return r.runOn(ctx, nil, args...)
}

// runOn is run with a standard input; nil means empty.
func (r Repository) runOn(ctx context.Context, in io.Reader, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.time, errSlow)
	defer cancel()
	base := []string{"--no-pager", "--literal-pathspecs", "--no-optional-locks"}
	for _, s := range settings {
		base = append(base, "-c", s)
	}
	cmd := exec.CommandContext(ctx, r.git, append(base, args...)...)
	cmd.Dir, cmd.Stdin = r.root, in
	cmd.Env = environment(cmd.Environ(), r.hook)
	cmd.WaitDelay = time.Second
	out, told := &bounded{left: r.most, stop: cancel}, &bounded{left: maxError}
	cmd.Stdout, cmd.Stderr = out, told
	err := cmd.Run()
	switch {
	case err == nil && !out.full:
		return out.Bytes(), nil
	case errors.Is(context.Cause(ctx), errSlow):
		return nil, fault.Newf(fault.Unavailable, CodeSlow, "git took longer than %s", r.time)
	case out.full:
		return nil, fault.New(fault.Unavailable, CodeFailed, "git printed more than can be read")
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, fault.Wrap(err, fault.Unavailable, CodeFailed, "git refused: "+firstLine(told.String(), err))
}

var errSlow = errors.New("time limit exceeded")

// firstLine returns the first line of git's error message, without the word fatal.
func firstLine(told string, err error) string {
	line, _, _ := strings.Cut(strings.TrimSpace(told), "\n")
	if line = strings.TrimPrefix(strings.TrimPrefix(line, "fatal: "), "error: "); line == "" {
		return err.Error()
	}
	return line
}

// environment returns the environment of the process without variables that make git
// print more or start a program. It forbids all transports: a git without
// GIT_NO_LAZY_FETCH would fetch missing objects with a program that the repository names.
// Except in git's own hooks, it also removes variables that select another repository.
func environment(process []string, hook bool) []string {
	kept := slices.DeleteFunc(slices.Clone(process), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		name = strings.ToUpper(name)
		switch name {
		case "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX", "GIT_NAMESPACE",
			"GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_GRAFT_FILE", "GIT_SHALLOW_FILE",
			"GIT_IMPLICIT_WORK_TREE", "GIT_INTERNAL_SUPER_PREFIX", "GIT_REPLACE_REF_BASE", "GIT_NO_REPLACE_OBJECTS":
			return !hook
		case "GIT_EXTERNAL_DIFF", "GIT_DIFF_OPTS", "GIT_REDIRECT_STDIN", "GIT_REDIRECT_STDOUT", "GIT_REDIRECT_STDERR", "LC_ALL", "LANGUAGE",
			"GIT_ALLOW_PROTOCOL":
			return true
		}
		return strings.HasPrefix(name, "GIT_TRACE")
	})
	return append(kept, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none")
}

// bounded keeps the beginning of the data written to it.
type bounded struct {
	bytes.Buffer
	left int
	full bool
	stop func() // called when it is full; may be nil
}

func (b *bounded) Write(p []byte) (int, error) {
	n := min(len(p), b.left)
	b.Buffer.Write(p[:n])
	b.left -= n
	if n < len(p) && !b.full {
		if b.full = true; b.stop != nil {
			b.stop()
		}
	}
	return len(p), nil
}

// ReadFrom would bypass the limit.
func (b *bounded) ReadFrom(r io.Reader) (int64, error) { return io.Copy(struct{ io.Writer }{b}, r) }
