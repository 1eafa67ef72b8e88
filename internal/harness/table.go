package harness

import (
	"context"
	"io"
	"path/filepath"
	"slices"
	"sync"

	"cairn/internal/observation"
)

// Harness describes one agent program. All values are in Harnesses. Other packages use the fields
// of a Harness and never compare names, which a test checks.
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
	LateStart    bool     // it gets a session's context with the first prompt, see StartsLate
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

	answer     func(e observation.Event, text string, v GuardDecision) (string, error)
	event      func(body []byte, home string) (observation.Event, error)
	sends      func(body []byte) bool // reports whether only this harness sends such payloads
	transcript func(name string) bool // reports whether a file with this name may be one of its transcripts
	writes     func(line []byte) bool // reports whether its transcripts contain such lines
	document   func(head []byte) bool // reports whether it writes documents with this beginning; nil if it writes only lines
	read       transcriptReader
}

// transcriptReader reads the transcripts of one harness, see ReadTranscript.
type transcriptReader func(ctx context.Context, r io.Reader, o TranscriptOptions, yield func(observation.Event) error) (TranscriptReport, error)

// Homes contains the directories of the harnesses' files.
type Homes struct {
	User   string              // the user's home directory
	Getenv func(string) string // the environment, which may contain other folders; nil for an empty environment
}

// in returns the folder in an environment variable, else the usual folder below the home
// directory.
func (h Homes) in(variable string, usual ...string) string {
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

// The names of the harnesses, as in --from and stored sessions.
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

// Harnesses returns the agent programs that cairn supports, in the order in which they are listed.
// If a transcript matches several of them, the first one wins. If a payload matches several, the
// last one wins. The table is created once and shared. Callers must not change it.
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
			// Its plugin adds text from before a call to the call's result.
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
			// Its hooks cannot add text to the first request, so its rules instruct the model to
			// call cairn. Prompts and replies are read from the conversation at the end of a turn.
			Name: cline, Title: "Cline", Program: cline,
			Folder: clineDir, Transcripts: func(h Homes) []string { return []string{filepath.Join(clineData(h), "sessions")} },
			Hears:  []string{onBeforeTool, onToolUse},
			Files:  clineSettings,
			answer: clineAnswer, event: clineEvent, sends: isClinePayload,
			transcript: isClineFile, writes: never, document: looksLikeCline, read: readCline,
		},
		{
			// Its transcripts are encrypted. A rules file gives its model the context that hooks
			// cannot provide.
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

// Of returns the harness with a name or an alias, and false if cairn does not know it.
func Of(name string) (Harness, bool) {
	all := Harnesses()
	i := slices.IndexFunc(all, func(h Harness) bool { return h.Name == name || slices.Contains(h.Aliases, name) })
	if i < 0 {
		return Harness{}, false
	}
	return all[i], true
}

// Names returns the names of all harnesses.
func Names() (names []string) {
	for _, h := range Harnesses() {
		names = append(names, h.Name)
	}
	return names
}

// UnnamedHarnesses returns the names of the harnesses whose hooks and transcripts have no ids in
// common, for observation.Config.
func UnnamedHarnesses() (names []string) {
	for _, h := range Harnesses() {
		if h.Unnamed {
			names = append(names, h.Name)
		}
	}
	return names
}

// senderOf returns the harness of an event. An event without a known harness is treated like
// Claude Code's.
func senderOf(e observation.Event) Harness {
	if h, ok := Of(e.Harness); ok {
		return h
	}
	return Harnesses()[0]
}
