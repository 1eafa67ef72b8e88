package mcp

import (
	"context"
	"reflect"

	"cairn/internal/fault"
	"cairn/internal/mcp/toolargs"
	"cairn/internal/observation"
	"cairn/internal/observation/browse"
	"cairn/internal/observation/search"
)

// Observations contains the functions behind the six tools for observations (contract
// observations §8). All must be set. Each applies its own defaults and ranges; a nil
// pointer means that the argument was omitted.
type Observations struct {
	Search        func(context.Context, SearchArgs) (any, error)
	Get           func(ctx context.Context, ids []int64) (any, error)
	Timeline      func(context.Context, TimelineArgs) (any, error)
	RecentContext func(context.Context, RecentArgs) (any, error)
	SessionTrace  func(context.Context, TraceArgs) (any, error)
	FileHistory   func(context.Context, FileHistoryArgs) (any, error)
}

// SearchArgs are the arguments of search (contract observations §8.1).
type SearchArgs struct {
	Query   string         `arg:"query,required" about:"Words, all of them; or exactly: \"phrase\", prefix*, AND, OR, NOT, NEAR(a b, 5), parentheses."`
	Project toolargs.Scope `arg:"project" about:"Only this project; * for all. Omitted: the current project."`
	ObsType string         `arg:"obs_type" about:"Only rows of one type, such as file_edit, file_read, command, command_error, user_prompt, agent_message, git_commit."`
	Limit   *int           `arg:"limit,default=20,min=1,max=100" about:"Maximum number of rows."`
	Offset  *int           `arg:"offset,default=0,min=0" about:"Number of rows to skip."`
	OrderBy string         `arg:"orderBy,default=relevance,enum=relevance|blended" about:"blended also favours recent rows."`
	Before  *int64         `arg:"before"` // exclusive, as After
	After   *int64         `arg:"after"`
	Remote  bool           // the call came over HTTP, so the server's own session is not the caller
}

type idsArgs struct {
	IDs []int64 `arg:"ids,required" about:"1 to 50 ids of observations. Those that do not exist are left out."`
}

// TimelineArgs are the arguments of timeline (contract observations §8.3).
type TimelineArgs struct {
	Anchor int64 `arg:"anchor,required" about:"The observation's id."`
	Before *int  `arg:"before,default=5,min=0,max=50" about:"Number of rows before it."`
	After  *int  `arg:"after,default=5,min=0,max=50" about:"Number of rows after it."`
}

// RecentArgs are the arguments of recent_context (contract observations §8.4).
type RecentArgs struct {
	Project toolargs.Scope `arg:"project" about:"Prefers this project without excluding others; * treats all alike. Omitted: the current project."`
	Limit   *int           `arg:"limit,default=30,min=1,max=100" about:"Maximum number of rows."`
	Full    Detail         `arg:"detail,default=compact,enum=compact|full"` // whole rows, else the short form
}

// TraceArgs are the arguments of session_trace (contract observations §8.5).
type TraceArgs struct {
	SessionID string `arg:"session_id,required" about:"The session's id, as recall and search show it."`
	Before    *int64 `arg:"before"` // exclusive, as After
	After     *int64 `arg:"after"`
	Full      Detail `arg:"detail,default=compact,enum=compact|full"` // every row and whole texts, else the short form
}

// FileHistoryArgs are the arguments of file_history (contract observations §8.6).
type FileHistoryArgs struct {
	FilePath  string `arg:"file_path,required" about:"Absolute, or relative to the working directory or the repository."`
	Before    *int64 `arg:"before"` // exclusive, as After
	After     *int64 `arg:"after"`
	Limit     *int   `arg:"limit,default=10,min=1,max=50" about:"Maximum number of touches, newest first."`
	EditsOnly bool   `arg:"edits_only" about:"Only the last write or edit of each session."`
	Full      Detail `arg:"detail,default=compact,enum=compact|full"` // whole texts, else the short form
}

// Detail is true for "full" and false for "compact" and "".
type Detail bool

// UnmarshalText parses an argument. Other values than compact and full are Invalid.
func (d *Detail) UnmarshalText(text []byte) error {
	switch string(text) {
	case "", "compact", "full":
		*d = string(text) == "full"
		return nil
	}
	return fault.Newf(fault.Invalid, toolargs.CodeInvalidArgument, "detail must be compact or full, not %.40q", text)
}

// ObservationTools returns the six tools for observations, implemented by o.
func ObservationTools(o Observations) []Tool {
	tools := []Tool{
		NewTool(Tool{
			Name: "search", Words: "past history find grep", Title: "Search observations", Result: resultOf[[]search.FoundRow](),
			Description: "Find single rows of what agents did: prompts, files, commands, errors, commits. Use it for exact words; for questions use recall. " +
				"Rows with all words come first, then rows with some (matched: some). get_observations reads rows whole.",
		}, func(ctx context.Context, c Call, a SearchArgs) (any, error) {
			a.Remote = c.Remote
			return o.Search(ctx, a)
		}),
		NewTool(Tool{
			Name: "get_observations", Title: "Get observations", Result: resultOf[[]observation.Observation](),
			Description: "Read whole observations, in the order of their ids: text, metadata, and the output of a command. Ids come from recall, search and other tools.",
		}, func(ctx context.Context, _ Call, a idsArgs) (any, error) { return o.Get(ctx, a.IDs) }),
		argumentsTool(Tool{
			Name: "timeline", Title: "Timeline", Result: resultOf[browse.Timeline](),
			Description: "See what happened directly before and after one observation in its session, in order.",
		}, o.Timeline),
		argumentsTool(Tool{
			Name: "recent_context", Title: "Recent context", Result: resultOfEither[[]browse.Scored, []browse.CompactScored](),
			Description: "See the current state of work: the latest important observations, one per file, ranked by age, type and project. Use it at the start of a task.",
		}, o.RecentContext),
		argumentsTool(Tool{
			Name: "session_trace", Words: "past transcript log", Title: "Session trace", Result: resultOf[browse.Trace](),
			Description: "Read one session in order: each prompt with its actions, and the session's summary.",
		}, o.SessionTrace),
		argumentsTool(Tool{
			Name: "file_history", Words: "past edits who changed", Title: "File history", Result: resultOf[browse.History](),
			Description: "See which sessions touched a file, what they did to it and for which prompt, newest session first. Use it before you change a file that others worked on.",
		}, o.FileHistory),
	}
	texts := map[string]string{
		"before": "Only rows before this time, in Unix seconds.",
		"after":  "Only rows after this time, in Unix seconds.",
		"detail": "compact: results longer than about 2,000 tokens are shortened; full: everything.",
	}
	for i := range tools {
		tools[i].ReadOnly = true
		toolargs.WithTexts(tools[i].Params, texts)
	}
	return tools
}

// argumentsTool returns a tool whose function needs only its arguments.
func argumentsTool[In, Out any](t Tool, do func(context.Context, In) (Out, error)) Tool {
	return t.with(reflect.TypeFor[In](), reflect.TypeFor[Out](), func(ctx context.Context, _ Call, in any) (any, error) { return do(ctx, *in.(*In)) })
}
