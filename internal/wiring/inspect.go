package wiring

import "slices"

// State says how an entry that should be there is.
type State string

// The states of an entry.
const (
	Present  State = "present"
	Missing  State = "missing"
	Outdated State = "outdated" // there, but not as init would write it now
)

// Report is what Inspect found of one harness.
type Report struct {
	Harness string       `json:"harness"` // as in Harnesses
	Folder  string       `json:"folder"`
	Found   bool         `json:"found"` // the folder is there
	Wired   bool         `json:"wired"` // at least one entry of ours is there, or the plugin is
	Plugin  bool         `json:"plugin"`
	Assist  bool         `json:"assist"` // entries ask for help during the turn; see Options.NoAssist
	Files   []FileReport `json:"files"`
	Entries []Entry      `json:"entries"` // expected ones, in the order of writing; none with the plugin

	// Untrusted are the events of our hooks that the host does not run, since its user has
	// not trusted them as they stand; nil if it asks for no trust.
	Untrusted []string `json:"untrusted,omitempty"`

	// Double are sentences, each on a way in which events arrive twice. Cursor's is
	// a possibility: whether it runs Claude Code's hooks is a setting of its own.
	Double []string `json:"double"`

	// Binaries are the programs that our entries call.
	Binaries []Binary `json:"binaries"`
}

// FileReport is one settings file.
type FileReport struct {
	Path   string `json:"path"`
	Exists bool   `json:"exists"`
	Error  string `json:"error,omitempty"` // why it cannot be read or parsed
}

// Entry is one entry that init writes: a hook or the MCP server.
type Entry struct {
	File      string `json:"file"`
	Name      string `json:"name"` // hooks.EVENT or mcpServers.cairn
	State     State  `json:"state"`
	Why       string `json:"why,omitempty"` // what is outdated
	WrongUnit bool   `json:"wrong_unit"`    // its timeout was written for a host that counts in another unit
}

// Binary is a program that entries of ours call.
type Binary struct {
	Path   string `json:"path"`
	Exists bool   `json:"exists"`
}

// Inspect reports on every harness, in the order of Harnesses, and changes
// nothing. Files that cannot be read are reported, never an error. Whether the
// user wanted help during the turn (--assist) is taken from what is there: both
// ways count as present (observations §15).
func Inspect(p Place) []Report {
	var out []Report
	hooked := map[string]bool{}
	for _, harness := range Harnesses() {
		r, hooks := p.inspect(harness)
		hooked[harness] = hooks
		out = append(out, r)
	}
	for i := range out {
		switch r := &out[i]; {
		case r.Harness == Claude && r.Plugin && len(r.Binaries) > 0:
			r.Double = append(r.Double, "the plugin and the settings both have entries, and Claude Code runs both sets; `cairn init --claude` takes those in the settings out")
		case r.Harness == Cursor && hooked[Cursor] && hooked[Claude]:
			r.Double = append(r.Double, "Cursor can also run Claude Code's hooks; with that setting on, what happens in Cursor arrives twice")
		}
	}
	return out
}

// inspect reports on one harness and tells whether hooks of ours are there.
func (p Place) inspect(harness string) (r Report, hooked bool) {
	r = Report{
		Harness: harness, Folder: p.Folder(harness), Found: p.Found(harness),
		Files: []FileReport{}, Entries: []Entry{}, Double: []string{}, Binaries: []Binary{},
	}
	r.Plugin = harness == Claude && p.pluginPresent()
	var calls []call
	var read []contents
	for _, s := range p.settingsOf(harness, true) {
		c := s.read()
		read = append(read, c)
		f := FileReport{Path: c.path, Exists: c.exists}
		if c.err != nil {
			f.Error = c.err.Error()
		}
		r.Files = append(r.Files, f)
		calls = append(calls, c.calls()...)
	}
	if harness == Codex {
		r.Untrusted = untrusted(read[0], read[1])
	}
	seen := map[string]bool{}
	for _, c := range calls {
		r.Assist = r.Assist || slices.Contains(c.args, "--assist")
		hooked = hooked || c.args[0] == "record"
		if !seen[c.program] {
			seen[c.program] = true
			r.Binaries = append(r.Binaries, Binary{c.program, p.programExists(c.program)})
		}
	}
	for _, s := range p.settingsOf(harness, r.Assist || len(calls) == 0) {
		r.Entries = append(r.Entries, s.read().report()...)
	}
	r.Wired = r.Plugin || len(calls) > 0
	return r, hooked || r.Plugin
}
