package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"time"

	"cairn/agents/model"
)

// Limits of one process.
const (
	sessionLimit = 100 * time.Second
	commandLimit = 60 * time.Second
)

// stand is an empty home with a repository, in which one program runs with one cairn.
type stand struct {
	ctx     context.Context // its end kills all processes of the stand
	program Program
	model   *model.Server
	prefix  string // prefix of the names of runs
	home    string
	repo    string
	kept    string // folder of hookproxy's files
	out     string // folder of the program's output
	cairn   string // the connected path: cairn, or hookproxy after interpose
	path    string // PATH
	runs    int
}

const (
	calculator     = "def mean(xs):\n    return sum(xs) // len(xs)\n\n\ndef total(values):\n    return sum(values)\n"
	calculatorTest = "from calc import mean\n\nassert mean([1, 2]) == 1.5, 'mean truncates'\nprint('ok')\n"
)

// newStand creates a stand in dir, which it removes first.
func newStand(ctx context.Context, dir string, p Program, cairn, bin string, m *model.Server) (*stand, error) {
	s := &stand{
		ctx: ctx, program: p, model: m, prefix: p.Name, home: filepath.Join(dir, "home"), repo: filepath.Join(dir, "kiln"),
		kept: filepath.Join(dir, "kept"), out: filepath.Join(dir, "out"), cairn: filepath.Join(dir, "bin", "cairn"),
		path: strings.Join([]string{bin, filepath.Join(dir, "bin"), os.Getenv("PATH")}, string(os.PathListSeparator)),
	}
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	for _, folder := range []string{s.home, s.repo, s.kept, s.out, filepath.Dir(s.cairn)} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, err
		}
	}
	err := copyFile(cairn, s.cairn)
	if hook := cairn + hookSuffix; isThere(hook) { // older versions had one program
		err = errors.Join(err, copyFile(hook, s.cairn+hookSuffix))
	}
	for name, content := range p.Files {
		err = errors.Join(err, writeFile(filepath.Join(s.home, name), content))
	}
	err = errors.Join(err, writeFile(s.file("calc.py"), calculator), writeFile(s.file("test_calc.py"), calculatorTest))
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"}, {"config", "user.name", "Ana"}, {"config", "user.email", "ana@example.org"},
		{"add", "-A"}, {"commit", "-qm", "Calculator of the kiln"},
	} {
		if err == nil {
			_, err = s.command("git", args...)
		}
	}
	return s, err
}

func (s *stand) file(name string) string { return filepath.Join(s.repo, name) }

// hookSuffix turns the path of cairn into that of cairn-hook.
const hookSuffix = "-hook"

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// interpose replaces cairn and cairn-hook with hookproxy, which stores the hook calls.
func (s *stand) interpose(hookproxy string) (err error) {
	for _, path := range []string{s.cairn, s.cairn + hookSuffix} {
		if isThere(path) {
			err = errors.Join(err, os.Rename(path, path+".real"), copyFile(hookproxy, path))
		}
	}
	return err
}

// restore undoes interpose.
func (s *stand) restore() (err error) {
	for _, path := range []string{s.cairn, s.cairn + hookSuffix} {
		if isThere(path + ".real") {
			err = errors.Join(err, os.Rename(path+".real", path))
		}
	}
	return err
}

// environment returns the environment of every process of the stand. From the user's
// environment it contains only what is needed to find programs.
func (s *stand) environment(more map[string]string) []string {
	env := []string{
		"HOME=" + s.home, "PATH=" + s.path, "TERM=xterm-256color", "NO_COLOR=1", "LANG=C.UTF-8",
		"TMPDIR=" + os.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "PYTHONDONTWRITEBYTECODE=1",
	}
	for name, value := range more {
		env = append(env, name+"="+value)
	}
	return env
}

// result is the outcome of a process.
type result struct {
	Code     int // -1 after a signal
	Output   string
	TimedOut bool
	Took     time.Duration
}

// execute runs a process until it exits. When it exits, or after the limit, its process group
// is killed, so that no child keeps the output open.
func (s *stand) execute(limit time.Duration, env []string, name string, args ...string) result {
	ctx, cancel := context.WithTimeout(s.ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, lookPath(name, s.path), args...)
	cmd.Dir, cmd.Env = s.repo, env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 3 * time.Second
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	began := time.Now()
	err := cmd.Run()
	r := result{Output: output.String(), TimedOut: ctx.Err() != nil, Took: time.Since(began)}
	if cmd.ProcessState == nil {
		return result{Code: -1, Output: err.Error()}
	}
	r.Code = cmd.ProcessState.ExitCode()
	return r
}

// lookPath finds a command in a PATH other than the driver's own.
func lookPath(name, path string) string {
	if strings.ContainsRune(name, os.PathSeparator) {
		return name
	}
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && !info.IsDir() {
			return file
		}
	}
	return name
}

// command runs a command that must succeed and returns its output.
func (s *stand) command(name string, args ...string) (string, error) {
	r := s.execute(commandLimit, s.environment(nil), name, args...)
	if r.Code != 0 {
		return r.Output, fmt.Errorf("%s %s: exit %d: %s", name, strings.Join(args, " "), r.Code, shorten(r.Output))
	}
	return r.Output, nil
}

