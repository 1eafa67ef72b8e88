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
		tools[i].Errors = ErrorEnvelope
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
			Name: "create_project", Result: gives[record.Project](),
			Description: "Make a project for records that belongs to no repository. A repository's project exists already. Returns it with its id.",
			Params: params(
				may("id", "Lower-case letters, digits, dots, hyphens, underscores, at most 64. Omitted: one is made."),
				must("name", "For people, at most 200 characters."), may("description", "What it is about, at most 2,000 characters."),
			),
			Call: func(ctx context.Context, a Args) (any, error) {
				return r.CreateProject(ctx, record.CreateProjectArgs{
					ID: a.String("id"), Name: a.String("name"), Description: a.String("description"),
				})
			},
		},
		{
			Name: "list_projects", ReadOnly: true, Result: gives[[]record.ProjectSummary](),
			Description: "List all projects, the last changed first, with how many records and sessions of each are open.",
			Call:        func(ctx context.Context, _ Args) (any, error) { return r.ListProjects(ctx) },
		},
		{
			Name: "get_project", ReadOnly: true, Result: gives[record.Project](),
			Description: "Look up one project and its tick, the count of its writes.",
			Params:      params(may("id", "The project's id. Omitted: the current project."), atParam()),
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
			Name: "get_project_overview", ReadOnly: true, Lean: true, Result: gives[record.Overview](),
			Description: "See where a project's reasoning stands: root, open and deferred records, sessions, recent activity. Begin here before you work with records.",
			Brief:       "See where the project's reasoning stands: its records. Begin here.",
			Params:      params(projectIDParam(), atParam()),
			Call: func(ctx context.Context, a Args) (any, error) {
				return r.Overview(ctx, record.OverviewArgs{Caller: t.caller(a), At: a.String("at")})
			},
		},
		{
			Name: "search_records", Words: "decisions questions notes", ReadOnly: true, Result: gives[record.SearchResult](),
			Description: "Find records by words of their title, summary and body. Best hits first, with a snippet.",
			Params: params(
				must("query", `Words, any of them; also "phrase", prefix*, AND, NOT, parentheses.`), typesParam(), statesParam(),
				may("parent_id", "Only this record and what is below it."),
				count("limit", 20, "How many hits.").least(1).most(500), projectIDParam(), atParam(),
			),
			Call: func(ctx context.Context, a Args) (any, error) {
				return r.Search(ctx, record.SearchArgs{
					Caller: t.caller(a), Query: a.String("query"), Types: a.Strings("types"), States: states(a),
					ParentID: a.String("parent_id"), Limit: limit(a), At: a.String("at"),
				})
			},
		},
		{
			Name: "list_records", ReadOnly: true, Result: gives[[]record.Ref](),
			Description: "List records without their bodies, in the order of the tree.",
			Params: params(
				statesParam(), typesParam(),
				may("parent_id", "Only what is below this record; null: the roots. Omitted: all records.").of(Nullable),
				count("depth", 1, "How many levels below parent_id.").least(1).most(32), projectIDParam(), atParam(),
			),
			Call: func(ctx context.Context, a Args) (any, error) {
				return r.List(ctx, record.ListArgs{
					Caller: t.caller(a), States: states(a), Types: a.Strings("types"),
					ParentID: a.String("parent_id"), Roots: a.IsNull("parent_id"), Depth: number(a, "depth"), At: a.String("at"),
				})
			},
		},
		{
			Name: "get_record_ref", ReadOnly: true, Result: gives[record.Ref](),
			Description: "Look up a record without its body and without activating it. To read the body, activate it.",
			Params:      params(idParam(), projectIDParam(), atParam()),
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
			Name: "activate", Lean: true, Result: gives[record.Activated](),
			Description: "Load a record whole, with its parent and children. Needed before you change it or add below it. " +
				"conflict says that another session has it active: ask the user, then activate again with override.",
			Brief:  "Load a record, before you read it, change it or add below it. On a conflict ask the user, then override.",
			Params: params(idParam(), flag("override", "You know that another session has it active.").lean(""), projectIDParam(), sessionIDParam()),
			Call: func(ctx context.Context, a Args) (any, error) {
				return r.Activate(ctx, record.ActivateArgs{Caller: t.caller(a), ID: a.String("id"), Override: a.Bool("override")})
			},
		},
		{
			Name: "sync_session", Result: gives[record.Synced](),
			Description: "Learn what other sessions changed since this one last synced, oldest first. Use it when a record was changed under you, or after a long pause.",
			Params:      params(projectIDParam(), sessionIDParam()),
			Call: func(ctx context.Context, a Args) (any, error) {
				return r.Sync(ctx, record.SyncArgs{Caller: t.caller(a)})
			},
		},
		{
			Name: "save_session", Result: gives[record.Saved](),
			Description: "Mark this session's changes to records as saved, at a milestone. The archive commits them at once.",
			Params:      params(summaryParam(), projectIDParam(), sessionIDParam()),
			Call:        func(ctx context.Context, a Args) (any, error) { return r.Save(ctx, save(a)) },
		},
		{
			Name: "close_session", Result: gives[record.Closed](),
			Description: "End this session's work on records: no record stays active in it. Changes are stored in any case.",
			Params:      params(summaryParam(), projectIDParam(), sessionIDParam()),
			Call:        func(ctx context.Context, a Args) (any, error) { return r.Close(ctx, save(a)) },
		},
	}
}

