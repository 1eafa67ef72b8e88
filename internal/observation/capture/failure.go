package capture

import (
	"strings"
	"unicode/utf8"

	failures "cairn/internal/failure"
	"cairn/internal/observation"
	"cairn/internal/oneline"
	"cairn/internal/shell"
	"cairn/internal/tooloutput"
)

// failureText returns the output of a failed call: its error, and the streams of a shell command
// that the error does not contain.
func failureText(c *observation.Call) string {
	text := c.Error
	for _, s := range []string{c.Stderr, c.Stdout} {
		if s = strings.TrimRight(s, " \t\r\n"); s == "" || strings.Contains(text, s) {
			continue
		}
		if strings.TrimSpace(text) != "" {
			text += "\n"
		}
		text += s
	}
	return text
}

// failure adds the error of a failed shell command to its row. Content gets the line that
// explains the failure and the lines after it, at most 500 characters. metadata.error gets the
// same line, then the first and last 1,000 characters of the output. The line "Exit code N" is
// omitted if the row has other text.
func (d *drafter) failure(c *observation.Call) {
	text := observation.Clean(withoutExitCode(tooloutput.StripEscapes(failureText(c))))
	if strings.TrimSpace(text) == "" {
		return
	}
	words := shell.ProgramWords(c.Command, c.Tool)
	var near, kept string
	if len(text) <= 2*redactMargin {
		redacted, changed := d.filter.Text(text)
		d.changed = d.changed || changed
		near, kept = redacted, bothEnds(redacted, errorHead, errorTail)
	} else {
		near, kept = d.near(text, failures.Find(text, words)), d.headTail(text, errorHead, errorTail)
	}
	why := failures.Find(near, words)
	first, _, _ := strings.Cut(strings.TrimSpace(kept), "\n")
	if why.Text == "" || strings.HasPrefix(strings.Join(strings.Fields(first), " "), why.Text) { // nothing to move
		d.Content += "\n" + oneline.Cut(strings.TrimSpace(kept), maxErrorText)
		d.put("error", kept)
		return
	}
	d.Content += "\n" + oneline.Cut(strings.TrimSpace(why.Text+near[why.End:]), maxErrorText)
	room := errorHead - utf8.RuneCountInString(why.Text) - 1
	d.put("error", why.Text+"\n"+bothEnds(kept, room, errorTail))
}

// near returns the redacted lines of a long output, starting at the line of f.
func (d *drafter) near(text string, f failures.Finding) string {
	end := min(f.End+maxErrorText, len(text))
	if end < len(text) { // do not cut inside a line, which may be a secret
		end = max(f.End, strings.LastIndexByte(text[:end], '\n'))
	}
	last, changed := d.filter.HeadTail(text[:end], 0, utf8.RuneCountInString(text[f.Start:end]))
	d.changed = d.changed || changed
	return last
}

// bothEnds returns the first head and the last tail characters of a text, without a gap mark.
func bothEnds(s string, head, tail int) string {
	n := utf8.RuneCountInString(s)
	if n <= head+tail {
		return s
	}
	first := oneline.Cut(s, head)
	return first + s[len(oneline.Cut(s, n-tail)):]
}

// withoutExitCode removes a first line that only contains the exit code, unless the text
// contains nothing else.
func withoutExitCode(text string) string {
	line, rest, _ := strings.Cut(text, "\n")
	if observation.IsExitCode(line) && strings.TrimSpace(rest) != "" {
		return rest
	}
	return text
}
