package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"cairn/internal/mail"
)

// joinThreads returns several threads in the form of the mail service's argument.
func joinThreads(threads []string) string { return strings.Join(threads, ",") }

// remarks returns the special properties of a message in parentheses, "" if it has none.
func remarks(h mail.Header, more ...string) string {
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
		all = append(all, counted(n, "attachment"))
	}
	if all = append(all, more...); len(all) == 0 {
		return ""
	}
	return "  (" + strings.Join(all, ", ") + ")"
}

// countAttachments counts the attachments of a message.
func countAttachments(h mail.Header) int {
	var all []json.RawMessage
	_ = json.Unmarshal(h.Attachments, &all) // the mail service wrote this JSON
	return len(all)
}

// headerLine formats a message as one line.
func headerLine(h mail.Header, who string, more ...string) string {
	subject := oneLine(h.Subject)
	if subject == "" {
		subject = "(no subject)"
	}
	return fmt.Sprintf("#%-4d %s  %s  %s%s\n", h.ID, formatTime(h.Created), printable(who), subject, remarks(h, more...))
}

// indented returns a text to print below its header line; "" for nil. The indentation
// keeps its lines from looking like output of cairn.
func indented(body *string) string {
	if body == nil || *body == "" {
		return ""
	}
	var out strings.Builder
	for line := range strings.Lines(block(*body)) {
		if line != "\n" {
			line = "    " + line
		}
		out.WriteString(line)
	}
	return out.String()
}

func printInbox(w io.Writer, items []mail.Item) error {
	for _, i := range items {
		var more []string
		if i.Kind != "to" {
			more = append(more, i.Kind)
		}
		if _, err := io.WriteString(w, headerLine(i.Header, i.From, more...)+indented(i.Body)); err != nil {
			return err
		}
	}
	return nil
}

func printOutbox(w io.Writer, box mail.OutboxResource) error {
	for _, m := range box.Messages {
		if _, err := io.WriteString(w, headerLine(m.Header, "to "+recipients(m.Payload))+indented(m.Body)); err != nil {
			return err
		}
	}
	return nil
}

// recipients lists the recipients of a message, as far as its sender may know them.
func recipients(p mail.Payload) string {
	out := strings.Join(p.To, ", ")
	for _, more := range []struct {
		kind  string
		names []string
	}{{"cc", p.CC}, {"bcc", p.BCC}} {
		if len(more.names) > 0 {
			out = strings.TrimPrefix(out+", "+more.kind+" ", ", ") + strings.Join(more.names, ", ")
		}
	}
	return printable(out)
}

func printSent(w io.Writer, s mail.Sent) error {
	for _, d := range s.Deliveries {
		in := ""
		if len(s.Deliveries) > 1 {
			in = " in " + printable(d.Project)
		}
		if _, err := fmt.Fprintf(w, "#%d to %s%s\n", d.Payload.ID, recipients(d.Payload), in); err != nil {
			return err
		}
	}
	return nil
}

func printReply(w io.Writer, r mail.Reply) error {
	return printSent(w, mail.Sent{Deliveries: r.Deliveries})
}

func printMessage(w io.Writer, m mail.ThreadMessage) error {
	_, err := io.WriteString(w, headerLine(m.Header, m.From)+indented(m.Body))
	return err
}

func printThread(w io.Writer, t mail.ThreadResource) error {
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
	case mail.Read:
		_, err = fmt.Fprintf(w, "#%d read at %s\n", s.MessageID, formatTime(s.At))
	case mail.Acknowledged:
		_, err = fmt.Fprintf(w, "#%d acknowledged at %s\n", s.MessageID, formatTime(s.At))
	}
	return err
}

func printHitsOfMail(w io.Writer, found mail.Hits) error {
	for _, h := range found.Result {
		header := mail.Header{
			ID: h.ID, Subject: h.Subject, Importance: h.Importance, AckRequired: h.AckRequired == 1, Created: h.Created, ThreadID: h.ThreadID,
		}
		line := headerLine(header, h.From)
		if h.Excerpt != "" {
			line += "      " + printable(h.Excerpt) + "\n"
		}
		if _, err := io.WriteString(w, line); err != nil {
			return err
		}
	}
	return nil
}

func printSummaries(w io.Writer, s mail.Summarized) error {
	threads := s.Threads
	if s.One != nil {
		threads = []mail.ThreadSummary{*s.One}
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

func printSummary(w io.Writer, t mail.ThreadSummary) error {
	s := t.Summary
	fmt.Fprintf(w, "thread %s: %s by %s\n", printable(t.ThreadID), counted(s.TotalMessages, "message"), printable(strings.Join(s.Participants, ", ")))
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
			fmt.Fprintf(w, "    %s\n", oneLine(line))
		}
	}
	for _, m := range s.Mentions {
		if _, err := fmt.Fprintf(w, "@%s  %s\n", printable(m.Name), counted(m.Count, "time")); err != nil {
			return err
		}
	}
	return nil
}

// row returns a line of a table; tabs separate its cells.
func row(format string, values ...any) []string {
	return strings.Split(fmt.Sprintf(format, values...), "\t")
}

// rows prints a table without trailing spaces.
func rows(w io.Writer, lines [][]string) error {
	var out strings.Builder
	t := tabwriter.NewWriter(&out, 0, 4, 2, ' ', 0)
	for _, cells := range lines {
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(out.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}
