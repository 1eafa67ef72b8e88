package mailcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/cli/command"
	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/mail/service"
)

// mailFlags are the common flags of the commands for agents, mail and reservations.
type mailFlags struct {
	project, as string
	command.Printer
}

func newMailFlags(p *command.Process) mailFlags {
	return mailFlags{Printer: command.Printer{Process: p}}
}

// readFlags adds the flags of a command that reads a project. actFlags adds those of a
// command that acts as an agent.
func (f *mailFlags) readFlags(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&f.project, "project", "", "the project (path, slug or id; default: CAIRN_PROJECT, else the current one)")
	return f.JSONFlag(cmd)
}

func (f *mailFlags) actFlags(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&f.as, "as", "", "the agent to act as (default: CAIRN_AGENT, else the agent of the current session)")
	return f.readFlags(cmd)
}

// key returns the project of a command.
func (f *mailFlags) key(c *cairn.Cairn) string {
	for _, name := range []string{f.project, f.Process.Getenv("CAIRN_PROJECT")} {
		if name != "" {
			return name
		}
	}
	return c.Cwd()
}

// owner returns the caller of every command. A user who can open the store can act as
// any agent.
func owner() mail.Caller { return mail.Caller{Owner: true} }

// actor returns the agent that the command acts as.
func (f *mailFlags) actor(ctx context.Context, c *cairn.Cairn) (name string, err error) {
	for _, name := range []string{f.as, f.Process.Getenv("CAIRN_AGENT")} {
		if name != "" {
			return name, nil
		}
	}
	var names []string
	err = c.Mail().Read(ctx, owner(), func(ctx context.Context, o *service.Mail, who mail.Caller) (err error) {
		names, err = o.ActingAs(ctx, who, f.key(c))
		return err
	})
	switch {
	case err != nil:
		return "", err
	case len(names) == 1:
		return names[0], nil
	case len(names) > 1:
		return "", fault.New(fault.Invalid, "usage", "this session acts as "+strings.Join(names, " and ")).WithHint("choose one with --as")
	}
	return "", fault.New(fault.Invalid, "usage", "requires --as NAME: no agent is set in this shell").
		WithHint("`cairn agents list` shows the names, `cairn agents register` creates one; CAIRN_AGENT sets it for all commands")
}

// readMail calls a method of the mail service that only reads, and returns its result.
func readMail[T any](cmd *cobra.Command, c *cairn.Cairn, ask func(context.Context, *service.Mail, mail.Caller) (T, error)) (out T, err error) {
	err = c.Mail().Read(cmd.Context(), owner(), func(ctx context.Context, o *service.Mail, who mail.Caller) (err error) {
		out, err = ask(ctx, o, who)
		return err
	})
	return out, err
}

// writeMail does the same for a method that writes.
func writeMail[T any](cmd *cobra.Command, c *cairn.Cairn, do func(context.Context, *service.Mail, mail.Caller) (T, error)) (out T, err error) {
	err = c.Mail().Write(cmd.Context(), owner(), func(ctx context.Context, o *service.Mail, who mail.Caller) (err error) {
		out, err = do(ctx, o, who)
		return err
	})
	return out, err
}

// Hint replaces hints about MCP tools by hints about commands.
func (f *mailFlags) Hint(cmd *cobra.Command, err error) error {
	e, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err
	}
	switch e.Code {
	case mail.CodeNotFound:
		return e.WithHint(f.whereToLook(e))
	case mail.CodeRecipient:
		return e.WithHint(didYouMean(e) + "`cairn agents list` shows who is there")
	case mail.CodeContactRequired:
		return e.WithHint("`cairn contacts request NAME` requests permission, `cairn contacts respond NAME --accept --as RECIPIENT` gives it")
	case mail.CodeBroadcast:
		return e.WithHint("--broadcast writes to all agents; an agent has a name of its own")
	case mail.CodeDenied:
		if e.Details["suggested_tool_calls"] != nil { // it is retired
			return e.WithHint("`cairn agents register NAME` ends its retirement")
		}
		return err
	case mail.CodeReserved:
		return e.WithHint("write to the holder with `cairn mail send`; HumanOverseer may release it anyway")
	case mail.CodePath, mail.CodeEmptyPaths, mail.CodeInvalid, mail.CodeMissing, mail.CodeEmptyProgram, mail.CodeEmptyModel, mail.CodeLimit:
		return e.WithHint(command.SeeHelp(cmd))
	}
	return err
}

