package harness

import (
	"context"
	"io"
	"path/filepath"
	"slices"
	"sync"

	"cairn/internal/observation"
)

// Harness is one agent program: everything that cairn knows of it. All of them are
// in Harnesses. The rest of the product asks a Harness what it does and never
// compares names, which a test checks.
type Harness struct {
	Name    string   // as --from takes it and stored sessions name it; also init's flag
	Title   string   // for people
	Aliases []string // other names that --from takes
	Program string   // what its agents register as for mail

	// What reaches it, and how.

	Hears        []string // sources of events upon which a text reaches the model
	Asks         bool     // a verdict Ask makes it ask the person; where false it is warned instead
	WarnsLate    bool     // a warning about a call is given after the call, as the only place
	Helped       bool     // it takes help with prompts and before calls (observations §9.2)
	NeedsAnswer  bool     // it takes silence before a call for a refusal
	ShowsTwo     []string // sources of events upon which exit code 2 shows the error to the user and vetoes nothing
	RefusesByTwo bool     // exit code 2 before a call refuses it, and nothing else does
	LateStart    bool     // the context of a session comes with its first prompt: it may begin one without telling, or forget what it was told
	Notice       string   // what a user should know who has wired it, "" for nothing
	Defers       bool     // it loads MCP tools on demand: the profile full costs nothing until then, else lean

	// What it keeps.

	Folder      func(Homes) string   // of its user-level settings; where it exists the harness is found
	Transcripts func(Homes) []string // folders below which, or files in which, sessions are kept; none if nobody can read them
	KeptDays    int                  // after which it deletes transcripts, 0 if it keeps them
	KeptSetting string               // member of its first settings file that changes KeptDays
	Runs        string               // another harness whose hooks it can run as well, by a setting of its own
	Command     string               // its program on the PATH, where its version matters, with Package and Noted
	Package     string               // npm's
	Noted       string               // member of its last settings file that names the version used last
	Plugin      bool                 // it may have cairn as a plugin, with hooks and server of its own
	Unnamed     bool                 // its hooks know no ids that its transcripts know, see observation.Match
	Hooks       Hooks
	Files       func(Homes) []File // its settings files

	answer     func(e observation.Event, text string, v GuardDecision) (string, error)
	event      func(body []byte, home string) (observation.Event, error)
	sends      func(body []byte) bool // whether only it sends such payloads
	transcript func(name string) bool // whether a file of this name may be one of its transcripts
	writes     func(line []byte) bool // whether it writes such lines into transcripts
	document   func(head []byte) bool // whether it writes files that begin so and are no lines; nil if it writes lines only
	read       transcriptReader
}

// transcriptReader reads the transcripts of one harness, see ReadTranscript.
type transcriptReader func(ctx context.Context, r io.Reader, o TranscriptOptions, yield func(observation.Event) error) (TranscriptReport, error)

// Homes are the directories that the harnesses' files lie in.
type Homes struct {
	User   string              // the user's home directory
	Getenv func(string) string // the environment, which may name other folders; nil for an empty one
}

// in is the folder that an environment variable names, else the usual one below the
// home directory.
func (h Homes) in(variable string, usual ...string) string {
	if h.Getenv != nil && variable != "" {
		if dir := h.Getenv(variable); dir != "" {
			return filepath.Clean(dir)
		}
	}
	return filepath.Join(append([]string{h.User}, usual...)...)
}

// Hooks is the form of a harness's hook entries and which of them init writes.
type Hooks struct {
	Wanted []HookEntry
	Form   HookForm
}

// HookEntry is one entry as init writes it.
type HookEntry struct {
	Event   string // as the harness calls it
	Matcher string // "" for none: every occurrence
	Bare    string // the matcher without help during the turn, "" for the same
	Timeout int    // in the host's unit, 0 for none
	Helps   bool   // it also asks for help during the turn
	Since   [3]int // the host's first version that knows the event; zero for all
}

// HookForm says how hook entries are written.
type HookForm struct {
	Flat     bool   // entries stand in the event's list, without groups
	Version  bool   // the file needs "version": 1
	Named    bool   // entries have a name
	Typed    bool   // entries have "type": "command"
	Millis   bool   // timeouts are milliseconds
	Timeout  string // the member that holds the timeout, "" for "timeout"
	Quiet    bool   // entries have "show_output": false
	Windows  Shell  // that runs entries on Windows
	Apart    [3]int // the host's first version that takes the arguments in a list of their own; zero for none
	Trusted  bool   // new hooks run only after the user trusted them
	Switches []Switch
}

