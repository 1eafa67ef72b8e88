package mailcmd

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"cairn/internal/cli/command"
	"cairn/internal/mail/messages"
	"cairn/internal/mail/service"
)

// joinThreads returns several threads in the form of the mail service's argument.
func joinThreads(threads []string) string { return strings.Join(threads, ",") }

// remarks returns the special properties of a message in parentheses, "" if it has none.
func remarks(h messages.Header, more ...string) string {
	var all []string
	if h.Importance != "normal" {
		all = append(all, h.Importance)
	}
	if h.AckRequired {
		all = append(all, "ack required")
	}
	if h.ThreadID != nil {
		all = append(all, "thread "+optionalText(h.ThreadID))
	}
	if n := countAttachments(h); n > 0 {
		all = append(all, command.Counted(n, "attachment"))
	}
	if all = append(all, more...); len(all) == 0 {
		return ""
	}
	return "  (" + strings.Join(all, ", ") + ")"
}

// countAttachments counts the attachments of a message.
func countAttachments(h messages.Header) int {
	var all []json.RawMessage
	_ = json.Unmarshal(h.Attachments, &all) // the mail service wrote this JSON
	return len(all)
}

// headerLine formats a message as one line.
func headerLine(h messages.Header, who string, more ...string) string {
	subject := command.OneLine(h.Subject)
	if subject == "" {
		subject = "(no subject)"
	}
	return fmt.Sprintf("#%-4d %s  %s  %s%s\n", h.ID, formatTime(h.Created), command.Printable(who), subject, remarks(h, more...))
}

func printInbox(w io.Writer, items []messages.Item) error {
	for _, i := range items {
		var more []string
		if i.Kind != "to" {
			more = append(more, i.Kind)
		}
		if _, err := io.WriteString(w, headerLine(i.Header, i.From, more...)+command.Indented(i.Body)); err != nil {
			return err
		}
	}
	return nil
}

func printOutbox(w io.Writer, box service.OutboxResource) error {
	for _, m := range box.Messages {
		if _, err := io.WriteString(w, headerLine(m.Header, "to "+recipients(m.Payload))+command.Indented(m.Body)); err != nil {
			return err
		}
	}
	return nil
}

// recipients lists the recipients of a message, as far as its sender may know them.
func recipients(p messages.Payload) string {
	out := strings.Join(p.To, ", ")
	for _, more := range []struct {
		kind  string
		names []string
	}{{"cc", p.CC}, {"bcc", p.BCC}} {
		if len(more.names) > 0 {
			out = strings.TrimPrefix(out+", "+more.kind+" ", ", ") + strings.Join(more.names, ", ")
		}
	}
	return command.Printable(out)
}

func printSent(w io.Writer, s messages.Sent) error {
	for _, d := range s.Deliveries {
		in := ""
		if len(s.Deliveries) > 1 {
			in = " in " + command.Printable(d.Project)
		}
		if _, err := fmt.Fprintf(w, "#%d to %s%s\n", d.Payload.ID, recipients(d.Payload), in); err != nil {
			return err
		}
	}
	return nil
}

func printReply(w io.Writer, r messages.Reply) error {
	return printSent(w, messages.Sent{Deliveries: r.Deliveries})
}

func printMessage(w io.Writer, m service.ThreadMessage) error {
	_, err := io.WriteString(w, headerLine(m.Header, m.From)+command.Indented(m.Body))
	return err
}

func printThread(w io.Writer, t service.ThreadResource) error {
	for _, m := range t.Messages {
		m.ThreadID = nil // every line would repeat it
		if err := printMessage(w, m); err != nil {
			return err
		}
	}
	return nil
}

func printStamp(w io.Writer, out any) (err error) {
	switch s := out.(type) {
	case messages.Read:
		_, err = fmt.Fprintf(w, "#%d read at %s\n", s.MessageID, formatTime(s.At))
	case messages.Acknowledged:
		_, err = fmt.Fprintf(w, "#%d acknowledged at %s\n", s.MessageID, formatTime(s.At))
	}
	return err
}

func printHitsOfMail(w io.Writer, found messages.Hits) error {
	for _, h := range found.Result {
		header := messages.Header{
			ID: h.ID, Subject: h.Subject, Importance: h.Importance, AckRequired: h.AckRequired == 1, Created: h.Created, ThreadID: h.ThreadID,
		}
		line := headerLine(header, h.From)
		if h.Excerpt != "" {
			line += "      " + command.Printable(h.Excerpt) + "\n"
		}
		if _, err := io.WriteString(w, line); err != nil {
			return err
		}
	}
	return nil
}

func printSummaries(w io.Writer, s messages.Summarized) error {
	threads := s.Threads
	if s.One != nil {
		threads = []messages.ThreadSummary{*s.One}
	}
	for i, t := range threads {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := printSummary(w, t); err != nil {
			return err
		}
	}
	return nil
}

func printSummary(w io.Writer, t messages.ThreadSummary) error {
	s := t.Summary
	fmt.Fprintf(w, "thread %s: %s by %s\n", command.Printable(t.ThreadID), command.Counted(s.TotalMessages, "message"), command.Printable(strings.Join(s.Participants, ", ")))
	if s.OpenActions+s.DoneActions > 0 {
		fmt.Fprintf(w, "%d open, %d done\n", s.OpenActions, s.DoneActions)
	}
	for _, part := range []struct {
		title string
		lines []string
	}{{"to do", s.ActionItems}, {"points", s.KeyPoints}, {"code", s.CodeReferences}} {
		if len(part.lines) == 0 {
			continue
		}
		fmt.Fprintln(w, part.title)
		for _, line := range part.lines {
			fmt.Fprintf(w, "    %s\n", command.OneLine(line))
		}
	}
	for _, m := range s.Mentions {
		if _, err := fmt.Fprintf(w, "@%s  %s\n", command.Printable(m.Name), command.Counted(m.Count, "time")); err != nil {
			return err
		}
	}
	return nil
}
