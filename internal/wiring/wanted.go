package wiring

import (
	"slices"

	"cairn/internal/harness"
)

// hook is one entry as init writes it.
type hook struct {
	event   string
	matcher string // "" for none: every occurrence
	timeout int    // in the host's unit, 0 for none
	args    []string
	since   version // the host's first that knows the event; the zero version for all
}

// hookSet is the wanted content below "hooks" of a file.
type hookSet struct {
	want    []hook
	form    harness.HookForm
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

// server is the MCP server in its wanted form in a file.
type server struct {
	want    bool // else there is to be none of ours
	form    harness.Server
	program string
	args    []string
}

// settings is one settings file of a harness and the wanted content in it.
type settings struct {
	harness string
	path    string
	format  harness.Format
	hooks   *hookSet    // nil if hooks do not stand in this file
	server  *server     // nil if MCP servers do not stand in this file
	status  *statusLine // nil if the status line does not stand in this file
	text    string      // of a block or a script, "" if there is to be none of ours
}

// Events lists the events that hooks of a harness are written for, those of
// help during the turn included.
func Events(name string) []string {
	var out []string
	h, _ := harness.Of(name)
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

// serveArgs returns the arguments of the MCP server in a harness: all tools where they are
// loaded on demand, else the few through which the others are reached (amendments §B.3).
func serveArgs(h harness.Harness) []string {
	if h.Defers {
		return []string{"serve"}
	}
	return []string{"serve", "--profile", "lean"}
}

// parts are what the user may leave out of a harness's settings.
type parts struct {
	assist bool // help during the turn (observations §9.2)
	status bool // the status line
}

// allParts leaves nothing out.
func allParts() parts { return parts{assist: true, status: true} }

// settingsOf returns the files of a harness with the wanted content in them. With the
// plugin in the harness that is nothing: it has hooks and server of its own, and
// hosts run both sets.
func (p Paths) settingsOf(name string, with parts) (out []settings) {
	h, _ := harness.Of(name)
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

// knownTo returns the hooks for events that a version of a host knows. One that
// it does not know would make it skip the whole file.
func knownTo(v version, hooks []hook) []hook {
	return slices.DeleteFunc(hooks, func(h hook) bool { return less(v, h.since) })
}

// shellOf returns the shell that a harness gives command lines to.
func (p Paths) shellOf(h harness.Harness) shell {
	if !p.Windows {
		return posix
	}
	return map[harness.Shell]shell{harness.GitBash: gitBash, harness.Cmd: cmd, harness.PowerShell: powershell}[h.Hooks.Form.Windows]
}
