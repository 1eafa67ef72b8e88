package mcp

import "context"

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
		Name: "search", Title: "Search observations", ReadOnly: true, Lean: true,
		Description: `Find single rows of what agents did: prompts, files, commands, errors, commits. Rows with all ` +
			`words first, then rows with some. Exact: "phrase", prefix*, OR, NOT, NEAR(a b, 5), parentheses.`,
		Brief: "Find single rows of what agents did, by words; also \"phrase\", prefix*, OR, NOT.",
		Params: []Param{
			{Name: "query", Required: true},
			projectParam(),
			{Name: "obs_type", Description: "One type, such as file_edit, command, command_error, user_prompt, git_commit."},
			{Name: "limit", Kind: Integer, Default: 20, Minimum: new(1), Maximum: new(100)},
			{Name: "offset", Kind: Integer, Default: 0, Minimum: new(0)},
			{
				Name: "orderBy", Default: "relevance", Enum: []string{"relevance", "blended"},
				Description: "blended also favours recent rows.",
			},
			beforeParam(), afterParam(),
		},
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
		Name: "get_observations", Title: "Get observations", ReadOnly: true, Lean: true,
		Description: "Whole observations in the order of the ids.",
		Brief:       "Whole observations.",
		Params:      []Param{{Name: "ids", Kind: Integers, Required: true, Description: "1 to 50 ids."}},
		Call: func(ctx context.Context, a Args) (any, error) {
			return o.Get(ctx, a.Integers("ids"))
		},
	}
}

func timelineTool(o Observations) Tool {
	around := func(name, description string) Param {
		return Param{
			Name: name, Kind: Integer, Description: description, Default: 5, Minimum: new(0), Maximum: new(50),
		}
	}
	return Tool{
		Name: "timeline", Title: "Timeline", ReadOnly: true,
		Description: "What happened around one observation in its session.",
		Params: []Param{
			{Name: "anchor", Kind: Integer, Required: true, Description: "Observation id."},
			around("before", "Rows before it."), around("after", "Rows after it."),
		},
		Call: func(ctx context.Context, a Args) (any, error) {
			return o.Timeline(ctx, TimelineArgs{
				Anchor: *a.Int64("anchor"), Before: a.Int("before"), After: a.Int("after"),
			})
		},
	}
}

func recentContextTool(o Observations) Tool {
	return Tool{
		Name: "recent_context", Title: "Recent context", ReadOnly: true,
		Description: "Where were we? The latest observations that matter, ranked by age, type and project.",
		Params: []Param{
			projectParam(),
			{Name: "limit", Kind: Integer, Default: 30, Minimum: new(1), Maximum: new(100)},
			detailParam(),
		},
		Call: func(ctx context.Context, a Args) (any, error) {
			return o.RecentContext(ctx, RecentArgs{Project: a.Scope("project"), Limit: a.Int("limit"), Full: isFull(a)})
		},
	}
}

func sessionTraceTool(o Observations) Tool {
	return Tool{
		Name: "session_trace", Title: "Session trace", ReadOnly: true,
		Description: "One session in order: each prompt with what was done for it.",
		Params:      []Param{{Name: "session_id", Required: true}, beforeParam(), afterParam(), detailParam()},
		Call: func(ctx context.Context, a Args) (any, error) {
			return o.SessionTrace(ctx, TraceArgs{
				SessionID: a.String("session_id"), Before: a.Int64("before"), After: a.Int64("after"), Full: isFull(a),
			})
		},
	}
}

func fileHistoryTool(o Observations) Tool {
	return Tool{
		Name: "file_history", Title: "File history", ReadOnly: true,
		Description: "Which sessions touched a file, what they did to it and why. Newest session first.",
		Params: []Param{
			{Name: "file_path", Required: true, Description: "Absolute, or relative to the directory or repository."},
			beforeParam(), afterParam(),
			{Name: "limit", Kind: Integer, Default: 10, Minimum: new(1), Maximum: new(50)},
			{
				Name: "edits_only", Kind: Boolean, Default: false,
				Description: "Only the last write or edit of each session.",
			},
			detailParam(),
		},
		Call: func(ctx context.Context, a Args) (any, error) {
			return o.FileHistory(ctx, FileHistoryArgs{
				FilePath: a.String("file_path"), Before: a.Int64("before"), After: a.Int64("after"),
				Limit: a.Int("limit"), EditsOnly: a.Bool("edits_only"), Full: isFull(a),
			})
		},
	}
}

func projectParam() Param {
	return Param{
		Name: "project", Kind: Project, Description: "Omit for the current project; * for all.",
	}
}

func beforeParam() Param {
	return Param{Name: "before", Kind: Integer, Description: "Unix seconds; only what is older."}
}

func afterParam() Param {
	return Param{Name: "after", Kind: Integer, Description: "Unix seconds; only what is newer."}
}

func detailParam() Param {
	return Param{
		Name: "detail", Default: "compact", Enum: []string{"compact", "full"},
		Description: "compact: longer answers are shortened to about 2,000 tokens.",
	}
}

func isFull(a Args) bool { return a.String("detail") == "full" }
