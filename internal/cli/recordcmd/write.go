package recordcmd

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/cli/command"
	"cairn/internal/fault"
	"cairn/internal/record"
)

func recordsActivateCommand(p *command.Process) *cobra.Command {
	f := command.RecordFlags{Printer: command.Printer{Process: p}}
	var override bool
	cmd := command.New(&f, cobra.Command{
		Use:   "activate ID",
		Short: "Load a record into the session, with its parent and children",
		Long: `activate prints a record, its parent and its OPEN children in full, and the titles of
everything else below it. It remembers which version the session has loaded. Only then
can the session change the record or add records below it. If the record is active in
another session too, the command warns and continues. --override suppresses the warning.`,
		Example: "  cairn records activate R001\n  cairn records activate R002 --session S-…",
		Args:    command.ExactArgs(1, "one record's id"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (a record.Activated, err error) {
		caller, err := f.Writer(cmd.Context(), c)
		if err != nil {
			return a, err
		}
		a, err = c.Records().Activate(cmd.Context(), record.ActivateArgs{Caller: caller, ID: args[0], Override: override})
		for _, w := range a.Context.Warnings {
			f.Note("%s: %s", w.Type, warning(w))
		}
		return a, err
	}, printBundle)
	cmd.Flags().BoolVar(&override, "override", false, "do not warn if another session has the record active")
	return f.WriteFlags(cmd)
}

// warning returns the text of a bundle's warning, with a hint about commands.
func warning(w record.Warning) string {
	if w.Type != "stale" {
		return w.Message
	}
	what, _, _ := strings.Cut(w.Message, ";")
	return what + "; `cairn session sync` shows them"
}

// texts are the flags for the content of a record.
type texts struct {
	title, summary, body, bodyFile, metadata string
	related                                  []string
}

func (t *texts) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.title, "title", "", "the title, one line of 1 to 200 characters")
	cmd.Flags().StringVar(&t.summary, "summary", "", "a summary in 1-2 sentences, at most 1,000 characters")
	cmd.Flags().StringVar(&t.body, "body", "", "the text, at most 1 MiB")
	cmd.Flags().StringVar(&t.bodyFile, "body-file", "", "the file with the text, - for standard input")
	cmd.Flags().StringSliceVar(&t.related, "related", nil, "ids of related records")
	cmd.Flags().StringVar(&t.metadata, "metadata", "", "a JSON object of at most 64 KiB")
	cmd.MarkFlagsMutuallyExclusive("body", "body-file")
}

// maxBodyRead is more than the limit of a body, so that the size check sees a body that
// is too long.
const maxBodyRead = 2 << 20

// readBody returns the body that the flags give, nil if they give none.
func (t *texts) readBody(cmd *cobra.Command, p *command.Process) (*string, error) {
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

// object returns the metadata that the flags give, nil if they give none.
func (t *texts) object(cmd *cobra.Command) json.RawMessage {
	if !cmd.Flags().Changed("metadata") {
		return nil
	}
	return json.RawMessage(t.metadata)
}

func recordsCreateCommand(p *command.Process) *cobra.Command {
	f := command.RecordFlags{Printer: command.Printer{Process: p}}
	var t texts
	var parent, state string
	var a record.CreateArgs
	cmd := command.New(&f, cobra.Command{
		Use:   "create --type TYPE --title TITLE",
		Short: "Store a new record and print its id",
		Long: `create stores a record and activates it. A record below --parent requires that the
parent is active in the session. The type is any word: question, conclusion, note …`,
		Example: `  cairn records create --type question --title "Where do refunds expire?" --body-file notes.md
  git log -3 | cairn records create --type note --title "What moved" --body-file - --parent R001 --session S-…`,
		Args: command.NoArgs,
	}, func(cmd *cobra.Command, c *cairn.Cairn, _ []string) (made record.Created, err error) {
		if err := command.RequireFlags(cmd, "type", "title"); err != nil {
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
		if a.Caller, err = f.Writer(cmd.Context(), c); err != nil {
			return made, err
		}
		return c.Records().Create(cmd.Context(), a)
	}, func(w io.Writer, v record.Created) error {
		_, err := fmt.Fprintln(w, v.Record.ID)
		return err
	})
	t.flags(cmd)
	cmd.Flags().StringVar(&a.Type, "type", "", "the type, 1 to 64 characters")
	cmd.Flags().StringVar(&parent, "parent", "", "the parent record")
	cmd.Flags().StringVar(&state, "state", "", "the state: OPEN (default), LATER, RESOLVED or DISCARDED")
	return f.WriteFlags(cmd)
}

func recordsUpdateCommand(p *command.Process) *cobra.Command {
	f := command.RecordFlags{Printer: command.Printer{Process: p}}
	var t texts
	var a record.UpdateArgs
	cmd := command.New(&f, cobra.Command{
		Use:   "update ID",
		Short: "Change a record's content",
		Long: `update changes the fields of a record that its flags name. The record must be active in
the session. If another session has stored a version that this session has not loaded,
update stores nothing, prints both versions and exits 1. --force then stores your
version; the other one stays in the history.`,
		Example: "  cairn records update R001 --body-file notes.md --session S-…",
		Args:    command.ExactArgs(1, "one record's id"),
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
			a.Related = command.NotNil(t.related)
		}
		a.ID, a.Metadata, a.Caller = args[0], t.object(cmd), f.Caller()
		u, err = c.Records().Update(cmd.Context(), a)
		if u.Conflict != nil {
			f.No = true
			f.Note("%s: nothing was stored: another session stored version %d, and yours is based on version %d (--force stores yours anyway)",
				command.NameOf(cmd), u.Conflict.OtherVersion.Version, u.Conflict.BaseVersion)
		}
		return u, err
	}, printUpdated)
	t.flags(cmd)
	cmd.Flags().BoolVar(&a.Force, "force", false, "store your version even if another session stored a newer one")
	return f.WriteFlags(cmd)
}

func recordsTransitionCommand(p *command.Process) *cobra.Command {
	f := command.RecordFlags{Printer: command.Printer{Process: p}}
	var a record.TransitionArgs
	cmd := command.New(&f, cobra.Command{
		Use:   "transition ID STATE",
		Short: "Change a record's state",
		Long: `transition changes the state of a record that is active in the session to OPEN, LATER,
RESOLVED or DISCARDED. LATER and DISCARDED require --reason. RESOLVED requires
--resolved-by, the record that answers this one. LATER can change to OPEN or DISCARDED;
RESOLVED and DISCARDED can only change to OPEN.`,
		Example: "  cairn records transition R001 RESOLVED --resolved-by R007 --session S-…",
		Args:    command.ExactArgs(2, "a record's id and a state"),
	}, func(cmd *cobra.Command, c *cairn.Cairn, args []string) (record.Transitioned, error) {
		a.Caller, a.ID, a.ToState = f.Caller(), args[0], stateOf(args[1])
		moved, err := c.Records().Transition(cmd.Context(), a)
		if w := moved.CascadeWarning; w != nil {
			f.Note("%s", w.Message)
		}
		return moved, err
	}, func(w io.Writer, v record.Transitioned) error {
		_, err := fmt.Fprintf(w, "%s %s\n", v.Record.ID, v.Record.State)
		return err
	})
	cmd.Flags().StringVar(&a.Reason, "reason", "", "the reason, 1 to 1,000 characters")
	cmd.Flags().StringVar(&a.ResolvedBy, "resolved-by", "", "the record with the answer")
	return f.WriteFlags(cmd)
}
