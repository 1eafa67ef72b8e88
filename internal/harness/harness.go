package harness

import (
	"context"
	"io"
	"path/filepath"

	"cairn/internal/harness/lazyjson"
	"cairn/internal/observation"
)

// Harness describes one agent program. Package harnesses lists all values. Other packages use
// the fields of a Harness and never compare names, which a test checks.
type Harness struct {
	Name    string   // the value of --from, the name in stored sessions, and init's flag
	Title   string   // the human-readable name
	Aliases []string // other values that --from accepts
	Program string   // the program name with which its agents register for mail

	// Inputs of the harness.

	Hears        []string // sources of events on which a text reaches the model
	Asks         bool     // the decision Ask makes it ask the user; if false, it is warned instead
	WarnsLate    bool     // warnings about a call are given only after the call
	Helped       bool     // it accepts help with prompts and before calls (observations §9.2)
	NeedsAnswer  bool     // it treats empty output before a call as a refusal
	ShowsTwo     []string // sources of events on which exit code 2 shows the error to the user and blocks nothing
	RefusesByTwo bool     // exit code 2 before a call refuses it, and nothing else does
	LateStart    bool     // it gets a session's context with the first prompt, see harnesses.StartsLate
	Notice       string   // information for a user who has connected it, "" for none
	Defers       bool     // it loads MCP tools on demand: the profile full costs nothing until then, else lean

	// Files and properties of the harness.

	Folder      func(Homes) string   // of its user-level settings; if it exists, the harness is installed
	Transcripts func(Homes) []string // folders or files that contain its sessions; nil if unreadable
	KeptDays    int                  // days after which it deletes transcripts, 0 if it keeps them
	KeptSetting string               // member of its first settings file that changes KeptDays
	Runs        string               // another harness whose hooks it can also run, if a setting allows it
	Command     string               // its program on the PATH, if its version matters, with Package and Noted
	Package     string               // its npm package
	Noted       string               // member of its last settings file that contains the last used version
	Plugin      bool                 // cairn can be installed as a plugin with its own hooks and server
	Unnamed     bool                 // its hooks and transcripts share no ids, see observation.Match
	Hooks       Hooks
	Files       func(Homes) []File // its settings files

	// Payloads and answers of its hooks.

	Event func(body lazyjson.Value, home string) (observation.Event, error) // reads a payload, as harnesses.Hook describes
	Sends func(body lazyjson.Value) bool                                    // reports whether only this harness sends such payloads; nil for never
	// Answer returns the output of a hook, as harnesses.HookOutput describes.
	Answer func(e observation.Event, text string, v GuardDecision) (string, error)

	// Its transcripts. The functions are nil if it has none, or none of this kind.

	IsTranscript   func(name string) bool         // reports whether a file with this name may be one of its transcripts
	Writes         func(line lazyjson.Value) bool // reports whether its transcripts contain such lines
	WritesDocument func(head []byte) bool         // reports whether it writes documents with this beginning
	Log            string                         // suffix of a file next to a transcript that contains its newest part
	Read           TranscriptReader
	// Settled reads the calls with a final outcome from a session's transcript, as harnesses.Settled
	// describes. It returns no events for other files.
	Settled func(ctx context.Context, path, session string, latest bool) ([]observation.Event, error)
}

// TranscriptReader reads the transcripts of one harness, see harnesses.ReadTranscript.
type TranscriptReader func(ctx context.Context, r io.Reader, o TranscriptOptions, yield func(observation.Event) error) (TranscriptReport, error)

// Homes contains the directories of the harnesses' files.
type Homes struct {
	User   string              // the user's home directory
	Getenv func(string) string // the environment, which may contain other folders; nil for an empty environment
}

// In returns the folder in an environment variable, else the usual folder below the home
// directory.
func (h Homes) In(variable string, usual ...string) string {
	if h.Getenv != nil && variable != "" {
		if dir := h.Getenv(variable); dir != "" {
			return filepath.Clean(dir)
		}
	}
	return filepath.Join(append([]string{h.User}, usual...)...)
}

// Hooks describes the format of a harness's hook entries and the entries that init writes.
type Hooks struct {
	Wanted []HookEntry
	Form   HookForm
}

// HookEntry is one hook entry as init writes it.
type HookEntry struct {
	Event   string // the harness's name of the event
	Matcher string // "" matches every occurrence
	Bare    string // the matcher without help during the turn, "" for the same
	Timeout int    // in the host's unit, 0 for none
	Helps   bool   // it also requests help during the turn
	Since   [3]int // the host's first version with this event; zero for all versions
}

// HookForm describes the format of hook entries.
type HookForm struct {
	Flat     bool   // entries are in the event's list, without groups
	Version  bool   // the file needs "version": 1
	Named    bool   // entries have a name
	Typed    bool   // entries have "type": "command"
	Millis   bool   // timeouts are milliseconds
	Timeout  string // the member with the timeout, "" for "timeout"
	Quiet    bool   // entries have "show_output": false
	Windows  Shell  // the shell that runs entries on Windows
	Apart    [3]int // the host's first version that accepts the arguments as a separate list; zero for none
	Trusted  bool   // new hooks run only after the user has trusted them
	Switches []Switch
}

// Switch is a setting with which a user turns all hooks off.
type Switch struct {
	Path []string // the path of the member in the harness's files
	Off  bool     // the value that turns hooks off
}

// Shell is the program that runs a host's hook commands on Windows.
type Shell int

// The shells.
const (
	PowerShell Shell = iota
	GitBash
	Cmd
)

// Format is the format of a settings file.
type Format int

const (
	JSON   Format = iota // with or without comments
	TOML                 // Codex's file, which contains only the server
	Block                // a text for the model with a marked block for cairn
	Script               // a file that belongs to cairn as a whole
)

// File is one settings file of a harness with its content.
type File struct {
	Path   string
	Format Format
	Hooks  bool   // hook entries
	Status bool   // "statusLine": a command that prints the line below the prompt
	Server Server // the MCP server; zero if the file does not contain MCP servers
	Text   string // the text of a Block or a Script, with placeholders: {{head}}, {{program}}, {{quoted}}, {{assist}}
}

// Server is the format of an MCP server's entry.
type Server struct {
	Under   string // the member that contains the servers, "" if there are none
	Type    string // the value of the member "type", "" for none
	OneList bool   // "command" is a list of the program and its arguments
	Tools   bool   // "tools": ["*"] lists the tools that may be used
}

// Everywhere lists the sources of events on which a text can reach a model.
func Everywhere() []string { return []string{OnSessionStart, OnPrompt, OnBeforeTool, OnToolUse} }
