package observation

import (
	"database/sql"
	"encoding/json"
	"path/filepath"
	"strings"

	"cairn/internal/redact"
)

// StoredRow contains the columns of a row that redaction may change, and those that it needs.
type StoredRow struct {
	Id, SessionKey            int64
	Project, Session, ObsType string
	Content                   string
	Tool, Path, Key, Meta     sql.NullString
	At                        int64
	Source                    string
}

// Checksum returns the checksum of the row in its current state.
func (s *StoredRow) Checksum() int64 {
	return (&Text{s.At, s.ObsType, s.Source, s.Tool.String, s.Content, s.Path.String, s.Meta.String}).Checksum()
}

// SearchableText returns the text that a search for the row matches.
func (s *StoredRow) SearchableText() (string, error) {
	if !s.Meta.Valid {
		return SearchableText(s.Content, s.GivenPath(), nil), nil
	}
	var meta Metadata
	if err := json.Unmarshal([]byte(s.Meta.String), &meta); err != nil {
		return "", err
	}
	return SearchableText(s.Content, s.GivenPath(), withParams(meta)), nil
}

// GivenPath returns the path as the call reported it. Rows about files and searches contain it
// in their content. Other rows only have the absolute path.
func (s *StoredRow) GivenPath() string {
	said := s.Content
	switch s.ObsType {
	case TypeRead, TypeWrite, TypeEdit:
	case TypeSearch:
		if i := strings.LastIndex(said, " in "); i >= 0 {
			said = said[i+len(" in "):]
		}
	default:
		return s.Path.String
	}
	tail := strings.TrimLeft(filepath.ToSlash(filepath.Clean(said)), "./")
	if strings.HasSuffix(filepath.ToSlash(s.Path.String), tail) {
		return said
	}
	return s.Path.String
}

// Redaction redacts stored data and counts the replacements by rule.
type Redaction struct {
	Filter *redact.Filter
	Rules  map[string]int
}

func (c *Redaction) Text(s string) (string, bool) {
	out, found := c.Filter.Text(s)
	if found {
		for rule, n := range c.Filter.Counts(s) {
			c.Rules[rule] += n
		}
	}
	return out, found
}

// Row redacts a row in place and marks it as redacted. found is false if nothing was redacted.
func (c *Redaction) Row(s *StoredRow) (found bool, err error) {
	before := s.Path.String
	for _, field := range []*string{&s.Content, &s.Tool.String, &s.Path.String} {
		text, changed := c.Text(*field)
		*field, found = text, found || changed
	}
	if s.Path.String != before {
		s.Key.String = c.keyOf(before, s.Path.String, s.Key.String)
	}
	meta, changed, err := c.Document(s.Meta.String)
	if err != nil || !found && !changed {
		return false, err
	}
	s.Meta.Valid = true
	s.Meta.String, err = withRedacted(meta)
	return true, err
}

// withRedacted sets redacted in a row's metadata, which is "" if the row has none.
func withRedacted(meta string) (string, error) {
	m := map[string]json.RawMessage{}
	if meta != "" {
		if err := json.Unmarshal([]byte(meta), &m); err != nil {
			return "", err
		}
	}
	m["redacted"] = json.RawMessage("true")
	return CompactJSON(m)
}

// keyOf returns the key of a file whose path was redacted. This is the same part of the new path
// as before. If the part before the key has changed, it is the redacted key.
func (c *Redaction) keyOf(before, after, key string) string {
	before, after = filepath.ToSlash(before), filepath.ToSlash(after)
	if root, ok := strings.CutSuffix(before, key); ok && strings.HasPrefix(after, root) {
		return after[len(root):]
	}
	key, _ = c.Filter.Text(key)
	return key
}

// Document redacts a JSON object with its structure, since a name may show that a value is a
// secret. It returns "" for "".
func (c *Redaction) Document(s string) (string, bool, error) {
	if s == "" {
		return "", false, nil
	}
	var m map[string]any
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	if err := d.Decode(&m); err != nil {
		return "", false, err
	}
	params, _ := m["params"].(map[string]any) // of an MCP call; originally redacted as structured values
	for name, v := range params {
		if text, ok := v.(string); ok {
			params[name] = Structure(text)
		}
	}
	v, found := c.Filter.Value(m)
	if !found {
		return s, false, nil
	}
	if c.count(m) == 0 {
		c.Rules["named_value"]++
	}
	out, _ := v.(map[string]any)
	params, _ = out["params"].(map[string]any)
	for name, v := range params {
		if _, ok := v.(string); ok {
			continue
		}
		text, err := CompactJSON(v)
		if err != nil {
			return "", false, err
		}
		params[name] = text
	}
	text, err := CompactJSON(out)
	return text, true, err
}

// count counts the findings in each text of a JSON value separately.
func (c *Redaction) count(v any) (n int) {
	switch v := v.(type) {
	case string:
		for rule, times := range c.Filter.Counts(v) {
			c.Rules[rule] += times
			n += times
		}
	case []any:
		for _, e := range v {
			n += c.count(e)
		}
	case map[string]any:
		for name, e := range v {
			n += c.count(name) + c.count(e)
		}
	}
	return n
}
