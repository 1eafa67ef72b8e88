package findcmd

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/cli/command"
	"cairn/internal/recall"
	"cairn/internal/store"
)

func recallCommand(p *command.Process) *cobra.Command {
	var a recall.Args
	var full bool
	cmd := &cobra.Command{
		Use:   "recall QUESTION",
		Short: "Ask in plain words what was done, decided and said before",
		Long: `recall answers a question in plain words. It prints the best matching past sessions, with
matching records, messages and memory entries. Not all words must match. Rare words count
most, words such as "how" and "was" do not count, and an unknown word is replaced by the
nearest known one. A time in the question ("yesterday", "last week", "in January") puts
sessions of that time first.

--words adds words that you expect in the result: names, files, identifiers, error texts.
It improves the result more than anything else. A question with OR, NOT, "a phrase",
prefix* or NEAR(a b, 5) is an exact query, as in cairn search.

recall searches all projects unless you use --project. It skips the session that asks, if
another one matches. The output has at most 160 tokens per session of --limit, 800 by
default; with --full it has 800 tokens per session.`,
		Example: `  cairn recall 'why did the refund test fail last week'
  cairn recall 'how did we speed up the import' --words 'batch insert prepared statement'
  cairn recall --json 'who asked for UTC'`,
		Args: command.ExactArgs(1, "one question; put quotes around several words"),
		RunE: p.WithCairn(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) error {
			if a.Query = args[0]; full {
				a.Detail = recall.DetailFull
			}
			return printRecall(p, cmd, c, a)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&a.Words, "words", "", "words that the result should contain")
	f.StringVar(&a.Project, "project", "", "only this project (id or alias)")
	f.IntVar(&a.Limit, "limit", 5, "maximum number of sessions (1–100)")
	f.BoolVar(&full, "full", false, "up to 800 tokens for each session")
	f.Bool("json", false, "print JSON")
	return cmd
}

// printRecall prints the result of cairn recall and cairn search --all.
func printRecall(p *command.Process, cmd *cobra.Command, c *cairn.Cairn, a recall.Args) error {
	a.Progress = p.AfterASecond()
	c.IndexTurns(cmd.Context())
	var err error
	if a.Asker, err = c.CallerSession(cmd.Context()); err != nil {
		return err
	}
	found, err := c.Recall(cmd.Context(), a)
	if err != nil {
		return err
	}
	if asJSON, _ := cmd.Flags().GetBool("json"); asJSON {
		err = command.PrintJSON(p.Out, found)
	} else {
		on, off := p.Marks()
		_, err = io.WriteString(p.Out, found.TextForPeople(on, off))
	}
	if err == nil {
		_, err = fmt.Fprintf(p.Err, "cairn: %s for %q\n", command.Counted(len(found.Results), "result"), a.Query)
	}
	return err
}
