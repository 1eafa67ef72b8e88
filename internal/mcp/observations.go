package mcp

import (
	"context"

	"cairn/internal/fault"
	"cairn/internal/observation"
)

// Observations is what answers the six tools about what happened (contract
// observations §8). All functions must be set. Each applies its own defaults and
// ranges; a nil pointer means that the caller said nothing.
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
	Query         string
	Project       Scope
	ObsType       string // "" is every type
	Limit         *int   // 20, 1 to 100
	Offset        *int   // 0
	OrderBy       string // "", relevance or blended
	Before, After *int64 // Unix seconds, exclusive
	Remote        bool   // the call came over HTTP, so that the server's own session does not ask
}

// TimelineArgs are the arguments of timeline (contract observations §8.3).
type TimelineArgs struct {
	Anchor        int64
	Before, After *int // rows; 5, 0 to 50
}

// RecentArgs are the arguments of recent_context (contract observations §8.4).
type RecentArgs struct {
	Project Scope
	Limit   *int // 30, 1 to 100
	Full    bool // whole rows, else the compact form
}

// TraceArgs are the arguments of session_trace (contract observations §8.5).
type TraceArgs struct {
	SessionID     string
	Before, After *int64 // Unix seconds, exclusive
	Full          bool   // every row and whole texts, else the compact form
}

// FileHistoryArgs are the arguments of file_history (contract observations §8.6).
type FileHistoryArgs struct {
	FilePath      string
	Before, After *int64 // Unix seconds, exclusive
	Limit         *int   // touches; 10, 1 to 50
	EditsOnly     bool
	Full          bool // whole texts, else the compact form
}

// ObservationTools are the six tools, answered by o.
func ObservationTools(o Observations) []Tool {
	return []Tool{
		searchTool(o), getObservationsTool(o), timelineTool(o),
		recentContextTool(o), sessionTraceTool(o), fileHistoryTool(o),
	}
}

func searchTool(o Observations) Tool {
	return Tool{
		Name: "search", Words: "past history find grep", Title: "Search observations", ReadOnly: true, Result: gives[[]observation.FoundRow](),
		Description: "Find single rows of what agents did: prompts, files, commands, errors, commits. Use it for exact words; for questions use recall. " +
			"Rows with all words come first, then rows with some (matched: some). get_observations reads rows whole.",
		Params: params(
			must("query", `Words, all of them; or exactly: "phrase", prefix*, AND, OR, NOT, NEAR(a b, 5), parentheses.`),
			projectParam(),
			may("obs_type", "Only rows of one type, such as file_edit, file_read, command, command_error, user_prompt, agent_message, git_commit."),
			count("limit", 20, "How many rows.").least(1).most(100), count("offset", 0, "How many rows to skip.").least(0),
			may("orderBy", "blended favours recent rows too.").by("relevance").among("relevance", "blended"),
			beforeParam(), afterParam(),
		),
		Call: func(ctx context.Context, a Args) (any, error) {
			return o.Search(ctx, SearchArgs{
				Query: a.String("query"), Project: a.Scope("project"), ObsType: a.String("obs_type"),
				Limit: a.Int("limit"), Offset: a.Int("offset"), OrderBy: a.String("orderBy"),
				Before: a.Int64("before"), After: a.Int64("after"), Remote: a.IsRemote(),
			})
		},
	}
}

func getObservationsTool(o Observations) Tool {
	return Tool{
		Name: "get_observations", Title: "Get observations", ReadOnly: true, Result: gives[[]observation.Observation](),
		Description: "Read observations whole, in the order of their ids: text, metadata, and what a command printed as output. Ids come from recall, search and other tools.",
		Params:      params(must("ids", "1 to 50 ids of observations. Those that do not exist are left out.").of(Integers)),
		Call: func(ctx context.Context, a Args) (any, error) {
			return o.Get(ctx, a.Integers("ids"))
		},
	}
}

