package mcp

import (
	"context"

	"cairn"
)

// WhyTool is the tool why (contract records §4.2), answered by ask. project is the
// one that calls without a project_id mean, "" for the file's own; over HTTP the
// one in the URL comes first.
func WhyTool(ask func(context.Context, cairn.WhyArgs) (cairn.Why, error), project string) Tool {
	return Tool{
		Name: "why", ReadOnly: true, Errors: Enveloped,
		Description: "Why a line of code, or a file, is as it is: the commit, session and prompt that wrote it, " +
			"and the records about it. confidence: commit or text (an edit wrote the line), history (a guess by time), none. " +
			"What is not known is listed under missing.",
		Params: []Param{
			{Name: "file", Required: true},
			{Name: "line", Kind: Integer, Description: "Omitted: the whole file."},
			projectIDParam(),
		},
		Call: func(ctx context.Context, a Args) (any, error) {
			q := cairn.WhyArgs{File: a.String("file"), Line: number(a, "line"), ProjectID: a.String("project_id"), Project: project}
			if url := a.Scope("project_id").Name; url != "" {
				q.Project = url
			}
			return ask(ctx, q)
		},
	}
}
