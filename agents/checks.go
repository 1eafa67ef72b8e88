package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"cairn/agents/model"
)

// examiner runs all checks of one program with one cairn.
type examiner struct {
	*stand
	cairnName string // "new" or "base"
	report    *report

	before   map[string]string // settings before init
	wired    map[string]string // settings after init
	plain    session           // a session without cairn
	told     int               // bytes of context injected into session 2
	recorded []session         // sessions 1, 2 and the resumed one
	sessions []session         // all sessions with cairn
}

const contextHead = "# cairn context"

func (e *examiner) line(check string, status Status, format string, args ...any) {
	e.report.add(Line{e.cairnName, e.program.Name, check, status, fmt.Sprintf(format, args...)})
}

// check reports a check. A check that the program's host cannot support is not a failure.
func (e *examiner) check(name string, ok bool, format string, args ...any) {
	why, impossible := e.program.Cannot[name]
	switch {
	case ok:
		e.line(name, Pass, format, args...)
	case impossible:
		e.line(name, Info, "not possible: %s", why)
	default:
		e.line(name, Fail, format, args...)
	}
}

func (e *examiner) note(name, format string, args ...any) { e.line(name, Info, format, args...) }

// session runs the program with cairn. A session that exceeds its limit is a failure.
func (e *examiner) session(prompt string, m mode, steps ...model.Step) session {
	s := e.start(prompt, m, steps...)
	if s.TimedOut {
		e.line("session ends", Fail, "%s: killed after %v", prompt, s.Took.Round(time.Second))
	}
	e.sessions = append(e.sessions, s)
	return s
}

// examine runs all checks in order. The sessions build on each other.
func (e *examiner) examine(hookproxy string) error {
	e.plain = e.start("Say hello.", mode{}, model.Say("Hello there."))
	e.check("program works without cairn", strings.Contains(e.plain.Output, "Hello there."), "exit %d: %s", e.plain.Code, ending(e.plain.Output))
	if len(e.plain.requests) == 0 {
		return nil // nothing else can work
	}
	e.before = e.settings()
	r := e.run("init", "--json")
	e.check("cairn init", r.Code == 0, "exit %d: %s", r.Code, initFiles(r.Output))
	if r.Code != 0 {
		return nil // cairn does not know this program
	}
	e.wired = e.settings()
	if err := e.interpose(hookproxy); err != nil {
		return err
	}
	if e.program.Trusted != nil {
		e.untrusted()
	}
	began := len(e.sessions)
	for _, part := range []func(){
		e.first, e.second, e.resumed, func() { e.recorded = e.sessions[began:] }, e.asked, e.blocked, e.parallel, e.compacted, e.silence, e.times, e.cost, e.imported, e.removed, e.processes,
	} {
		if part(); e.ctx.Err() != nil {
			return e.ctx.Err() // interrupted
		}
	}
	return nil
}

func ending(output string) string {
	if len(output) > maxDetail {
		output = output[len(output)-maxDetail:]
	}
	return output
}

func initFiles(output string) string {
	var report struct {
		Files []struct{ Path, Action string }
	}
	if json.Unmarshal([]byte(output), &report) != nil {
		return output
	}
	var files []string
	for _, f := range report.Files {
		files = append(files, f.Action+" "+filepath.Base(filepath.Dir(f.Path))+"/"+filepath.Base(f.Path))
	}
	return strings.Join(files, ", ")
}

// untrusted runs a session before the user has trusted the hooks.
func (e *examiner) untrusted() {
	s := e.session("Say hello again.", mode{untrusted: true}, model.Say("Hello there."))
	e.note("hooks that are not trusted", "%d hooks ran", len(s.hooks))
	if r := e.run("import"); r.Code != 0 { // makes the session known to the store
		e.line("import of a session without hooks", Fail, "exit %d: %s", r.Code, r.Output)
	}
	var about []string
	for line := range strings.Lines(e.run("doctor").Output) {
		if strings.Contains(strings.ToLower(line), "trust") && strings.ContainsAny(line, "0123456789") {
			about = append(about, strings.TrimSpace(line))
		}
	}
	e.check("doctor counts untrusted hooks", len(about) > 0, "%s", strings.Join(about, " / "))
}

