package mcp

import (
	"context"

	"cairn"
	"cairn/internal/project"
	"cairn/internal/record"
)

// RecordTools are the commands of records as tools (contract records §2), called
// as the seed of that part calls them. project is the one that calls without a
// project_id mean, "" for the working directory's; over HTTP the one in the URL
// comes first.
func RecordTools(r cairn.Records, project string) []Tool {
	t := recordTools{records: r, project: project}
	tools := append(t.projectTools(), t.readingTools()...)
	tools = append(tools, t.sessionTools()...)
	tools = append(tools, t.writingTools()...)
	tools = append(tools, t.pastTools()...)
	for i := range tools {
		tools[i].Errors = Enveloped
	}
	return tools
}

type recordTools struct {
	records cairn.Records
	project string
}

// caller is who makes a call (contract records §1, current project and session).
func (t *recordTools) caller(a Args) record.Caller {
	c := record.Caller{ProjectID: a.String("project_id"), Project: t.project, SessionID: a.String("session_id")}
	if url := a.Scope("project_id").Name; url != "" {
		c.Project = url
	}
	if c.Remote = a.IsRemote(); c.Remote {
		c.Ancestors = []project.Process{} // those of the server say nothing about its client
	}
	c.Transport = a.Connection()
	return c
}

func (t *recordTools) projectTools() []Tool {
	r := t.records
	return []Tool{
		{
			Name:        "create_project",
			Description: "Make a project for records. Without an id it gets one.",
			Params:      []Param{{Name: "id"}, {Name: "name", Required: true}, {Name: "description"}},
			Call: func(ctx context.Context, a Args) (any, error) {
				return r.CreateProject(ctx, record.CreateProjectArgs{
					ID: a.String("id"), Name: a.String("name"), Description: a.String("description"),
				})
			},
		},
		{
			Name: "list_projects", ReadOnly: true,
			Description: "All projects, the last changed first.",
			Call:        func(ctx context.Context, _ Args) (any, error) { return r.ListProjects(ctx) },
		},
		{
			Name: "get_project", ReadOnly: true,
			Description: "One project and its tick, the count of its writes.",
			Params:      []Param{{Name: "id", Description: "Default: the current project."}, atParam()},
			Call: func(ctx context.Context, a Args) (any, error) {
				c := t.caller(a)
				c.ProjectID = a.String("id")
				return r.GetProject(ctx, record.GetProjectArgs{Caller: c, At: a.String("at")})
			},
		},
	}
}

func (t *recordTools) readingTools() []Tool {
	r := t.records
	return []Tool{
		{
			Name: "get_project_overview", ReadOnly: true, Lean: true,
			Description: "Where the reasoning stands: roots, open and deferred records, sessions. Start here.",
			Brief:       "Where the reasoning stands. Start here.",
			Params:      []Param{projectIDParam(), atParam()},
			Call: func(ctx context.Context, a Args) (any, error) {
				return r.Overview(ctx, record.OverviewArgs{Caller: t.caller(a), At: a.String("at")})
			},
		},
		{
			Name: "search_records", ReadOnly: true,
			Description: `Find records by their words, any of them; also "phrase", prefix*, AND, NOT, parentheses.`,
			Params: []Param{
				{Name: "query", Required: true}, {Name: "types", Kind: Strings}, statesParam(),
				{Name: "parent_id", Description: "Only this record and what is below it."},
				{Name: "limit", Kind: Integer, Default: 20}, projectIDParam(), atParam(),
			},
			Call: func(ctx context.Context, a Args) (any, error) {
				return r.Search(ctx, record.SearchArgs{
					Caller: t.caller(a), Query: a.String("query"), Types: a.Strings("types"), States: states(a),
					ParentID: a.String("parent_id"), Limit: limit(a), At: a.String("at"),
				})
			},
		},
		{
			Name: "list_records", ReadOnly: true,
			Description: "References to records in tree order.",
			Params: []Param{
				statesParam(), {Name: "types", Kind: Strings},
				{Name: "parent_id", Kind: Nullable, Description: "Below this record; null: roots; omitted: all."},
				{Name: "depth", Kind: Integer, Default: 1}, projectIDParam(), atParam(),
			},
			Call: func(ctx context.Context, a Args) (any, error) {
				return r.List(ctx, record.ListArgs{
					Caller: t.caller(a), States: states(a), Types: a.Strings("types"),
					ParentID: a.String("parent_id"), Roots: a.IsNull("parent_id"), Depth: number(a, "depth"), At: a.String("at"),
				})
			},
		},
		{
			Name: "get_record_ref", ReadOnly: true,
			Description: "A record without its body.",
			Params:      []Param{idParam(), projectIDParam(), atParam()},
			Call: func(ctx context.Context, a Args) (any, error) {
				return r.GetRef(ctx, record.GetRefArgs{Caller: t.caller(a), ID: a.String("id"), At: a.String("at")})
			},
		},
	}
}

