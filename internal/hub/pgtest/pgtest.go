// Package pgtest starts a real PostgreSQL for tests: its own cluster in a temporary
// folder, reached by a Unix socket, with fsync on. It uses what is installed; where
// nothing is, as root with CI=true it installs the distribution's package.
//
// The cluster names a synchronous standby that does not exist, and waits for its own disk
// only: a session with synchronous_commit=on sees what it is like when the standby is
// gone, for its commits wait for ever.
package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// ErrMissing says that PostgreSQL is not installed, and what would install it.
var ErrMissing = errors.New("PostgreSQL is not installed: apt-get install postgresql (Debian, Ubuntu), brew install postgresql@17 (macOS), or put initdb and postgres on PATH")

// Cluster is a running server. It ends with the process that started it.
type Cluster struct {
	dir, bin string
	as       owner // whose the server is: it refuses to run as root
	server   *exec.Cmd
	alive    io.Closer // standard input of the server's guardian
	made     atomic.Int64
}

// Start makes a cluster and starts it. It fails with [ErrMissing] where there is no
// PostgreSQL. Stop it.
func Start() (c *Cluster, err error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "cairn-pg-") // short: a socket's path has at most 107 bytes
	if err != nil {
		return nil, err
	}
	c = &Cluster{dir: dir, bin: bin}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	if c.as, err = newOwner(dir); err != nil {
		return nil, err
	}
	if err := c.run("initdb", "-D", c.data(), "-U", "cairn", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-instructions"); err != nil {
		return nil, err
	}
	return c, c.Up()
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

// run runs one of PostgreSQL's programs as the cluster's owner.
func (c *Cluster) run(program string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, program), args...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	c.as.apply(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", program, err, bytes.TrimSpace(out))
	}
	return nil
}

// Up starts the server, again after [Cluster.Down], and returns when it answers.
func (c *Cluster) Up() error {
	// When this process dies its end of the pipe is closed, and the server ends too.
	script := `"$@" >>log 2>&1 & p=$!; read -r how; kill -"${how:-QUIT}" $p; wait $p`
	c.server = exec.Command("/bin/sh", "-c", script, "sh", filepath.Join(c.bin, "postgres"), "-D", c.data(), "-k", c.dir,
		"-c", "listen_addresses=", "-c", "max_connections=100", "-c", "shared_buffers=64MB", "-c", "fsync=on",
		"-c", "synchronous_standby_names=nobody", "-c", "synchronous_commit=local")
	c.server.Dir = c.dir
	c.as.apply(c.server)
	in, err := c.server.StdinPipe()
	if err != nil {
		return err
	}
	c.alive = in
	if err := c.server.Start(); err != nil {
		return err
	}
	for until := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		err := c.run("pg_isready", "-q", "-h", c.dir, "-U", "cairn")
		if err == nil {
			return nil
		}
		if time.Now().After(until) {
			log, _ := os.ReadFile(filepath.Join(c.dir, "log"))
			return errors.Join(fmt.Errorf("PostgreSQL does not answer: %w: %s", err, log), c.Down("QUIT"))
		}
	}
}

// Down ends the server by a signal: INT cuts off its clients in order, QUIT ends it
// as a crash would. Data stay.
func (c *Cluster) Down(signal string) error {
	_, err := io.WriteString(c.alive.(io.Writer), signal+"\n")
	err = errors.Join(err, c.alive.Close())
	if werr := c.server.Wait(); werr != nil {
		if _, ended := errors.AsType[*exec.ExitError](werr); !ended {
			err = errors.Join(err, werr)
		}
	}
	return err
}

// Stop ends the server and removes the cluster.
func (c *Cluster) Stop() error {
	return errors.Join(c.Down("QUIT"), os.RemoveAll(c.dir))
}

// Database makes an empty schema and returns a URL that leads to it: as good as a
// database of its own, and made in no time.
func (c *Cluster) Database(tb testing.TB) string {
	tb.Helper()
	name := fmt.Sprintf("t%d", c.made.Add(1))
	if err := c.run("psql", "-q", "-h", c.dir, "-U", "cairn", "-d", "postgres", "-c", "CREATE SCHEMA "+name); err != nil {
		tb.Fatal(err)
	}
	return "postgres://cairn@/postgres?host=" + url.QueryEscape(c.dir) + "&search_path=" + name
}

// binaries finds the folder with PostgreSQL's programs.
func binaries() (string, error) {
	if dir := look(); dir != "" {
		return dir, nil
	}
	if err := install("postgresql"); err != nil {
		return "", errors.Join(ErrMissing, err)
	}
	if dir := look(); dir != "" {
		return dir, nil
	}
	return "", ErrMissing
}

// install installs packages of the distribution, as root with CI=true where there is
// apt-get. Elsewhere it does nothing.
func install(packages ...string) error {
	if os.Geteuid() != 0 || os.Getenv("CI") != "true" {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return nil
	}
	script := "apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends " + strings.Join(packages, " ")
	if out, err := exec.Command("/bin/sh", "-c", script).CombinedOutput(); err != nil {
		return fmt.Errorf("installing failed: %w: %s", err, out)
	}
	return nil
}

func look() string {
	var dirs []string
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin"} {
		found, _ := filepath.Glob(pattern)
		slices.Reverse(found) // the newest first
		dirs = append(dirs, found...)
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			dirs = append(dirs, filepath.Dir(path))
		}
	}
	for _, dir := range dirs {
		if has(dir, "initdb") && has(dir, "postgres") && has(dir, "psql") && has(dir, "pg_isready") {
			return dir
		}
	}
	return ""
}

func has(dir, program string) bool {
	_, err := os.Stat(filepath.Join(dir, program))
	return err == nil
}