// first runs a session with every kind of call. It has a failing command, a read, an edit, a
// commit, and cairn tools that return a list and an object.
func (e *examiner) first() {
	calc := e.file("calc.py")
	s := e.session("The kiln calculator's mean() truncates glaze temperatures. Find out why and fix it, then commit.", mode{},
		model.Shell("python3 test_calc.py"),
		model.Read(calc),
		model.Edit(calc, "    return sum(xs) // len(xs)", "    return sum(xs) / len(xs)"),
		model.Shell("python3 test_calc.py"),
		model.Shell("git commit -qam 'Mean keeps fractions' && git log --oneline | head -1"),
		model.Tool("search", map[string]any{"query": "mean truncates", "limit": 5}),
		model.Tool("health_check", map[string]any{}),
		model.Say("Fixed: mean() of the kiln calculator keeps fractions now. Next: round in total()."))
	content, _ := os.ReadFile(calc)
	e.check("session 1 works", s.Code == 0 && strings.Contains(string(content), "sum(xs) / len(xs)"), "exit %d, %d requests; %s", s.Code, len(s.requests), ending(s.Output))
	e.firedHooks(s)
	e.storedRows()
	e.answers(s)
}

func (e *examiner) firedHooks(s session) {
	counts := map[string]int{}
	for _, h := range s.hooks {
		counts[h.event()]++
	}
	var missing []string
	for _, event := range e.program.Hooks {
		if counts[event] == 0 {
			missing = append(missing, event)
		}
	}
	e.check(checkHooks, len(missing) == 0 && len(s.hooks) > 0, "%s; missing: %s", showCounts(counts), strings.Join(missing, ", "))
}

func (e *examiner) storedRows() {
	rows, err := e.rows("")
	if err != nil {
		e.line(checkRows, Fail, "%v", err)
		return
	}
	counts := countTypes(rows)
	var missing []string
	for _, name := range e.program.Rows {
		if counts[name] == 0 {
			missing = append(missing, name)
		}
	}
	wrongHarness := 0
	for _, r := range rows {
		if r.Harness != e.program.Harness {
			wrongHarness++
		}
	}
	e.check(checkRows, len(missing) == 0 && wrongHarness == 0, "%s; missing: %s; under another harness: %d", showCounts(counts), strings.Join(missing, ", "), wrongHarness)
	failed := 0
	for _, r := range rows {
		if r.Type == "command_error" && strings.Contains(r.Content, "test_calc.py") {
			failed++
		}
	}
	e.check(checkFailure, failed == 1, "%d rows of type command_error name the failed command, want 1", failed)
}

// answers checks that the model can read what cairn's tools returned.
func (e *examiner) answers(s session) {
	list, object, missing := "", "", ""
	for _, r := range s.requests {
		for _, t := range r.Find("obs_type", "truncates glaze") {
			list = t
		}
		for _, t := range r.Find("pool_utilization") {
			object = t
		}
		if r.Response.Missing != "" {
			missing = r.Response.Missing
		}
	}
	e.check("MCP tool returns a list", list != "", "%s %s", list, missing)
	e.check("MCP tool returns an object", object != "", "%s %s", object, missing)
}

// second runs a new session and checks that it receives the context of the first session
// exactly once.
func (e *examiner) second() {
	s := e.session("Why did mean() truncate glaze temperatures in the kiln? Look at total() as well.", mode{},
		model.Tool("macro_start_session", map[string]any{"human_key": e.repo, "program": e.program.Name, "model": "scripted", "task_description": "round totals", "agent_name": "GreenCastle"}),
		model.Read(e.file("calc.py")),
		model.Shell("python3 test_calc.py"),
		model.Say("Had a look at total()."))
	e.told = toldBytes(s)
	if len(s.requests) == 0 {
		e.line(checkContext, Fail, "no request: exit %d, %s", s.Code, ending(s.Output))
		return
	}
	first := copies(s.requests[0])
	last := copies(s.requests[len(s.requests)-1])
	told := strings.Join(s.requests[0].Find(contextHead), "\n")
	e.check(checkContext, first == 1 && strings.Contains(told, "keeps fractions"), "%d copies in the first request", first)
	e.check(checkOnce, last == 1, "%d copies in the last request", last)
	e.note("assist", "%s", hints(s))
	r := e.run("agents", "list")
	e.check("agent binds over MCP", strings.Contains(r.Output, "GreenCastle"), "%s", r.Output)
}

// copies counts how often a request contains the context.
func copies(r model.Request) int {
	n := 0
	for _, t := range r.Find(contextHead) {
		n += strings.Count(t, contextHead)
	}
	return n
}

// hints returns the output of a session's hooks, without the context.
func hints(s session) string {
	var said []string
	for _, h := range s.hooks {
		if out := strings.TrimSpace(h.Stdout); out != "" && out != "{}" && !strings.Contains(out, contextHead) {
			said = append(said, h.event()+": "+out)
		}
	}
	return fmt.Sprintf("%d hints: %s", len(said), strings.Join(said, " / "))
}

const reason = "splitting the module"

// held returns the steps of a session that edits a file held by another agent.
func (e *examiner) held(more ...model.Step) []model.Step {
	calc := e.file("calc.py")
	steps := []model.Step{model.Read(calc), model.Edit(calc, "    return sum(values)", "    return round(sum(values), 2)")}
	return append(append(steps, more...), model.Say("Rounded total()."))
}

