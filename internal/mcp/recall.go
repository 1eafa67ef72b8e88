package mcp

import (
	"context"

	"cairn"
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
func RecallTool(ask func(context.Context, RecallArgs) (cairn.Recalled, error)) Tool {
	return Tool{
		Name: "recall", Title: "Recall", ReadOnly: true, Lean: true,
		Description: `Reach for this first when past work may matter: what was done, decided, said, what failed. ` +
			`Ask in plain words; sessions come back, best first, with records, mail and memories. ` +
			`Always give words too. A time ("last week") counts.`,
		Brief: "Reach for this first: what was done, decided, said before. Ask in plain words; always give words too.",
		Params: []Param{
			{Name: "query", Required: true, Description: "A question."},
			{Name: "words", Lean: true, Description: "Names, files, identifiers, error texts, synonyms that you expect there."},
			{Name: "project", Kind: Project, Description: "Omit for all, the current one preferred."},
			{Name: "limit", Kind: Integer, Default: 5, Minimum: new(1), Maximum: new(100), Description: "Sessions."},
			{
				Name: "detail", Default: cairn.DetailBrief, Enum: []string{cairn.DetailBrief, cairn.DetailFull},
				Description: "full: 4,000 tokens, not 800.",
			},
		},
		Call: func(ctx context.Context, a Args) (any, error) {
			_, given := a.values["project"]
			found, err := ask(ctx, RecallArgs{
				Query: a.String("query"), Words: a.String("words"), Project: a.Scope("project"), Prefer: !given, Limit: a.Int("limit"),
				Detail: a.String("detail"), Remote: a.IsRemote(),
			})
			if err != nil {
				return nil, err
			}
			return Spoken{Text: found.Text("", ""), Value: found}, nil
		},
	}
}
