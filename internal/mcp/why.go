package mcp

import (
	"context"

	"cairn/internal/why"
)

// WhyTool returns the tool why (contract records §4.2), implemented by ask. project is
// the default of project_id; "" means the project of the file. Over HTTP the project in
// the URL takes precedence.
func WhyTool(ask func(context.Context, why.Args) (why.Answer, error), project string) Tool {
	return NewTool(Tool{
		Name: "why", Words: "blame reason origin git", Title: "Why", ReadOnly: true, Errors: ErrorEnvelope,
		Description: "Find out why a line of code, or a file, is as it is: the commit, session and prompt that wrote it, and the records about it. " +
			"Use it before you change code that looks odd. confidence: commit or text (an edit wrote the line), history (a guess by time), none. " +
			"missing lists what is unknown.",
	}, func(ctx context.Context, c Call, a why.Args) (why.Answer, error) {
		a.Project = c.ProjectOf(project)
		return ask(ctx, a)
	})
}
