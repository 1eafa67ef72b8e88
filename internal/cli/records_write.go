package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/fault"
	"cairn/internal/record"
)

func recordsActivateCommand(p *Process) *cobra.Command {
	f := recordFlags{answers: answers{process: p}}
	var override bool
	cmd := answering(&f, cobra.Command{
		Use:   "activate ID",
		Short: "Load a record into the session, with its parent and children",
		Long: `activate prints a record, its parent and its OPEN children whole, the rest below it by
title, and notes which version the session has loaded. Only then may the session
change the record or add below it. If another session has it active too, that is
told and goes on all the same; --override says that it is known.`,
		Example: "  cairn records activate R001\n  cairn records activate R002 --session S-…",
		Args:    exactArgs(1, "one record's id"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (a record.Activated, err error) {
		caller, err := f.writer(cmd.Context(), c)
		if err != nil {
			return a, err
		}
		a, err = c.Records().Activate(cmd.Context(), record.ActivateArgs{Caller: caller, ID: args[0], Override: override})
		for _, w := range a.Context.Warnings {
			f.say("%s: %s", w.Type, warning(w))
		}
		return a, err
	}, printBundle)
	cmd.Flags().BoolVar(&override, "override", false, "do not warn that another session has it active")
	return f.recording(cmd)
}

// warning is a bundle's warning in the words of commands.
func warning(w record.Warning) string {
	if w.Type != "stale" {
		return w.Message
	}
	what, _, _ := strings.Cut(w.Message, ";")
	return what + "; `cairn session sync` shows them"
}

// texts are the flags with a record's content.
type texts struct {
	title, summary, body, bodyFile, metadata string
	related                                  []string
}

func (t *texts) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.title, "title", "", "one line of 1 to 200 characters")
	cmd.Flags().StringVar(&t.summary, "summary", "", "1-2 sentences, at most 1,000 characters")
	cmd.Flags().StringVar(&t.body, "body", "", "the text, at most 1 MiB")
	cmd.Flags().StringVar(&t.bodyFile, "body-file", "", "the file with the text, - for standard input")
	cmd.Flags().StringSliceVar(&t.related, "related", nil, "ids of related records")
	cmd.Flags().StringVar(&t.metadata, "metadata", "", "a JSON object of at most 64 KiB")
	cmd.MarkFlagsMutuallyExclusive("body", "body-file")
}

// maxBodyRead is more than a body may have, so that too much is noticed.
const maxBodyRead = 2 << 20

// readBody is the body that the flags give, nil if they give none.
func (t *texts) readBody(cmd *cobra.Command, p *Process) (*string, error) {
	switch {
	case cmd.Flags().Changed("body"):
		return &t.body, nil
	case !cmd.Flags().Changed("body-file"):
		return nil, nil
	}
	in := p.In
	if t.bodyFile != "-" {
		file, err := os.Open(t.bodyFile)
		if err != nil {
			return nil, fault.Wrap(err, fault.Invalid, "usage", "the body cannot be read: "+err.Error())
		}
		defer file.Close()
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, maxBodyRead))
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "usage", "the body cannot be read: "+err.Error())
	}
	return new(string(data)), nil
}

// object is the metadata that the flags give, nil if they give none.
func (t *texts) object(cmd *cobra.Command) json.RawMessage {
	if !cmd.Flags().Changed("metadata") {
		return nil
	}
	return json.RawMessage(t.metadata)
}

