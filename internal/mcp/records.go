package mcp

import (
	"context"
	"reflect"

	"cairn"
	"cairn/internal/mcp/toolargs"
	"cairn/internal/project"
	"cairn/internal/record"
)

// RecordTools returns the tools of records (contract records §2), with the names of the
// seed. project is the default of project_id; "" means the project of the working
// directory. Over HTTP the project in the URL takes precedence.
func RecordTools(r cairn.Records, project string) []Tool {
	t := recordTools{records: r, project: project}
	tools := append(t.projectTools(), t.readingTools()...)
	tools = append(tools, t.sessionTools()...)
	tools = append(tools, t.writingTools()...)
	tools = append(tools, t.pastTools()...)
	texts := map[string]string{
		"id": "The record's id, such as R007.",
		"at": "Show the project at a past time (RFC 3339, yesterday 14:00, 2h ago), at tick:N, or at #N, a position in the change log.",

		"since":    "Only events since this time (RFC 3339).",
		"states":   "Only records in these states.",
		"types":    "Only records of these types, such as question or conclusion.",
		"related":  "Ids of related records, at most 100.",
		"metadata": "Additional data: a JSON object of at most 64 KiB.",
	}
	for i := range tools {
		tools[i].Errors = ErrorEnvelope
		toolargs.WithTexts(tools[i].Params, texts)
	}
	return tools
}

type recordTools struct {
	records cairn.Records
	project string
}

// complete adds the current project and session to a caller, if its arguments do not set
// them (contract records §1).
func (t *recordTools) complete(caller *record.Caller, c Call) {
	caller.Project = c.ProjectOf(t.project)
	if caller.Remote = c.Remote; c.Remote {
		caller.Ancestors = []project.Process{} // the server's ancestors are not the client's
	}
	caller.Transport = c.Connection
}

// recordTool returns a tool that runs one command of records.
func recordTool[A any, P interface {
	*A
	By() *record.Caller
}, T any](t *recordTools, tool Tool, command func(context.Context, A) (T, error)) Tool {
	return tool.with(reflect.TypeFor[A](), reflect.TypeFor[T](), func(ctx context.Context, c Call, in any) (any, error) {
		a := in.(*A)
		t.complete(P(a).By(), c)
		return command(ctx, *a)
	})
}

// projectArgs are the arguments of get_project, the only tool whose project argument is
// called id.
type projectArgs struct {
	ID string `arg:"id" about:"The project's id. Omitted: the current project."`
	At string `arg:"at"`
}

func (t *recordTools) projectTools() []Tool {
	return []Tool{
		argumentsTool(Tool{
			Name:        "create_project",
			Description: "Create a project for records without a repository. The project of a repository already exists. Returns it with its id.",
		}, t.records.CreateProject),
		argumentsTool(Tool{
			Name: "list_projects", ReadOnly: true,
			Description: "List all projects, last changed first, with their numbers of open records and sessions.",
		}, func(ctx context.Context, _ struct{}) ([]record.ProjectSummary, error) {
			return t.records.ListProjects(ctx)
		}),
		NewTool(Tool{
			Name: "get_project", ReadOnly: true,
			Description: "Look up one project and its tick, the count of its writes.",
		}, func(ctx context.Context, c Call, a projectArgs) (record.Project, error) {
			q := record.GetProjectArgs{Caller: record.Caller{ProjectID: a.ID}, At: a.At}
			t.complete(&q.Caller, c)
			return t.records.GetProject(ctx, q)
		}),
	}
}

func (t *recordTools) readingTools() []Tool {
	return []Tool{
		recordTool(t, Tool{
			Name: "get_project_overview", ReadOnly: true, Lean: true,
			Description: "See the state of a project's reasoning: root, open and deferred records, sessions, recent activity. Begin here before you work with records.",
			Brief:       "See the state of the project's reasoning: its records. Begin here.",
		}, t.records.Overview),
		recordTool(t, Tool{
			Name: "search_records", Words: "decisions questions notes", ReadOnly: true,
			Description: "Find records by words in title, summary and body. Best hits first, with a snippet.",
		}, t.records.Search),
		recordTool(t, Tool{
			Name: "list_records", ReadOnly: true,
			Description: "List records without their bodies, in the order of the tree.",
		}, t.records.List),
		recordTool(t, Tool{
			Name: "get_record_ref", ReadOnly: true,
			Description: "Look up a record without its body and without activating it. To read the body, activate it.",
		}, t.records.GetRef),
	}
}

func (t *recordTools) sessionTools() []Tool {
	return []Tool{
		recordTool(t, Tool{
			Name: "activate", Lean: true,
			Description: "Load a whole record, with its parent and children. Required before you change it or add below it. " +
				"conflict means that another session has it active: ask the user, then activate again with override.",
			Brief: "Load a record, before you read it, change it or add below it. On a conflict ask the user, then override.",
		}, t.records.Activate),
		recordTool(t, Tool{
			Name:        "sync_session",
			Description: "See what other sessions changed since the last sync of this one, oldest first. Use it after a conflict or a long pause.",
		}, t.records.Sync),
		recordTool(t, Tool{
			Name:        "save_session",
			Description: "Mark this session's changes to records as saved, at a milestone. The archive commits them immediately.",
		}, t.records.Save),
		recordTool(t, Tool{
			Name:        "close_session",
			Description: "End this session's work on records: no record stays active in it. Changes are stored in any case.",
		}, t.records.Close),
	}
}

func (t *recordTools) writingTools() []Tool {
	return []Tool{
		recordTool(t, Tool{
			Name: "create_record", Words: "decision question conclusion note document adr", Lean: true,
			Description: "Store a question, conclusion, note or other record, below an active record or as a root. It is active immediately. " +
				"Write it so that it explains itself without this chat.",
			Brief: "Store a question, conclusion or note that explains itself.",
		}, t.records.Create),
		recordTool(t, Tool{
			Name: "update_record", Lean: true,
			Description: "Change an active record; omitted fields stay. conflict in the result means that nothing was stored, because another session changed it: " +
				"show the user both versions, then update again, with force to keep yours.",
			Brief: "Change an active record. After a conflict ask the user, then force.",
		}, t.records.Update),
		recordTool(t, Tool{
			Name: "transition", Words: "close resolve reopen defer state status done",
			Description: "Change the state of an active record: RESOLVED when it is answered, LATER to defer it, DISCARDED to drop it, OPEN to take it up again.",
		}, t.records.Transition),
	}
}

func (t *recordTools) pastTools() []Tool {
	return []Tool{
		recordTool(t, Tool{
			Name: "get_record_history", Words: "versions past", ReadOnly: true,
			Description: "List the stored changes of a record, newest first, each with the diff of its body.",
		}, t.records.History),
		recordTool(t, Tool{
			Name: "get_record_diff", Words: "changes versions", ReadOnly: true,
			Description: "Compare two versions of a record: both versions, and what differs between them.",
		}, t.records.Diff),
		recordTool(t, Tool{
			Name: "get_active_sessions", ReadOnly: true,
			Description: "List the sessions that have a record active.",
		}, t.records.ActiveSessions),
		recordTool(t, Tool{
			Name: "get_recent_activity", ReadOnly: true,
			Description: "List what happened to the records of a project, newest first.",
		}, t.records.RecentActivity),
	}
}

func stateNames() []string {
	return []string{string(record.Open), string(record.Later), string(record.Resolved), string(record.Discarded)}
}
