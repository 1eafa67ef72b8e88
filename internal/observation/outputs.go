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

// Output is the stored form of an output of a command or tool: a digest of the text and hashes
// of its lines, never the text itself.
type Output struct {
	size   int    // bytes printed
	digest string // redacted, at most tooloutput.MaxDigest bytes; never ""
	lines  []tooloutput.LineHash
}

// NewOutput redacts a text, then creates its digest and the hashes of its lines. It returns nil
// if the text has no line worth storing.
func NewOutput(text string, f *redact.Filter) *Output {
	size := len(text)
	if size == 0 {
		return nil
	}
	text, _ = f.HeadTail(tooloutput.StripEscapes(Clean(text)), maxOutputEnd, maxOutputEnd)
	lines := tooloutput.Lines(text)
	digest := tooloutput.Digest(lines)
	if digest == "" {
		return nil
	}
	return &Output{size: size, digest: digest, lines: tooloutput.Hashes(lines)}
}

// maxOutputEnd is the number of characters read from each end of an output.
const maxOutputEnd = 32 << 10

// Insert stores the output of a row. A nil output stores nothing.
func (o *Output) Insert(ctx context.Context, tx *store.Tx, id int64) error {
	if o == nil {
		return nil
	}
	salt, err := LineSalt(ctx, tx)
	if err != nil {
		return err
	}
	row := OutputRow{Id: id, keptOn: tx.Now().Unix() / SecondsPerDay, size: o.size, Stored: tooloutput.Pack(o.digest)}
	if _, err := tx.Exec(ctx, insertOutput, id, row.keptOn, row.size, row.text(), row.deflated(), row.checksum()); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, InsertLines, id, salt.Words(o.lines))
	return err
}

const (
	insertOutput = `INSERT INTO output_rows (observation_id, kept_on, size, digest, deflated, checksum) VALUES (?, ?, ?, ?, ?, ?)`
	InsertLines  = `INSERT INTO output_lines (rowid, hashes) VALUES (?, ?)`
	DeleteOutput = `DELETE FROM output_rows WHERE observation_id = ?`
	deleteLines  = `DELETE FROM output_lines WHERE rowid = ?`
	updateDigest = `UPDATE output_rows SET digest = ?, deflated = ?, checksum = ? WHERE observation_id = ?`
	selectDigest = `SELECT ifnull(digest, deflated) FROM output_rows WHERE observation_id = ?`
	// One batch is read at a time, so that fn may write.
	selectOutputs = `SELECT observation_id, kept_on, size, ifnull(digest, deflated), checksum FROM output_rows WHERE observation_id > ?
ORDER BY observation_id LIMIT +?`
)

// OutputRow is a row of output_rows.
type OutputRow struct {
	Id, keptOn int64
	size       int
	Stored     any   // the digest: a string, or []byte if it is deflated
	sum        int64 // the checksum as it is stored
}

// IsAltered reports whether the row does not match its checksum.
func (r *OutputRow) IsAltered() bool { return r.sum != r.checksum() }

// outputsBatch is the number of outputs read at a time.
const outputsBatch = 200

// EachOutput calls fn with all rows of outputs, in the order of their ids.
func EachOutput(ctx context.Context, tx *store.Tx, fn func(*OutputRow) error) error {
	for last := int64(0); ; {
		batch, err := OutputsAfter(ctx, tx, last)
		if err != nil || len(batch) == 0 {
			return err
		}
		for i := range batch {
			if err := fn(&batch[i]); err != nil {
				return err
			}
		}
		last = batch[len(batch)-1].Id
	}
}

// OutputsAfter returns the next batch of outputs, with ids greater than after.
func OutputsAfter(ctx context.Context, tx *store.Tx, after int64) (batch []OutputRow, err error) {
	err = tx.Each(ctx, func(rows *sql.Rows) error {
		var r OutputRow
		err := rows.Scan(&r.Id, &r.keptOn, &r.size, &r.Stored, &r.sum)
		batch = append(batch, r)
		return err
	}, selectOutputs, after, outputsBatch)
	return batch, err
}

