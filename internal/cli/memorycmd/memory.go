package memorycmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/cli/command"
	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/entries"
	"cairn/internal/memory/memories"
)

func memoryCommand(p *command.Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "memory",
		Short: "Keep texts for later sessions, and for other devices",
		Long: `memory keeps texts for later sessions and other devices. A memory has entries, stored
word for word, and one context document that summarises it. Each memory is in a vault.
Every project has its own memory, which is the default of --memory.

Without a hub an entry is committed immediately. With a hub (cairn hub join) an entry is
stored on this device and stays inflight until the hub confirms it. Then other devices
get it too. For the text - the commands read standard input.`,
		Example: `  cairn memory add-entry "Invoices are numbered per year." --summary "invoice numbers"
  cairn memory list-entries
  cairn memory search "invoice numbers"
  cairn memory update-context - < context.md`,
		Args: command.NoArgs,
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

func addEntryCommand(p *command.Process) *cobra.Command {
	f := newMemoryFlags(p)
	var a contents.NewEntry
	var tags []string
	var metadata string
	cmd := command.New(&f, cobra.Command{
		Use:   "add-entry TEXT",
		Short: "Keep a text, word for word",
		Long: `add-entry stores a text of at most 9,000 characters. When it returns, the text is on
disk. The localId, pending-N, identifies the entry on this device. The entryId, which a
hub may assign later, identifies it everywhere.`,
		Example: `  cairn memory add-entry "Ana wants refunds in UTC." --summary "refunds count in UTC" --tag topic=refunds
  git log -1 --format=%B | cairn memory add-entry - --summary "last commit"`,
		Args: command.ExactArgs(1, "one text, or - for standard input"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (out entries.Added, err error) {
		a.MemoryID = f.memory
		if a.RawEntry, err = textOf(p, "text", args[0]); err != nil {
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
		return writeMemory(cmd, c, &f, func(ctx context.Context, b *memories.Service, who memory.Caller) (entries.Added, memory.WriteInfo, error) {
			return b.AddEntry(ctx, who, a)
		})
	}, func(w io.Writer, e entries.Added) error {
		name := e.EntryID
		if name == "" {
			name = e.LocalID
		}
		_, err := fmt.Fprintf(w, "%s %s\n", e.Status, name)
		return err
	})
	cmd.Flags().StringVarP(&a.Summary, "summary", "s", "", "a summary of at most 512 characters")
	cmd.Flags().StringArrayVar(&tags, "tag", nil, "a tag `KEY=VALUE` (may be repeated)")
	cmd.Flags().StringVar(&metadata, "metadata", "", "a JSON object to store with the entry")
	cmd.Flags().StringVar(&a.SessionID, "session-id", "", "the entry's session")
	return f.keyFlag(f.memoryFlag(cmd))
}

func listEntriesCommand(p *command.Process) *cobra.Command {
	f := newMemoryFlags(p)
	var a entries.ListArgs
	var tags []string
	cmd := command.New(&f, cobra.Command{
		Use: "list-entries", Aliases: []string{"get-entries"},
		Short: "List committed entries, newest first",
		Long: `list-entries prints the newest entries. --before continues with older entries, --after
lists newer ones, oldest first. Both accept a time or an entry's id.`,
		Example: "  cairn memory list-entries --limit 5\n  cairn memory list-entries --tag topic=refunds --before 2026-03-01T00:00:00Z",
		Args:    command.NoArgs,
	}, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) (entries.Listed, error) {
		a.MemoryID = f.memory
		for _, pair := range tags {
			key, value, ok := strings.Cut(pair, "=")
			if !ok {
				return entries.Listed{}, fault.Newf(fault.Invalid, "usage", "--tag must be KEY=VALUE, not %.40q", pair)
			}
			a.Tags = append(a.Tags, key+":"+value)
		}
		return readMemory(cmd, c, &f, func(ctx context.Context, b *memories.Service, who memory.Caller) (entries.Listed, error) {
			return b.ListEntries(ctx, who, a)
		})
	}, func(w io.Writer, l entries.Listed) error { return printEntries(w, l.Entries...) })
	cmd.Flags().Int64Var(&a.Limit, "limit", 25, "maximum number of entries (1–50)")
	cmd.Flags().StringVar(&a.Before, "before", "", "only entries before this time or entry")
	cmd.Flags().StringVar(&a.After, "after", "", "only entries after this time or entry, oldest first")
	cmd.Flags().StringArrayVar(&tags, "tag", nil, "only entries with this tag `KEY=VALUE` (may be repeated)")
	cmd.Flags().StringVar(&a.SessionID, "session-id", "", "only entries of this session")
	return f.memoryFlag(cmd)
}

// printEntries prints a line per entry: time, id and summary.
func printEntries(w io.Writer, list ...contents.Entry) error {
	for _, e := range list {
		short := e.Summary
		if strings.TrimSpace(short) == "" {
			short = e.RawEntry
		}
		if _, err := fmt.Fprintf(w, "%s  %s  %s\n", formatMemoryTime(e.CreationTime), e.EntryID, command.FirstOf(short, 100)); err != nil {
			return err
		}
	}
	return nil
}

// formatMemoryTime formats a time for people.
func formatMemoryTime(t memory.Time) string {
	text := t.String()
	return text[:10] + " " + text[11:16]
}

func getEntryCommand(p *command.Process) *cobra.Command {
	f := newMemoryFlags(p)
	cmd := command.New(&f, cobra.Command{
		Use: "get-entry ID", Short: "Show a committed entry",
		Example: "  cairn memory get-entry 0b9d2c1e-6f5a-4a57-9a3f-0f8f5a3c2b11",
		Args:    command.ExactArgs(1, "one entry's id"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (contents.Entry, error) {
		return readMemory(cmd, c, &f, func(ctx context.Context, b *memories.Service, who memory.Caller) (contents.Entry, error) {
			return b.GetEntry(ctx, who, f.memory, args[0])
		})
	}, printEntry)
	return f.memoryFlag(cmd)
}

func printEntry(w io.Writer, e contents.Entry) error {
	if err := printEntries(w, e); err != nil {
		return err
	}
	for _, tag := range sortedTags(e.Tags) {
		fmt.Fprintf(w, "  %s\n", command.Printable(tag))
	}
	if e.CorrectedEntryID != "" {
		fmt.Fprintf(w, "  corrected by %s: %s\n", e.CorrectedEntryID, command.Printable(e.CorrectionReason))
	}
	_, err := fmt.Fprintf(w, "\n%s\n", command.Printable(e.RawEntry))
	return err
}

func patchEntryCommand(p *command.Process) *cobra.Command {
	f := newMemoryFlags(p)
	var tags []string
	var summary string
	var untag bool
	cmd := command.New(&f, cobra.Command{
		Use: "patch-entry ID", Short: "Replace an entry's tags or summary",
		Example: "  cairn memory patch-entry ID --summary \"what it says\" --tag topic=refunds\n  cairn memory patch-entry ID --no-tags",
		Args:    command.ExactArgs(1, "one entry's id"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (out contents.Entry, err error) {
		var patch entries.Patch
		if patch.Tags, err = tagsOf(tags); err != nil {
			return out, err
		}
		if untag {
			patch.Tags = map[string]string{}
		}
		if cmd.Flags().Changed("summary") {
			patch.Summary = &summary
		}
		return writeMemory(cmd, c, &f, func(ctx context.Context, b *memories.Service, who memory.Caller) (contents.Entry, memory.WriteInfo, error) {
			return b.PatchEntry(ctx, who, f.memory, args[0], patch)
		})
	}, printEntry)
	cmd.Flags().StringArrayVar(&tags, "tag", nil, "a new tag `KEY=VALUE`; the new tags replace all old ones (may be repeated)")
	cmd.Flags().BoolVar(&untag, "no-tags", false, "remove all tags")
	cmd.Flags().StringVarP(&summary, "summary", "s", "", "the new summary")
	cmd.MarkFlagsMutuallyExclusive("tag", "no-tags")
	return f.keyFlag(f.memoryFlag(cmd))
}

func correctEntryCommand(p *command.Process) *cobra.Command {
	f := newMemoryFlags(p)
	var a entries.Correction
	cmd := command.New(&f, cobra.Command{
		Use: "correct-entry ID RIGHT-ID", Short: "Mark an entry as corrected by another one, once",
		Example: "  cairn memory correct-entry OLD NEW --reason \"the limit is 30 days\"",
		Args:    command.ExactArgs(2, "the ids of the entry that is wrong and of the one that is right"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (contents.Entry, error) {
		a.CorrectedEntryID = args[1]
		return writeMemory(cmd, c, &f, func(ctx context.Context, b *memories.Service, who memory.Caller) (contents.Entry, memory.WriteInfo, error) {
			return b.CorrectEntry(ctx, who, f.memory, args[0], a)
		})
	}, printEntry)
	cmd.Flags().StringVar(&a.Reason, "reason", "", "why")
	return f.keyFlag(f.memoryFlag(cmd))
}

func listInflightCommand(p *command.Process) *cobra.Command {
	f := newMemoryFlags(p)
	var limit int64
	cmd := command.New(&f, cobra.Command{
		Use: "list-inflight-entries", Short: "List entries that the hub has not confirmed, oldest first",
		Example: "  cairn memory list-inflight-entries",
		Args:    command.NoArgs,
	}, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) (entries.InflightList, error) {
		return readMemory(cmd, c, &f, func(ctx context.Context, b *memories.Service, who memory.Caller) (entries.InflightList, error) {
			return b.ListInflight(ctx, who, f.memory, limit)
		})
	}, func(w io.Writer, l entries.InflightList) error {
		for _, e := range l.Entries {
			if err := printInflight(w, e); err != nil {
				return err
			}
		}
		return nil
	})
	cmd.Flags().Int64Var(&limit, "limit", 25, "maximum number of entries (1–50)")
	return f.memoryFlag(cmd)
}

func printInflight(w io.Writer, e entries.Inflight) error {
	short := e.Summary
	if strings.TrimSpace(short) == "" {
		short = e.RawEntry
	}
	_, err := fmt.Fprintf(w, "%s  %s  %s\n", formatMemoryTime(e.CreationTime), e.LocalID, command.FirstOf(short, 100))
	return err
}

// oneInflight is the result for one inflight entry (seed inflight-entries).
type oneInflight struct {
	Entry entries.Inflight `json:"entry"`
}

func getInflightCommand(p *command.Process) *cobra.Command {
	f := newMemoryFlags(p)
	cmd := command.New(&f, cobra.Command{
		Use: "get-inflight-entry LOCAL-ID", Short: "Show an entry that the hub has not confirmed",
		Example: "  cairn memory get-inflight-entry pending-12",
		Args:    command.ExactArgs(1, "one entry's localId, such as pending-12"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (oneInflight, error) {
		return readMemory(cmd, c, &f, func(ctx context.Context, b *memories.Service, who memory.Caller) (oneInflight, error) {
			e, err := b.GetInflight(ctx, who, f.memory, args[0])
			return oneInflight{e}, err
		})
	}, func(w io.Writer, e oneInflight) error {
		if err := printInflight(w, e.Entry); err != nil {
			return err
		}
		_, err := fmt.Fprintf(w, "\n%s\n", command.Printable(e.Entry.RawEntry))
		return err
	})
	return f.memoryFlag(cmd)
}

func getContextCommand(p *command.Process) *cobra.Command {
	f := newMemoryFlags(p)
	var history bool
	var at string
	cmd := command.New(&f, cobra.Command{
		Use: "get-context", Short: "Print a memory's context document",
		Long: `get-context prints the current document. If two devices replace the same document, the
hub keeps the first as the current one and the other as a version. --history prints the
versions on this device, newest first. --at prints the document that was current at a
past moment.`,
		Example: "  cairn memory get-context\n  cairn memory get-context --history\n  cairn memory get-context --at \"yesterday 14:00\"",
		Args:    command.NoArgs,
	}, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) (any, error) {
		return readMemory(cmd, c, &f, func(ctx context.Context, b *memories.Service, who memory.Caller) (any, error) {
			if history {
				return b.ContextHistory(ctx, who, f.memory, 0)
			}
			if at != "" {
				d, err := b.GetContextAt(ctx, who, f.memory, at)
				if err == nil {
					f.NoteMoment(d.At)
				}
				return d, err
			}
			d, err := b.GetContext(ctx, who, f.memory)
			if err == nil && d.Conflicts > 0 {
				fmt.Fprintf(p.Err, "cairn: %d conflicting contexts of other writers were kept as versions: --history prints them\n", d.Conflicts)
			}
			return d, err
		})
	}, func(w io.Writer, out any) error {
		if all, ok := out.(entries.Versions); ok {
			return printVersions(w, all)
		}
		if then, ok := out.(entries.PastDocument); ok {
			if then.Markdown == "" {
				return nil
			}
			out = contents.Document{Markdown: then.Markdown}
		}
		_, err := fmt.Fprintln(w, command.Printable(out.(contents.Document).Markdown))
		return err
	})
	command.AtFlag(cmd, &at)
	cmd.Flags().BoolVar(&history, "history", false, "print all versions, also those that lost a conflict with another device")
	cmd.MarkFlagsMutuallyExclusive("history", "at")
	return f.memoryFlag(cmd)
}

// printVersions prints the versions of a context, each below a line with its time and
// its state.
func printVersions(w io.Writer, all entries.Versions) error {
	for i, v := range all.Versions {
		state := "replaced"
		switch {
		case v.Current:
			state = "current"
		case v.Open:
			state = "lost a conflict with another device, not merged"
		case v.ConflictWith != "":
			state = "lost a conflict with another device"
		}
		if !v.Synced {
			state += ", not sent"
		}
		if i > 0 {
			fmt.Fprintln(w)
		}
		if _, err := fmt.Fprintf(w, "== %s  %s  session %s\n%s\n", v.UpdatedAt, state, v.SessionID, command.Printable(v.Markdown)); err != nil {
			return err
		}
	}
	return nil
}

func updateContextCommand(p *command.Process) *cobra.Command {
	f := newMemoryFlags(p)
	var a entries.NewDocument
	cmd := command.New(&f, cobra.Command{
		Use: "update-context TEXT", Aliases: []string{"put-context"},
		Short: "Replace a memory's context document, whole",
		Long: `update-context replaces the current document by a new one of at most 5,000 characters. If
another device has replaced it first, the new document is kept as a version, which
cairn memory get-context --history prints.`,
		Example: "  cairn memory update-context - < context.md",
		Args:    command.ExactArgs(1, "the document, or - for standard input"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (out contents.Document, err error) {
		if a.MemoryID = f.memory; a.SessionID == "" {
			a.SessionID = cairn.NewSessionID()
		}
		if a.Markdown, err = textOf(p, "document", args[0]); err != nil {
			return out, err
		}
		return writeMemory(cmd, c, &f, func(ctx context.Context, b *memories.Service, who memory.Caller) (contents.Document, memory.WriteInfo, error) {
			return b.UpdateContext(ctx, who, a)
		})
	}, func(w io.Writer, d contents.Document) error {
		_, err := fmt.Fprintf(w, "stored %s\n", d.UpdatedAt)
		return err
	})
	cmd.Flags().StringVar(&a.SessionID, "session-id", "", "the writing session (default: a new one)")
	return f.keyFlag(f.memoryFlag(cmd))
}

func whoamiCommand(p *command.Process) *cobra.Command {
	f := newMemoryFlags(p)
	cmd := command.New(&f, cobra.Command{
		Use: "whoami", Short: "Print the user id of this device",
		Long: `whoami prints the user id that owns your memories on this device. If you have joined a
hub, it also prints your user id there.`,
		Example: "  cairn whoami\n  cairn whoami --json",
		Args:    command.NoArgs,
	}, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) (memory.User, error) {
		return writeMemory(cmd, c, &f, func(ctx context.Context, b *memories.Service, who memory.Caller) (memory.User, memory.WriteInfo, error) {
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
