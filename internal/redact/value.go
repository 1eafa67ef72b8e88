package redact

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"cairn/internal/redact/shape"
)

// deepest is the maximum number of levels of a value that are examined. JSON that cairn
// accepts has at most 1,000 (contract observations §13). Deeper levels are replaced as a
// whole.
const deepest = 1_024

// Value redacts strings in a JSON-like value, and keys and values at any depth in
// map[string]any and []any. A value whose key names a secret is replaced as a whole,
// whatever its type. Exceptions are null, truth values, empty and too short values, and
// references. Numbers, truth values and types that JSON does not have are returned
// unchanged. Value returns a new value if something was replaced, otherwise v itself. It
// never changes v. The bool reports whether anything was replaced.
func (f *Filter) Value(v any) (any, bool) {
	return f.value(v, 0)
}

func (f *Filter) value(v any, depth int) (any, bool) {
	if depth > deepest {
		return Mark, true
	}
	switch v := v.(type) {
	case string:
		return f.Text(v)
	case []any:
		var out []any
		for i, e := range v {
			r, changed := f.value(e, depth+1)
			if changed && out == nil {
				out = slices.Clone(v)
			}
			if changed {
				out[i] = r
			}
		}
		if out != nil {
			return out, true
		}
	case map[string]any:
		return f.object(v, depth)
	}
	return v, false
}

// object redacts the keys and values of a map. If redaction makes keys equal, it appends a
// number to them.
func (f *Filter) object(m map[string]any, depth int) (any, bool) {
	var out map[string]any
	var renamed []string
	for k, e := range m {
		r, changed := f.member(m, k, e, depth)
		_, keyChanged := f.Text(k)
		if (changed || keyChanged) && out == nil {
			out = maps.Clone(m)
		}
		if changed {
			out[k] = r
		}
		if keyChanged {
			renamed = append(renamed, k)
		}
	}
	if out == nil {
		return m, false
	}
	slices.Sort(renamed)
	for _, k := range renamed {
		name, _ := f.Text(k)
		e := out[k]
		delete(out, k)
		free := name
		for n := 2; ; n++ {
			if _, taken := out[free]; !taken {
				break
			}
			free = fmt.Sprintf("%s %d", name, n)
		}
		out[free] = e
	}
	return out, true
}

// member redacts the value e of m's key k.
func (f *Filter) member(m map[string]any, k string, e any, depth int) (any, bool) {
	if shortest := shortestUnder(m, k); shortest > 0 {
		return f.secretMember(e, shortest)
	}
	if text, ok := e.(string); ok && isPlainName(k) && f.index.hasLiteral(k) {
		return f.underKey(k, text)
	}
	return f.value(e, depth+1)
}

// shortestUnder returns the minimum length of a secret under m's key k. The key may name
// the secret, its sibling may ({"name": "API_KEY", "value": v}), or m may be a Kubernetes
// secret. Otherwise it returns 0.
func shortestUnder(m map[string]any, k string) int {
	switch k {
	case "value":
		for _, sibling := range [...]string{"name", "key", "Name", "Key"} {
			if name, ok := m[sibling].(string); ok && secretKey(name) > 0 {
				return secretKey(name)
			}
		}
	case "data", "stringData":
		if m["kind"] == "Secret" {
			return shortestPassword
		}
	}
	return secretKey(k)
}

// secretMember replaces a value under a secret's name as a whole.
func (f *Filter) secretMember(e any, shortest int) (any, bool) {
	switch e := e.(type) {
	case nil, bool:
		return e, false
	case string:
		return f.secretText(e, shortest)
	case json.Number:
		return f.secretNumber(e, string(e), shortest)
	case float64:
		return f.secretNumber(e, strconv.FormatFloat(e, 'f', -1, 64), shortest)
	case int:
		return f.secretNumber(e, strconv.Itoa(e), shortest)
	case int64:
		return f.secretNumber(e, strconv.FormatInt(e, 10), shortest)
	case []any:
		return secretWhole(e, len(e))
	case map[string]any:
		return secretWhole(e, len(e))
	}
	return Mark, true
}

// secretWhole replaces a list or an object of n members unless it is empty.
func secretWhole(e any, n int) (any, bool) {
	if n == 0 {
		return e, false
	}
	return Mark, true
}

// secretText replaces a string under a secret's name unless it is a placeholder.
func (f *Filter) secretText(v string, shortest int) (any, bool) {
	n := naming{text: v, sign: signAssign, shortest: shortest}
	s := scan{f: f, text: v}
	if s.allowed(0, len(v)) {
		return v, false
	}
	if _, changed := f.Text(v); changed || n.isSecret(0, len(v), true) {
		return Mark, true
	}
	return v, false
}

func (f *Filter) secretNumber(v any, digits string, shortest int) (any, bool) {
	s := scan{f: f, text: digits}
	if len(digits) < shortest || s.allowed(0, len(digits)) {
		return v, false
	}
	return Mark, true
}

// underKey redacts a string twice: as a value after its key, so that headers and vendors'
// names in keys count, and alone.
func (f *Filter) underKey(k, v string) (any, bool) {
	prefix := k + ": "
	for pass := range maxPasses {
		text, changed := f.Text(v)
		spans := slices.DeleteFunc(f.find(prefix+text), func(sp span) bool { return sp.end <= len(prefix) })
		if len(spans) == 0 {
			return text, changed || pass > 0
		}
		for i := range spans {
			spans[i].start = max(spans[i].start-len(prefix), 0)
			spans[i].end -= len(prefix)
		}
		v = replace(text, spans)
	}
	return Mark, true
}

// isPlainName reports whether k is a name without punctuation.
func isPlainName(k string) bool {
	const longest = 64
	return len(k) <= longest && shape.Skip(k, 0, longest, func(c byte) bool { return shape.IsWord(c) || c == '-' || c == '.' }) == len(k)
}

// secretKey returns the minimum length of a secret under the key k. It returns 0 if k does
// not name a secret.
func secretKey(k string) int {
	const longest = 256
	if len(k) > longest {
		return 0
	}
	for _, word := range [...]string{"password", "passwd", "passphrase", "pwd", "secret", "token", "key", "pass", "psk", "_auth"} {
		end := len(k)
		for end > 0 && shape.IsDigit(k[end-1]) && end > len(k)-2 {
			end--
		}
		if start := end - len(word); start >= 0 && (shape.HasFold(k[start:], word) || k[start:end] == word) {
			n := naming{text: k + "="}
			if n.findName(start, end) {
				return n.shortest
			}
		}
	}
	return 0
}
