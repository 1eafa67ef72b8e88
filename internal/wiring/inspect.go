package wiring

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
	Files   []FileReport `json:"files"`
	Entries []Entry      `json:"entries"` // expected ones, in the order of writing; none with the plugin
	Double  []string     `json:"double"`  // sentences, each on a way in which events arrive twice

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
	for _, harness := range Harnesses() {
		out = append(out, Report{
			Harness: harness, Folder: p.Folder(harness), Found: p.Found(harness),
			Files: []FileReport{}, Entries: []Entry{}, Double: []string{}, Binaries: []Binary{},
		})
	}
	return out
}
