package cli

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
	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/store"
)

func exportMemoryCommand(p *Process) *cobra.Command {
	f := remembering(p)
	var after string
	var limit int64
	cmd := &cobra.Command{
		Use: "export", Short: "Print a memory's committed entries as JSON lines, oldest first",
		Long: `export prints one entry a line, which import reads. --after goes on behind an entry or a
time.`,
		Example: "  cairn memory export > shop.jsonl\n  cairn memory export --after 2026-03-01T00:00:00Z --limit 100",
		Args:    noArgs,
		RunE: p.using(store.Command, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) error {
			if limit < 0 {
				return f.inTerminal(cmd, fault.New(fault.Invalid, memory.CodeInvalid, "--limit is 0, for all, or more"))
			}
			return f.inTerminal(cmd, f.export(cmd, c, after, limit))
		}),
	}
	cmd.Flags().StringVar(&after, "after", "", "only newer ones than this time or entry")
	cmd.Flags().Int64Var(&limit, "limit", 0, "most entries; 0 for all")
	return f.about(cmd)
}

// export writes entries page by page, limit of them at most unless it is 0.
func (f *memoryFlags) export(cmd *cobra.Command, c *cairn.Cairn, after string, limit int64) error {
	out := json.NewEncoder(f.process.Out)
	out.SetEscapeHTML(false)
	told := f.process.progress("entries")
	for done := int64(0); ; {
		page, err := recalled(cmd, c, f, func(ctx context.Context, b *memory.Service, who memory.Caller) (memory.Exported, error) {
			if limit > 0 {
				return b.Export(ctx, who, f.memory, after, min(limit-done, memory.ExportLimit))
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
		if told(int(done), 0); page.Next == "" || done == limit {
			return nil
		}
		after = page.Next
	}
}

func importMemoryCommand(p *Process) *cobra.Command {
	f := remembering(p)
	return f.about(answering(&f, cobra.Command{
		Use: "import FILE", Short: "Add entries from JSON lines, as export prints them",
		Long: `import adds an entry per line: rawEntry, and if there are any summary, tags, metadata,
sessionId, capturedTime, which is kept. A line that was imported before is not added
again, so an import may be repeated. Lines that break a rule are told and left out; then
the exit code is 1.`,
		Example: "  cairn memory import shop.jsonl\n  cairn memory export -m ID | cairn memory import -",
		Args:    exactArgs(1, "one file, or - for standard input"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (out memory.Imported, err error) {
		in := io.ReadCloser(io.NopCloser(p.In))
		if args[0] != "-" {
			if in, err = os.Open(args[0]); err != nil {
				return out, fault.Wrap(err, fault.Invalid, memory.CodeInvalid, "the file cannot be read: "+err.Error())
			}
		}
		told := p.progress("lines")
		out, err = kept(cmd, c, &f, func(ctx context.Context, b *memory.Service, who memory.Caller) (memory.Imported, memory.WriteInfo, error) {
			lines := io.Reader(in)
			if !b.Exists() {
				lines = strings.NewReader("") // a trial, before there is a store
			}
			out, err := b.Import(ctx, who, f.memory, lines, func(n int) { told(n, 0) })
			return out, memory.WriteInfo{}, err
		})
		f.no = len(out.Refused) > 0
		return out, errors.Join(err, in.Close())
	}, func(w io.Writer, out memory.Imported) error {
		for _, r := range out.Refused {
			f.say("line %d: %s", r.Line, r.Message)
		}
		_, err := fmt.Fprintf(w, "%d added, %d known, %d refused\n", out.Added, out.Known, len(out.Refused))
		return err
	}))
}

func purgeMemoriesCommand(p *Process) *cobra.Command {
	f := remembering(p)
	return f.json(answering(&f, cobra.Command{
		Use: "purge", Short: "Delete local copies of old entries that the hub has",
		Long: `purge takes away committed entries and contexts that the hub has and that are older than
memory.retention_days, and the oldest beyond memory.retention_mb. They stay at the hub.
What the hub has not got stays here, too, and without a hub everything does; so does
each memory's newest context.`,
		Example: "  cairn memory purge\n  CAIRN_MEMORY_RETENTION_DAYS=7 cairn memory purge",
		Args:    noArgs,
	}, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) (memory.Purged, error) {
		defer p.patience()()
		return recalled(cmd, c, &f, func(ctx context.Context, b *memory.Service, _ memory.Caller) (memory.Purged, error) {
			if !b.Exists() {
				return memory.Purged{}, nil
			}
			return b.Purge(ctx, false)
		})
	}, func(w io.Writer, out memory.Purged) error {
		_, err := fmt.Fprintf(w, "purged %s, %s\n", counted(out.Entries, "committed row"), counted(out.Contexts, "old context"))
		return err
	}))
}