// StoredOutput creates an output from a digest of another source and redacts it. A blank digest
// returns nil.
func StoredOutput(digest string, size int, f *redact.Filter) *Output {
	digest, _ = f.Text(Clean(digest))
	lines := tooloutput.DigestedLines(digest)
	if len(digest) > tooloutput.MaxDigest {
		digest = tooloutput.Digest(lines)
	}
	if strings.TrimSpace(digest) == "" {
		return nil
	}
	return &Output{size: max(size, 0), digest: digest, lines: tooloutput.Hashes(lines)}
}

// Rewrite replaces the digest of a row, and the hashes of the whole output's lines by those of
// the new digest's lines. A digest that is blank after redaction deletes the row.
func (r *OutputRow) Rewrite(ctx context.Context, tx *store.Tx, digest string, f *redact.Filter) error {
	o := StoredOutput(digest, r.size, f)
	if o == nil {
		_, err := tx.Exec(ctx, DeleteOutput, r.Id)
		return err
	}
	r.Stored = tooloutput.Pack(o.digest)
	res, err := tx.Exec(ctx, updateDigest, r.text(), r.deflated(), r.checksum(), r.Id)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 { // deleted meanwhile
		return err
	}
	salt, err := LineSalt(ctx, tx)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, deleteLines, r.Id); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, InsertLines, r.Id, salt.Words(o.lines))
	return err
}

// text returns the value of the digest column, nil if the digest is deflated.
func (r *OutputRow) text() any {
	if _, ok := r.Stored.(string); ok {
		return r.Stored
	}
	return nil
}

// deflated returns the value of the deflated column, nil if the digest is stored as text.
func (r *OutputRow) deflated() any {
	if _, ok := r.Stored.([]byte); ok {
		return r.Stored
	}
	return nil
}

// checksum returns a CRC-32 of the row without its id, which an import may change. It is signed
// so that it takes four bytes.
func (r *OutputRow) checksum() int64 {
	b := binary.AppendVarint(binary.AppendVarint(nil, r.keptOn), int64(r.size))
	switch digest := r.Stored.(type) {
	case string:
		b = append(b, digest...)
	case []byte:
		b = append(append(b, 0), digest...)
	}
	return int64(int32(crc32.ChecksumIEEE(b)))
}

// OutputOf returns the digest of a row, "" if there is none or it is damaged.
func OutputOf(ctx context.Context, tx *store.Tx, id int64) (string, error) {
	var stored any
	err := tx.Get(ctx, []any{&stored}, selectDigest, id)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	digest, _ := tooloutput.Unpack(stored)
	return digest, err
}

// LineSalt returns the store's salt of line hashes and creates it if there is none.
func LineSalt(ctx context.Context, tx *store.Tx) (tooloutput.Salt, error) {
	salt, ok, err := FindLineSalt(ctx, tx)
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

// FindLineSalt returns the store's salt of line hashes; ok is false if there is none.
func FindLineSalt(ctx context.Context, tx *store.Tx) (salt tooloutput.Salt, ok bool, err error) {
	text, ok, err := tx.Meta(ctx, metaLineSalt)
	if err != nil || !ok {
		return 0, false, err
	}
	n, err := strconv.ParseUint(text, 16, 64)
	return tooloutput.Salt(n), err == nil, err
}

// metaLineSalt is the name of the store's salt of line hashes.
const metaLineSalt = "line_salt"

// DropOutput deletes the output of a row and the hashes of its lines.
func DropOutput(ctx context.Context, tx *store.Tx, id int64) error {
	for _, query := range []string{DeleteOutput, deleteLines} {
		if _, err := tx.Exec(ctx, query, id); err != nil {
			return err
		}
	}
	return nil
}