func (t *recordTools) writingTools() []Tool {
	r := t.records
	return []Tool{
		{
			Name: "create_record", Words: "decision question conclusion note document adr", Lean: true, Result: gives[record.Created](),
			Description: "Store a question, conclusion, note or other record, below an active record or as a root. It is active at once. " +
				"Write it so that it explains itself without this chat.",
			Brief: "Store a question, conclusion or note that explains itself.",
			Params: params(
				may("parent_id", "An active record to put it below; null or omitted: a root.").of(Nullable).lean("An active record."),
				must("type", "Any word for its kind, such as question, conclusion, note.").lean(""), must("title", "One line, at most 200 characters.").lean(""),
				must("summary", "What it says, at most 1,000 characters.").lean(""),
				must("body", "The whole text in Markdown. Cite code as path#L10-L20: then changes of that code are noticed.").lean(""),
				may("state", "Its state.").among(stateNames()...).by(string(record.Open)), relatedParam(), metadataParam(),
				projectIDParam(), sessionIDParam(),
			),
			Call: func(ctx context.Context, a Args) (any, error) {
				return r.Create(ctx, record.CreateArgs{
					Caller: t.caller(a), ParentID: a.Text("parent_id"), Type: a.String("type"), Title: a.String("title"),
					Summary: a.String("summary"), Body: a.String("body"), State: record.State(a.String("state")),
					Related: a.Strings("related"), Metadata: a.Object("metadata"),
				})
			},
		},
		{
			Name: "update_record", Lean: true, Result: gives[record.Updated](),
			Description: "Change an active record; fields that you leave out stay. conflict in the answer means that nothing was stored, since another session changed it: " +
				"show the user both versions, then update again, with force if yours is to stand.",
			Brief: "Change an active record. After a conflict ask the user, then force.",
			Params: params(
				idParam(), may("title", "The new title.").lean(""), may("summary", "The new summary.").lean(""), may("body", "The whole new body.").lean(""),
				relatedParam(), metadataParam(), flag("force", "Store this version although another session changed the record.").lean(""),
				projectIDParam(), sessionIDParam(),
			),
			Call: func(ctx context.Context, a Args) (any, error) {
				return r.Update(ctx, record.UpdateArgs{
					Caller: t.caller(a), ID: a.String("id"), Title: a.Text("title"), Summary: a.Text("summary"),
					Body: a.Text("body"), Related: a.Strings("related"), Metadata: a.Object("metadata"), Force: a.Bool("force"),
				})
			},
		},
		{
			Name: "transition", Words: "close resolve reopen defer state status done", Result: gives[record.Transitioned](),
			Description: "Change the state of an active record: RESOLVED when it is answered, LATER to defer it, DISCARDED to drop it, OPEN to take it up again.",
			Params: params(
				idParam(), must("to_state", "The new state.").among(stateNames()...),
				may("reason", "Why. Required for LATER and DISCARDED."), may("resolved_by", "Id of the record that holds the answer. Required for RESOLVED."),
				projectIDParam(), sessionIDParam(),
			),
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
			Name: "get_record_history", Words: "versions past", ReadOnly: true, Result: gives[[]record.HistoryItem](),
			Description: "List the stored changes of a record, newest first, each with the diff of its body.",
			Params: params(
				idParam(), sinceParam(), count("limit", 50, "How many changes.").least(1).most(500), projectIDParam(), atParam(),
			),
			Call: func(ctx context.Context, a Args) (any, error) {
				return r.History(ctx, record.HistoryArgs{
					Caller: t.caller(a), ID: a.String("id"), Since: a.String("since"), Limit: limit(a), At: a.String("at"),
				})
			},
		},
		{
			Name: "get_record_diff", Words: "changes versions", ReadOnly: true, Result: gives[record.VersionDiff](),
			Description: "Compare two versions of a record: both versions, and what differs between them.",
			Params: params(
				idParam(), must("from", "The older version: a time (RFC 3339), last_save, vN or tick:N."), may("to", "The newer version, likewise. Omitted: now."),
				projectIDParam(), sessionIDParam(),
			),
			Call: func(ctx context.Context, a Args) (any, error) {
				return r.Diff(ctx, record.DiffArgs{Caller: t.caller(a), ID: a.String("id"), From: a.String("from"), To: a.String("to")})
			},
		},
		{
			Name: "get_active_sessions", ReadOnly: true, Result: gives[[]record.ActiveSession](),
			Description: "List the sessions that have a record active.",
			Params:      params(must("record_id", "The record's id, such as R007."), projectIDParam(), sessionIDParam(), atParam()),
			Call: func(ctx context.Context, a Args) (any, error) {
				return r.ActiveSessions(ctx, record.ActiveSessionsArgs{
					Caller: t.caller(a), RecordID: a.String("record_id"), At: a.String("at"),
				})
			},
		},
		{
			Name: "get_recent_activity", ReadOnly: true, Result: gives[[]record.Activity](),
			Description: "List what happened to the records of a project, newest first.",
			Params: params(
				count("limit", 50, "How many events.").least(1).most(500), sinceParam(),
				may("types", "Only these events.").of(Strings).among(record.ActivityTypes()...),
				may("record_id", "Only events of this record."), projectIDParam(), atParam(),
			),
			Call: func(ctx context.Context, a Args) (any, error) {
				return r.RecentActivity(ctx, record.ActivityArgs{
					Caller: t.caller(a), Limit: limit(a), Since: a.String("since"), Types: a.Strings("types"),
					RecordID: a.String("record_id"), At: a.String("at"),
				})
			},
		},
	}
}

func idParam() Param { return must("id", "The record's id, such as R007.").lean("") }

func projectIDParam() Param {
	return may("project_id", "The project, by its id. Omitted: the current project.")
}

func sessionIDParam() Param {
	return may("session_id", "The session that acts. Omitted: the current session.")
}

func summaryParam() Param { return may("summary", "What was done, in a sentence or two.") }
func sinceParam() Param   { return may("since", "Only what happened from this time on (RFC 3339).") }

func atParam() Param {
	return may("at", "Shows the project as it was: at a time (RFC 3339, yesterday 14:00, 2h ago), at tick:N, or at #N, a position in the change log.")
}

func statesParam() Param {
	return may("states", "Only records in these states.").of(Strings).among(stateNames()...)
}

func typesParam() Param {
	return may("types", "Only records of these types, such as question or conclusion.").of(Strings)
}

func relatedParam() Param {
	return may("related", "Ids of related records, at most 100.").of(Strings)
}

func metadataParam() Param {
	return may("metadata", "Anything else to keep with it: a JSON object of at most 64 KiB.").of(Object)
}

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
