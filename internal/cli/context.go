package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/store"
)

func contextCommand(p *Process) *cobra.Command {
	var name, source string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "context",
		Short: "Print what the next session would be told",
		Long: `context prints the same text that a session starting here would be given. Some
agents drop injected text without a word; this shows what was meant to arrive.`,
		Args: cobra.NoArgs,
		RunE: p.using(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) error {
			told, err := c.Context(cmd.Context(), name, source)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(p.Out, struct {
					Text   string `json:"text"`
					Tokens int    `json:"tokens"`
					Rows   int    `json:"rows"`
				}{told.Text, told.Tokens, len(told.Items)})
			}
			if told.Text == "" {
				_, err = fmt.Fprintln(p.Err, "cairn: nothing to tell yet; `cairn import` reads your old sessions")
				return err
			}
			_, err = fmt.Fprint(p.Out, told.Text)
			return err
		}),
	}
	cmd.Flags().StringVar(&name, "project", "", "of this project (id or alias) instead of the one here")
	cmd.Flags().StringVar(&source, "source", "startup", "why the session starts: startup, resume, fork, clear or compact")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON with the text and its size in tokens")
	return cmd
}