// Switch is a setting by which a user turns all hooks off.
type Switch struct {
	Path []string // of the member in the harness's files
	Off  bool     // the value that turns hooks off
}

// Shell is the program that a host gives a hook's command line to on Windows.
type Shell int

// The shells.
const (
	PowerShell Shell = iota
	GitBash
	Cmd
)

// Format is the kind of a settings file.
type Format int

// The formats.
const (
	JSON   Format = iota // with or without comments
	TOML                 // Codex's: only the server stands there
	Block                // a text for the model, in which a marked block is cairn's
	Script               // a file that is cairn's as a whole
)

// File is one settings file of a harness and what stands in it.
type File struct {
	Path   string
	Format Format
	Hooks  bool   // hook entries
	Status bool   // "statusLine": a command that prints the line below the prompt
	Server Server // the MCP server; the zero value if MCP servers do not stand here
	Text   string // of a Block or a Script, with placeholders: {{head}}, {{program}}, {{quoted}}, {{assist}}
}

// Server is the form of the MCP server's entry.
type Server struct {
	Under   string // the member that holds the servers, "" if there are none
	Type    string // its member "type", "" for none
	OneList bool   // "command" is a list of the program and its arguments
	Tools   bool   // "tools": ["*"] names the tools that may be used
}

// The harnesses, as --from and stored sessions name them.
const (
	claude = "claude"
	codex  = "codex"
	gemini = "gemini"
	cursor = "cursor"

	openCode = "opencode"
	copilot  = "copilot"
	qwen     = "qwen"
	windsurf = "windsurf"
	cline    = "cline"
)

// Harnesses returns the agent programs that cairn supports, in the order in which they are
// listed. If a payload or a transcript could be from several of them, the first one wins.
// The table is created once and shared: callers must not change it.
func Harnesses() []Harness { return harnesses() }

