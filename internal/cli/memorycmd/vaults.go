package memorycmd

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/cli/command"
	"cairn/internal/memory"
	"cairn/internal/memory/memories"
	"cairn/internal/memory/replication"
	"cairn/internal/memory/vaults"
)

// sortedTags returns tags as key=value, sorted.
func sortedTags(tags map[string]string) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, key+"="+tags[key])
	}
	return out
}

func printVaults(w io.Writer, vaults ...memory.Vault) error {
	for _, v := range vaults {
		if _, err := fmt.Fprintf(w, "%s  %s  %s\n", v.VaultID, v.Title, command.FirstOf(v.Description, 80)); err != nil {
			return err
		}
	}
	return nil
}

func printMemories(w io.Writer, memories ...memory.Memory) error {
	for _, m := range memories {
		if _, err := fmt.Fprintf(w, "%s  %s  %s  %s\n", m.MemoryID, m.MemoryType, m.Title, command.FirstOf(m.Description, 80)); err != nil {
			return err
		}
	}
	return nil
}

func createVaultCommand(p *command.Process) *cobra.Command {
	f := newMemoryFlags(p)
	var a vaults.NewVault
	cmd := command.New(&f, cobra.Command{
		Use: "create-vault TITLE", Short: "Create a vault, a group of memories",
		Example: "  cairn memory create-vault shop --description \"all about the shop\"",
		Args:    command.ExactArgs(1, "one title: letters, digits and hyphens"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (memory.Vault, error) {
		a.Title = args[0]
		return writeMemory(cmd, c, &f, func(ctx context.Context, b *memories.Service, who memory.Caller) (memory.Vault, memory.WriteInfo, error) {
			return b.CreateVault(ctx, who, a)
		})
	}, func(w io.Writer, v memory.Vault) error { return printVaults(w, v) })
	cmd.Flags().StringVar(&a.Description, "description", "", "what the vault is for")
	return f.keyFlag(f.common(cmd))
}

func listVaultsCommand(p *command.Process) *cobra.Command {
	f := newMemoryFlags(p)
	return f.common(command.New(&f, cobra.Command{
		Use: "list-vaults", Short: "List the vaults, oldest first", Args: command.NoArgs,
	}, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) (vaults.Vaults, error) {
		return readMemory(cmd, c, &f, func(ctx context.Context, b *memories.Service, who memory.Caller) (vaults.Vaults, error) {
			return b.Vaults(ctx, who)
		})
	}, func(w io.Writer, v vaults.Vaults) error { return printVaults(w, v.Vaults...) }))
}

func getVaultCommand(p *command.Process) *cobra.Command {
	f := newMemoryFlags(p)
	return f.common(command.New(&f, cobra.Command{
		Use: "get-vault ID", Short: "Show a vault", Args: command.ExactArgs(1, "one vault's id"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (memory.Vault, error) {
		return readMemory(cmd, c, &f, func(ctx context.Context, b *memories.Service, who memory.Caller) (memory.Vault, error) {
			return b.Vault(ctx, who, args[0])
		})
	}, func(w io.Writer, v memory.Vault) error { return printVaults(w, v) }))
}

func createMemoryCommand(p *command.Process) *cobra.Command {
	f := newMemoryFlags(p)
	var a vaults.NewMemory
	cmd := command.New(&f, cobra.Command{
		Use: "create-memory VAULT-ID TITLE", Aliases: []string{"create-memory-in-vault"}, Short: "Create a memory in a vault",
		Example: "  cairn memory create-memory VAULT-ID decisions --type code",
		Args:    command.ExactArgs(2, "a vault's id and a title"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (memory.Memory, error) {
		a.VaultID, a.Title = args[0], args[1]
		return writeMemory(cmd, c, &f, func(ctx context.Context, b *memories.Service, who memory.Caller) (memory.Memory, memory.WriteInfo, error) {
			return b.CreateMemory(ctx, who, a)
		})
	}, func(w io.Writer, m memory.Memory) error { return printMemories(w, m) })
	cmd.Flags().StringVar(&a.MemoryType, "type", "", "the kind of memory: chat, code or another word (default chat)")
	cmd.Flags().StringVar(&a.Description, "description", "", "what the memory is for")
	return f.keyFlag(f.common(cmd))
}

func listMemoriesCommand(p *command.Process) *cobra.Command {
	f := newMemoryFlags(p)
	return f.common(command.New(&f, cobra.Command{
		Use: "list-memories VAULT-ID", Short: "List the memories of a vault, oldest first", Args: command.ExactArgs(1, "one vault's id"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (vaults.Memories, error) {
		return readMemory(cmd, c, &f, func(ctx context.Context, b *memories.Service, who memory.Caller) (vaults.Memories, error) {
			return b.Memories(ctx, who, args[0])
		})
	}, func(w io.Writer, m vaults.Memories) error { return printMemories(w, m.Memories...) }))
}

func getMemoryCommand(p *command.Process) *cobra.Command {
	f := newMemoryFlags(p)
	return f.common(command.New(&f, cobra.Command{
		Use: "get-memory [ID]", Short: "Show a memory, by default the project's own", Args: command.AtMostOne("memory's id"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (memory.Memory, error) {
		id := memory.DefaultMemory
		if len(args) > 0 {
			id = args[0]
		}
		return readMemory(cmd, c, &f, func(ctx context.Context, b *memories.Service, who memory.Caller) (memory.Memory, error) {
			return b.Memory(ctx, who, id)
		})
	}, func(w io.Writer, m memory.Memory) error { return printMemories(w, m) }))
}

// deletingCommand returns the command that deletes an entry, a memory or a vault.
func deletingCommand(p *command.Process, what string) *cobra.Command {
	f := newMemoryFlags(p)
	cmd := command.New(&f, cobra.Command{
		Use: "delete-" + what + " ID", Short: map[string]string{
			"entry": "Delete an entry permanently", "memory": "Delete a memory with all its entries, permanently", "vault": "Delete a vault, which must be empty",
		}[what],
		Long: `With a hub the command waits until the hub has deleted it too. If the hub cannot be
reached, nothing is deleted.`,
		Args: command.ExactArgs(1, "one "+what+"'s id"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (map[string]string, error) {
		return writeMemory(cmd, c, &f, func(ctx context.Context, b *memories.Service, who memory.Caller) (out map[string]string, r memory.WriteInfo, err error) {
			switch what {
			case "entry":
				r, err = b.DeleteEntry(ctx, who, f.memory, args[0])
			case "memory":
				r, err = b.DeleteMemory(ctx, who, args[0])
			default:
				r, err = b.DeleteVault(ctx, who, args[0])
			}
			return map[string]string{"deleted": args[0]}, r, err
		})
	}, func(w io.Writer, d map[string]string) error {
		_, err := fmt.Fprintln(w, "deleted", d["deleted"])
		return err
	})
	if what == "entry" {
		return f.keyFlag(f.memoryFlag(cmd))
	}
	return f.keyFlag(f.common(cmd))
}

func awaitCommand(p *command.Process) *cobra.Command {
	f := newMemoryFlags(p)
	var timeout int64
	cmd := command.New(&f, cobra.Command{
		Use: "await-consistency", Aliases: []string{"await"}, Short: "Wait until the hub has confirmed what was written",
		Long: `await-consistency waits until the hub has confirmed all earlier writes to the memory.
Without a hub it returns immediately. The exit code is 1 after the timeout, or if the hub
has refused a write.`,
		Example: "  cairn memory await --timeout-ms 5000",
		Args:    command.NoArgs,
	}, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) (map[string]string, error) {
		return readMemory(cmd, c, &f, func(ctx context.Context, b *memories.Service, who memory.Caller) (map[string]string, error) {
			return map[string]string{"status": "consistent"}, b.AwaitConsistency(ctx, who, f.memory, replication.AwaitFor(&timeout))
		})
	}, func(w io.Writer, _ map[string]string) error {
		_, err := fmt.Fprintln(w, "consistent")
		return err
	})
	cmd.Flags().Int64Var(&timeout, "timeout-ms", 30_000, "maximum time to wait; 0 checks once")
	return f.memoryFlag(cmd)
}
