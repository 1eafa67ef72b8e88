package wiring

import (
	"path/filepath"
	"slices"
)

// hook is one entry as init writes it.
type hook struct {
	event   string
	matcher string // "" for none: every occurrence
	timeout int    // in the host's unit, 0 for none
	args    []string
	since   version // the host's first that knows the event; the zero version for all
}

// hookSet is what is wanted below "hooks" of a file.
type hookSet struct {
	want    []hook
	flat    bool // entries stand in the event's list, without groups (Cursor)
	version bool // the file needs "version": 1 (Cursor)
	name    bool // entries have a name (Gemini CLI)
	millis  bool // timeouts are milliseconds
	shell   shell
	exec    form
	program string
	windows bool
}

// form says whether entries have their arguments apart from the program.
type form int

const (
	oneLine form = iota
	apart
	either // the host's version is not known: one line is written, both are kept
)

// server is the MCP server as it is wanted in a file.
type server struct {
	want    bool // else there is to be none of ours
	typed   bool // with "type": "stdio"
	program string
}

// settings is one settings file of a harness and what is wanted in it.
type settings struct {
	harness string
	path    string
	hooks   *hookSet // nil if hooks do not stand in this file
	server  *server  // nil if MCP servers do not stand in this file
	toml    bool
}

// Events lists the events that hooks of a harness are written for, those of
// help during the turn included.
func Events(harness string) []string {
	var out []string
	for _, h := range wantedHooks(harness, true) {
		out = append(out, h.event)
	}
	return out
}

// wantedHooks are the hooks of a harness, with or without help during the turn
// (observations §4.3, §9.2, §15).
func wantedHooks(harness string, assist bool) []hook {
	with := []string{"--assist"}
	var hooks []hook
	switch harness {
	case Claude:
		hooks = []hook{
			{event: "SessionStart", timeout: 10},
			{event: "UserPromptSubmit", timeout: 10, args: with},
			{event: "PreToolUse", matcher: "*", timeout: 10, args: with},
			{event: "PostToolUse", matcher: "*", timeout: 10},
			{event: "PostToolUseFailure", matcher: "*", timeout: 10, since: version{2, 1, 0}},
			{event: "Stop", timeout: 10},
			{event: "SubagentStop", timeout: 10},
			{event: "PostCompact", timeout: 10, since: version{2, 1, 76}},
			{event: "SessionEnd", timeout: 1}, // its host allows 1.5 s for all
		}
	case Codex: // which has no event for failures and allows SessionEnd 3 s
		hooks = []hook{
			{event: "SessionStart", timeout: 10},
			{event: "UserPromptSubmit", timeout: 10, args: with},
			{event: "PreToolUse", timeout: 10, args: with},
			{event: "PostToolUse", timeout: 10},
			{event: "Stop", timeout: 10},
			{event: "SubagentStop", timeout: 10},
			{event: "PostCompact", timeout: 10},
			{event: "SessionEnd", timeout: 3},
		}
	case Gemini:
		for _, event := range []string{"SessionStart", "BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent", "SessionEnd"} {
			h := hook{event: event, timeout: 10_000}
			if event == "BeforeTool" {
				h.matcher = "write_file|replace" // for the guard
			}
			hooks = append(hooks, h)
		}
	case Cursor: // postToolUse would tell again what the after… events tell
		for _, event := range []string{
			"sessionStart", "beforeSubmitPrompt", "preToolUse", "afterShellExecution", "afterFileEdit", "afterMCPExecution",
			"afterAgentResponse", "stop", "sessionEnd",
		} {
			h := hook{event: event}
			if event == "preToolUse" {
				h.matcher = "Write|Edit|StrReplace|MultiEdit|EditNotebook|Delete|ApplyPatch" // for the guard
			}
			hooks = append(hooks, h)
		}
	}
	out := hooks[:0]
	for _, h := range hooks {
		if !assist && h.event == "PreToolUse" && harness == Claude {
			h.matcher = "Edit|Write|MultiEdit|NotebookEdit" // the guard needs no others (mail §8)
		}
		extra := h.args
		if !assist {
			extra = nil
		}
		h.args = append([]string{"record", "--from", harness}, extra...)
		out = append(out, h)
	}
	return out
}

// settingsOf are the files of a harness with what is wanted in them. With the
// plugin in Claude Code that is nothing: it has hooks and server of its own, and
// hosts run both sets.
func (p Place) settingsOf(harness string, assist bool) []settings {
	in := func(name string) string { return filepath.Join(p.Folder(harness), name) }
	hooks := &hookSet{want: wantedHooks(harness, assist), program: p.Program, windows: p.Windows, shell: p.shellOf(harness)}
	mcp := &server{want: true, program: p.Program}
	switch harness {
	case Claude:
		mcp.typed = true
		v, known := p.claudeVersion()
		hooks.exec = formFor(v, known)
		if known {
			hooks.want = knownTo(v, hooks.want)
		}
		if p.pluginPresent() {
			hooks.want, mcp.want = nil, false
		}
		return []settings{
			{harness: harness, path: in("settings.json"), hooks: hooks},
			{harness: harness, path: p.claudeState(), server: mcp},
		}
	case Codex:
		return []settings{
			{harness: harness, path: in("hooks.json"), hooks: hooks},
			{harness: harness, path: in("config.toml"), server: mcp, toml: true},
		}
	case Gemini:
		hooks.name, hooks.millis = true, true
		return []settings{{harness: harness, path: in("settings.json"), hooks: hooks, server: mcp}}
	default:
		hooks.flat, hooks.version = true, true
		return []settings{
			{harness: harness, path: in("hooks.json"), hooks: hooks},
			{harness: harness, path: in("mcp.json"), server: mcp},
		}
	}
}

// knownTo are the hooks for events that a version of Claude Code knows. One that
// it does not know would make it skip the whole file.
func knownTo(v version, hooks []hook) []hook {
	return slices.DeleteFunc(hooks, func(h hook) bool { return less(v, h.since) })
}

// shellOf is the shell that a harness gives command lines to.
func (p Place) shellOf(harness string) shell {
	switch {
	case !p.Windows:
		return posix
	case harness == Claude:
		return gitBash
	case harness == Cursor:
		return cmd
	}
	return powershell
}
