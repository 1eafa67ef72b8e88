package wiring

import (
	"slices"

	"cairn/internal/harness"
	"cairn/internal/harness/harnesses"
)

// hook is one entry in the form that init writes.
type hook struct {
	event   string
	matcher string // "" for every occurrence
	timeout int    // in the host's unit, 0 for no timeout
	args    []string
	since   version // the first version of the host with this event; the zero version for all
}

// hookSet is the wanted content of "hooks" in a file.
type hookSet struct {
	want    []hook
	form    harness.HookForm
	shell   shell
	exec    form
	program string
	windows bool
}

// form is the form of entries: whether the arguments are separate from the program.
type form int

const (
	oneLine form = iota
	apart
	either // the host's version is unknown: one line is written, both forms are accepted
)

// server is the wanted MCP server of a file.
type server struct {
	want    bool // false: cairn's server is removed
	form    harness.Server
	program string
	args    []string
}

// settings is one settings file of a harness and the wanted content in it.
type settings struct {
	harness string
	path    string
	format  harness.Format
	hooks   *hookSet    // nil if this file contains no hooks
	server  *server     // nil if this file contains no MCP servers
	status  *statusLine // nil if this file contains no status line
	text    string      // of a block or a script, "" to remove it
}

// Events lists the events of a harness that have hooks, including those for help during the
// turn.
func Events(name string) []string {
	var out []string
	h, _ := harnesses.Of(name)
	for _, w := range wantedHooks(h, true) {
		out = append(out, w.event)
	}
	return out
}

// wantedHooks returns the hooks of a harness, with or without help during the turn
// (observations §4.3, §9.2, §15).
func wantedHooks(h harness.Harness, assist bool) (out []hook) {
	for _, w := range h.Hooks.Wanted {
		one := hook{event: w.Event, matcher: w.Matcher, timeout: w.Timeout, since: w.Since, args: []string{"record", "--from", h.Name}}
		if w.Helps && assist {
			one.args = append(one.args, "--assist")
		}
		if !assist && w.Bare != "" {
			one.matcher = w.Bare
		}
		out = append(out, one)
	}
	return out
}

// serveArgs returns the arguments of the MCP server in a harness. They select all tools where
// tools are loaded on demand. Elsewhere they select the few tools that give access to the others
// (amendments §B.3).
func serveArgs(h harness.Harness) []string {
	if h.Defers {
		return []string{"serve"}
	}
	return []string{"serve", "--profile", "lean"}
}

// parts are the optional parts of a harness's settings.
type parts struct {
	assist bool // help during the turn (observations §9.2)
	status bool // the status line
}

// allParts selects all parts.
func allParts() parts { return parts{assist: true, status: true} }

// settingsOf returns the files of a harness with the wanted content. The content is empty if the
// harness has the plugin. The plugin has its own hooks and server, and hosts run both sets.
func (p Paths) settingsOf(name string, with parts) (out []settings) {
	h, _ := harnesses.Of(name)
	hooks := hookSet{want: wantedHooks(h, with.assist), form: h.Hooks.Form, program: p.hook(), windows: p.Windows, shell: p.shellOf(h)}
	plugin := p.pluginPresent(h)
	if h.Command != "" {
		v, known := p.versionOf(h)
		hooks.exec = formFor(v, known, h.Hooks.Form.Apart)
		if known {
			hooks.want = knownTo(v, hooks.want)
		}
	}
	if plugin {
		hooks.want = nil
	}
	for _, f := range h.Files(p.homes()) {
		s := settings{harness: name, path: f.Path, format: f.Format}
		if f.Hooks {
			s.hooks = &hooks
		}
		if f.Server.Under != "" {
			s.server = &server{want: !plugin, form: f.Server, program: p.Program, args: serveArgs(h)}
		}
		if f.Status {
			s.status = &statusLine{want: with.status && !plugin, program: p.Program, shell: p.shellOf(h), windows: p.Windows}
		}
		if f.Text != "" {
			s.text = p.fill(f, with.assist && h.Helped)
		}
		out = append(out, s)
	}
	return out
}

// knownTo returns the hooks for events that a version of a host knows. An unknown event would
// make the host skip the whole file.
func knownTo(v version, hooks []hook) []hook {
	return slices.DeleteFunc(hooks, func(h hook) bool { return less(v, h.since) })
}

// shellOf returns the shell to which a harness passes command lines.
func (p Paths) shellOf(h harness.Harness) shell {
	if !p.Windows {
		return posix
	}
	return map[harness.Shell]shell{harness.GitBash: gitBash, harness.Cmd: cmd, harness.PowerShell: powershell}[h.Hooks.Form.Windows]
}
