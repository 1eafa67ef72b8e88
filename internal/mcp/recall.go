package mcp

import (
	"context"

	"cairn/internal/mcp/toolargs"
	"cairn/internal/recall"
)

// RecallArgs are the arguments of recall (amendments §A.4).
type RecallArgs struct {
	Query   string         `arg:"query,required" about:"A question in plain words. A time in it counts: yesterday, last week, in January."`
	Words   string         `arg:"words" about:"Names, files, identifiers, error texts and synonyms that you expect in the result. They help more than anything else." lean:"Names, files, error texts that you expect in the result. Always give some."`
	Project toolargs.Scope `arg:"project" about:"Only this project; * for all. Omitted: all, the current one preferred."`
	Prefer  bool           `arg:"project,omitted"` // all projects are searched, Project is preferred
	Limit   *int           `arg:"limit,default=5,min=1,max=100" about:"Maximum number of sessions."`
	Detail  string         `arg:"detail,default=brief,enum=brief|full" about:"brief: at most 800 tokens; full: at most 4,000."`
	Remote  bool           // the call came over HTTP, so the server's own session is not the caller
}

// RecallTool returns the tool recall, implemented by ask.
func RecallTool(ask func(context.Context, RecallArgs) (recall.Answer, error)) Tool {
	return NewTool(Tool{
		Name: "recall", Title: "Recall", ReadOnly: true, Lean: true, Result: resultOf[string](),
		Description: "Use this first when past work may matter: what was done, decided, said, what failed. Ask in plain words. " +
			"Returns sessions, best first, each with its best rows, and matching records, mail and memories; then the calls that open them.",
		Brief: "Use this first when past work may matter: what was done, decided, said. Ask in plain words.",
	}, func(ctx context.Context, c Call, a RecallArgs) (any, error) {
		a.Remote = c.Remote
		found, err := ask(ctx, a)
		if err != nil {
			return nil, err
		}
		return TextAndValue{Text: found.Text(), Value: found, Alone: true}, nil
	})
}