// run runs cairn directly, without hookproxy.
func (s *stand) run(args ...string) result { return s.runWith(nil, args...) }

func (s *stand) runWith(env map[string]string, args ...string) result {
	cairn := s.cairn
	if _, err := os.Stat(cairn + ".real"); err == nil {
		cairn += ".real"
	}
	return s.execute(commandLimit, s.environment(env), cairn, args...)
}

// mode is the way a session is started.
type mode struct {
	continued bool
	asking    bool // the program would ask before an edit, but no user is present
	untrusted bool // hooks are not trusted
}

// session is one finished run of the program.
type session struct {
	result
	name     string
	requests []model.Request // requests of the conversation
	others   []model.Request // requests for titles, summaries and the like
	hooks    []hook
}

// start runs the program with a prompt and a script until it exits.
func (s *stand) start(prompt string, m mode, steps ...model.Step) session {
	s.runs++
	return s.startAs(s.runs, prompt, m, steps)
}

func (s *stand) startAs(number int, prompt string, m mode, steps []model.Step) session {
	name := fmt.Sprintf("%s-%02d", s.prefix, number)
	url := s.model.Script(name, steps)
	fill := strings.NewReplacer("{prompt}", prompt, "{url}", url, "{home}", s.home, "{repo}", s.repo)
	env := map[string]string{}
	for key, value := range s.program.Env {
		env[key] = fill.Replace(value)
	}
	for file, content := range s.program.Settings {
		if err := writeFile(filepath.Join(s.home, file), fill.Replace(content)); err != nil {
			return session{result: result{Code: -1, Output: err.Error()}, name: name}
		}
	}
	began := time.Now().UnixNano()
	r := s.execute(sessionLimit, s.environment(env), s.program.Bin, s.arguments(m, fill)...)
	_ = writeFile(filepath.Join(s.out, name+".txt"), r.Output) // for the reader; the checks use the result
	main, others := s.model.Requests(name)
	return session{result: r, name: name, requests: main, others: others, hooks: s.hooks(began)}
}

func (s *stand) arguments(m mode, fill *strings.Replacer) []string {
	args := s.program.New
	if m.continued {
		args = s.program.Continue
	}
	mode := s.program.Bypass
	if m.asking && s.program.Asking != nil {
		mode = s.program.Asking
	}
	options := append([]string{}, mode...)
	if !m.untrusted {
		options = append(options, s.program.Trusted...)
	}
	list := append(append([]string{}, args...), options...)
	for i := range list {
		list[i] = fill.Replace(list[i])
	}
	return list
}

// hook is one hook call, as hookproxy stored it.
type hook struct {
	Args     []string
	Payload  string
	Stdout   string
	Stderr   string
	Code     int
	Began    int64
	Duration int64
	fields   map[string]any
}

// event returns the program's name for the event.
func (h hook) event() string {
	for _, name := range []string{"hook_event_name", "hookEventName", "hookName", "event"} {
		if event, ok := h.fields[name].(string); ok {
			return event
		}
	}
	for i, arg := range h.Args {
		if arg == "--event" && i+1 < len(h.Args) {
			return h.Args[i+1]
		}
	}
	return "?"
}

// hooks returns the hooks that began at or after a time, in order.
func (s *stand) hooks(since int64) []hook {
	files, err := filepath.Glob(filepath.Join(s.kept, "*.hook.json"))
	if err != nil {
		return nil
	}
	sort.Strings(files)
	var list []hook
	for _, file := range files {
		var h hook
		data, err := os.ReadFile(file)
		if err != nil || json.Unmarshal(data, &h) != nil || h.Began < since {
			continue
		}
		_ = json.Unmarshal([]byte(h.Payload), &h.fields) // a payload that is not JSON has no fields
		list = append(list, h)
	}
	return list
}

// leftProcesses returns the command lines of processes that are still running in the stand's
// home.
func (s *stand) leftProcesses() []string {
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil
	}
	var left []string
	for _, file := range environs {
		data, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(append([]byte{0}, data...), []byte("\x00HOME="+s.home+"\x00")) {
			continue
		}
		line, err := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if err == nil && len(line) > 0 {
			left = append(left, strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " ")))
		}
	}
	return left
}

// settings returns the small text files of the home outside cairn's own folder.
func (s *stand) settings() map[string]string {
	files := map[string]string{}
	_ = filepath.WalkDir(s.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if d.IsDir() {
			switch d.Name() {
			case ".cairn", "node_modules", ".git", "projects", "sessions", "tmp", "backups":
				return filepath.SkipDir
			}
			return nil
		}
		switch filepath.Ext(path) {
		case ".json", ".jsonc", ".toml", ".md", ".mdc", ".js", ".ts":
			if data, err := os.ReadFile(path); err == nil && len(data) < 1<<20 {
				files[path] = string(data)
			}
		}
		return nil
	})
	return files
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755)
}

func writeFile(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content), 0o644)
}
