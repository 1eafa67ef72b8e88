package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

// testBuild builds cairn with test hooks and otherwise the settings of this test binary.
func testBuild(t *testing.T) (program string) {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs go")
	}
	program = filepath.Join(t.TempDir(), "cairn")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	tags, env := "testhooks", os.Environ()
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "-tags":
				tags += "," + s.Value
			case "CGO_ENABLED":
				env = append(env, "CGO_ENABLED="+s.Value)
			}
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-tags", tags, "-o", program, "./cmd/cairn")
	cmd.Dir, cmd.Env = filepath.Join("..", ".."), env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return program
}

// controlled is a server of a test build. It can be started again after a crash.
type controlled struct {
	*home
	args         []string // contain the addresses of the first start
	cmd          *exec.Cmd
	said         *gathered
	url, control string
}

// control starts a server with a control listener. args contains its command and flags.
func (h *home) control(args ...string) *controlled {
	h.t.Helper()
	p := &controlled{home: h, args: append(args, "--test-hooks", "127.0.0.1:0")}
	p.start()
	return p
}

func (p *controlled) start() {
	p.t.Helper()
	p.cmd, p.said = p.command(p.args...), &gathered{}
	p.cmd.Env = append(p.cmd.Env, "CAIRN_TEST_HOOKS=1")
	p.cmd.Stderr = p.said
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() }) // it may already have exited
	lines := regexp.MustCompile(`^test-hooks: (http://(\S+))\ncairn: (?:hub at|serving) (http://([^\s,]+)).*\n`)
	p.soon("the addresses", func() bool { return lines.MatchString(p.said.String()) })
	told := lines.FindStringSubmatch(p.said.String())
	p.control, p.url = told[1], told[3]
	for i, arg := range p.args {
		if arg == "127.0.0.1:0" && p.args[i-1] == "--test-hooks" {
			p.args[i] = told[2]
		} else if arg == "127.0.0.1:0" {
			p.args[i] = told[4]
		}
	}
}

// died waits until the process exits at a crash point.
func (p *controlled) died(point string) {
	p.t.Helper()
	if err := p.cmd.Wait(); err == nil || p.cmd.ProcessState.ExitCode() > 1 {
		p.t.Fatalf("%s: the server ended with %v, %s", point, err, p.said)
	}
	if said := p.said.String(); point != "" && !strings.HasSuffix(said, "crash-point "+point+"\n") {
		p.t.Errorf("%s: it said last %s", point, said)
	}
}

// ctl runs a verb through cairn testctl, which must succeed. It decodes the output into out; nil
// ignores it.
func (p *controlled) ctl(out any, verb string, args ...any) {
	p.t.Helper()
	e := p.tried(verb, args...)
	if e.code != 0 || e.stderr != "" {
		p.t.Fatalf("%s %v: exit %d, %s", verb, args, e.code, e.stderr)
	}
	if out == nil {
		return
	}
	d := json.NewDecoder(strings.NewReader(e.stdout))
	if d.DisallowUnknownFields(); d.Decode(out) != nil {
		p.t.Fatalf("%s %v: %s is no %T", verb, args, e.stdout, out)
	}
}

// tried runs a verb with the given arguments, encoded as JSON.
func (p *controlled) tried(verb string, args ...any) ending {
	p.t.Helper()
	call := []string{"testctl", "--url", p.control, verb}
	for _, a := range args {
		text, err := json.Marshal(a)
		if err != nil {
			p.t.Fatal(err)
		}
		call = append(call, string(text))
	}
	return p.run(p.command(call...), nil)
}

// refuses runs a verb that must fail with a code.
func (p *controlled) refuses(code, verb string, args ...any) {
	p.t.Helper()
	if e := p.tried(verb, args...); e.code == 0 || !strings.Contains(e.stderr, `{"error":{"code":"`+code+`"`) {
		p.t.Errorf("%s %v: exit %d, %s%s", verb, args, e.code, e.stdout, e.stderr)
	}
}