func (e *examiner) isRounded() bool {
	content, err := os.ReadFile(e.file("calc.py"))
	return err == nil && strings.Contains(string(content), "round(")
}

func (e *examiner) undoEdit() {
	if _, err := e.command("git", "checkout", "-q", "calc.py"); err != nil {
		e.line("git checkout", Fail, "%v", err)
	}
}

// find returns the first text in the session's requests that contains all parts, or "" if no
// text does.
func (s session) find(parts ...string) string {
	for _, r := range s.requests {
		if found := r.Find(parts...); len(found) > 0 {
			return found[0]
		}
	}
	return ""
}

// resumed resumes session 2 after another agent has written and reserved the file.
func (e *examiner) resumed() {
	for _, args := range [][]string{
		{"agents", "register", "BlueLake", "--program", "other", "--model", "scripted"},
		{"mail", "send", "GreenCastle", "--as", "BlueLake", "--subject", "Glaze table moved", "--body", "I moved the glaze table to glaze.py.", "--ack"},
		{"reserve", "calc.py", "--as", "BlueLake", "--reason", reason},
	} {
		if r := e.run(args...); r.Code != 0 {
			e.line("another agent", Fail, "cairn %s: exit %d: %s", strings.Join(args, " "), r.Code, r.Output)
		}
	}
	s := e.session("Go on: round in total().", mode{continued: true},
		e.held(model.Tool("fetch_inbox", map[string]any{"project_key": e.repo, "agent_name": "GreenCastle", "include_bodies": true}))...)
	e.check(checkResumes, s.Code == 0 && s.find("Had a look at total().") != "", "exit %d, %d requests; %s", s.Code, len(s.requests), ending(s.Output))
	e.resumeTells(s)
	mail := ""
	if len(s.requests) > 0 {
		mail = strings.Join(s.requests[0].Find("Glaze table moved"), "\n")
	}
	e.check(checkMail, mail != "", "%s", mail)
	told := s.find(reason)
	e.check(checkWarn, told != "" && e.isRounded(), "edited: %v; model told: %s", e.isRounded(), around(told, reason))
	e.check("inbox over MCP", s.find("moved the glaze table to") != "", "exit %d", s.Code)
	e.undoEdit()
}

// around returns a part of a text with the text before and after it.
func around(text, part string) string {
	i := strings.Index(text, part)
	if i < 0 {
		return text
	}
	return text[max(0, i-200):min(len(text), i+len(part)+100)]
}

// resumeTells checks that a resumed session does not receive the whole context again.
func (e *examiner) resumeTells(s session) {
	again := toldBytes(s)
	inRequest := 0
	if len(s.requests) > 0 {
		inRequest = copies(s.requests[0])
	}
	e.check(checkResume, again <= e.told/2 && inRequest <= 2, "session 2 was told %d bytes, its resume %d; %d copies in the request", e.told, again, inRequest)
}

// toldBytes returns how many bytes of context the hooks of a session injected.
func toldBytes(s session) int {
	n := 0
	for _, h := range s.hooks {
		if strings.Contains(h.Stdout, contextHead) {
			n += len(h.Stdout)
		}
	}
	return n
}

// asked edits the held file when the program would ask the user for confirmation. No user is
// present, so the program must continue.
func (e *examiner) asked() {
	s := e.session("Round in total() now.", mode{asking: true}, e.held()...)
	told := s.find(reason)
	e.check("held file never hangs", !s.TimedOut && told != "" && strings.Contains(s.Output, "Rounded"),
		"ended after %v, exit %d, edited: %v; model told: %s", s.Took.Round(time.Millisecond), s.Code, e.isRounded(), around(told, reason))
	e.undoEdit()
}

// blocked edits the held file with guard.mode = block.
func (e *examiner) blocked() {
	config := filepath.Join(e.home, ".cairn", "config.toml")
	if err := writeFile(config, "[guard]\nmode = \"block\"\n"); err != nil {
		e.line(checkBlock, Fail, "%v", err)
		return
	}
	s := e.session("Round in total() now, please.", mode{}, e.held()...)
	told := s.find(reason)
	e.check(checkBlock, !e.isRounded() && told != "", "edited: %v; model told: %s", e.isRounded(), around(told, reason))
	e.undoEdit()
	if err := os.Remove(config); err != nil {
		e.line(checkBlock, Fail, "%v", err)
	}
	e.run("release", "calc.py", "--as", "BlueLake")
}

