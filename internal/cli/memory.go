package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/fault"
	"cairn/internal/memory"
)

func memoryCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "memory",
		Short: "Keep texts for later sessions, and for other devices",
		Long: `memory keeps what is worth keeping: entries, word for word, and for each memory one
context document that sums it up. A memory stands in a vault; every project has one of
its own, which the commands mean unless --memory names another.

Without a hub an entry is committed at once. With one (cairn hub join) it is stored
here at once and inflight until the hub has confirmed it; then other devices have it,
too. A text that is - is read from standard input.`,
		Example: `  cairn memory add-entry "Invoices are numbered per year." --summary "invoice numbers"
  cairn memory list-entries
  cairn memory search "invoice numbers"
  cairn memory update-context - < context.md`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		addEntryCommand(p), listEntriesCommand(p), getEntryCommand(p), patchEntryCommand(p), correctEntryCommand(p), deletingCommand(p, "entry"),
		listInflightCommand(p), getInflightCommand(p), getContextCommand(p), updateContextCommand(p),
		createVaultCommand(p), listVaultsCommand(p), getVaultCommand(p), deletingCommand(p, "vault"),
		createMemoryCommand(p), listMemoriesCommand(p), getMemoryCommand(p), deletingCommand(p, "memory"), awaitCommand(p),
		searchMemoryCommand(p), getTopKCommand(p), getPromptsCommand(p), exportMemoryCommand(p), importMemoryCommand(p), purgeMemoriesCommand(p),
	)
	return cmd
}