var harnesses = sync.OnceValue(func() []Harness {
	atPrompts := []string{onSessionStart, onPrompt, onToolUse}
	always := []string{onSessionStart, onPrompt, onBeforeTool, onToolUse}
	return []Harness{
		{
			Name: claude, Title: "Claude Code", Aliases: []string{"claude-code"}, Program: "claude-code",
			Hears: always, Asks: true, Helped: true, Defers: true,
			ShowsTwo:    []string{onToolUse, onToolFailure, onSessionStart, onSessionEnd, "Notification"},
			Folder:      claudeDir,
			Transcripts: func(h Homes) []string { return []string{filepath.Join(claudeDir(h), "projects")} },
			KeptDays:    30, KeptSetting: "cleanupPeriodDays", Plugin: true,
			Command: "claude", Package: "@anthropic-ai/claude-code", Noted: "lastReleaseNotesSeen",
			Hooks: claudeHooks(), Files: claudeSettings,
			answer: answerInEvent, event: func(body []byte, _ string) (observation.Event, error) { return claudeEvent(body) },
			transcript: isLines, writes: isClaudeLine, read: readClaude,
		},
		{
			Name: codex, Title: "Codex", Aliases: []string{"codex-cli"}, Program: "codex-cli",
			Hears: always, Helped: true,
			Folder:      codexDir,
			Transcripts: func(h Homes) []string { return []string{filepath.Join(codexDir(h), "sessions")} },
			Hooks:       codexHooks(), Files: codexSettings,
			answer: answerInEvent, event: func(body []byte, _ string) (observation.Event, error) { return codexEvent(body) },
			sends:      func(body []byte) bool { return get(body, "turn_id") != nil },
			transcript: isLines, writes: isCodexLine, read: readCodex,
		},
		{
			Name: gemini, Title: "Gemini CLI", Aliases: []string{"gemini-cli"}, Program: "gemini-cli",
			Hears: atPrompts, WarnsLate: true,
			Folder:      geminiDir,
			Transcripts: func(h Homes) []string { return []string{filepath.Join(geminiDir(h), "tmp")} },
			Unnamed:     true,
			Hooks:       geminiHooks(), Files: geminiSettings,
			answer: geminiAnswerTo, event: func(body []byte, _ string) (observation.Event, error) { return geminiEvent(body) },
			sends: isGeminiPayload, transcript: isGeminiFile, writes: looksLikeGemini, document: looksLikeGemini, read: readGemini,
		},
		{
			Name: cursor, Title: "Cursor", Program: cursor,
			Hears: []string{onSessionStart}, Asks: true, NeedsAnswer: true,
			Folder:      cursorDir,
			Transcripts: func(h Homes) []string { return []string{filepath.Join(cursorDir(h), "projects")} },
			Unnamed:     true, Runs: claude,
			Hooks: cursorHooks(), Files: cursorSettings,
			answer: cursorAnswerTo, event: cursorEvent,
			sends: isCursorPayload, transcript: isLines, writes: looksLikeCursor, read: readCursor,
		},
		{
			// Its plugin adds to a call's result what was said before the call.
			Name: openCode, Title: "OpenCode", Program: openCode,
			Hears: always, Helped: true,
			Folder: openCodeDir, Transcripts: openCodeKept, Files: openCodeSettings,
			answer: flatAnswer, event: func(body []byte, _ string) (observation.Event, error) { return openCodeEvent(body) },
			transcript: isOpenCodeFile, writes: never, document: isDatabase, read: readOpenCode,
		},
		{
			Name: copilot, Title: "Copilot CLI", Aliases: []string{"github-copilot"}, Program: "copilot-cli",
			Hears: always, Helped: true,
			Folder:      copilotDir,
			Transcripts: func(h Homes) []string { return []string{filepath.Join(copilotDir(h), "session-state")} },
			Unnamed:     true,
			Hooks:       copilotHooks(), Files: copilotSettings,
			answer: flatAnswer, event: func(body []byte, _ string) (observation.Event, error) { return copilotEvent(body) },
			sends: isCopilotPayload, transcript: isLines, writes: isCopilotLine, read: readCopilot,
		},
		{
			Name: qwen, Title: "Qwen Code", Aliases: []string{"qwen-code"}, Program: "qwen-code",
			Hears: []string{onPrompt, onToolUse}, WarnsLate: true, LateStart: true, Defers: true, Helped: true,
			Folder:      qwenDir,
			Transcripts: func(h Homes) []string { return []string{filepath.Join(qwenDir(h), "projects")} },
			Unnamed:     true,
			Hooks:       qwenHooks(), Files: qwenSettings,
			answer: objectAnswer, event: func(body []byte, _ string) (observation.Event, error) { return qwenEvent(body) },
			sends: isQwenPayload, transcript: isLines, writes: isQwenLine, read: readQwen,
		},
		{
			// Its hooks put nothing into the first request, so that its rules tell its model
			// to ask; prompts and answers come from the conversation when a turn ends.
			Name: cline, Title: "Cline", Program: cline,
			Folder: clineDir, Transcripts: func(h Homes) []string { return []string{filepath.Join(clineData(h), "sessions")} },
			Hears:  []string{onBeforeTool, onToolUse},
			Files:  clineSettings,
			answer: clineAnswer, event: clineEvent, sends: isClinePayload,
			transcript: isClineFile, writes: never, document: looksLikeCline, read: readCline,
		},
		{
			// Its transcripts are encrypted. A rules file tells its model what a hook cannot.
			Name: windsurf, Title: "Windsurf", Aliases: []string{"cascade"}, Program: windsurf,
			RefusesByTwo: true,
			Folder:       windsurfDir,
			Hooks:        windsurfHooks(), Files: windsurfSettings,
			answer: silent, event: windsurfEvent, sends: isWindsurfPayload,
			transcript: noFile, writes: never,
		},
	}
})

func never([]byte) bool { return false }

func noFile(string) bool { return false }

// Of is the harness of a name or an alias, false if cairn does not know it.
func Of(name string) (Harness, bool) {
	all := Harnesses()
	i := slices.IndexFunc(all, func(h Harness) bool { return h.Name == name || slices.Contains(h.Aliases, name) })
	if i < 0 {
		return Harness{}, false
	}
	return all[i], true
}

// Names are the names of the harnesses that cairn knows.
func Names() (names []string) {
	for _, h := range Harnesses() {
		names = append(names, h.Name)
	}
	return names
}

// UnnamedHarnesses are the names of the harnesses whose hooks know no ids that their
// transcripts know, for observation.Config.
func UnnamedHarnesses() (names []string) {
	for _, h := range Harnesses() {
		if h.Unnamed {
			names = append(names, h.Name)
		}
	}
	return names
}

// senderOf is the harness of an event. One that names none behaves as Claude Code.
func senderOf(e observation.Event) Harness {
	if h, ok := Of(e.Harness); ok {
		return h
	}
	return Harnesses()[0]
}
