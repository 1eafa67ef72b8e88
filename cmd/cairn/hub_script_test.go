package main

import (
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptHub is the key under which a script stores its hub.
type scriptHub struct{}

// runningHub is the hub of a script, with its last address.
type runningHub struct {
	cmd    *exec.Cmd
	said   *gathered
	listen string
}

// theHub starts or stops cairn hub on $CAIRN_HUB_DATABASE: thehub up, thehub down. It sets HUB to
// the hub's URL, which stays the same after a restart.
func theHub(ts *testscript.TestScript, _ bool, args []string) {
	hub := ts.Value(scriptHub{}).(*runningHub)
	if args[0] == "down" {
		hub.end(ts)
		return
	}
	hub.said = &gathered{}
	hub.cmd = exec.Command(program(ts, "cairn"), "hub", "--listen", hub.listen)
	for _, name := range []string{"HOME", "USERPROFILE", "PATH", "GORACE", "CAIRN_HUB_DATABASE", "CAIRN_HOME"} {
		hub.cmd.Env = append(hub.cmd.Env, name+"="+ts.Getenv(name))
	}
	hub.cmd.Dir, hub.cmd.Stderr = ts.MkAbs("."), hub.said
	ts.Check(hub.cmd.Start())
	ts.Defer(func() { hub.end(ts) })
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(stopLimit)
	for {
		if url, ok := strings.CutPrefix(hub.said.String(), "cairn: hub at "); ok && strings.HasSuffix(url, "\n") {
			url = strings.TrimSpace(url)
			hub.listen = strings.TrimPrefix(url, "http://")
			ts.Setenv("HUB", url)
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			ts.Fatalf("thehub: it said %s", hub.said)
		}
	}
}

func (h *runningHub) end(ts *testscript.TestScript) {
	if h.cmd == nil {
		return
	}
	ts.Check(h.cmd.Process.Signal(syscall.SIGTERM))
	ts.Check(h.cmd.Wait())
	h.cmd = nil
}
