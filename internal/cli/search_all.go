package cli

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"cairn"
)

// searchAll answers cairn search --all.
func (p *Process) searchAll(cmd *cobra.Command, c *cairn.Cairn, a cairn.SearchAllArgs) error {
	a.Progress = p.afterASecond()
	found, err := c.SearchAll(cmd.Context(), a)
	if err != nil {
		return err
	}
	if asJSON, _ := cmd.Flags().GetBool("json"); asJSON {
		err = printJSON(p.Out, found)
	} else {
		err = printFound(p.Out, found)
	}
	if err == nil {
		_, err = fmt.Fprintf(p.Err, "cairn: %s for %q\n", counted(len(found), "result"), a.Query)
	}
	return err
}

func printFound(w io.Writer, found []cairn.FoundAnywhere) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for _, f := range found {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", f.Part, printable(f.ID), f.When.Format("2006-01-02 15:04"), printable(f.Project), firstOf(f.Title, 100))
	}
	return t.Flush()
}
