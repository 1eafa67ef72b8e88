package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// home is a temporary home directory with two repositories.
type home struct {
	program string // absolute path of cairn
	dir     string // HOME, unless real is set
	data    string // CAIRN_HOME, below dir
	repos   map[string]string
	real    string // the user's own home, where projects are looked up; nothing is written there
}

// newHome creates the home. The caller must remove dir.
func newHome(ctx context.Context, program string) (h *home, err error) {
	dir, err := os.MkdirTemp("", "cairn-demo-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	h = &home{program: program, dir: dir, data: filepath.Join(dir, ".cairn"), repos: map[string]string{}}
	for _, name := range []string{"shop", "billing"} {
		h.repos[name] = filepath.Join(dir, name)
		if err := makeRepository(ctx, h.repos[name], h.env()); err != nil {
			return nil, err
		}
	}
	return h, h.plant(ctx)
}

// plant writes shop's file in its state of a month ago and commits it if Git is available.
func (h *home) plant(ctx context.Context) error {
	if err := h.write("shop", "internal/refund/window.go", windowBefore); err != nil {
		return err
	}
	git, err := exec.LookPath("git")
	if err != nil {
		return nil
	}
	then := time.Now().AddDate(0, -1, 0).Format(time.RFC3339)
	for _, args := range [][]string{{"add", "-A"}, {"-c", "user.name=Ana", "-c", "user.email=ana@example.org", "commit", "--quiet", "-m", "Refunds end after 30 days"}} {
		cmd := exec.CommandContext(ctx, git, args...)
		cmd.Dir = h.repos["shop"]
		cmd.Env = append(h.env(), "PATH="+os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_DATE="+then, "GIT_COMMITTER_DATE="+then)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w: %s", args[len(args)-1], err, out)
		}
	}
	return nil
}

// write writes a file in a repository.
func (h *home) write(repo, name, text string) error {
	path := filepath.Join(h.repos[repo], filepath.FromSlash(name))
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600))
}

// makeRepository creates an empty repository with Git. Without Git it writes the files itself:
// cairn only reads them.
func makeRepository(ctx context.Context, dir string, env []string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if git, err := exec.LookPath("git"); err == nil {
		cmd := exec.CommandContext(ctx, git, "-c", "init.defaultBranch=main", "init", "--quiet")
		cmd.Dir, cmd.Env = dir, append(env, "PATH="+os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1")
		if cmd.Run() == nil {
			return nil
		}
	}
	git := filepath.Join(dir, ".git")
	for _, sub := range []string{"objects", "refs"} {
		if err := os.MkdirAll(filepath.Join(git, sub), 0o700); err != nil {
			return err
		}
	}
	return errors.Join(
		os.WriteFile(filepath.Join(git, "HEAD"), []byte("ref: refs/heads/main\n"), 0o600),
		os.WriteFile(filepath.Join(git, "config"), []byte("[core]\n\trepositoryformatversion = 0\n\tbare = false\n"), 0o600),
	)
}

// env returns cairn's whole environment. It contains nothing of the caller's own cairn.
func (h *home) env() []string {
	user := h.dir
	if h.real != "" {
		user = h.real
	}
	env := []string{"HOME=" + user, "USERPROFILE=" + user, "CAIRN_HOME=" + h.data, "TMPDIR=" + h.dir}
	if runtime.GOOS == "windows" {
		env = append(env, "SystemRoot="+os.Getenv("SystemRoot"))
	}
	return env
}

// command returns cairn with the given arguments in a folder.
func (h *home) command(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, h.program, args...)
	cmd.Dir, cmd.Env = dir, h.env()
	return cmd
}

// output runs cairn and returns its standard output.
func (h *home) output(ctx context.Context, dir string, args ...string) ([]byte, error) {
	out, _, err := h.run(ctx, h.command(ctx, dir, args...))
	return out, err
}

// run runs a cairn command and returns its output and the duration of its process. An exit code
// other than 0 is an error that quotes its standard error.
func (h *home) run(ctx context.Context, cmd *exec.Cmd) (out []byte, took time.Duration, err error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	began := time.Now()
	err = cmd.Run()
	took = time.Since(began)
	if err == nil {
		return stdout.Bytes(), took, nil
	}
	if endsSoon(ctx) {
		return nil, took, ctx.Err()
	}
	return nil, took, fmt.Errorf("%s %s: %w: %s", filepath.Base(h.program), strings.Join(cmd.Args[1:], " "), err,
		strings.TrimSpace(stderr.String()))
}

// endsSoon distinguishes an interrupted child from a failed one. A terminal interrupts both
// processes, and the child's end may be seen first.
func endsSoon(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	case <-time.After(50 * time.Millisecond):
		return false
	}
}

// short makes paths of the temporary home readable: relative inside a repository, else with ~.
func (h *home) short(s string) string {
	for _, repo := range h.repos {
		s = strings.ReplaceAll(s, repo+string(filepath.Separator), "")
	}
	s = strings.ReplaceAll(s, h.dir, "~")
	if h.real != "" {
		s = strings.ReplaceAll(s, h.real, "~")
	}
	return s
}