func (t *recordTools) sessionTools() []Tool {
	r := t.records
	save := func(a Args) record.SaveArgs {
		return record.SaveArgs{Caller: t.caller(a), Summary: a.String("summary")}
	}
	return []Tool{
		{
			Name: "activate", Lean: true,
			Description: "Load a record with parent and children; needed before changing it or adding below it. " +
				"On a conflict ask the user, then override.",
			Brief:  "Load a record, before changing it or adding below it. On a conflict ask the user, then override.",
			Params: []Param{idParam(), {Name: "override", Kind: Boolean, Lean: true}, projectIDParam(), sessionIDParam()},
			Call: func(ctx context.Context, a Args) (any, error) {
				return r.Activate(ctx, record.ActivateArgs{Caller: t.caller(a), ID: a.String("id"), Override: a.Bool("override")})
			},
		},
		{
			Name:        "sync_session",
			Description: "What other sessions changed since this one last synced.",
			Params:      []Param{projectIDParam(), sessionIDParam()},
			Call: func(ctx context.Context, a Args) (any, error) {
				return r.Sync(ctx, record.SyncArgs{Caller: t.caller(a)})
			},
		},
		{
			Name:        "save_session",
			Description: "Mark this session's changes as saved.",
			Params:      []Param{{Name: "summary"}, projectIDParam(), sessionIDParam()},
			Call:        func(ctx context.Context, a Args) (any, error) { return r.Save(ctx, save(a)) },
		},
		{
			Name:        "close_session",
			Description: "End this session's work on records; nothing stays active.",
			Params:      []Param{{Name: "summary"}, projectIDParam(), sessionIDParam()},
			Call:        func(ctx context.Context, a Args) (any, error) { return r.Close(ctx, save(a)) },
		},
	}
}

func (t *recordTools) writingTools() []Tool {
	r := t.records
	return []Tool{
		{
			Name: "create_record", Lean: true,
			Description: "Store a question, conclusion, note (any type) that explains itself without this chat. It is active at once.",
			Brief:       "Store a question, conclusion or note.",
			Params: []Param{
				{Name: "parent_id", Kind: Nullable, Lean: true, Description: "An active record; null for a root."},
				{Name: "type", Required: true},
				{Name: "title", Required: true}, {Name: "summary", Required: true},
				{Name: "body", Required: true}, {Name: "state", Enum: stateNames(), Default: string(record.Open)},
				{Name: "related", Kind: Strings, Description: "Record ids."}, {Name: "metadata", Kind: Object},
				projectIDParam(), sessionIDParam(),
			},
			Call: func(ctx context.Context, a Args) (any, error) {
				return r.Create(ctx, record.CreateArgs{
					Caller: t.caller(a), ParentID: a.Text("parent_id"), Type: a.String("type"), Title: a.String("title"),
					Summary: a.String("summary"), Body: a.String("body"), State: record.State(a.String("state")),
					Related: a.Strings("related"), Metadata: a.Object("metadata"),
				})
			},
		},
		{
			Name: "update_record", Lean: true,
			Description: "Change an active record. A conflict in the answer means that nothing was stored: " +
				"show the user both versions, then force.",
			Brief: "Change an active record. After a conflict ask the user, then force.",
			Params: []Param{
				idParam(), {Name: "title", Lean: true}, {Name: "summary", Lean: true}, {Name: "body", Lean: true},
				{Name: "related", Kind: Strings}, {Name: "metadata", Kind: Object}, {Name: "force", Kind: Boolean, Lean: true}, projectIDParam(), sessionIDParam(),
			},
			Call: func(ctx context.Context, a Args) (any, error) {
				return r.Update(ctx, record.UpdateArgs{
					Caller: t.caller(a), ID: a.String("id"), Title: a.Text("title"), Summary: a.Text("summary"),
					Body: a.Text("body"), Related: a.Strings("related"), Metadata: a.Object("metadata"), Force: a.Bool("force"),
				})
			},
		},
		{
			Name: "transition", Lean: true,
			Description: "Change an active record's state.",
			Brief:       "Change an active record's state. LATER and DISCARDED want a reason.",
			Params: []Param{
				idParam(), {Name: "to_state", Required: true, Enum: stateNames()},
				{Name: "reason", Lean: true, Description: "For LATER and DISCARDED."},
				{Name: "resolved_by", Lean: true, Description: "For RESOLVED: the record with the answer."},
				projectIDParam(), sessionIDParam(),
			},
			Call: func(ctx context.Context, a Args) (any, error) {
				return r.Transition(ctx, record.TransitionArgs{
					Caller: t.caller(a), ID: a.String("id"), ToState: record.State(a.String("to_state")),
					Reason: a.String("reason"), ResolvedBy: a.String("resolved_by"),
				})
			},
		},
	}
}