func timelineTool(o Observations) Tool {
	return Tool{
		Name: "timeline", Title: "Timeline", ReadOnly: true, Result: gives[observation.Timeline](),
		Description: "See what happened right before and after one observation in its session, in order.",
		Params: params(
			must("anchor", "The observation's id.").of(Integer),
			count("before", 5, "How many rows before it.").least(0).most(50), count("after", 5, "How many rows after it.").least(0).most(50),
		),
		Call: func(ctx context.Context, a Args) (any, error) {
			return o.Timeline(ctx, TimelineArgs{
				Anchor: *a.Int64("anchor"), Before: a.Int("before"), After: a.Int("after"),
			})
		},
	}
}

func recentContextTool(o Observations) Tool {
	return Tool{
		Name: "recent_context", Title: "Recent context", ReadOnly: true, Result: givesEither[[]observation.Scored, []observation.CompactScored](),
		Description: "See where work stands: the latest observations that matter, one per file, ranked by age, type and project. Use it at the start of a task.",
		Params: params(
			may("project", "Prefers this project and does not leave others out; * for all alike. Omitted: the current project.").of(Project),
			count("limit", 30, "How many rows.").least(1).most(100), detailParam(),
		),
		Call: func(ctx context.Context, a Args) (any, error) {
			full, err := isFull(a)
			if err != nil {
				return nil, err
			}
			return o.RecentContext(ctx, RecentArgs{Project: a.Scope("project"), Limit: a.Int("limit"), Full: full})
		},
	}
}

func sessionTraceTool(o Observations) Tool {
	return Tool{
		Name: "session_trace", Words: "past transcript log", Title: "Session trace", ReadOnly: true, Result: gives[observation.Trace](),
		Description: "Retell one session in order: each prompt with what was done for it, and the session's summary.",
		Params:      params(must("session_id", "The session's id, as recall and search show it."), beforeParam(), afterParam(), detailParam()),
		Call: func(ctx context.Context, a Args) (any, error) {
			full, err := isFull(a)
			if err != nil {
				return nil, err
			}
			return o.SessionTrace(ctx, TraceArgs{
				SessionID: a.String("session_id"), Before: a.Int64("before"), After: a.Int64("after"), Full: full,
			})
		},
	}
}

func fileHistoryTool(o Observations) Tool {
	return Tool{
		Name: "file_history", Words: "past edits who changed", Title: "File history", ReadOnly: true, Result: gives[observation.History](),
		Description: "See which sessions touched a file, what they did to it and for which prompt, newest session first. Use it before you change a file that others worked on.",
		Params: params(
			must("file_path", "Absolute, or relative to the working directory or the repository."),
			beforeParam(), afterParam(), count("limit", 10, "How many touches, the newest.").least(1).most(50),
			flag("edits_only", "Only the last write or edit of each session."), detailParam(),
		),
		Call: func(ctx context.Context, a Args) (any, error) {
			full, err := isFull(a)
			if err != nil {
				return nil, err
			}
			return o.FileHistory(ctx, FileHistoryArgs{
				FilePath: a.String("file_path"), Before: a.Int64("before"), After: a.Int64("after"),
				Limit: a.Int("limit"), EditsOnly: a.Bool("edits_only"), Full: full,
			})
		},
	}
}

func projectParam() Param {
	return may("project", "Only this project; * for all. Omitted: the current project.").of(Project)
}

func beforeParam() Param {
	return may("before", "Only what is older than this time, in Unix seconds.").of(Integer)
}

func afterParam() Param {
	return may("after", "Only what is newer than this time, in Unix seconds.").of(Integer)
}

func detailParam() Param {
	return may("detail", "compact: answers longer than about 2,000 tokens are shortened; full: everything.").by("compact").among("compact", "full")
}

// isFull reads the argument detail. A value other than compact and full is Invalid.
func isFull(a Args) (bool, error) {
	switch d := a.String("detail"); d {
	case "", "compact":
		return false, nil
	case "full":
		return true, nil
	default:
		return false, fault.Newf(fault.Invalid, CodeInvalidArgument, "detail must be compact or full, not %.40q", d)
	}
}
