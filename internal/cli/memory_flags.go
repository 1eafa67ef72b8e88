package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/fault"
	"cairn/internal/memory"
)

// memoryFlags are the flags that commands of memories share.
type memoryFlags struct {
	project, memory, user, key string
	answers
}

func remembering(p *Process) memoryFlags { return memoryFlags{answers: answers{process: p}} }

// common are the flags of every command, about those of one memory, keyed those of a
// command that stores something.
func (f *memoryFlags) common(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&f.project, "project", "", "the project (id or alias) instead of the one here (CAIRN_PROJECT)")
	cmd.Flags().StringVar(&f.user, "user-id", "", "who you say you are; another user is not found")
	return f.json(cmd)
}

// json adds --json, with which an error is an envelope on standard error (memories §3).
func (f *memoryFlags) json(cmd *cobra.Command) *cobra.Command {
	cmd.Annotations = map[string]string{enveloped: "yes"}
	return f.answers.json(cmd)
}

func (f *memoryFlags) about(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVarP(&f.memory, "memory", "m", memory.DefaultMemory, "the memory's `ID`; default is the project's own")
	cmd.Flags().StringVar(&f.memory, "memory-id", memory.DefaultMemory, "the same as --memory")
	_ = cmd.Flags().MarkHidden("memory-id") // it is there
	return f.common(cmd)
}

func (f *memoryFlags) keyed(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&f.key, "idempotency-key", "", "repeating a command with the same key changes nothing")
	return cmd
}

func (f *memoryFlags) caller() memory.Caller {
	c := memory.Caller{UserID: f.user, Key: f.key, ProjectID: f.project, Agent: f.process.Getenv("CAIRN_AGENT")}
	if c.ProjectID == "" {
		c.ProjectID = f.process.Getenv("CAIRN_PROJECT")
	}
	return c
}

// recalled is what a method of memory.Service that only reads answers.
func recalled[T any](cmd *cobra.Command, c *cairn.Cairn, f *memoryFlags, ask func(context.Context, *memory.Service, memory.Caller) (T, error)) (out T, err error) {
	err = c.Memories().Read(cmd.Context(), f.caller(), func(ctx context.Context, b *memory.Service, who memory.Caller) (err error) {
		out, err = ask(ctx, b, who)
		return err
	})
	return out, err
}

// kept is recalled for a method that stores something.
func kept[T any](cmd *cobra.Command, c *cairn.Cairn, f *memoryFlags, do func(context.Context, *memory.Service, memory.Caller) (T, memory.WriteInfo, error)) (out T, err error) {
	err = c.Memories().Write(cmd.Context(), f.caller(), func(ctx context.Context, b *memory.Service, who memory.Caller) (err error) {
		out, _, err = do(ctx, b, who)
		return err
	})
	return out, err
}

func (f *memoryFlags) inTerminal(cmd *cobra.Command, err error) error {
	if f.asJSON || err == nil {
		return err
	}
	known := fault.As(err)
	switch known.Code {
	case memory.CodeInvalid, memory.CodeLocalID:
		return known.WithHint(seeHelp(cmd))
	case memory.CodeCommitted:
		return known.WithHint(fmt.Sprintf("`cairn memory get-entry %v` shows it", known.Details["entryId"]))
	case memory.CodeNotFound:
		return known.WithHint("`cairn memory list-vaults` and `cairn memory list-memories` show what there is")
	case memory.CodeAwaitTimeout, memory.CodeHubUnavailable:
		return known.WithHint("`cairn replication status` says what it waits for")
	case memory.CodeReplicationFailed:
		if _, stopped := known.Details["state"]; stopped {
			return err // its hint says what to do about the hub
		}
		return known.WithHint("`cairn replication retry` sends them again, `cairn replication discard` gives them up")
	}
	return err
}

// maxMemoryRead is more than any text of memories may have, so that too much is noticed.
const maxMemoryRead = 1 << 20

// textOf is an argument, or standard input for -. What is not text is refused, and a
// newline at the end of what comes from a pipe stays.
func (p *Process) textOf(what, arg string) (string, error) {
	if arg == "-" {
		if f, ok := p.In.(*os.File); ok && isTerminal(f) {
			fmt.Fprintf(p.Err, "cairn: reading the %s from here; end it with ctrl-D on a line of its own\n", what)
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

// tagsOf reads --tag k=v; nil for none.
func tagsOf(pairs []string) (map[string]string, error) {
	var tags map[string]string
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, fault.Newf(fault.Invalid, "usage", "--tag takes KEY=VALUE, not %.40q", pair)
		}
		if tags == nil {
			tags = map[string]string{}
		}
		tags[key] = value
	}
	return tags, nil
}
