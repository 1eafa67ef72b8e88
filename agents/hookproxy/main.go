// Command hookproxy replaces cairn, or cairn-hook, in an agent's settings and calls the real
// program, PATH.real in the same folder. It stores what passes through in the folder ../kept:
// payload, output and time of each hook, and the requests to an MCP server.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Hook is the stored data of one hook call. The driver reads it.
type Hook struct {
	Args     []string `json:"args"`
	Payload  string   `json:"payload"`
	Stdout   string   `json:"stdout"`
	Stderr   string   `json:"stderr"`
	Code     int      `json:"code"`
	Began    int64    `json:"began"` // Unix nanoseconds
	Duration int64    `json:"duration"`
}

func main() {
	own, err := os.Executable()
	if err != nil {
		fail(err)
	}
	// cairn looks for the agent among the processes above it and skips wrappers like env.
	_ = os.WriteFile("/proc/self/comm", []byte("env"), 0)
	real, kept := own+".real", filepath.Join(filepath.Dir(filepath.Dir(own)), "kept")
	name := filepath.Join(kept, strconv.FormatInt(time.Now().UnixNano(), 10)+"-"+strconv.Itoa(os.Getpid()))
	command := ""
	if len(os.Args) > 1 {
		command = os.Args[1]
	}
	switch command {
	case "record":
		os.Exit(hook(real, name+".hook.json"))
	case "serve":
		os.Exit(serve(real, name+".requests.jsonl"))
	}
	fail(syscall.Exec(real, append([]string{real}, os.Args[1:]...), os.Environ()))
}

// hook runs a hook with the payload from standard input.
func hook(real, file string) int {
	payload, err := io.ReadAll(os.Stdin)
	if err != nil {
		fail(err)
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(real, os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(payload), &stdout, &stderr
	began := time.Now()
	code := run(cmd)
	kept, err := json.Marshal(Hook{
		Args: os.Args[1:], Payload: string(payload), Stdout: stdout.String(), Stderr: stderr.String(), Code: code,
		Began: began.UnixNano(), Duration: int64(time.Since(began)),
	})
	if err == nil {
		err = os.WriteFile(file, kept, 0o644)
	}
	if err != nil {
		fail(err)
	}
	os.Stdout.Write(stdout.Bytes())
	os.Stderr.Write(stderr.Bytes())
	return code
}

// serve runs the MCP server and stores its arguments, on the first line, and its input.
func serve(real, file string) int {
	kept, err := os.Create(file)
	if err != nil {
		fail(err)
	}
	if err := json.NewEncoder(kept).Encode(map[string][]string{"args": os.Args[1:]}); err != nil {
		fail(err)
	}
	cmd := exec.Command(real, append(os.Args[1:], profileArgs(strings.TrimSuffix(real, ".real"))...)...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		fail(err)
	}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	go func() {
		_, _ = io.Copy(io.MultiWriter(stdin, kept), os.Stdin) // ends when either side has closed
		_ = stdin.Close()
	}()
	return run(cmd)
}

// profileArgs returns the arguments that select the profile under measurement. The file
// ../profile contains its name; without the file there are no arguments.
func profileArgs(own string) []string {
	profile, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(own)), "profile"))
	if err != nil {
		return nil
	}
	return []string{"--profile", string(profile)}
}

// run runs a command, forwards signals to it and returns its exit code.
func run(cmd *exec.Cmd) int {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	if err := cmd.Start(); err != nil {
		fail(err)
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s) // fails only if it has ended
		}
	}()
	err := cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		fail(err)
	}
	return 0
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "hookproxy:", err)
	os.Exit(1)
}
