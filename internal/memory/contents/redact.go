package contents

import (
	"encoding/json"
	"strings"

	"cairn/internal/memory"
)

// Redacted returns an entry without secrets.
func Redacted(b *memory.Kernel, a NewEntry) NewEntry {
	a.RawEntry, a.Summary, a.Tags = b.Redact(a.RawEntry), b.Redact(a.Summary), RedactTags(b, a.Tags)
	a.Metadata = redactJSON(b, a.Metadata)
	return a
}

// RedactTags returns tags without secrets.
func RedactTags(b *memory.Kernel, tags map[string]string) map[string]string {
	out := make(map[string]string, len(tags))
	for k, v := range tags {
		out[b.Redact(k)] = b.Redact(v)
	}
	return out
}

// redactJSON removes secrets from the strings of a JSON text. A text without secrets is returned
// unchanged, byte for byte.
func redactJSON(b *memory.Kernel, raw json.RawMessage) json.RawMessage {
	if b.Config.Filter == nil || raw == nil {
		return raw
	}
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return raw
	}
	changed := false
	v = redactValue(b, v, "", &changed)
	if !changed {
		return raw
	}
	text, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return text
}

// redactValue redacts a JSON value recursively. name is the name of its member, which may
// indicate that the value is a secret.
func redactValue(b *memory.Kernel, v any, name string, changed *bool) any {
	switch v := v.(type) {
	case string:
		clean := b.Redact(v)
		if clean == v && name != "" {
			if named := b.Redact(name + ": " + v); named != name+": "+v {
				clean = strings.TrimPrefix(named, name+": ")
			}
		}
		*changed = *changed || clean != v
		return clean
	case []any:
		for i := range v {
			v[i] = redactValue(b, v[i], name, changed)
		}
	case map[string]any:
		for k, item := range v {
			v[k] = redactValue(b, item, k, changed)
		}
	}
	return v
}