func addEntryCommand(p *Process) *cobra.Command {
	f := remembering(p)
	var a memory.NewEntry
	var tags []string
	var metadata string
	cmd := answering(&f, cobra.Command{
		Use:   "add-entry TEXT",
		Short: "Keep a text, word for word",
		Long: `add-entry keeps a text of at most 9,000 characters. Once it has answered, the text is on
the disk. Its localId, pending-N, names it on this device; its entryId, which a hub
gives it later, everywhere.`,
		Example: `  cairn memory add-entry "Ana wants refunds in UTC." --summary "refunds count in UTC" --tag topic=refunds
  git log -1 --format=%B | cairn memory add-entry - --summary "last commit"`,
		Args: exactArgs(1, "one text, or - for standard input"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (out memory.Added, err error) {
		a.MemoryID = f.memory
		if a.RawEntry, err = p.textOf("text", args[0]); err != nil {
			return out, err
		}
		if a.Tags, err = tagsOf(tags); err != nil {
			return out, err
		}
		if cmd.Flags().Changed("metadata") {
			if a.Metadata = json.RawMessage(metadata); !json.Valid(a.Metadata) {
				return out, fault.New(fault.Invalid, memory.CodeInvalid, "--metadata must be a JSON object")
			}
		}
		return kept(cmd, c, &f, func(ctx context.Context, b *memory.Service, who memory.Caller) (memory.Added, memory.WriteInfo, error) {
			return b.AddEntry(ctx, who, a)
		})
	}, func(w io.Writer, e memory.Added) error {
		name := e.EntryID
		if name == "" {
			name = e.LocalID
		}
		_, err := fmt.Fprintf(w, "%s %s\n", e.Status, name)
		return err
	})
	cmd.Flags().StringVarP(&a.Summary, "summary", "s", "", "what it says, in at most 512 characters")
	cmd.Flags().StringArrayVar(&tags, "tag", nil, "a `KEY=VALUE` to find it by (may be repeated)")
	cmd.Flags().StringVar(&metadata, "metadata", "", "a JSON object to keep with it")
	cmd.Flags().StringVar(&a.SessionID, "session-id", "", "the session that it belongs to")
	return f.keyed(f.about(cmd))
}

func listEntriesCommand(p *Process) *cobra.Command {
	f := remembering(p)
	var a memory.ListArgs
	var tags []string
	cmd := answering(&f, cobra.Command{
		Use: "list-entries", Aliases: []string{"get-entries"},
		Short: "List committed entries, newest first",
		Long: `list-entries prints the newest entries. --before goes on to older ones, --after lists
the oldest that are newer; both take a time or an entry's id.`,
		Example: "  cairn memory list-entries --limit 5\n  cairn memory list-entries --tag topic=refunds --before 2026-03-01T00:00:00Z",
		Args:    noArgs,
	}, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) (memory.Listed, error) {
		a.MemoryID = f.memory
		for _, pair := range tags {
			key, value, ok := strings.Cut(pair, "=")
			if !ok {
				return memory.Listed{}, fault.Newf(fault.Invalid, "usage", "--tag takes KEY=VALUE, not %.40q", pair)
			}
			a.Tags = append(a.Tags, key+":"+value)
		}
		return recalled(cmd, c, &f, func(ctx context.Context, b *memory.Service, who memory.Caller) (memory.Listed, error) {
			return b.ListEntries(ctx, who, a)
		})
	}, func(w io.Writer, l memory.Listed) error { return printEntries(w, l.Entries...) })
	cmd.Flags().Int64Var(&a.Limit, "limit", 25, "most entries, 1 to 50")
	cmd.Flags().StringVar(&a.Before, "before", "", "only older ones than this time or entry")
	cmd.Flags().StringVar(&a.After, "after", "", "only newer ones, the oldest of them")
	cmd.Flags().StringArrayVar(&tags, "tag", nil, "only those with this `KEY=VALUE` (may be repeated)")
	cmd.Flags().StringVar(&a.SessionID, "session-id", "", "only those of a session")
	return f.about(cmd)
}

// printEntries prints a line per entry: when, which, and what it says in short.
func printEntries(w io.Writer, entries ...memory.Entry) error {
	for _, e := range entries {
		short := e.Summary
		if strings.TrimSpace(short) == "" {
			short = e.RawEntry
		}
		if _, err := fmt.Fprintf(w, "%s  %s  %s\n", when(e.CreationTime), e.EntryID, firstOf(short, 100)); err != nil {
			return err
		}
	}
	return nil
}

// when is a time as people read it.
func when(t memory.Time) string {
	text := t.String()
	return text[:10] + " " + text[11:16]
}

// firstOf is the beginning of a text, safe for a terminal.
func firstOf(text string, most int) string {
	runes := []rune(printable(strings.Join(strings.Fields(text), " ")))
	if len(runes) > most {
		runes = append(runes[:most-1], '…')
	}
	return string(runes)
}

func getEntryCommand(p *Process) *cobra.Command {
	f := remembering(p)
	cmd := answering(&f, cobra.Command{
		Use: "get-entry ID", Short: "Show a committed entry",
		Example: "  cairn memory get-entry 0b9d2c1e-6f5a-4a57-9a3f-0f8f5a3c2b11",
		Args:    exactArgs(1, "one entry's id"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (memory.Entry, error) {
		return recalled(cmd, c, &f, func(ctx context.Context, b *memory.Service, who memory.Caller) (memory.Entry, error) {
			return b.GetEntry(ctx, who, f.memory, args[0])
		})
	}, printEntry)
	return f.about(cmd)
}

func printEntry(w io.Writer, e memory.Entry) error {
	if err := printEntries(w, e); err != nil {
		return err
	}
	for _, tag := range sortedTags(e.Tags) {
		fmt.Fprintf(w, "  %s\n", printable(tag))
	}
	if e.CorrectedEntryID != "" {
		fmt.Fprintf(w, "  corrected by %s: %s\n", e.CorrectedEntryID, printable(e.CorrectionReason))
	}
	_, err := fmt.Fprintf(w, "\n%s\n", printable(e.RawEntry))
	return err
}

func patchEntryCommand(p *Process) *cobra.Command {
	f := remembering(p)
	var tags []string
	var summary string
	var untag bool
	cmd := answering(&f, cobra.Command{
		Use: "patch-entry ID", Short: "Replace an entry's tags or summary",
		Example: "  cairn memory patch-entry ID --summary \"what it says\" --tag topic=refunds\n  cairn memory patch-entry ID --no-tags",
		Args:    exactArgs(1, "one entry's id"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (out memory.Entry, err error) {
		var patch memory.Patch
		if patch.Tags, err = tagsOf(tags); err != nil {
			return out, err
		}
		if untag {
			patch.Tags = map[string]string{}
		}
		if cmd.Flags().Changed("summary") {
			patch.Summary = &summary
		}
		return kept(cmd, c, &f, func(ctx context.Context, b *memory.Service, who memory.Caller) (memory.Entry, memory.WriteInfo, error) {
			return b.PatchEntry(ctx, who, f.memory, args[0], patch)
		})
	}, printEntry)
	cmd.Flags().StringArrayVar(&tags, "tag", nil, "a `KEY=VALUE` of the new tags, which replace the old (may be repeated)")
	cmd.Flags().BoolVar(&untag, "no-tags", false, "take all tags off")
	cmd.Flags().StringVarP(&summary, "summary", "s", "", "the new summary")
	cmd.MarkFlagsMutuallyExclusive("tag", "no-tags")
	return f.keyed(f.about(cmd))
}

func correctEntryCommand(p *Process) *cobra.Command {
	f := remembering(p)
	var a memory.Correction
	cmd := answering(&f, cobra.Command{
		Use: "correct-entry ID RIGHT-ID", Short: "Mark an entry as corrected by another one, once",
		Example: "  cairn memory correct-entry OLD NEW --reason \"the limit is 30 days\"",
		Args:    exactArgs(2, "the ids of the entry that is wrong and of the one that is right"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (memory.Entry, error) {
		a.CorrectedEntryID = args[1]
		return kept(cmd, c, &f, func(ctx context.Context, b *memory.Service, who memory.Caller) (memory.Entry, memory.WriteInfo, error) {
			return b.CorrectEntry(ctx, who, f.memory, args[0], a)
		})
	}, printEntry)
	cmd.Flags().StringVar(&a.Reason, "reason", "", "why")
	return f.keyed(f.about(cmd))
}

func listInflightCommand(p *Process) *cobra.Command {
	f := remembering(p)
	var limit int64
	cmd := answering(&f, cobra.Command{
		Use: "list-inflight-entries", Short: "List entries that the hub has not confirmed, oldest first",
		Example: "  cairn memory list-inflight-entries",
		Args:    noArgs,
	}, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) (memory.InflightList, error) {
		return recalled(cmd, c, &f, func(ctx context.Context, b *memory.Service, who memory.Caller) (memory.InflightList, error) {
			return b.ListInflight(ctx, who, f.memory, limit)
		})
	}, func(w io.Writer, l memory.InflightList) error {
		for _, e := range l.Entries {
			if err := printInflight(w, e); err != nil {
				return err
			}
		}
		return nil
	})
	cmd.Flags().Int64Var(&limit, "limit", 25, "most entries, 1 to 50")
	return f.about(cmd)
}

func printInflight(w io.Writer, e memory.Inflight) error {
	short := e.Summary
	if strings.TrimSpace(short) == "" {
		short = e.RawEntry
	}
	_, err := fmt.Fprintf(w, "%s  %s  %s\n", when(e.CreationTime), e.LocalID, firstOf(short, 100))
	return err
}

// oneInflight is the answer about one inflight entry (seed inflight-entries).
type oneInflight struct {
	Entry memory.Inflight `json:"entry"`
}

func getInflightCommand(p *Process) *cobra.Command {
	f := remembering(p)
	cmd := answering(&f, cobra.Command{
		Use: "get-inflight-entry LOCAL-ID", Short: "Show an entry that the hub has not confirmed",
		Example: "  cairn memory get-inflight-entry pending-12",
		Args:    exactArgs(1, "one entry's localId, such as pending-12"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (oneInflight, error) {
		return recalled(cmd, c, &f, func(ctx context.Context, b *memory.Service, who memory.Caller) (oneInflight, error) {
			e, err := b.GetInflight(ctx, who, f.memory, args[0])
			return oneInflight{e}, err
		})
	}, func(w io.Writer, e oneInflight) error {
		if err := printInflight(w, e.Entry); err != nil {
			return err
		}
		_, err := fmt.Fprintf(w, "\n%s\n", printable(e.Entry.RawEntry))
		return err
	})
	return f.about(cmd)
}

func getContextCommand(p *Process) *cobra.Command {
	f := remembering(p)
	var history bool
	var at string
	cmd := answering(&f, cobra.Command{
		Use: "get-context", Short: "Print a memory's context document",
		Long: `get-context prints the current document. Where two devices have written over the same
one, the hub keeps the first as the current one and the other as a version: --history
prints the versions that this device holds, newest first, and --at the document that was
current at a moment.`,
		Example: "  cairn memory get-context\n  cairn memory get-context --history\n  cairn memory get-context --at \"yesterday 14:00\"",
		Args:    noArgs,
	}, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) (any, error) {
		return recalled(cmd, c, &f, func(ctx context.Context, b *memory.Service, who memory.Caller) (any, error) {
			if history {
				return b.ContextHistory(ctx, who, f.memory, 0)
			}
			if at != "" {
				d, err := b.GetContextAt(ctx, who, f.memory, at)
				if err == nil {
					f.sayMoment(d.At)
				}
				return d, err
			}
			d, err := b.GetContext(ctx, who, f.memory)
			if err == nil && d.Conflicts > 0 {
				fmt.Fprintf(p.Err, "cairn: %d contexts of another writer lost against this one: --history prints them\n", d.Conflicts)
			}
			return d, err
		})
	}, func(w io.Writer, out any) error {
		if all, ok := out.(memory.Versions); ok {
			return printVersions(w, all)
		}
		if then, ok := out.(memory.PastDocument); ok {
			if then.Markdown == "" {
				return nil
			}
			out = memory.Document{Markdown: then.Markdown}
		}
		_, err := fmt.Fprintln(w, printable(out.(memory.Document).Markdown))
		return err
	})
	atFlag(cmd, &at)
	cmd.Flags().BoolVar(&history, "history", false, "print the versions, with those that lost against another device's")
	cmd.MarkFlagsMutuallyExclusive("history", "at")
	return f.about(cmd)
}

// printVersions prints the versions of a context, each below a line with its time and
// its state.
func printVersions(w io.Writer, all memory.Versions) error {
	for i, v := range all.Versions {
		state := "replaced"
		switch {
		case v.Current:
			state = "current"
		case v.Open:
			state = "lost against another device's, not merged"
		case v.ConflictWith != "":
			state = "lost against another device's"
		}
		if !v.Synced {
			state += ", not sent"
		}
		if i > 0 {
			fmt.Fprintln(w)
		}
		if _, err := fmt.Fprintf(w, "== %s  %s  session %s\n%s\n", v.UpdatedAt, state, v.SessionID, printable(v.Markdown)); err != nil {
			return err
		}
	}
	return nil
}

func updateContextCommand(p *Process) *cobra.Command {
	f := remembering(p)
	var a memory.NewDocument
	cmd := answering(&f, cobra.Command{
		Use: "update-context TEXT", Aliases: []string{"put-context"},
		Short: "Replace a memory's context document, whole",
		Long: `update-context stores a whole new document of at most 5,000 characters, written over the
current one. If another device has replaced that one first, this document is kept as
a version: cairn memory get-context --history prints it.`,
		Example: "  cairn memory update-context - < context.md",
		Args:    exactArgs(1, "the document, or - for standard input"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (out memory.Document, err error) {
		if a.MemoryID = f.memory; a.SessionID == "" {
			a.SessionID = cairn.NewSessionID()
		}
		if a.Markdown, err = p.textOf("document", args[0]); err != nil {
			return out, err
		}
		return kept(cmd, c, &f, func(ctx context.Context, b *memory.Service, who memory.Caller) (memory.Document, memory.WriteInfo, error) {
			return b.UpdateContext(ctx, who, a)
		})
	}, func(w io.Writer, d memory.Document) error {
		_, err := fmt.Fprintf(w, "stored %s\n", d.UpdatedAt)
		return err
	})
	cmd.Flags().StringVar(&a.SessionID, "session-id", "", "the session that writes it (default: one for this command)")
	return f.keyed(f.about(cmd))
}

func whoamiCommand(p *Process) *cobra.Command {
	f := remembering(p)
	cmd := answering(&f, cobra.Command{
		Use: "whoami", Short: "Print the user id of this device",
		Long: `whoami prints the id under which memories belong to you on this device, and who you are
at the hub if you have joined one.`,
		Example: "  cairn whoami\n  cairn whoami --json",
		Args:    noArgs,
	}, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) (memory.User, error) {
		return kept(cmd, c, &f, func(ctx context.Context, b *memory.Service, who memory.Caller) (memory.User, memory.WriteInfo, error) {
			u, err := b.Whoami(ctx, who)
			return u, memory.WriteInfo{}, err
		})
	}, func(w io.Writer, u memory.User) error {
		fmt.Fprintln(w, u.UserID)
		if u.HubURL != "" {
			fmt.Fprintf(w, "at %s: %s\n", u.HubURL, u.HubUser)
		}
		return nil
	})
	return f.json(cmd)
}