// parallel runs two concurrent sessions: one reserves the file, then the other edits it.
func (e *examiner) parallel() {
	const why = "parallel rounding"
	reserved := func() bool { return strings.Contains(e.run("reservations", "list").Output, "calc.py") }
	var edited sync.WaitGroup
	edited.Add(1)
	otherDone := sync.OnceFunc(edited.Done)
	hold := model.Say("RedStone is done.")
	hold.WaitFor = func() bool { edited.Wait(); return true }
	holder := []model.Step{
		model.Tool("macro_start_session", map[string]any{
			"human_key": e.repo, "program": e.program.Name, "model": "scripted", "agent_name": "RedStone",
			"file_reservation_paths": []string{"calc.py"}, "file_reservation_reason": why,
		}),
		hold,
	}
	other := e.held()
	other[0].WaitFor = reserved
	e.runs += 2
	numbers := [2]int{e.runs - 1, e.runs}
	var first, second session
	var both sync.WaitGroup
	both.Go(func() { first = e.startAs(numbers[0], "You are RedStone: reserve calc.py.", mode{}, holder) })
	both.Go(func() {
		defer otherDone()
		second = e.startAs(numbers[1], "Round total() beside RedStone.", mode{}, other)
	})
	both.Wait()
	e.sessions = append(e.sessions, first, second)
	told := second.find(why)
	e.check(checkParallel, told != "" && !first.TimedOut && !second.TimedOut, "exits %d and %d; the other was told: %s", first.Code, second.Code, around(told, why))
	e.undoEdit()
}

// compacted compacts a session and checks that the next request contains its context.
func (e *examiner) compacted() {
	how := e.program.Compact
	if how == nil {
		e.note(checkCompact, "the program cannot be compacted headless")
		return
	}
	var s session
	if how.Prompt != "" {
		e.session(how.Prompt, mode{continued: true}, model.Say("Summary: total() is to be rounded."))
		s = e.session("Go on after that.", mode{continued: true}, model.Say("Went on."))
	} else {
		full := model.Shell("true")
		full.Tokens = how.Tokens
		e.session("Fill the conversation.", mode{continued: true}, full, model.Say("It is full."), model.Say("It was full."))
		s = e.session("Go on after that.", mode{continued: true}, model.Say("Went on."), model.Say("Went on."))
	}
	var seen []string
	isCompacted := false
	for _, run := range e.sessions[len(e.sessions)-2:] {
		for _, r := range slices.Concat(run.requests, run.others) {
			isCompacted = isCompacted || how.Sign != "" && len(r.Find(how.Sign)) > 0
		}
		for _, h := range run.hooks {
			source, _ := h.fields["source"].(string)
			isCompacted = isCompacted || source == "compact" || h.event() == how.Sign
			if strings.Contains(h.Stdout, contextHead) {
				seen = append(seen, fmt.Sprintf("%s %s %d bytes", h.event(), source, len(h.Stdout)))
			}
		}
	}
	known := 0
	if len(s.requests) > 0 {
		known = copies(s.requests[len(s.requests)-1])
	}
	e.check(checkCompact, isCompacted && known >= 1, "compacted: %v; told: %s; %d copies in the next request", isCompacted, strings.Join(seen, ", "), known)
}

var complaint = regexp.MustCompile(`(?i)hook.*(error|fail|invalid|timed out)|mcp.*(error|fail)`)

// silence checks that no hook of any session failed, wrote an error or printed output that the
// program cannot parse.
func (e *examiner) silence() {
	var wrong, shown []string
	for _, s := range e.sessions {
		for _, h := range s.hooks {
			if h.Code != 0 || h.Stderr != "" {
				wrong = append(wrong, fmt.Sprintf("%s: exit %d %s", h.event(), h.Code, h.Stderr))
			}
			if out := strings.TrimSpace(h.Stdout); strings.HasPrefix(out, "{") && !json.Valid([]byte(out)) {
				wrong = append(wrong, fmt.Sprintf("%s: output is not valid JSON: %s", h.event(), out))
			}
		}
		for line := range strings.Lines(s.Output) {
			if complaint.MatchString(line) {
				shown = append(shown, strings.TrimSpace(line))
			}
		}
	}
	e.check("hooks are silent", len(wrong) == 0, "%s", strings.Join(wrong, " / "))
	e.check(checkShown, len(shown) == 0, "%s", strings.Join(shown, " / "))
}

// times reports the wall time of hooks.
func (e *examiner) times() {
	var times []time.Duration
	for _, s := range e.sessions {
		for _, h := range s.hooks {
			times = append(times, time.Duration(h.Duration))
		}
	}
	if len(times) == 0 {
		return
	}
	slices.Sort(times)
	at := func(share float64) time.Duration {
		return times[int(share*float64(len(times)-1))].Round(100 * time.Microsecond)
	}
	e.note("hook wall time", "%d hooks: median %v, p95 %v, longest %v", len(times), at(0.5), at(0.95), at(1))
}