func recordsCreateCommand(p *Process) *cobra.Command {
	f := recordFlags{answers: answers{process: p}}
	var t texts
	var parent, state string
	var a record.CreateArgs
	cmd := answering(&f, cobra.Command{
		Use:   "create --type TYPE --title TITLE",
		Short: "Store a new record and print its id",
		Long: `create stores a record and activates it. Below --parent only if that record is
active in the session. The type is any word: question, conclusion, note…`,
		Example: `  cairn records create --type question --title "Where do refunds expire?" --body-file notes.md
  git log -3 | cairn records create --type note --title "What moved" --body-file - --parent R001 --session S-…`,
		Args: noArgs,
	}, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) (made record.Created, err error) {
		if err := wanted(cmd, "type", "title"); err != nil {
			return made, err
		}
		body, err := t.readBody(cmd, p)
		if err != nil {
			return made, err
		}
		if body != nil {
			a.Body = *body
		}
		if cmd.Flags().Changed("parent") {
			a.ParentID = &parent
		}
		a.Title, a.Summary, a.Related, a.Metadata, a.State = t.title, t.summary, t.related, t.object(cmd), stateOf(state)
		if a.Caller, err = f.writer(cmd.Context(), c); err != nil {
			return made, err
		}
		return c.Records().Create(cmd.Context(), a)
	}, func(w io.Writer, v record.Created) error {
		_, err := fmt.Fprintln(w, v.Record.ID)
		return err
	})
	t.flags(cmd)
	cmd.Flags().StringVar(&a.Type, "type", "", "what it is, 1 to 64 characters")
	cmd.Flags().StringVar(&parent, "parent", "", "the record it stands below")
	cmd.Flags().StringVar(&state, "state", "", "OPEN (default), LATER, RESOLVED or DISCARDED")
	return f.recording(cmd)
}

func recordsUpdateCommand(p *Process) *cobra.Command {
	f := recordFlags{answers: answers{process: p}}
	var t texts
	var a record.UpdateArgs
	cmd := answering(&f, cobra.Command{
		Use:   "update ID",
		Short: "Change a record's content",
		Long: `update changes what its flags give of a record that is active in the session, and
leaves the rest. If another session stored a version that this one has not loaded,
nothing is stored, both versions are shown and the exit code is 1; --force then
stores this one, and the other stays in the history.`,
		Example: "  cairn records update R001 --body-file notes.md --session S-…",
		Args:    exactArgs(1, "one record's id"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (u record.Updated, err error) {
		if a.Body, err = t.readBody(cmd, p); err != nil {
			return u, err
		}
		if cmd.Flags().Changed("title") {
			a.Title = &t.title
		}
		if cmd.Flags().Changed("summary") {
			a.Summary = &t.summary
		}
		if cmd.Flags().Changed("related") {
			a.Related = notNil(t.related)
		}
		a.ID, a.Metadata, a.Caller = args[0], t.object(cmd), f.caller()
		u, err = c.Records().Update(cmd.Context(), a)
		if u.Conflict != nil {
			f.no = true
			f.say("%s: nothing was stored: version %d is another session's, and yours was made from version %d (--force stores yours over it)",
				nameOf(cmd), u.Conflict.OtherVersion.Version, u.Conflict.BaseVersion)
		}
		return u, err
	}, printUpdated)
	t.flags(cmd)
	cmd.Flags().BoolVar(&a.Force, "force", false, "store it over another session's version")
	return f.recording(cmd)
}

func recordsTransitionCommand(p *Process) *cobra.Command {
	f := recordFlags{answers: answers{process: p}}
	var a record.TransitionArgs
	cmd := answering(&f, cobra.Command{
		Use:   "transition ID STATE",
		Short: "Change a record's state",
		Long: `transition moves a record that is active in the session to OPEN, LATER, RESOLVED or
DISCARDED. LATER and DISCARDED want a --reason, RESOLVED wants --resolved-by with the
record that answers this one. From LATER it goes to OPEN or DISCARDED, from RESOLVED
and DISCARDED to OPEN.`,
		Example: "  cairn records transition R001 RESOLVED --resolved-by R007 --session S-…",
		Args:    exactArgs(2, "a record's id and a state"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (record.Transitioned, error) {
		a.Caller, a.ID, a.ToState = f.caller(), args[0], stateOf(args[1])
		moved, err := c.Records().Transition(cmd.Context(), a)
		if w := moved.CascadeWarning; w != nil {
			f.say("%s", w.Message)
		}
		return moved, err
	}, func(w io.Writer, v record.Transitioned) error {
		_, err := fmt.Fprintf(w, "%s %s\n", v.Record.ID, v.Record.State)
		return err
	})
	cmd.Flags().StringVar(&a.Reason, "reason", "", "why, 1 to 1,000 characters")
	cmd.Flags().StringVar(&a.ResolvedBy, "resolved-by", "", "the record with the answer")
	return f.recording(cmd)
}
