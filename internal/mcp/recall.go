package mcp

import (
	"context"

	"cairn/internal/recall"
)

// RecallArgs are the arguments of recall (amendments §A.4).
type RecallArgs struct {
	Query   string
	Words   string
	Project Scope
	Prefer  bool // Project is no argument of the call: all projects are searched, this one is preferred
	Limit   *int // sessions; 5, 1 to 100
	Detail  string
	Remote  bool // the call came over HTTP, so that the server's own session is not the one that asks
}

// RecallTool is the tool recall, answered by ask.
func RecallTool(ask func(context.Context, RecallArgs) (recall.Answer, error)) Tool {
	return Tool{
		Name: "recall", Title: "Recall", ReadOnly: true, Lean: true, Result: gives[string](),
		Description: "Reach for this first when past work may matter: what was done, decided, said, what failed. Ask in plain words. " +
			"Sessions come back, best first, each with its best rows, and records, mail and memories that fit; then the calls that open them.",
		Brief: "Reach for this first when past work may matter: what was done, decided, said. Ask in plain words.",
		Params: params(
			must("query", `A question in plain words. A time in it counts: yesterday, last week, in January.`).lean(""),
			may("words", "Names, files, identifiers, error texts and synonyms that you expect to stand there. They help more than anything else.").
				lean("Names, files, error texts that you expect there. Always give some."),
			may("project", "Only this project; * for all. Omitted: all, the current one preferred.").of(Project),
			count("limit", 5, "How many sessions.").least(1).most(100),
			may("detail", "brief: at most 800 tokens; full: at most 4,000.").by(recall.DetailBrief).among(recall.DetailBrief, recall.DetailFull),
		),
		Call: func(ctx context.Context, a Args) (any, error) {
			_, given := a.values["project"]
			found, err := ask(ctx, RecallArgs{
				Query: a.String("query"), Words: a.String("words"), Project: a.Scope("project"), Prefer: !given, Limit: a.Int("limit"),
				Detail: a.String("detail"), Remote: a.IsRemote(),
			})
			if err != nil {
				return nil, err
			}
			return TextAndValue{Text: found.Text(), Value: found, Alone: true}, nil
		},
	}
}
