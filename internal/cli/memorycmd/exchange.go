package memorycmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/cli/command"
	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/entries"
	"cairn/internal/memory/items"
	"cairn/internal/memory/memories"
	"cairn/internal/memory/replication"
	"cairn/internal/store"
)

func exportMemoryCommand(p *command.Process) *cobra.Command {
	f := newMemoryFlags(p)
	var after string
	var limit int64
	cmd := &cobra.Command{
		Use: "export", Short: "Print a memory's committed entries as JSON lines, oldest first",
		Long: `export prints one entry per line, in the format that import reads. --after continues
after an entry or a time.`,
		Example: "  cairn memory export > shop.jsonl\n  cairn memory export --after 2026-03-01T00:00:00Z --limit 100",
		Args:    command.NoArgs,
		RunE: p.WithCairn(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) error {
			if limit < 0 {
				return f.Hint(cmd, fault.New(fault.Invalid, memory.CodeInvalid, "--limit must be 0 (all) or more"))
			}
			return f.Hint(cmd, f.export(cmd, c, after, limit))
		}),
	}
	cmd.Flags().StringVar(&after, "after", "", "only entries after this time or entry")
	cmd.Flags().Int64Var(&limit, "limit", 0, "maximum number of entries; 0 for all")
	return f.memoryFlag(cmd)
}

// export writes at most limit entries, page by page; 0 means all.
func (f *memoryFlags) export(cmd *cobra.Command, c *cairn.Cairn, after string, limit int64) error {
	out := json.NewEncoder(f.Process.Out)
	out.SetEscapeHTML(false)
	progress := f.Process.Progress("entries")
	for done := int64(0); ; {
		page, err := readMemory(cmd, c, f, func(ctx context.Context, b *memories.Service, who memory.Caller) (entries.Exported, error) {
			if limit > 0 {
				return b.Export(ctx, who, f.memory, after, min(limit-done, entries.ExportLimit))
			}
			return b.Export(ctx, who, f.memory, after, 0)
		})
		if err != nil {
			return err
		}
		for _, e := range page.Entries {
			if err := out.Encode(e); err != nil {
				return err
			}
		}
		done += int64(len(page.Entries))
		if progress(int(done), 0); page.Next == "" || done == limit {
			return nil
		}
		after = page.Next
	}
}

func importMemoryCommand(p *command.Process) *cobra.Command {
	f := newMemoryFlags(p)
	return f.memoryFlag(command.New(&f, cobra.Command{
		Use: "import FILE", Short: "Add entries from JSON lines, as export prints them",
		Long: `import adds an entry per line: rawEntry, and optionally summary, tags, metadata,
sessionId and capturedTime. import is idempotent: a line that was imported before is not
added again. Invalid lines are reported and skipped; then the exit code is 1.`,
		Example: "  cairn memory import shop.jsonl\n  cairn memory export -m ID | cairn memory import -",
		Args:    command.ExactArgs(1, "one file, or - for standard input"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (out items.Imported, err error) {
		in := io.ReadCloser(io.NopCloser(p.In))
		if args[0] != "-" {
			if in, err = os.Open(args[0]); err != nil {
				return out, fault.Wrap(err, fault.Invalid, memory.CodeInvalid, "the file cannot be read: "+err.Error())
			}
		}
		progress := p.Progress("lines")
		out, err = writeMemory(cmd, c, &f, func(ctx context.Context, b *memories.Service, who memory.Caller) (items.Imported, memory.WriteInfo, error) {
			lines := io.Reader(in)
			if !b.Exists() {
				lines = strings.NewReader("") // a dry run, before the store exists
			}
			out, err := b.Import(ctx, who, f.memory, lines, func(n int) { progress(n, 0) })
			return out, memory.WriteInfo{}, err
		})
		f.No = len(out.Refused) > 0
		return out, errors.Join(err, in.Close())
	}, func(w io.Writer, out items.Imported) error {
		for _, r := range out.Refused {
			f.Note("line %d: %s", r.Line, r.Message)
		}
		_, err := fmt.Fprintf(w, "%d added, %d known, %d refused\n", out.Added, out.Known, len(out.Refused))
		return err
	}))
}

func purgeMemoriesCommand(p *command.Process) *cobra.Command {
	f := newMemoryFlags(p)
	return f.json(command.New(&f, cobra.Command{
		Use: "purge", Short: "Delete local copies of old entries that the hub has",
		Long: `purge deletes committed entries and contexts from this device if the hub has them and
they are older than memory.retention_days. If they still exceed memory.retention_mb, it
deletes the oldest. They stay at the hub. Data that the hub does not have, and the newest
context of each memory, stay on this device. Without a hub nothing is deleted.`,
		Example: "  cairn memory purge\n  CAIRN_MEMORY_RETENTION_DAYS=7 cairn memory purge",
		Args:    command.NoArgs,
	}, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) (replication.Purged, error) {
		defer p.ReportSlow()()
		return readMemory(cmd, c, &f, func(ctx context.Context, b *memories.Service, _ memory.Caller) (replication.Purged, error) {
			if !b.Exists() {
				return replication.Purged{}, nil
			}
			return b.Purge(ctx, false)
		})
	}, func(w io.Writer, out replication.Purged) error {
		_, err := fmt.Fprintf(w, "purged %s, %s\n", command.Counted(out.Entries, "committed row"), command.Counted(out.Contexts, "old context"))
		return err
	}))
}
