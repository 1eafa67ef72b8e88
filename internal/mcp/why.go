package mcp

import (
	"context"

	"cairn/internal/why"
)

// WhyTool is the tool why (contract records §4.2), answered by ask. project is the
// one that calls without a project_id mean, "" for the file's own; over HTTP the
// one in the URL comes first.
func WhyTool(ask func(context.Context, why.Args) (why.Answer, error), project string) Tool {
	return NewTool(Tool{
		Name: "why", Words: "blame reason origin git", Title: "Why", ReadOnly: true, Errors: ErrorEnvelope,
		Description: "Find out why a line of code, or a file, is as it is: the commit, session and prompt that wrote it, and the records about it. " +
			"Use it before you change code that looks odd. confidence: commit or text (an edit wrote the line), history (a guess by time), none. " +
			"What is not known is listed under missing.",
	}, func(ctx context.Context, c Call, a why.Args) (why.Answer, error) {
		a.Project = c.ProjectOf(project)
		return ask(ctx, a)
	})
}
