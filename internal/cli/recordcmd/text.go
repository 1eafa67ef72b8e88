package recordcmd

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"cairn/internal/cli/command"
	"cairn/internal/record"
)

// withStates returns the refs in one of the states, and the refs above them. Without
// states it returns all refs. refs are sorted parents first.
func withStates(refs []record.Ref, states []record.State) []record.Ref {
	if len(states) == 0 {
		return command.NotNil(refs)
	}
	kept := []record.Ref{}
	needed := map[string]bool{}
	for _, r := range slices.Backward(refs) {
		if needed[r.ID] || slices.Contains(states, r.State) {
			kept = append(kept, r)
			if r.ParentID != nil {
				needed[*r.ParentID] = true
			}
		}
	}
	slices.Reverse(kept)
	return kept
}

// drawTree prints refs, sorted parents first, as a tree. A ref without a parent among
// them is a root.
func drawTree(w io.Writer, refs []record.Ref) error {
	below := map[string][]record.Ref{}
	known := map[string]bool{}
	for _, r := range refs {
		parent := ""
		if r.ParentID != nil && known[*r.ParentID] {
			parent = *r.ParentID
		}
		known[r.ID] = true
		below[parent] = append(below[parent], r)
	}
	var out strings.Builder
	var draw func(r record.Ref, head, tail string)
	draw = func(r record.Ref, head, tail string) {
		fmt.Fprintf(&out, "%s%s\n", head, refLine(r))
		children := below[r.ID]
		for i, c := range children {
			if i < len(children)-1 {
				draw(c, tail+"├─ ", tail+"│  ")
			} else {
				draw(c, tail+"└─ ", tail+"   ")
			}
		}
	}
	for _, r := range below[""] {
		draw(r, "", "")
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// refLine formats a record as one line.
func refLine(r record.Ref) string {
	line := fmt.Sprintf("%s %-9s %s: %s", r.ID, r.State, command.Printable(r.Type), command.Printable(r.Title))
	if r.Drifted {
		line += " (drifted)"
	}
	return line
}

// PrintRefs prints a line per record.
func PrintRefs(w io.Writer, refs []record.Ref) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for _, r := range refs {
		title := command.Printable(r.Title)
		if r.Drifted {
			title += " (drifted)"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", r.ID, r.State, command.Printable(r.Type), title)
	}
	return t.Flush()
}

func printHitsOfRecords(w io.Writer, found record.SearchResult) error {
	for _, h := range found.Results {
		if _, err := fmt.Fprintf(w, "%.3f  %s\n       %s\n", h.Relevance, refLine(h.Ref), command.OneLine(h.Snippet)); err != nil {
			return err
		}
	}
	return nil
}

func printRecord(w io.Writer, r record.Record) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintf(t, "%s\t%s\n", r.ID, command.Printable(r.Title))
	fmt.Fprintf(t, "state\t%s\n", r.State)
	fmt.Fprintf(t, "type\t%s\n", command.Printable(r.Type))
	if r.ParentID != nil {
		fmt.Fprintf(t, "parent\t%s\n", *r.ParentID)
	}
	if r.ResolvedBy != "" {
		fmt.Fprintf(t, "resolved\tby %s\n", r.ResolvedBy)
	}
	if len(r.Related) > 0 {
		fmt.Fprintf(t, "related\t%s\n", strings.Join(r.Related, ", "))
	}
	fmt.Fprintf(t, "version\t%d, %s (created %s)\n", r.Version, r.Modified, r.Created)
	if len(r.Metadata) > 0 {
		fmt.Fprintf(t, "metadata\t%s\n", command.OneLine(string(r.Metadata)))
	}
	for _, c := range r.Citations {
		state := "as it was"
		switch {
		case c.Drifted == nil:
			state = "not compared"
		case *c.Drifted:
			state = "drifted"
		case c.NowAt != "":
			state = "now at " + c.NowAt
		}
		fmt.Fprintf(t, "cites\t%s#%s (%s)\n", command.Printable(c.Path), command.Printable(c.Lines), command.Printable(state))
	}
	if r.Summary != "" {
		fmt.Fprintf(t, "summary\t%s\n", command.OneLine(r.Summary))
	}
	if err := t.Flush(); err != nil || r.Body == "" {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s", command.Block(r.Body))
	return err
}

func printBundle(w io.Writer, a record.Activated) error {
	b := a.Context
	if err := printRecord(w, b.Target); err != nil {
		return err
	}
	if a.Changed != nil {
		fmt.Fprintf(w, "\nchanged since version %d\n%s", a.Changed.FromVersion, diffText(a.Changed.Diff))
	}
	if b.Parent != nil {
		fmt.Fprint(w, "\nparent\n")
		if err := printRecord(w, *b.Parent); err != nil {
			return err
		}
	}
	for _, child := range b.Children.Open {
		fmt.Fprint(w, "\nopen child\n")
		if err := printRecord(w, child); err != nil {
			return err
		}
	}
	for _, more := range []struct {
		title string
		refs  []record.Ref
	}{{"other children", b.Children.Other}, {"grandchildren", b.Grandchildren}} {
		if len(more.refs) == 0 {
			continue
		}
		fmt.Fprintf(w, "\n%s\n", more.title)
		if err := PrintRefs(w, more.refs); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "\nsession %s\n", command.Printable(a.SessionID))
	return err
}

// printUpdated prints the number of the new version, or both versions after a conflict.
func printUpdated(w io.Writer, u record.Updated) error {
	if u.Conflict == nil {
		_, err := fmt.Fprintf(w, "%s v%d\n", u.Record.ID, u.Record.Version)
		return err
	}
	fmt.Fprintf(w, "stored, version %d\n", u.Conflict.OtherVersion.Version)
	if err := printRecord(w, u.Conflict.OtherVersion); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nyours, based on version %d\n", u.Conflict.BaseVersion)
	if err := printRecord(w, u.Conflict.YourVersion); err != nil {
		return err
	}
	if u.Conflict.MergedBody == nil {
		return nil
	}
	_, err := fmt.Fprintf(w, "\nboth bodies merged\n%s", command.Block(*u.Conflict.MergedBody))
	return err
}

func printHistory(w io.Writer, items []record.HistoryItem) error {
	for _, i := range items {
		_, err := fmt.Fprintf(w, "v%-4d tick:%-5d %s  %s  %s\n%s", i.Version, i.Tick, i.Timestamp, command.Printable(i.SessionID), command.OneLine(i.Summary), command.Block(i.Diff))
		if err == nil && i.Other != nil && i.Other.Merged != nil {
			_, err = fmt.Fprintf(w, "both in one, as a proposal:\n%s", command.Block(*i.Other.Merged))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func printDiff(w io.Writer, d record.VersionDiff) error {
	_, err := fmt.Fprintf(w, "%s v%d to v%d\n%s", d.ToVersion.ID, d.FromVersion.Version, d.ToVersion.Version, diffText(d.Diff))
	return err
}

func diffText(d record.Diff) string {
	var out strings.Builder
	pair := func(name string, p *record.Pair) {
		if p != nil {
			fmt.Fprintf(&out, "%s\n-%s\n+%s\n", name, command.OneLine(p.Old), command.OneLine(p.New))
		}
	}
	pair("title", d.Title)
	pair("summary", d.Summary)
	pair("state", d.State)
	if d.Body != "" {
		out.WriteString("body\n" + command.Block(d.Body))
	}
	return out.String()
}

// PrintActivity prints a line per change.
func PrintActivity(w io.Writer, list []record.Activity) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for _, a := range list {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", a.Timestamp, a.Type, a.RecordID, command.Printable(a.SessionID), command.OneLine(a.Summary))
	}
	return t.Flush()
}
