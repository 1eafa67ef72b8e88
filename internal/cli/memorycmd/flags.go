package memorycmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/cli/command"
	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/memories"
)

// memoryFlags are the common flags of the commands for memories.
type memoryFlags struct {
	project, memory, user, key string
	command.Printer
}

func newMemoryFlags(p *command.Process) memoryFlags {
	return memoryFlags{Printer: command.Printer{Process: p}}
}

// common adds the flags of every command. memoryFlag adds the flag of commands on one
// memory, keyFlag that of commands that write.
func (f *memoryFlags) common(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&f.project, "project", "", "the project (id or alias; default: CAIRN_PROJECT, else the current one)")
	cmd.Flags().StringVar(&f.user, "user-id", "", "the expected user id; another user's data is not found")
	return f.json(cmd)
}

// json adds --json. With it an error is printed as an envelope on standard error
// (memories §3).
func (f *memoryFlags) json(cmd *cobra.Command) *cobra.Command {
	cmd.Annotations = map[string]string{command.Enveloped: "yes"}
	return f.Printer.JSONFlag(cmd)
}

func (f *memoryFlags) memoryFlag(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVarP(&f.memory, "memory", "m", memory.DefaultMemory, "the memory's `ID`; default is the project's own")
	cmd.Flags().StringVar(&f.memory, "memory-id", memory.DefaultMemory, "the same as --memory")
	_ = cmd.Flags().MarkHidden("memory-id") // fails only if the flag does not exist
	return f.common(cmd)
}

func (f *memoryFlags) keyFlag(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&f.key, "idempotency-key", "", "a command with a key used before changes nothing")
	return cmd
}

func (f *memoryFlags) caller() memory.Caller {
	c := memory.Caller{UserID: f.user, Key: f.key, ProjectID: f.project, Agent: f.Process.Getenv("CAIRN_AGENT")}
	if c.ProjectID == "" {
		c.ProjectID = f.Process.Getenv("CAIRN_PROJECT")
	}
	return c
}

// readMemory calls a method of memories.Service that only reads, and returns its result.
func readMemory[T any](cmd *cobra.Command, c *cairn.Cairn, f *memoryFlags, ask func(context.Context, *memories.Service, memory.Caller) (T, error)) (out T, err error) {
	err = c.Memories().Read(cmd.Context(), f.caller(), func(ctx context.Context, b *memories.Service, who memory.Caller) (err error) {
		out, err = ask(ctx, b, who)
		return err
	})
	return out, err
}

// writeMemory does the same for a method that writes.
func writeMemory[T any](cmd *cobra.Command, c *cairn.Cairn, f *memoryFlags, do func(context.Context, *memories.Service, memory.Caller) (T, memory.WriteInfo, error)) (out T, err error) {
	err = c.Memories().Write(cmd.Context(), f.caller(), func(ctx context.Context, b *memories.Service, who memory.Caller) (err error) {
		out, _, err = do(ctx, b, who)
		return err
	})
	return out, err
}

// Hint replaces hints about MCP tools by hints about commands.
func (f *memoryFlags) Hint(cmd *cobra.Command, err error) error {
	if f.AsJSON || err == nil {
		return err
	}
	known := fault.As(err)
	switch known.Code {
	case memory.CodeInvalid, memory.CodeLocalID:
		return known.WithHint(command.SeeHelp(cmd))
	case memory.CodeCommitted:
		return known.WithHint(fmt.Sprintf("`cairn memory get-entry %v` shows it", known.Details["entryId"]))
	case memory.CodeNotFound:
		return known.WithHint("`cairn memory list-vaults` and `cairn memory list-memories` show the ids")
	case memory.CodeAwaitTimeout, memory.CodeHubUnavailable:
		return known.WithHint("`cairn replication status` shows what it waits for")
	case memory.CodeReplicationFailed:
		if _, stopped := known.Details["state"]; stopped {
			return err // its hint says what to do about the hub
		}
		return known.WithHint("`cairn replication retry` sends them again, `cairn replication discard` discards them")
	}
	return err
}

// maxMemoryRead is more than the limit of any text, so that the size check sees a text
// that is too long.
const maxMemoryRead = 1 << 20

// textOf returns an argument, or standard input for "-". It keeps a trailing newline.
// Text that is not UTF-8 is an error.
func textOf(p *command.Process, what, arg string) (string, error) {
	if arg == "-" {
		if f, ok := p.In.(*os.File); ok && command.IsTerminal(f) {
			fmt.Fprintf(p.Err, "cairn: reading the %s from the terminal; end it with ctrl-D on a line of its own\n", what)
		}
		data, err := io.ReadAll(io.LimitReader(p.In, maxMemoryRead))
		if err != nil {
			return "", fault.Wrap(err, fault.Invalid, "usage", "the "+what+" cannot be read: "+err.Error())
		}
		arg = string(data)
	}
	if !utf8.ValidString(arg) {
		return "", fault.New(fault.Invalid, memory.CodeInvalid, "the "+what+" is not valid UTF-8")
	}
	return arg, nil
}

// tagsOf parses the tags of --tag KEY=VALUE; nil if there are none.
func tagsOf(pairs []string) (map[string]string, error) {
	var tags map[string]string
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, fault.Newf(fault.Invalid, "usage", "--tag must be KEY=VALUE, not %.40q", pair)
		}
		if tags == nil {
			tags = map[string]string{}
		}
		tags[key] = value
	}
	return tags, nil
}
