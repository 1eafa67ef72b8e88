package observation

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/internal/store"
	"cairn/internal/words"
)

// said is what a row says: the columns that its checksum covers. A row gets them when it
// is recorded, and only a rescan changes them.
type said struct {
	at                                         int64
	obsType, source, tool, content, path, meta string // a missing one is ""
}

// checksum returns a CRC-32 of a row, which no flipped bit leaves as it was. It is signed
// so that it takes four bytes.
func (r *said) checksum() int64 {
	texts := [...]string{r.obsType, r.source, r.tool, r.content, r.path, r.meta}
	size := 10
	for _, t := range texts {
		size += len(t) + 5
	}
	b := binary.AppendVarint(make([]byte, 0, size), r.at)
	for _, t := range texts {
		b = append(binary.AppendUvarint(b, uint64(len(t))), t...)
	}
	return int64(int32(crc32.ChecksumIEEE(b)))
}

// metadata is a row's metadata: strings, integers, true, lists and params. What
// is empty or unknown is not in it.
type metadata map[string]any

// text is the metadata as compact JSON with sorted keys, "" if there is none.
func (m metadata) text() (string, error) {
	if len(m) == 0 {
		return "", nil
	}
	return compactJSON(m)
}

func compactJSON(v any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// clean makes a text storable: valid UTF-8 without NUL (observations §13).
func clean(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// structure is the JSON object or array that a text holds, else the text.
func structure(s string) any {
	if s == "" || s[0] != '{' && s[0] != '[' {
		return s
	}
	var v any
	dec := json.NewDecoder(strings.NewReader(s))
	dec.UseNumber()
	if dec.Decode(&v) != nil || dec.More() {
		return s
	}
	return v
}

// storedMetadata reads a row's metadata as it was before it was stored. It is empty if the
// text is not a JSON object.
func storedMetadata(text string) metadata {
	m := metadata{}
	if text == "" || json.Unmarshal([]byte(text), &m) != nil {
		return metadata{}
	}
	return withParams(m)
}

// withParams gives the parameters of an MCP call in metadata the type that they had before
// they were stored.
func withParams(m metadata) metadata {
	if params, ok := m["params"].(map[string]any); ok {
		texts := map[string]string{}
		for name, v := range params {
			texts[name], _ = v.(string)
		}
		m["params"] = texts
	}
	return m
}

// holdsWords reports whether s stands in text and is no part of a longer word there.
func holdsWords(text, s string) bool {
	i := strings.Index(text, s)
	if i < 0 {
		return false
	}
	inWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	before, _ := utf8.DecodeLastRuneInString(text[:i])
	after, _ := utf8.DecodeRuneInString(text[i+len(s):])
	return !inWord(before) && !inWord(after)
}

const (
	insertWords  = `INSERT INTO observations_fts (rowid, parts, wholes) VALUES (?, ?, ?)`
	deleteWords  = `DELETE FROM observations_fts WHERE rowid = ?`
	insertBranch = `INSERT OR IGNORE INTO session_branches (branch, session_key) VALUES (?, ?)`
)

// searchableText returns the text by which a row is found (observations §8.1): its content
// and what its path, as the call gave it, and its metadata hold that the content does not say
// already.
func searchableText(content, path string, meta metadata) string {
	var b strings.Builder
	b.WriteString(content)
	more := func(text string) {
		if text != "" && !holdsWords(content, text) {
			b.WriteByte('\n')
			b.WriteString(text)
		}
	}
	more(path)
	for _, key := range []string{"error", "description", "commit_message", "branch", "server", "method"} {
		text, _ := meta[key].(string)
		more(text)
	}
	if params, ok := meta["params"].(map[string]string); ok {
		for _, name := range slices.Sorted(maps.Keys(params)) {
			more(name)
			more(params[name])
		}
	}
	return b.String()
}

// indexText stores the words of a row's searchable text.
func indexText(ctx context.Context, tx *store.Tx, id int64, text string) error {
	parts, wholes := words.Index(text)
	_, err := tx.Exec(ctx, insertWords, id, parts, wholes)
	return err
}

// dropWords deletes the searchable words of a row.
func dropWords(ctx context.Context, tx *store.Tx, id int64) error {
	_, err := tx.Exec(ctx, deleteWords, id)
	return err
}

// addBranch notes that a session worked on a branch. It is idempotent.
func addBranch(ctx context.Context, tx *store.Tx, branch string, session int64) error {
	_, err := tx.Exec(ctx, insertBranch, branch, session)
	return err
}

const selectCall = `SELECT id FROM observation_rows WHERE tool_use_id = ? AND session_key = ? AND part = ?`

// callRow returns the row of a call of a session, 0 if there is none.
func callRow(ctx context.Context, tx *store.Tx, call string, session int64, part int) (id int64, err error) {
	return lookUp(ctx, tx, selectCall, call, session, part)
}

const selectContent = `SELECT content FROM observation_rows WHERE id = ?`

// contentOf returns the content of a row; ok is false if the row is gone.
func contentOf(ctx context.Context, tx *store.Tx, id int64) (text string, ok bool, err error) {
	err = tx.Get(ctx, []any{&text}, selectContent, id)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	return text, err == nil, err
}

const (
	maxCommand = 500
	maxPath    = 1000
)
