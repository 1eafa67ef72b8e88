package observation

import (
	"context"
	"strings"

	"cairn/internal/redact"
	"cairn/internal/store"
)

// OutputMode says which outputs of commands and tools are kept ([observations.capture]
// output).
type OutputMode string

// The modes. The zero value means OutputDigest.
const (
	OutputDigest OutputMode = "digest" // a digest and the hashes of the lines of every call
	OutputErrors OutputMode = "errors" // the same, of failed calls only
	OutputOff    OutputMode = "off"    // nothing
)

// Stricter returns the mode that keeps less.
func (m OutputMode) Stricter(n OutputMode) OutputMode {
	for _, mode := range [...]OutputMode{OutputOff, OutputErrors} {
		if m == mode || n == mode {
			return mode
		}
	}
	return OutputDigest
}

// IsValid reports whether m is one of the modes.
func (m OutputMode) IsValid() bool {
	return m == "" || m == OutputDigest || m == OutputErrors || m == OutputOff
}

// DefaultOutputDays is the retention of outputs, in days since cairn stored them.
const DefaultOutputDays = 30

// maxOutputEnd is how many characters of either end of an output are read.
const maxOutputEnd = 32 << 10

// output is what is kept of what a command or tool printed: never the text itself, but a
// digest of it and hashes of its lines.
type output struct {
	size   int    // bytes printed
	digest string // redacted, at most maxDigest bytes; never ""
	lines  []lineHash
}

// printedBy returns what a call printed, as it came, and "" for a call that reads or
// writes files: whole file bodies are not kept (amendments §A.6).
func printedBy(c *Call) string {
	switch c.Action {
	case Read, Write, Edit, Search, Skill:
		return ""
	case Shell:
		switch {
		case strings.TrimSpace(c.Stderr) == "" || c.Stderr == c.Stdout:
			return firstText(c.Stdout, firstText(c.Error, c.Output))
		case strings.TrimSpace(c.Stdout) == "":
			return c.Stderr
		}
		return strings.TrimRight(c.Stdout, "\n") + "\n" + c.Stderr
	}
	return firstText(c.Output, c.Error)
}

// keepOutputs makes the outputs of rows out of what their calls printed, as far as the
// settings keep them. It needs no transaction.
func (j *Service) keepOutputs(rows []draft) {
	for i := range rows {
		d := &rows[i]
		if j.config.Output != OutputOff && (d.Failed || j.config.Output != OutputErrors) {
			d.output = newOutput(d.printed, j.config.Filter)
		}
		d.printed = ""
	}
}

// newOutput redacts a text before it makes a digest and hashes of it. A text without a
// line to keep returns nil.
func newOutput(text string, f *redact.Filter) *output {
	size := len(text)
	if size == 0 {
		return nil
	}
	text, _ = f.HeadTail(stripEscapes(clean(text)), maxOutputEnd, maxOutputEnd)
	lines := printedLines(text)
	digest := outputDigest(lines)
	if digest == "" {
		return nil
	}
	return &output{size: size, digest: digest, lines: hashLines(lines)}
}

// insert stores the output of a row. A nil output stores nothing.
func (o *output) insert(ctx context.Context, tx *store.Tx, id int64) error {
	if o == nil {
		return nil
	}
	salt, err := lineSalt(ctx, tx)
	if err != nil {
		return err
	}
	row := outputRow{id: id, keptOn: tx.Now().Unix() / secondsPerDay, size: o.size, stored: packDigest(o.digest)}
	if _, err := tx.Exec(ctx, insertOutput, id, row.keptOn, row.size, row.text(), row.deflated(), row.checksum()); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, insertLines, id, salt.words(o.lines))
	return err
}

// maxOutputs is how many bytes of outputs Get returns together: they reach a model.
const maxOutputs = 16 << 10

// shareOutputs shortens the outputs of rows that are longer than maxOutputs together.
func shareOutputs(rows []Observation) {
	total, n := 0, 0
	for i := range rows {
		if size := len(rows[i].Output); size > 0 {
			total, n = total+size, n+1
		}
	}
	if total <= maxOutputs {
		return
	}
	for i := range rows {
		rows[i].Output = shortDigest(rows[i].Output, maxOutputs/n)
	}
}

// shortDigest returns a digest of at most limit bytes, which must be 100 or more: its
// beginning, a gap and its end, where most tools sum up, which is twice as long.
func shortDigest(digest string, limit int) string {
	if len(digest) <= limit {
		return digest
	}
	const gap = "\n" + digestGap + "\n"
	limit -= len(gap)
	head, tail := limit/3, len(digest)-limit*2/3
	if i := strings.LastIndexByte(digest[:head], '\n'); i > 0 {
		head = i
	}
	if i := strings.IndexByte(digest[tail:], '\n'); i >= 0 && i < limit/3 {
		tail += i + 1
	}
	return strings.ToValidUTF8(digest[:head], "") + gap + strings.ToValidUTF8(digest[tail:], "")
}
