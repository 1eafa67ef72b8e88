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

// Text contains the columns that a row's checksum covers. They are set when the row is recorded,
// and only a rescan changes them.
type Text struct {
	At                                         int64
	ObsType, Source, Tool, Content, Path, Meta string // a missing one is ""
}

// Checksum returns a CRC-32 of a row, which detects every single-bit error. It is signed so that
// it takes four bytes.
func (r *Text) Checksum() int64 {
	texts := [...]string{r.ObsType, r.Source, r.Tool, r.Content, r.Path, r.Meta}
	size := 10
	for _, t := range texts {
		size += len(t) + 5
	}
	b := binary.AppendVarint(make([]byte, 0, size), r.At)
	for _, t := range texts {
		b = append(binary.AppendUvarint(b, uint64(len(t))), t...)
	}
	return int64(int32(crc32.ChecksumIEEE(b)))
}

// Metadata is a row's metadata: strings, integers, true, lists and params. Empty and unknown
// values are left out.
type Metadata map[string]any

// Text returns the metadata as compact JSON with sorted keys, "" if it is empty.
func (m Metadata) Text() (string, error) {
	if len(m) == 0 {
		return "", nil
	}
	return CompactJSON(m)
}

func CompactJSON(v any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// Clean returns a text that can be stored: valid UTF-8 without NUL (observations §13).
func Clean(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// Structure returns the JSON object or array that a text contains, else the text.
func Structure(s string) any {
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

// StoredMetadata parses a row's stored metadata into its original form. It is empty if the text
// is not a JSON object.
func StoredMetadata(text string) Metadata {
	m := Metadata{}
	if text == "" || json.Unmarshal([]byte(text), &m) != nil {
		return Metadata{}
	}
	return withParams(m)
}

// withParams restores the original type of an MCP call's parameters in stored metadata.
func withParams(m Metadata) Metadata {
	if params, ok := m["params"].(map[string]any); ok {
		texts := map[string]string{}
		for name, v := range params {
			texts[name], _ = v.(string)
		}
		m["params"] = texts
	}
	return m
}

// holdsWords reports whether text contains s at its first occurrence as whole words, not as part
// of a longer word.
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
	InsertWords  = `INSERT INTO observations_fts (rowid, parts, wholes) VALUES (?, ?, ?)`
	deleteWords  = `DELETE FROM observations_fts WHERE rowid = ?`
	insertBranch = `INSERT OR IGNORE INTO session_branches (branch, session_key) VALUES (?, ?)`
)

// SearchableText returns the text that a search for the row matches (observations §8.1). This is
// its content, plus its path as reported and its metadata where the content does not contain
// them.
func SearchableText(content, path string, meta Metadata) string {
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

// IndexText stores the words of a row's searchable text.
func IndexText(ctx context.Context, tx *store.Tx, id int64, text string) error {
	parts, wholes := words.Index(text)
	_, err := tx.Exec(ctx, InsertWords, id, parts, wholes)
	return err
}

// DropWords deletes the searchable words of a row.
func DropWords(ctx context.Context, tx *store.Tx, id int64) error {
	_, err := tx.Exec(ctx, deleteWords, id)
	return err
}

// AddBranch records that a session worked on a branch. It is idempotent.
func AddBranch(ctx context.Context, tx *store.Tx, branch string, session int64) error {
	_, err := tx.Exec(ctx, insertBranch, branch, session)
	return err
}

const selectCall = `SELECT id FROM observation_rows WHERE tool_use_id = ? AND session_key = ? AND part = ?`

// CallRow returns the row of a call of a session, 0 if there is none.
func CallRow(ctx context.Context, tx *store.Tx, call string, session int64, part int) (id int64, err error) {
	return LookUp(ctx, tx, selectCall, call, session, part)
}

const selectContent = `SELECT content FROM observation_rows WHERE id = ?`

// ContentOf returns the content of a row; ok is false if the row does not exist.
func ContentOf(ctx context.Context, tx *store.Tx, id int64) (text string, ok bool, err error) {
	err = tx.Get(ctx, []any{&text}, selectContent, id)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	return text, err == nil, err
}

const (
	MaxCommand = 500
	MaxPath    = 1000
)
