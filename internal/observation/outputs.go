package observation

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"strconv"
	"strings"

	"cairn/internal/redact"
	"cairn/internal/store"
	"cairn/internal/tooloutput"
)

// output is what is kept of what a command or tool printed: never the text itself, but a
// digest of it and hashes of its lines.
type output struct {
	size   int    // bytes printed
	digest string // redacted, at most maxDigest bytes; never ""
	lines  []tooloutput.LineHash
}

// newOutput redacts a text before it makes a digest and hashes of it. A text without a
// line to keep returns nil.
func newOutput(text string, f *redact.Filter) *output {
	size := len(text)
	if size == 0 {
		return nil
	}
	text, _ = f.HeadTail(tooloutput.StripEscapes(clean(text)), maxOutputEnd, maxOutputEnd)
	lines := tooloutput.Lines(text)
	digest := tooloutput.Digest(lines)
	if digest == "" {
		return nil
	}
	return &output{size: size, digest: digest, lines: tooloutput.Hashes(lines)}
}

// maxOutputEnd is how many characters of either end of an output are read.
const maxOutputEnd = 32 << 10

// insert stores the output of a row. A nil output stores nothing.
func (o *output) insert(ctx context.Context, tx *store.Tx, id int64) error {
	if o == nil {
		return nil
	}
	salt, err := lineSalt(ctx, tx)
	if err != nil {
		return err
	}
	row := outputRow{id: id, keptOn: tx.Now().Unix() / secondsPerDay, size: o.size, stored: tooloutput.Pack(o.digest)}
	if _, err := tx.Exec(ctx, insertOutput, id, row.keptOn, row.size, row.text(), row.deflated(), row.checksum()); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, insertLines, id, salt.Words(o.lines))
	return err
}

const (
	insertOutput = `INSERT INTO output_rows (observation_id, kept_on, size, digest, deflated, checksum) VALUES (?, ?, ?, ?, ?, ?)`
	insertLines  = `INSERT INTO output_lines (rowid, hashes) VALUES (?, ?)`
	deleteOutput = `DELETE FROM output_rows WHERE observation_id = ?`
	deleteLines  = `DELETE FROM output_lines WHERE rowid = ?`
	updateDigest = `UPDATE output_rows SET digest = ?, deflated = ?, checksum = ? WHERE observation_id = ?`
	selectDigest = `SELECT ifnull(digest, deflated) FROM output_rows WHERE observation_id = ?`
	// One batch is read at a time, so that fn may write.
	selectOutputs = `SELECT observation_id, kept_on, size, ifnull(digest, deflated), checksum FROM output_rows WHERE observation_id > ?
ORDER BY observation_id LIMIT +?`
)

// outputRow is a row of output_rows.
type outputRow struct {
	id, keptOn int64
	size       int
	stored     any   // the digest: a string, or []byte if it is deflated
	sum        int64 // the checksum as it is stored
}

// isAltered reports whether the row is not what was written.
func (r *outputRow) isAltered() bool { return r.sum != r.checksum() }

// outputsBatch is how many outputs are read at once.
const outputsBatch = 200

// eachOutput calls fn with all rows of outputs, in the order of their numbers.
func eachOutput(ctx context.Context, tx *store.Tx, fn func(*outputRow) error) error {
	for last := int64(0); ; {
		batch, err := outputsAfter(ctx, tx, last)
		if err != nil || len(batch) == 0 {
			return err
		}
		for i := range batch {
			if err := fn(&batch[i]); err != nil {
				return err
			}
		}
		last = batch[len(batch)-1].id
	}
}

// outputsAfter returns the next rows of outputs after a number.
func outputsAfter(ctx context.Context, tx *store.Tx, after int64) (batch []outputRow, err error) {
	err = tx.Each(ctx, func(rows *sql.Rows) error {
		var r outputRow
		err := rows.Scan(&r.id, &r.keptOn, &r.size, &r.stored, &r.sum)
		batch = append(batch, r)
		return err
	}, selectOutputs, after, outputsBatch)
	return batch, err
}

// storedOutput makes an output out of a digest from elsewhere, which it redacts. A blank
// digest returns nil.
func storedOutput(digest string, size int, f *redact.Filter) *output {
	digest, _ = f.Text(clean(digest))
	lines := tooloutput.DigestedLines(digest)
	if len(digest) > tooloutput.MaxDigest {
		digest = tooloutput.Digest(lines)
	}
	if strings.TrimSpace(digest) == "" {
		return nil
	}
	return &output{size: max(size, 0), digest: digest, lines: tooloutput.Hashes(lines)}
}

// rewrite stores another digest of a row, and the hashes of its lines instead of those of
// the whole output.
func (r *outputRow) rewrite(ctx context.Context, tx *store.Tx, digest string, f *redact.Filter) error {
	o := storedOutput(digest, r.size, f)
	if o == nil {
		_, err := tx.Exec(ctx, deleteOutput, r.id)
		return err
	}
	r.stored = tooloutput.Pack(o.digest)
	res, err := tx.Exec(ctx, updateDigest, r.text(), r.deflated(), r.checksum(), r.id)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 { // deleted meanwhile
		return err
	}
	salt, err := lineSalt(ctx, tx)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, deleteLines, r.id); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, insertLines, r.id, salt.Words(o.lines))
	return err
}

// text returns the digest for the column of texts, nil if it is deflated.
func (r *outputRow) text() any {
	if _, ok := r.stored.(string); ok {
		return r.stored
	}
	return nil
}

// deflated returns the digest for the column of deflated ones, nil if it is a text.
func (r *outputRow) deflated() any {
	if _, ok := r.stored.([]byte); ok {
		return r.stored
	}
	return nil
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
	digest, _ := tooloutput.Unpack(stored)
	return digest, err
}

// lineSalt returns the store's salt of line hashes and makes it if there is none.
func lineSalt(ctx context.Context, tx *store.Tx) (tooloutput.Salt, error) {
	salt, ok, err := findLineSalt(ctx, tx)
	if ok || err != nil {
		return salt, err
	}
	fresh := make([]byte, 8)
	rand.Read(fresh)
	text := hex.EncodeToString(fresh)
	if err := tx.SetMeta(ctx, metaLineSalt, text); err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(text, 16, 64)
	return tooloutput.Salt(n), err
}

// findLineSalt returns the store's salt of line hashes; ok is false if there is none.
func findLineSalt(ctx context.Context, tx *store.Tx) (salt tooloutput.Salt, ok bool, err error) {
	text, ok, err := tx.Meta(ctx, metaLineSalt)
	if err != nil || !ok {
		return 0, false, err
	}
	n, err := strconv.ParseUint(text, 16, 64)
	return tooloutput.Salt(n), err == nil, err
}

// metaLineSalt is the name of the store's salt of line hashes.
const metaLineSalt = "line_salt"

// dropOutput deletes the output of a row and the hashes of its lines.
func dropOutput(ctx context.Context, tx *store.Tx, id int64) error {
	for _, query := range []string{deleteOutput, deleteLines} {
		if _, err := tx.Exec(ctx, query, id); err != nil {
			return err
		}
	}
	return nil
}