func (t *recordTools) pastTools() []Tool {
	r := t.records
	return []Tool{
		{
			Name: "get_record_history", ReadOnly: true,
			Description: "A record's stored changes, newest first.",
			Params: []Param{
				idParam(), sinceParam(), {Name: "limit", Kind: Integer, Default: 50}, projectIDParam(), atParam(),
			},
			Call: func(ctx context.Context, a Args) (any, error) {
				return r.History(ctx, record.HistoryArgs{
					Caller: t.caller(a), ID: a.String("id"), Since: a.String("since"), Limit: limit(a), At: a.String("at"),
				})
			},
		},
		{
			Name: "get_record_diff", ReadOnly: true,
			Description: "Compare two versions of a record, each given as a time, last_save, vN or tick:N.",
			Params: []Param{
				idParam(), {Name: "from", Required: true}, {Name: "to", Description: "Default: now."},
				projectIDParam(), sessionIDParam(),
			},
			Call: func(ctx context.Context, a Args) (any, error) {
				return r.Diff(ctx, record.DiffArgs{Caller: t.caller(a), ID: a.String("id"), From: a.String("from"), To: a.String("to")})
			},
		},
		{
			Name: "get_active_sessions", ReadOnly: true,
			Description: "Which sessions have a record active.",
			Params:      []Param{{Name: "record_id", Required: true}, projectIDParam(), sessionIDParam(), atParam()},
			Call: func(ctx context.Context, a Args) (any, error) {
				return r.ActiveSessions(ctx, record.ActiveSessionsArgs{
					Caller: t.caller(a), RecordID: a.String("record_id"), At: a.String("at"),
				})
			},
		},
		{
			Name: "get_recent_activity", ReadOnly: true,
			Description: "What happened in the project, newest first.",
			Params: []Param{
				{Name: "limit", Kind: Integer, Default: 50}, sinceParam(),
				{Name: "types", Kind: Strings, Description: "Such as record_created, state_transition, session_saved."},
				{Name: "record_id"}, projectIDParam(), atParam(),
			},
			Call: func(ctx context.Context, a Args) (any, error) {
				return r.RecentActivity(ctx, record.ActivityArgs{
					Caller: t.caller(a), Limit: limit(a), Since: a.String("since"), Types: a.Strings("types"),
					RecordID: a.String("record_id"), At: a.String("at"),
				})
			},
		},
	}
}

func idParam() Param        { return Param{Name: "id", Required: true} }
func projectIDParam() Param { return Param{Name: "project_id"} }
func sessionIDParam() Param { return Param{Name: "session_id"} }
func sinceParam() Param     { return Param{Name: "since", Description: "RFC 3339."} }
func atParam() Param        { return Param{Name: "at", Description: "As of a time or tick:N."} }
func statesParam() Param    { return Param{Name: "states", Kind: Strings, Enum: stateNames()} }

func stateNames() []string {
	return []string{string(record.Open), string(record.Later), string(record.Resolved), string(record.Discarded)}
}

func states(a Args) (list []record.State) {
	for _, s := range a.Strings("states") {
		list = append(list, record.State(s))
	}
	return list
}

// limit is the argument of that name, 0 for the command's own; what is below 1
// counts as 1.
func limit(a Args) int {
	if n := a.Int("limit"); n != nil {
		return max(*n, 1)
	}
	return 0
}

func number(a Args, name string) int {
	if n := a.Int(name); n != nil {
		return *n
	}
	return 0
}
