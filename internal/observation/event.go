package observation

import (
	"strings"
	"time"

	"cairn/internal/project"
)

// EventKind says what a harness reported.
type EventKind uint8

// The kinds of event.
const (
	Ignored      EventKind = iota // nothing of ours: the store is not even opened
	Touch                         // the session is alive; no row. Calls are those to come (PreToolUse), or to cairn's own tools
	SessionStart                  // Text is the source word: startup, resume, clear, compact, fork
	SessionEnd                    // Text is the reason
	Prompt                        // Text is what the user typed, machine text already cut out; blank makes no row
	Message                       // Text is what the agent said; blank makes no row
	Tool                          // Calls are finished tool calls
)

// Event is one report of a harness in cairn's own words: what `cairn record`
// gets from a hook and `cairn import` from transcript lines. Texts are as the
// harness sent them, redacted and cut only when they are recorded; very long
// ones (over 2 MiB) come as their first and last MiB.
type Event struct {
	Kind      EventKind
	Source    string    // the hook event (PostToolUse …), also for imported events; becomes source_event
	Harness   string    // as the table of the room harness names it: claude, codex …
	Session   string    // the harness's session id; never blank
	Cwd       string    // as reported; never blank
	At        time.Time // zero: the time of recording
	PromptID  string    // the harness's prompt id, "" if it gives none
	AgentID   string    // the subagent, "" for the main agent
	LineID    string    // uuid of the transcript line, "" when live
	Imported  bool      // from a transcript
	Match     Match     // of an imported event: how rows that a hook stored are recognised
	Model     string    // of a SessionStart, "" if not told
	Branch    string    // checked out in Cwd, "" if unknown; see KeepsBranch
	Settled   bool      // the calls' ends are told for certain, and correct what a hook could only guess
	CannotAsk bool      // nobody can be asked about a call that is about to be made

	Text string
	Role string // of a Message: turn, subagent or compact_summary
	// Transcript is the file that reports how the calls of the turn ended, where the hooks of
	// a harness do not: of an event that ends a turn or a session; "" for none.
	Transcript string

	TurnEnds bool // the main agent has finished its turn (Stop)

	Calls []Call // of a Tool event, and of a Touch by a tool: one, or one per file of a patch
}

// KeepsBranch reports whether an event's branch is kept: those that begin or end a
// turn, or begin a session.
func (e *Event) KeepsBranch() bool {
	return e.Kind == SessionStart || e.Kind == Prompt || e.Kind == Message
}

// Match says how what an imported event tells is recognised in rows that hooks,
// or an earlier import, stored.
type Match uint8

// The ways of recognising.
const (
	// By ids, and prompts without one by their words at nearly the same time.
	MatchID Match = iota
	// By ids first. Beyond that, hooks know no ids of calls, so that the nth equal
	// call of a transcript, which is always read whole, is known if the session
	// holds n equal rows; and they may tell more of a turn's words than its last.
	MatchCount
	// As MatchCount, and the time is an estimate that says nothing.
	MatchText
)

// Action is what a tool call does, whatever its harness calls it.
type Action uint8

// The actions (observations §5).
const (
	Other     Action = iota // any tool not named here
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
	ID         string // tool_use_id, "" if the harness gives none
	Part       int    // 0, 1 … when one call makes several rows
	Tool       string // the tool's name as reported
	Action     Action
	Failed     bool   // by the event, an exit code, or the response's text; never if the user stopped the call
	Error      string // what it said when it failed
	ExitCode   *int   // of a failed shell call, nil if not told
	DurationMS int64  // 0 if not told

	Command     string
	Description string
	Interrupted bool // the user stopped the call, of any tool
	Background  bool
	Note        string // the host's reading of an exit code
	Stdout      string // of shell calls only: the facts of commits and pushes, and what a failure without Error said
	Stderr      string // likewise
	Output      string // of other calls that did not fail: an agent's report, a page, an MCP result; "" for the text of files

	Path       string // as given: file_path, notebook_path, path
	Created    bool
	ReplaceAll bool
	Deleted    bool
	Pieces     []Piece // of a Write or Edit: the passages that it wrote; nil if they are not known
	Whole      bool    // the only piece is the whole file
	Partial    bool    // a piece may begin and end within a line

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
	Result string // of a finished call to cairn's own tools: the text that it returned, "" if that is long; it is not stored

	Question  string
	SkillName string
}

// Piece is a passage of a file before and after an edit. Only hashes of its lines are
// stored.
type Piece struct {
	Old string // "" for a passage that was inserted
	New string
}

// Arg is one argument of an MCP call: a string as it is, anything else as
// compact JSON.
type Arg struct {
	Name  string
	Value string
}

// Announces reports whether an event tells of calls that are about to be made.
func (e *Event) Announces() bool {
	return e.Kind == Touch && e.Source == "PreToolUse" && len(e.Calls) > 0
}

// Trigger is what made cairn tell something, as the ledger names it.
func (e *Event) Trigger() string {
	switch e.Kind {
	case SessionStart:
		return "session_start"
	case Prompt:
		return "prompt"
	}
	return "tool"
}

// IsRecovery reports whether a session that starts for this reason has lost its
// context and is given more of it.
func IsRecovery(source string) bool { return source == "compact" || source == "clear" }

// Recorded is what became of one event.
type Recorded struct {
	IDs     []int64 // of the rows that were added
	Known   int     // deliveries and prompts that were stored before
	Deduped int     // reads and searches dropped because of an equal recent one
	Purged  int     // rows that were purged before and do not come back
	First   bool    // a prompt, and the first of its session
	Project project.Project
	Unnoted error // why the ledger was not brought up to date with the event, which is stored all the same

	Session int64    // the key of the event's session, 0 if it was not looked at
	Types   []string // of the rows that were added
}

// OwnTool tells cairn's own MCP tools, also when a plugin brings them.
func OwnTool(c *Call) bool {
	if c.Action != MCP {
		return false
	}
	rest, plugin := strings.CutPrefix(c.Server, "plugin_")
	return c.Server == "cairn" || plugin && strings.HasSuffix(rest, "_cairn")
}
