package pgtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrNoPatroni says that Patroni or etcd is not installed, and what would install them.
var ErrNoPatroni = errors.New("Patroni and etcd are not installed: apt-get install patroni etcd-server (Debian, Ubuntu)")

// PatroniNodes is how many PostgreSQL servers a [Patroni] has.
const PatroniNodes = 3

// Patroni is three PostgreSQL servers on this machine of which one leads and the
// others follow, each under a Patroni that makes another one lead when the leader is
// gone, and an etcd in which they agree. All listen on loopback only.
//
// Replication is synchronous and strictly so (synchronous_mode_strict): a commit is
// answered once it is on two servers, and with one server left none is. Without the
// strictness Patroni would let the last server commit alone, and its disk would be the
// only one that has what was acknowledged then.
type Patroni struct {
	dir, bin string
	as       owner
	guardian *exec.Cmd
	alive    io.Closer // standard input of the guardian
	etcd     string    // HOST:PORT
	nodes    [PatroniNodes]node
}

// node is one PostgreSQL and its Patroni. Their processes are those whose working
// folder is in dir.
type node struct {
	name, dir string
	api, sql  string // HOST:PORT
	patroni   *exec.Cmd
}

// guard waits until its standard input ends, then kills every process whose working
// folder is in $1, whoever started it.
const guard = `read -r _; for round in 1 2 3 4 5; do for p in /proc/[0-9]*; do
case $(readlink "$p/cwd") in "$1"|"$1"/*) kill -KILL "${p#/proc/}" ;; esac; done; done 2>/dev/null; exit 0`

// StartPatroni makes and starts the servers and returns when one leads and the others
// follow, which takes about half a minute. It fails with [ErrNoPatroni] or [ErrMissing]
// where the programs are not installed. Stop it; the death of this process stops it too.
func StartPatroni(ctx context.Context) (p *Patroni, err error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	if !patroniInstalled() {
		if err := install("patroni", "python3-etcd", "etcd-server"); err != nil || !patroniInstalled() {
			return nil, errors.Join(ErrNoPatroni, err)
		}
	}
	dir, err := os.MkdirTemp("", "cairn-ha-")
	if err != nil {
		return nil, err
	}
	p = &Patroni{dir: dir, bin: bin}
	if err := p.guardStart(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := p.startAll(ctx); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

func patroniInstalled() bool {
	for _, program := range []string{"patroni", "etcd"} {
		if _, err := exec.LookPath(program); err != nil {
			return false
		}
	}
	return true
}

func (p *Patroni) guardStart() (err error) {
	p.guardian = exec.Command("/bin/sh", "-c", guard, "sh", p.dir)
	p.guardian.Dir = "/"
	p.guardian.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // ^C is not for it
	if p.alive, err = p.guardian.StdinPipe(); err != nil {
		return err
	}
	return p.guardian.Start()
}

func (p *Patroni) startAll(ctx context.Context) (err error) {
	if p.as, err = newOwner(p.dir); err != nil {
		return err
	}
	ports, err := freePorts(2 + 2*PatroniNodes)
	if err != nil {
		return err
	}
	p.etcd = ports[0]
	peer := "http://" + ports[1]
	etcd, err := p.folder("etcd")
	if err != nil {
		return err
	}
	if _, err := p.daemon(etcd, "etcd", "--name", "etcd", "--data-dir", "data", "--listen-client-urls", "http://"+p.etcd,
		"--advertise-client-urls", "http://"+p.etcd, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "etcd="+peer); err != nil {
		return err
	}
	for i := range p.nodes {
		n := &p.nodes[i]
		*n = node{name: fmt.Sprintf("n%d", i), api: ports[2+2*i], sql: ports[3+2*i]}
		if n.dir, err = p.folder(n.name); err != nil {
			return err
		}
		text, err := json.Marshal(p.settings(n)) // JSON is YAML
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(n.dir, "patroni.yml"), text, 0o644); err != nil {
			return err
		}
		if err := p.Begin(i); err != nil {
			return err
		}
	}
	return p.Whole(ctx)
}

// settings are one node's. They are the shortest times that Patroni documents, but for
// etcd's patience, which a busy machine needs.
func (p *Patroni) settings(n *node) map[string]any {
	type object = map[string]any
	return object{
		"scope":   "cairn",
		"name":    n.name,
		"restapi": object{"listen": n.api, "connect_address": n.api},
		"etcd3":   object{"host": p.etcd},
		"bootstrap": object{
			"dcs": object{
				"ttl": 20, "loop_wait": 2, "retry_timeout": 5,
				"synchronous_mode": true, "synchronous_mode_strict": true,
				"postgresql": object{"use_pg_rewind": true, "parameters": object{
					"wal_log_hints": "on", "max_connections": 100, "shared_buffers": "64MB", "wal_keep_size": "512MB",
				}},
			},
			"initdb": []any{object{"encoding": "UTF8"}, object{"locale": "C.UTF-8"}, "data-checksums"},
		},
		"postgresql": object{
			"listen": n.sql, "connect_address": n.sql, "data_dir": filepath.Join(n.dir, "data"), "bin_dir": p.bin,
			"pgpass":         filepath.Join(n.dir, "pgpass"),
			"authentication": object{"superuser": object{"username": "cairn"}, "replication": object{"username": "follower"}},
			"pg_hba":         []string{"host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust", "local all all trust"},
			"parameters":     object{"unix_socket_directories": n.dir, "fsync": "on"},
		},
	}
}

// folder makes a folder that the servers' user may write.
func (p *Patroni) folder(name string) (string, error) {
	dir := filepath.Join(p.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	_, err := newOwner(dir)
	return dir, err
}

// daemon starts a program in a folder, where it logs.
func (p *Patroni) daemon(dir, program string, args ...string) (*exec.Cmd, error) {
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "HOME="+dir)
	p.as.apply(cmd)
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return cmd, nil
}

// freePorts returns addresses on which nothing listens.
func freePorts(n int) (addresses []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		addresses = append(addresses, l.Addr().String())
	}
	return addresses, nil
}