// whereToLook returns the hint for a missing agent, project, message, thread or
// reservation: the command that lists them.
func (f *mailFlags) whereToLook(e *fault.Error) string {
	project := ""
	if f.project != "" {
		project = " --project " + f.project
	}
	switch {
	case e.Details["agent"] != nil:
		return didYouMean(e) + "`cairn agents list" + project + "` shows the names"
	case e.Details["project"] != nil && e.Details["message"] == nil:
		return didYouMean(e) + "`cairn agents register" + project + "` creates the project and registers you in it"
	case e.Details["message"] != nil:
		return "`cairn mail inbox` and `cairn mail search` show the numbers"
	case e.Details["thread"] != nil:
		return "`cairn mail search` shows the threads"
	}
	return "`cairn reservations list" + project + "` shows the numbers"
}

// didYouMean suggests the most similar name, "" if there is none.
func didYouMean(e *fault.Error) string {
	if near, ok := e.Details["suggestions"].([]mail.Suggestion); ok && len(near) > 0 {
		return "did you mean " + near[0].Name + "? "
	}
	return ""
}

// bodyFlags are the flags for a text: the text itself or a file, else standard input.
type bodyFlags struct{ text, file string }

func (b *bodyFlags) flags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&b.text, "body", "b", "", "the text, in Markdown (default: standard input)")
	cmd.Flags().StringVar(&b.file, "body-file", "", "the file with the text, - for standard input")
	cmd.MarkFlagsMutuallyExclusive("body", "body-file")
}

func (b *bodyFlags) read(cmd *cobra.Command, p *command.Process) (string, error) {
	if cmd.Flags().Changed("body") {
		return b.text, nil
	}
	in := p.In
	if b.file != "" && b.file != "-" {
		file, err := os.Open(b.file)
		if err != nil {
			return "", fault.Wrap(err, fault.Invalid, "usage", "the body cannot be read: "+err.Error())
		}
		defer file.Close()
		in = file
	} else if f, ok := in.(*os.File); ok && command.IsTerminal(f) {
		fmt.Fprintln(p.Err, "cairn: reading the body from the terminal; end it with ctrl-D on a line of its own")
	}
	data, err := io.ReadAll(io.LimitReader(in, maxMailRead))
	if err != nil {
		return "", fault.Wrap(err, fault.Invalid, "usage", "the body cannot be read: "+err.Error())
	}
	return string(data), nil
}

// maxMailRead is more than mail.max_body_bytes allows, so that the size check sees a
// text that is too long.
const maxMailRead = 1<<29 + 1

// lifetimeOf parses a lifetime: seconds, or a duration such as 90m; nil for "".
func lifetimeOf(flag, text string) (*int64, error) {
	if text == "" {
		return nil, nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return &n, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return nil, fault.Newf(fault.Invalid, "usage", "--%s must be a number of seconds or a duration such as 90m, not %.20q", flag, text)
	}
	return new(int64(d / time.Second)), nil
}

// numberOf parses the number of a message or a reservation, with or without #.
func numberOf(what, text string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimPrefix(text, "#"), 10, 64)
	if err != nil {
		return 0, fault.Newf(fault.Invalid, "usage", "%.40q is not the number of a %s", text, what)
	}
	return n, nil
}

// limitFlag returns --limit, nil if it is not set.
func limitFlag(cmd *cobra.Command, n *int) *int {
	if cmd.Flags().Changed("limit") {
		return n
	}
	return nil
}

// formatTime formats a time for people; "" for the zero time.
func formatTime(t mail.Time) string {
	if t == 0 {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04")
}

// optionalText returns a value that may be missing, safe for a terminal.
func optionalText(s *string) string {
	if s == nil {
		return ""
	}
	return command.Printable(*s)
}