// is compares a value with the expected one.
func (p *controlled) is(what string, got, want any) {
	p.t.Helper()
	if !reflect.DeepEqual(got, want) {
		p.t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// pair is a hub and a device that has joined it, as created by /test/reset.
type pair struct {
	hub, device *controlled
	made        struct {
		Users            map[string]struct{ UserID, Token string }
		Vaults, Memories map[string]string
	}
	memory string // ann's memory
}

func newPair(t *testing.T, program string) *pair {
	t.Helper()
	at, of := newHome(t), newHome(t)
	at.program, of.program = program, program
	of.vars["TMPDIR"] = t.TempDir() // because doctor reports leftover files of other processes
	p := &pair{hub: at.control("hub", "--listen", "127.0.0.1:0"), device: of.control("serve", "--http", "127.0.0.1:0")}
	p.reset()
	return p
}

func (p *pair) reset() {
	p.device.t.Helper()
	var told struct {
		Users map[string]struct {
			UserID string `json:"user_id"`
			Token  string `json:"token"`
		} `json:"users"`
		Vaults   map[string]string `json:"vaults"`
		Memories map[string]string `json:"memories"`
	}
	p.device.ctl(&told, "reset", p.layout())
	p.made.Users = map[string]struct{ UserID, Token string }{}
	for name, u := range told.Users {
		p.made.Users[name] = struct{ UserID, Token string }{u.UserID, u.Token}
	}
	p.made.Vaults, p.made.Memories, p.memory = told.Vaults, told.Memories, told.Memories["log"]
}

func (p *pair) layout() fields {
	return fields{
		"hub": p.hub.url, "hub_control": p.hub.control, "users": []string{"ann", "bob"},
		"vaults": []fields{{"name": "work", "owner": "ann", "memories": []string{"log", "other"}}, {"name": "home", "owner": "bob", "memories": []string{"diary"}}},
	}
}

// put writes an entry as ann over HTTP, with its text as the idempotency key. Status 0 means that
// the connection failed.
func (p *pair) put(raw string) (status int, local string) {
	p.device.t.Helper()
	r, err := http.NewRequestWithContext(p.device.t.Context(), http.MethodPost, p.device.url+"/v1/memories/"+p.memory+"/entries",
		bytes.NewReader([]byte(fmt.Sprintf(`{"rawEntry":%q}`, raw))))
	if err != nil {
		p.device.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+p.made.Users["ann"].Token)
	r.Header.Set("Idempotency-Key", raw)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, ""
	}
	defer answer.Body.Close()
	var told struct{ LocalID string }
	text, err := io.ReadAll(answer.Body)
	if err == nil {
		err = json.Unmarshal(text, &told)
	}
	if err != nil {
		return 0, ""
	}
	return answer.StatusCode, told.LocalID
}

// of returns the arguments of a verb for the memory, plus the given names and values.
func (p *pair) of(more ...any) fields {
	f := fields{"memory": p.memory}
	for i := 0; i < len(more); i += 2 {
		f[more[i].(string)] = more[i+1]
	}
	return f
}

// holds expects that the hub contains exactly these entries and accepted each once, in this order.
// The device must have them committed, and doctor must report no problem.
func (p *pair) holds(raw ...string) {
	d := p.device
	d.t.Helper()
	d.ctl(nil, "wait-synced", p.of("timeout_ms", 20000))
	var entries struct{ Entries []string }
	p.hub.ctl(&entries, "backend/entries", p.of())
	d.is("the hub's entries", entries.Entries, raw)
	var ops struct{ Ops []string }
	p.hub.ctl(&ops, "backend/ops", p.of())
	for i, op := range ops.Ops {
		ops.Ops[i] = strings.TrimPrefix(op, "entry:")
	}
	d.is("what the hub took", ops.Ops, raw)
	var listed struct {
		Entries []struct{ RawEntry string }
	}
	text := d.cairn("memory", "list-entries", "--memory", p.memory, "--json")
	if err := json.Unmarshal([]byte(text), &listed); err != nil {
		d.t.Fatal(err)
	}
	var here []string
	for _, e := range listed.Entries {
		here = append([]string{e.RawEntry}, here...)
	}
	d.is("the device's entries", here, raw)
	if e := d.run(d.command("doctor"), nil); e.code != 0 {
		d.t.Errorf("doctor: exit %d, %s%s", e.code, e.stdout, e.stderr)
	}
}