// URL leads to whichever server leads.
func (p *Patroni) URL() string {
	var hosts []string
	for _, n := range p.nodes {
		hosts = append(hosts, n.sql)
	}
	return "postgres://cairn@" + strings.Join(hosts, ",") + "/postgres?sslmode=disable&target_session_attrs=read-write"
}

// Begin starts a node, again after [Patroni.Kill]: it follows whoever leads meanwhile.
func (p *Patroni) Begin(i int) (err error) {
	n := &p.nodes[i]
	n.patroni, err = p.daemon(n.dir, "patroni", "patroni.yml")
	return err
}

// Kill kills the PostgreSQL and the Patroni of a node with all their processes, as the
// loss of its machine would. Its disk stays.
func (p *Patroni) Kill(i int) error {
	n := &p.nodes[i]
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if left := n.signal(syscall.SIGKILL); left == 0 {
			if n.patroni.ProcessState == nil {
				_ = n.patroni.Wait() // it was killed
			}
			return nil
		} else if time.Now().After(until) {
			return fmt.Errorf("%d processes of %s do not die", left, n.name)
		}
	}
}

// Freeze stops all processes of a node where they are, connections open: who waits for
// them waits on. After it comes [Patroni.Thaw] or [Patroni.Kill].
func (p *Patroni) Freeze(i int) {
	p.nodes[i].signal(syscall.SIGSTOP)
	p.nodes[i].signal(syscall.SIGSTOP) // those that had just been started
}

// Thaw lets the PostgreSQL of a frozen node go on, which believes that it still leads
// and takes connections; its Patroni dies instead. Kill the node soon, as a watchdog
// resets a machine that stood still. Without a watchdog Patroni's documentation promises
// nothing here, and 3.0 with etcd's third protocol keeps nothing: it renews its key in
// etcd without looking whose it has become, takes the lead back, and what the new leader
// acknowledged meanwhile is rewound.
func (p *Patroni) Thaw(i int) error {
	n := &p.nodes[i]
	err := n.patroni.Process.Kill()
	_ = n.patroni.Wait() // it was killed
	n.signal(syscall.SIGCONT)
	return err
}

// signal sends a signal to the node's processes and returns how many there are.
func (n *node) signal(s syscall.Signal) (found int) {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		cwd, err := os.Readlink(link) // fails for what has just ended
		if err != nil || cwd != n.dir && !strings.HasPrefix(cwd, n.dir+"/") {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link))); err == nil && syscall.Kill(pid, s) == nil {
			found++
		}
	}
	return found
}

// member is a node as Patroni's REST API tells of it.
type member struct {
	Name, Role, State string
}

// Leader asks the nodes but one (-1: asks all) which of them leads; -1 for none.
func (p *Patroni) Leader(ctx context.Context, but int) int {
	for i, n := range p.nodes {
		if status, _ := ask(ctx, "http://"+n.api+"/leader"); i != but && status == http.StatusOK {
			return i
		}
	}
	return -1
}

// Whole waits until one node leads and the others follow it, one of them synchronously.
// It gives up after three minutes with what the nodes logged last.
func (p *Patroni) Whole(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	var last []byte
	for {
		if leader := p.Leader(ctx, -1); leader >= 0 {
			if _, last = ask(ctx, "http://"+p.nodes[leader].api+"/cluster"); whole(last) {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the servers do not come together: %w: %s%s", ctx.Err(), last, p.logs())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func whole(answer []byte) bool {
	var cluster struct{ Members []member }
	if json.Unmarshal(answer, &cluster) != nil {
		return false
	}
	roles := map[string]int{}
	for _, m := range cluster.Members {
		if m.State == "running" || m.State == "streaming" {
			roles[m.Role]++
		}
	}
	return roles["leader"] == 1 && roles["sync_standby"] == 1 && roles["replica"] == PatroniNodes-2
}

// ask is a GET whose failures are a status of 0.
func ask(ctx context.Context, url string) (status int, body []byte) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		return 0, nil
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil
	}
	defer answer.Body.Close()
	if body, err = io.ReadAll(answer.Body); err != nil {
		return 0, nil
	}
	return answer.StatusCode, body
}

// logs is the end of each log.
func (p *Patroni) logs() string {
	var text strings.Builder
	paths, _ := filepath.Glob(filepath.Join(p.dir, "*", "log"))
	for _, path := range paths {
		log, _ := os.ReadFile(path)
		log = log[max(0, len(log)-3000):]
		fmt.Fprintf(&text, "\n%s:\n%s", path, bytes.TrimSpace(log))
	}
	return text.String()
}

// Stop kills all servers and removes what they had.
func (p *Patroni) Stop() error {
	err := errors.Join(p.alive.Close(), p.guardian.Wait())
	for _, n := range p.nodes {
		if n.patroni != nil && n.patroni.ProcessState == nil {
			_ = n.patroni.Wait() // it was killed
		}
	}
	return errors.Join(err, os.RemoveAll(p.dir))
}
