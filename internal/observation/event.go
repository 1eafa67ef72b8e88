package observation

import (
	"strings"
	"time"

	"cairn/internal/project"
)

// EventKind is the kind of event that a harness reported.
type EventKind uint8

// The kinds of event.
const (
	Ignored      EventKind = iota // not relevant to cairn; the store is not opened
	Touch                         // the session is active; no row. Calls have not run yet (PreToolUse) or are to cairn's tools
	SessionStart                  // Text is the source: startup, resume, clear, compact, fork
	SessionEnd                    // Text is the reason
	Prompt                        // Text is what the user typed, without machine text; no row if blank
	Message                       // Text is the agent's message; no row if blank
	Tool                          // Calls are finished tool calls
)

// Event is one report of a harness in cairn's terms: `cairn record` gets it from a hook, `cairn
// import` from transcript lines. Texts are as the harness sent them; recording redacts and cuts
// them. A text over 2 MiB is reduced to its first and last MiB.
type Event struct {
	Kind      EventKind
	Source    string    // the hook event (PostToolUse …), also if imported; stored as source_event
	Harness   string    // the name in package harness: claude, codex …
	Session   string    // the harness's session id; never blank
	Cwd       string    // as reported; never blank
	At        time.Time // zero: the time of recording
	PromptID  string    // the harness's prompt id, "" if unknown
	AgentID   string    // the subagent, "" for the main agent
	LineID    string    // UUID of the transcript line, "" if live
	Imported  bool      // from a transcript
	Match     Match     // for imported events: how to recognize rows that a hook stored
	Model     string    // of a SessionStart, "" if unknown
	Branch    string    // checked out in Cwd, "" if unknown; see KeepsBranch
	Settled   bool      // the outcomes of the calls are certain and correct a hook's guesses
	CannotAsk bool      // no user can confirm an announced call

	Text string
	Role string // of a Message: turn, subagent or compact_summary
	// Transcript is the file that reports the outcomes of the turn's calls, for harnesses whose
	// hooks do not. It is set on events that end a turn or a session, else "".
	Transcript string

	TurnEnds bool // the main agent has finished its turn (Stop)

	Calls []Call // of a Tool event and of a Touch by a tool: one, or one per file of a patch
}

// KeepsBranch reports whether an event's branch is stored. This applies to events that begin or
// end a turn, or begin a session.
func (e *Event) KeepsBranch() bool {
	return e.Kind == SessionStart || e.Kind == Prompt || e.Kind == Message
}

// Match selects how an imported event is matched with rows that hooks or an earlier import
// stored.
type Match uint8

// The values of Match.
const (
	// By id; prompts without an id by equal words at nearly the same time.
	MatchID Match = iota
	// By id first. These hooks report no call ids, so equal calls are counted: the nth equal
	// call of a transcript is known if the session has n equal rows. The transcript is always
	// read as a whole. Hooks may also report more of a turn's text than its last message.
	MatchCount
	// Like MatchCount, but the time is only an estimate and is ignored.
	MatchText
)

// Action is what a tool call does, independent of the harness's name for it.
type Action uint8

// The actions (observations §5).
const (
	Other     Action = iota // any other tool
	Shell                   // Command, Description
	Read                    // Path
	Write                   // Path, Created
	Edit                    // Path, ReplaceAll, Deleted
	Search                  // Pattern, Path, Mode, NumFiles
	Spawn                   // Description, Prompt, SubagentType, SpawnedID
	Fetch                   // URL
	WebSearch               // Query
	MCP                     // Server, Method, Args
	Ask                     // Question
	Skill                   // SkillName
)

// Call is one finished tool call.
type Call struct {
	ID         string // tool_use_id, "" if unknown
	Part       int    // 0, 1 … if one call creates several rows
	Tool       string // the tool's name as reported
	Action     Action
	Failed     bool   // by event, exit code or response text; false if the user stopped the call
	Error      string // error text of a failed call
	ExitCode   *int   // of a failed shell call, nil if unknown
	DurationMS int64  // 0 if unknown

	Command     string
	Description string
	Interrupted bool // the user stopped the call; applies to any tool
	Background  bool
	Note        string // the harness's interpretation of an exit code
	Stdout      string // of shell calls only: facts of commits and pushes, text of failures without Error
	Stderr      string // likewise
	Output      string // of other successful calls: a report, a page, an MCP result; "" for files

	Path       string // as reported: file_path, notebook_path, path
	Created    bool
	ReplaceAll bool
	Deleted    bool
	Pieces     []Piece // of a Write or Edit: the passages written; nil if unknown
	Whole      bool    // the only piece is the whole file
	Partial    bool    // a piece may begin or end within a line

	Pattern  string
	Mode     string
	NumFiles *int

	Prompt       string
	SubagentType string
	SpawnedID    string

	URL   string
	Query string

	Server string
	Method string
	Args   []Arg
	Result string // of a finished call to cairn's own tools: its text, "" if long; not stored

	Question  string
	SkillName string
}

// Piece is a passage of a file before and after an edit. Only hashes of its lines are stored.
type Piece struct {
	Old string // "" for an inserted passage
	New string
}

// Arg is one argument of an MCP call. A string is stored unchanged, any other value as compact
// JSON.
type Arg struct {
	Name  string
	Value string
}

// Announces reports whether an event announces calls that have not run yet.
func (e *Event) Announces() bool {
	return e.Kind == Touch && e.Source == "PreToolUse" && len(e.Calls) > 0
}

// Trigger returns the ledger's name for what caused cairn to add context: session_start, prompt
// or tool.
func (e *Event) Trigger() string {
	switch e.Kind {
	case SessionStart:
		return "session_start"
	case Prompt:
		return "prompt"
	}
	return "tool"
}

// IsRecovery reports whether a session with this start source has lost its context and therefore
// gets more of it.
func IsRecovery(source string) bool { return source == "compact" || source == "clear" }

// Recorded is the result of recording one event.
type Recorded struct {
	IDs     []int64 // of the rows that were added
	Known   int     // deliveries and prompts that were already stored
	Deduped int     // reads and searches dropped because an equal recent one exists
	Purged  int     // rows not stored because they were purged before
	First   bool    // the event is its session's first prompt
	Project project.Project
	Unnoted error // the error of updating the ledger; the event is stored anyway

	Session int64    // the key of the event's session, 0 if it was not looked up
	Types   []string // of the rows that were added
}

// OwnTool reports whether a call is to one of cairn's own MCP tools, also if a plugin provides
// them.
func OwnTool(c *Call) bool {
	if c.Action != MCP {
		return false
	}
	rest, plugin := strings.CutPrefix(c.Server, "plugin_")
	return c.Server == "cairn" || plugin && strings.HasSuffix(rest, "_cairn")
}
