package wiring

import (
	"fmt"
	"slices"

	"cairn/internal/harness/harnesses"
)

// State is the state of an expected entry.
type State string

// The states of an entry.
const (
	Present  State = "present"
	Missing  State = "missing"
	Outdated State = "outdated" // exists, but differs from the text that init would write now
)

// Report is the result of Inspect for one harness.
type Report struct {
	Harness string       `json:"harness"` // as in Harnesses
	Folder  string       `json:"folder"`
	Found   bool         `json:"found"` // the folder exists
	Wired   bool         `json:"wired"` // at least one of cairn's entries or the plugin exists
	Plugin  bool         `json:"plugin"`
	Assist  bool         `json:"assist"` // entries provide help during the turn; see Options.NoAssist
	Files   []FileReport `json:"files"`
	Entries []Entry      `json:"entries"` // expected ones, in the order of writing; empty with the plugin

	// Untrusted are the events of cairn's hooks that the host does not run, because the user has
	// not trusted their current form. It is nil if the host requires no trust.
	Untrusted []string `json:"untrusted,omitempty"`

	// Double contains one sentence for each reason why events arrive twice. For Cursor it is only
	// a possibility, because a separate setting decides whether it runs Claude Code's hooks.
	Double  []string `json:"double"`
	Perhaps bool     `json:"-"` // Double is only a possibility

	// Binaries are the programs that cairn's entries call.
	Binaries []Binary `json:"binaries"`
}

// FileReport is the state of one settings file.
type FileReport struct {
	Path   string `json:"path"`
	Exists bool   `json:"exists"`
	Error  string `json:"error,omitempty"` // why it cannot be read or parsed
}

// Entry is one entry that init writes: a hook or the MCP server.
type Entry struct {
	File      string `json:"file"`
	Name      string `json:"name"` // hooks.EVENT, mcpServers.cairn, or statusLine if it is cairn's
	State     State  `json:"state"`
	Why       string `json:"why,omitempty"` // what is outdated
	WrongUnit bool   `json:"wrong_unit"`    // its timeout has the unit of another host
}

// Binary is a program that cairn's entries call.
type Binary struct {
	Path   string `json:"path"`
	Exists bool   `json:"exists"`
	Hook   bool   `json:"hook"` // only hooks call it
}

// Inspect reports on every harness, in the order of Harnesses, and changes nothing. Files that
// cannot be read are reported and are never an error. The existing entries show whether the user
// wanted help during the turn (--assist). Both forms count as present (observations §15).
func Inspect(p Paths) []Report {
	var out []Report
	hooked := map[string]bool{}
	for _, name := range Harnesses() {
		r, hooks := p.inspect(name)
		hooked[name] = hooks
		out = append(out, r)
	}
	for i := range out {
		r := &out[i]
		switch h, _ := harnesses.Of(r.Harness); {
		case r.Plugin && len(r.Binaries) > 0:
			r.Double = append(r.Double, fmt.Sprintf("the plugin and the settings both have entries, and %s runs both sets; `cairn init --%s` takes those in the settings out", h.Title, h.Name))
		case h.Runs != "" && hooked[h.Name] && hooked[h.Runs]:
			r.Double = append(r.Double, fmt.Sprintf("%s can also run %s's hooks; with that setting on, what happens in %[1]s arrives twice", h.Title, Title(h.Runs)))
			r.Perhaps = true
		}
	}
	return out
}

// inspect reports on one harness. hooked is true if it has hooks of cairn.
func (p Paths) inspect(name string) (r Report, hooked bool) {
	r = Report{
		Harness: name, Folder: p.Folder(name), Found: p.Found(name),
		Files: []FileReport{}, Entries: []Entry{}, Double: []string{}, Binaries: []Binary{},
	}
	h, _ := harnesses.Of(name)
	r.Plugin = p.pluginPresent(h)
	var calls []call
	var read []contents
	for _, s := range p.settingsOf(name, allParts()) {
		c := s.read()
		read = append(read, c)
		f := FileReport{Path: c.path, Exists: c.exists}
		if c.err != nil {
			f.Error = c.err.Error()
		}
		r.Files = append(r.Files, f)
		calls = append(calls, c.calls()...)
	}
	if h.Hooks.Form.Trusted {
		r.Untrusted = untrusted(read[0], read[1])
	}
	for _, c := range calls {
		r.Assist = r.Assist || slices.Contains(c.args, "--assist")
		records := c.args[0] == "record"
		hooked = hooked || records
		i := slices.IndexFunc(r.Binaries, func(b Binary) bool { return b.Path == c.program })
		if i < 0 {
			i, r.Binaries = len(r.Binaries), append(r.Binaries, Binary{c.program, p.programExists(c.program), true})
		}
		r.Binaries[i].Hook = r.Binaries[i].Hook && records
	}
	if !slices.ContainsFunc(calls, func(c call) bool { return c.program == p.Hook }) {
		p.Hook = "" // hooks that call cairn itself are valid too
	}
	for _, s := range p.settingsOf(name, parts{assist: r.Assist || len(calls) == 0, status: true}) {
		r.Entries = append(r.Entries, s.read().report()...)
	}
	r.Wired = r.Plugin || len(calls) > 0
	return r, hooked || r.Plugin
}
