package observation

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"hash/crc32"
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

// Statements of outputs.
const (
	insertOutput = `INSERT INTO output_rows (observation_id, kept_on, size, digest, checksum) VALUES (?, ?, ?, ?, ?)`
	insertLines  = `INSERT INTO output_lines (rowid, hashes) VALUES (?, ?)`

	selectDigest = `SELECT digest FROM output_rows WHERE observation_id = ?`
)

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
func (j *Journal) keepOutputs(rows []draft) {
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
	if _, err := tx.Exec(ctx, insertOutput, id, row.keptOn, row.size, row.stored, row.checksum()); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, insertLines, id, salt.words(o.lines))
	return err
}

// outputRow is a row of output_rows.
type outputRow struct {
	id, keptOn int64
	size       int
	stored     any // the digest: a string, or []byte if it is deflated
}

// checksum returns a CRC-32 of the row without its number, which an import may change. It
// is signed so that it takes four bytes.
func (r *outputRow) checksum() int64 {
	b := binary.AppendVarint(binary.AppendVarint(nil, r.keptOn), int64(r.size))
	switch digest := r.stored.(type) {
	case string:
		b = append(b, digest...)
	case []byte:
		b = append(append(b, 0), digest...)
	}
	return int64(int32(crc32.ChecksumIEEE(b)))
}

// outputOf returns the digest of a row, "" if none is kept or it is damaged.
func outputOf(ctx context.Context, tx *store.Tx, id int64) (string, error) {
	var stored any
	err := tx.Get(ctx, []any{&stored}, selectDigest, id)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	digest, _ := unpackDigest(stored)
	return digest, err
}

// printedOf returns the digests of rows, one after the other, for an index of words or an
// excerpt. Rows without an output, and damaged ones, add nothing.
func printedOf(ctx context.Context, tx *store.Tx, ids []int64) (string, error) {
	var b strings.Builder
	for _, id := range ids {
		digest, err := outputOf(ctx, tx, id)
		if err != nil {
			return "", err
		}
		if digest != "" {
			b.WriteString(digest)
			b.WriteByte('\n')
		}
	}
	return b.String(), nil
}
