package redact

import (
	"strings"

	"cairn/internal/redact/looks"
	"cairn/internal/redact/shape"
)

const ruleKubernetes = "kubernetes_secret"

// kubernetesSecret handles the word text[start:end]. If it is the kind of a Kubernetes
// object, it redacts the values under data and stringData of that object. It reports
// whether the word was such a kind.
func (s *scan) kubernetesSecret(start, end int) bool {
	t := s.text
	if t[start:end] != "Secret" || end < len(t) && shape.IsWord(t[end]) {
		return false
	}
	before := strings.TrimRight(t[max(0, start-16):start], " \t\"'\\")
	if !strings.HasSuffix(before, ":") || !strings.HasSuffix(strings.TrimRight(before[:len(before)-1], "\"'\\ "), "kind") {
		return false
	}
	if start < s.secretsEnd {
		return true
	}
	const reach = 32_768 // bytes of one object before and after its kind
	from := max(s.secretsEnd, start-reach)
	if i := strings.LastIndex(t[from:start], "\n---"); i >= 0 {
		from += i + 1
	}
	to := len(t)
	if i := strings.IndexByte(t[min(end+reach, to):], '\n'); i >= 0 {
		to = end + reach + i
	}
	if i := strings.Index(t[end:to], "\n---"); i >= 0 {
		to = end + i
	}
	s.secretsEnd = to
	for i := from; i < to; {
		j := strings.Index(t[i:to], "ata")
		if j < 0 {
			break
		}
		i += j + len("ata")
		if wordEndsData(t[:i]) {
			s.secretData(i, to)
		}
	}
	return true
}

func wordEndsData(t string) bool {
	return strings.HasSuffix(t, "stringData") || strings.HasSuffix(t, "data") && shape.WordStart(t, len(t)-len("data"))
}

// secretData redacts the values of the mapping whose key ends at i: JSON in braces, or the
// more deeply indented lines of YAML.
func (s *scan) secretData(i, limit int) {
	t := s.text
	line := shape.Back(t, i, 256, func(c byte) bool { return c != '\n' })
	indent := shape.Skip(t, line, 256, shape.IsBlank) - line
	i = shape.Skip(t, i, 2, func(c byte) bool { return shape.IsQuote(c) || c == '\\' })
	if i >= limit || t[i] != ':' {
		return
	}
	i = shape.Skip(t, i+1, 16, shape.IsBlank)
	if i < limit && t[i] == '{' {
		s.secretObject(i+1, limit)
		return
	}
	for i < limit {
		line := i + strings.IndexByte(t[i:limit], '\n') + 1
		if line == i {
			return
		}
		key := shape.Skip(t, line, 256, shape.IsBlank)
		if key >= limit || key-line <= indent && t[key] != '\n' {
			return
		}
		end := limit
		if n := strings.IndexByte(t[key:limit], '\n'); n >= 0 {
			end = key + n
		}
		s.secretLine(key, end)
		i = end
	}
}

// secretLine redacts the value of "key: value". It redacts a line without a key as a
// whole, because it continues a value.
func (s *scan) secretLine(start, end int) {
	const shortest = 4
	t := s.text
	value := start
	if i := strings.Index(t[start:end], ":"); i >= 0 {
		value = shape.Skip(t, start+i+1, 64, shape.IsBlank)
	}
	if value < end && t[end-1] == '\r' {
		end--
	}
	if value >= end {
		return
	}
	value, end = unquote(t, value, end)
	if v := t[min(value, end):end]; len(v) >= shortest && !onlyMarks(v) && (len(v) > longestReference || !looks.IsPlaceholder(v)) {
		s.add(ruleKubernetes, value, end)
	}
}

// secretObject redacts the strings after colons in a JSON object without nested objects.
func (s *scan) secretObject(i, limit int) {
	t := s.text
	for i < limit && t[i] != '}' {
		colon := strings.IndexByte(t[i:limit], ':')
		if colon < 0 || strings.IndexByte(t[i:i+colon], '}') >= 0 {
			return
		}
		quote := shape.Skip(t, i+colon+1, 16, shape.IsSpace)
		open := shape.Skip(t, quote, 4, func(c byte) bool { return c == '\\' })
		if open >= limit || t[open] != '"' {
			return
		}
		end := quotedEnd(t, open+1, t[quote:open+1])
		if end < 0 || end > limit {
			return
		}
		if v := t[open+1 : end]; v != "" && !onlyMarks(v) && (len(v) > longestReference || !looks.IsPlaceholder(v)) {
			s.add(ruleKubernetes, open+1, end)
		}
		i = shape.Skip(t, end+open+1-quote, 16, func(c byte) bool { return shape.IsSpace(c) || c == ',' })
	}
}
