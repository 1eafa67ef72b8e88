package main

import (
	"encoding/json"
	"errors"
	"os/exec"
	"runtime"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// wired sends a payload to the command that a settings file contains for an event, as an
// agent would: wired FILE EVENT PAYLOAD. On Windows each agent has its own shell, so the
// program is called with the words of the command line.
func wired(ts *testscript.TestScript, _ bool, args []string) {
	var file struct {
		Hooks map[string][]struct {
			Command string // for Cursor
			Hooks   []struct{ Command string }
		}
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &file))
	groups := file.Hooks[args[1]]
	if len(groups) != 1 || groups[0].Command == "" && len(groups[0].Hooks) != 1 {
		ts.Fatalf("wired: %s has %v for %s", args[0], groups, args[1])
	}
	line := groups[0].Command
	if line == "" {
		line = groups[0].Hooks[0].Command
	}
	cmd := exec.Command("sh", "-c", line)
	if runtime.GOOS == "windows" {
		words := strings.Fields(line)
		cmd = exec.Command(words[0], words[1:]...)
	}
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"HOME", "USERPROFILE", "PATH", "CAIRN_HOME", "GORACE"} {
		if v := ts.Getenv(name); v != "" {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(args[2]), ts.Stdout(), ts.Stderr()
	if err := cmd.Run(); err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			ts.Fatalf("wired: %s: exit %d", line, exit.ExitCode())
		}
		ts.Fatalf("wired: %s: %v", line, err)
	}
}
