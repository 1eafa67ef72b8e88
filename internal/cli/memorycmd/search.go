package memorycmd

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/cli/command"
	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/entries"
	"cairn/internal/memory/memories"
	"cairn/internal/memory/prompts"
	"cairn/internal/memory/retrieval"
)

func searchMemoryCommand(p *command.Process) *cobra.Command {
	f := newMemoryFlags(p)
	var a retrieval.SearchArgs
	var tags []string
	cmd := command.New(&f, cobra.Command{
		Use: "search QUERY", Aliases: []string{"search-memories"},
		Short: "Search committed entries, best match first",
		Long: `search finds the entries of one memory that contain any of the query's words. An entry
ranks higher the more of the words it contains, the rarer they are, and the more of them
its neighbours contain. An unknown word is replaced by the nearest known one. The query
is plain text without special characters. The number before a hit is its score, 0 to 1;
scores of different queries cannot be compared.

cairn recall searches every memory, and all other parts of the store.`,
		Example: "  cairn memory search \"when did Ana ask for refunds\" --top-k 5\n  cairn memory search refunds --tag topic=billing",
		Args:    command.ExactArgs(1, "one query, or - for standard input; put quotes around several words"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (out retrieval.Found, err error) {
		a.MemoryID = f.memory
		if a.Query, err = textOf(p, "query", args[0]); err != nil {
			return out, err
		}
		if a.Tags, err = tagsOf(tags); err != nil {
			return out, err
		}
		out, err = readMemory(cmd, c, &f, func(ctx context.Context, b *memories.Service, who memory.Caller) (retrieval.Found, error) {
			return b.Search(ctx, who, a)
		})
		f.NoteCorrected(out.Corrected, out.Hint)
		f.Note("%s for %q", command.Counted(out.Count, "result"), a.Query)
		return out, err
	}, func(w io.Writer, found retrieval.Found) error {
		return printHitsOfMemory(w, found)
	})
	cmd.Flags().Int64Var(&a.TopK, "top-k", retrieval.DefaultTopK, "maximum number of entries (1–100)")
	cmd.Flags().StringVar(&a.Mode, "mode", "", "the search mode: auto, lexical or hybrid (default auto)")
	cmd.Flags().StringArrayVar(&tags, "tag", nil, "only entries with this tag `KEY=VALUE` (may be repeated)")
	cmd.Flags().StringVar(&a.SessionID, "session-id", "", "only entries of this session")
	return f.memoryFlag(cmd)
}

func printHitsOfMemory(w io.Writer, found retrieval.Found) error {
	for _, h := range found.Entries {
		if _, err := fmt.Fprintf(w, "%.3f  ", h.Score); err != nil {
			return err
		}
		err := printEntries(w, contents.Entry{EntryID: h.EntryID, CreationTime: h.CreationTime, Summary: h.Summary, RawEntry: h.RawEntry})
		if err != nil {
			return err
		}
	}
	return nil
}

func getTopKCommand(p *command.Process) *cobra.Command {
	f := newMemoryFlags(p)
	var k int64
	var query string
	cmd := command.New(&f, cobra.Command{
		Use: "get-top-k", Short: "Show the entries that match a query best, or the newest without a query",
		Example: "  cairn memory get-top-k --k 3\n  cairn memory get-top-k --k 3 --query refunds",
		Args:    command.NoArgs,
	}, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) (any, error) {
		return readMemory(cmd, c, &f, func(ctx context.Context, b *memories.Service, who memory.Caller) (any, error) {
			found, listed, err := b.TopK(ctx, who, f.memory, k, query)
			if found != nil {
				return *found, err
			}
			return *listed, err
		})
	}, func(w io.Writer, out any) error {
		if found, ok := out.(retrieval.Found); ok {
			return printHitsOfMemory(w, found)
		}
		return printEntries(w, out.(entries.Listed).Entries...)
	})
	cmd.Flags().Int64Var(&k, "k", retrieval.DefaultTopK, "maximum number of entries (1–100; without a query 1–50)")
	cmd.Flags().StringVar(&query, "query", "", "the words to search for")
	return f.memoryFlag(cmd)
}

func getPromptsCommand(p *command.Process) *cobra.Command {
	f := newMemoryFlags(p)
	return f.common(command.New(&f, cobra.Command{
		Use: "get-prompts KIND", Aliases: []string{"get-default-prompts"}, Short: "Print the prompts that explain to an agent how to keep a memory",
		Long: `get-prompts prints the prompts for a kind of memory, chat or code. Your own texts replace
the built-in ones: <memory.prompts_dir>/<KIND>/<NAME>.md, where NAME is context_prompt,
entry_capture_prompt, summary_prompt or context_summary_rules.`,
		Example: "  cairn memory get-prompts code",
		Args:    command.ExactArgs(1, "chat or code"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (prompts.Prompts, error) {
		return readMemory(cmd, c, &f, func(_ context.Context, b *memories.Service, _ memory.Caller) (prompts.Prompts, error) {
			out, warnings, err := b.Prompts(args[0])
			for _, w := range warnings {
				f.Note("%s", w)
			}
			return out, err
		})
	}, func(w io.Writer, out prompts.Prompts) error {
		_, err := fmt.Fprintln(w, out.Prompt)
		return err
	}))
}
