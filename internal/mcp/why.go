package mcp

import (
	"context"

	"cairn/internal/why"
)

// WhyTool is the tool why (contract records §4.2), answered by ask. project is the
// one that calls without a project_id mean, "" for the file's own; over HTTP the
// one in the URL comes first.
func WhyTool(ask func(context.Context, why.Args) (why.Answer, error), project string) Tool {
	return Tool{
		Name: "why", Words: "blame reason origin git", Title: "Why", ReadOnly: true, Errors: ErrorEnvelope, Result: gives[why.Answer](),
		Description: "Find out why a line of code, or a file, is as it is: the commit, session and prompt that wrote it, and the records about it. " +
			"Use it before you change code that looks odd. confidence: commit or text (an edit wrote the line), history (a guess by time), none. " +
			"What is not known is listed under missing.",
		Params: params(
			must("file", "Absolute, or relative to the working directory or the repository."),
			may("line", "The line's number, from 1. Omitted: the whole file.").of(Integer).least(1),
			projectIDParam(),
		),
		Call: func(ctx context.Context, a Args) (any, error) {
			q := why.Args{File: a.String("file"), Line: number(a, "line"), ProjectID: a.String("project_id"), Project: project}
			if url := a.Scope("project_id").Name; url != "" {
				q.Project = url
			}
			return ask(ctx, q)
		},
	}
}
