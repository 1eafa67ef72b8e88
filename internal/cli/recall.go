package cli

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/recall"
	"cairn/internal/store"
)

func recallCommand(p *Process) *cobra.Command {
	var a recall.Args
	var full bool
	cmd := &cobra.Command{
		Use:   "recall QUESTION",
		Short: "Ask in plain words what was done, decided and said before",
		Long: `recall finds past sessions for a question in plain words, best first, together with the
records, messages and entries of memories that fit. Not all words must match: rare words
count most, words such as "how" and "was" do not count, and an unknown word is replaced
by the nearest known one. A time in the question ("yesterday", "last week", "in
January") finds sessions of that time first.

--words gives words that you expect there: names, files, identifiers, error texts. It
helps more than anything else. A question with OR, NOT, "a phrase", prefix* or
NEAR(a b, 5) is an exact query, as for cairn search.

The session that asks is left out if another one matches. All projects are searched
unless --project names one. The answer has at most 160 tokens for each session of
--limit, which makes 800, and 800 for each with --full.`,
		Example: `  cairn recall 'why did the refund test fail last week'
  cairn recall 'how did we speed up the import' --words 'batch insert prepared statement'
  cairn recall --json 'who asked for UTC'`,
		Args: exactArgs(1, "one question; put quotes around several words"),
		RunE: p.using(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, args []string) error {
			if a.Query = args[0]; full {
				a.Detail = recall.DetailFull
			}
			return p.recall(cmd, c, a)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&a.Words, "words", "", "words that the answer is expected to hold")
	f.StringVar(&a.Project, "project", "", "only this project (id or alias)")
	f.IntVar(&a.Limit, "limit", 5, "maximum number of sessions (1–100)")
	f.BoolVar(&full, "full", false, "up to 800 tokens for each session")
	f.Bool("json", false, "print JSON")
	return cmd
}

// recall prints the answer of cairn recall and cairn search --all.
func (p *Process) recall(cmd *cobra.Command, c *cairn.Cairn, a recall.Args) error {
	a.Progress = p.afterASecond()
	c.IndexTurns(cmd.Context())
	var err error
	if a.Asker, err = c.AskingSession(cmd.Context()); err != nil {
		return err
	}
	found, err := c.Recall(cmd.Context(), a)
	if err != nil {
		return err
	}
	if asJSON, _ := cmd.Flags().GetBool("json"); asJSON {
		err = printJSON(p.Out, found)
	} else {
		on, off := p.marks()
		_, err = io.WriteString(p.Out, found.TextForPeople(on, off))
	}
	if err == nil {
		_, err = fmt.Fprintf(p.Err, "cairn: %s for %q\n", counted(len(found.Results), "result"), a.Query)
	}
	return err
}

// marks are what standard output shows before and after a word that matched: bold in a
// terminal that shows colour (no-color.org), else nothing.
func (p *Process) marks() (on, off string) {
	if !p.printsToTerminal() || p.Getenv("NO_COLOR") != "" || p.Getenv("TERM") == "dumb" {
		return "", ""
	}
	return "\x1b[1m", "\x1b[0m"
}

// printsToTerminal reports whether standard output is a terminal.
func (p *Process) printsToTerminal() bool {
	out, wrapped := p.Out.(*output)
	if !wrapped {
		return false
	}
	f, ok := out.WriteCloser.(*os.File)
	return ok && isTerminal(f)
}

// sayCorrected says which words of a query were replaced, and the hint of an empty result.
func (f *answers) sayCorrected(corrected map[string]string, hint string) {
	for _, word := range slices.Sorted(maps.Keys(corrected)) {
		f.say("%q was searched for as %q", word, corrected[word])
	}
	if hint != "" {
		f.say("%s", hint)
	}
}
