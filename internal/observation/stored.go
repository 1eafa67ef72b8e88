package observation

import (
	"database/sql"
	"encoding/json"
	"path/filepath"
	"strings"

	"cairn/internal/redact"
)

// storedRow is what a row holds that may have to be redacted.
type storedRow struct {
	id, sessionKey            int64
	project, session, obsType string
	content                   string
	tool, path, key, meta     sql.NullString
	at                        int64
	source                    string
}

// checksum returns the checksum of the row as it is to be stored.
func (s *storedRow) checksum() int64 {
	return (&said{s.at, s.obsType, s.source, s.tool.String, s.content, s.path.String, s.meta.String}).checksum()
}

// searchableText returns the text by which the row is found.
func (s *storedRow) searchableText() (string, error) {
	if !s.meta.Valid {
		return searchableText(s.content, s.givenPath(), nil), nil
	}
	var meta metadata
	if err := json.Unmarshal([]byte(s.meta.String), &meta); err != nil {
		return "", err
	}
	return searchableText(s.content, s.givenPath(), withParams(meta)), nil
}

// givenPath is the path as the call gave it: rows about files and searches say it
// in their content, others keep it as an absolute one only.
func (s *storedRow) givenPath() string {
	said := s.content
	switch s.obsType {
	case typeRead, typeWrite, typeEdit:
	case typeSearch:
		if i := strings.LastIndex(said, " in "); i >= 0 {
			said = said[i+len(" in "):]
		}
	default:
		return s.path.String
	}
	tail := strings.TrimLeft(filepath.ToSlash(filepath.Clean(said)), "./")
	if strings.HasSuffix(filepath.ToSlash(s.path.String), tail) {
		return said
	}
	return s.path.String
}

// counted redacts what is stored and counts replacements by rule.
type counted struct {
	filter *redact.Filter
	rules  map[string]int
}

func (c *counted) text(s string) (string, bool) {
	out, found := c.filter.Text(s)
	if found {
		for rule, n := range c.filter.Counts(s) {
			c.rules[rule] += n
		}
	}
	return out, found
}

// row redacts a row in place and marks it as redacted.
func (c *counted) row(s *storedRow) (found bool, err error) {
	before := s.path.String
	for _, field := range []*string{&s.content, &s.tool.String, &s.path.String} {
		text, changed := c.text(*field)
		*field, found = text, found || changed
	}
	if s.path.String != before {
		s.key.String = c.keyOf(before, s.path.String, s.key.String)
	}
	meta, changed, err := c.document(s.meta.String)
	if err != nil || !found && !changed {
		return false, err
	}
	s.meta.Valid = true
	s.meta.String, err = withRedacted(meta)
	return true, err
}

// withRedacted sets redacted in a row's metadata, "" for none.
func withRedacted(meta string) (string, error) {
	m := map[string]json.RawMessage{}
	if meta != "" {
		if err := json.Unmarshal([]byte(meta), &m); err != nil {
			return "", err
		}
	}
	m["redacted"] = json.RawMessage("true")
	return compactJSON(m)
}

// keyOf is the key of a file whose path was redacted: the same part of the path
// as before, or the redacted key where the part before it is no longer the same.
func (c *counted) keyOf(before, after, key string) string {
	before, after = filepath.ToSlash(before), filepath.ToSlash(after)
	if root, ok := strings.CutSuffix(before, key); ok && strings.HasPrefix(after, root) {
		return after[len(root):]
	}
	key, _ = c.filter.Text(key)
	return key
}

// document redacts a JSON object with its structure, for a name may be what tells
// a secret; "" stays.
func (c *counted) document(s string) (string, bool, error) {
	if s == "" {
		return "", false, nil
	}
	var m map[string]any
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	if err := d.Decode(&m); err != nil {
		return "", false, err
	}
	params, _ := m["params"].(map[string]any) // an MCP call's, which were redacted as what they are
	for name, v := range params {
		if text, ok := v.(string); ok {
			params[name] = structure(text)
		}
	}
	v, found := c.filter.Value(m)
	if !found {
		return s, false, nil
	}
	if c.count(m) == 0 {
		c.rules["named_value"]++
	}
	out, _ := v.(map[string]any)
	params, _ = out["params"].(map[string]any)
	for name, v := range params {
		if _, ok := v.(string); ok {
			continue
		}
		text, err := compactJSON(v)
		if err != nil {
			return "", false, err
		}
		params[name] = text
	}
	text, err := compactJSON(out)
	return text, true, err
}

// count counts what is found in the texts of a JSON value taken by themselves.
func (c *counted) count(v any) (n int) {
	switch v := v.(type) {
	case string:
		for rule, times := range c.filter.Counts(v) {
			c.rules[rule] += times
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
