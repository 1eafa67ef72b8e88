package redact

import (
	"strings"

	"cairn/internal/redact/looks"
	"cairn/internal/redact/shape"
)

// earlyDigit is the number of bytes of a needs0to9 shape that are searched for a digit.
const earlyDigit = 64

func (s *scan) shape(r *shape.Shape, start, end int) {
	if r.Flags&shape.Inside == 0 && !shape.WordStart(s.text, start) || r.Flags&shape.Alone != 0 && start > 0 && s.text[start-1] == '-' {
		return
	}
	last, ok := s.runs.Match(s.text, end, r.Parts)
	if !ok {
		return
	}
	if r.Flags&shape.Needs0to9 != 0 && !strings.ContainsAny(s.text[end:min(last, end+earlyDigit)], "0123456789") {
		return
	}
	if r.Flags&shape.KeepName != 0 {
		start = end
	}
	s.add(r.Name, start, last)
}

func (s *scan) middle(r *shape.Middle, start, end int) {
	first, ok := shape.MatchBack(s.text, start, r.Before)
	if !ok {
		return
	}
	if last, ok := s.runs.Match(s.text, end, r.Parts); ok {
		s.add(r.Name, first, last)
	}
}

// apiKey handles "sk-", the prefix of several model vendors' keys. Other names also begin
// with it, so a key must contain a long part that does not consist of words.
func (s *scan) apiKey(start, end int) {
	if start < s.apiKeyEnd || !shape.WordStart(s.text, start) {
		return
	}
	last := end + s.runs.Count(s.text, end, shape.Unbounded, 'b')
	s.apiKeyEnd = min(last, end+looks.LongestChecked)
	body := s.text[end:s.apiKeyEnd]
	const (
		shortest    = 20
		longestWord = 24
	)
	if len(body) < shortest {
		return
	}
	plain := shape.CountClass(body, 0, len(body), 'a')
	digits := strings.ContainsAny(body, "0123456789")
	bits := looks.Strangest(body).HalfBits
	switch {
	case isKeyKind(body) && (bits >= 12 || digits && hasLongRun(body, 16)),
		plain >= shortest && (digits || bits >= 12 || plain >= longestWord),
		bits >= 24 && digits:
		s.add("sk_api_key", start, last)
	}
}

// isKeyKind reports whether body, after "sk-", begins with a vendor's kind of key.
func isKeyKind(body string) bool {
	for _, kind := range [...]string{"ant-", "proj-", "svcacct-", "admin-", "or-v1-", "None-"} {
		if strings.HasPrefix(body, kind) {
			return true
		}
	}
	return false
}

// hasLongRun reports whether n letters and digits follow one another in s.
func hasLongRun(s string, n int) bool {
	for i := 0; i < len(s); i++ {
		run := shape.CountClass(s, i, n, 'a')
		if run == n {
			return true
		}
		i += run
	}
	return false
}

// jwt handles "eyJ" and ".ey" for JSON web tokens. "eyJ" is the start of a JSON object in
// base64, so every part of a token except the signature begins with it. ".ey" occurs in
// the middle of a token.
func (s *scan) jwt(start, end int) {
	if s.text[start] == '.' {
		s.jwtMiddle(start)
		return
	}
	if s.text[start:end] != "eyJ" || start < s.notJWTEnd || !shape.WordStart(s.text, start) {
		return
	}
	header := end + s.runs.Count(s.text, end, shape.Unbounded, 'b')
	if header-start < 12 || header == len(s.text) || s.text[header] != '.' {
		s.notJWTEnd = header
		return
	}
	last, dots := header, 0
	for last < len(s.text) && s.text[last] == '.' {
		n := shape.CountClass(s.text, last+1, shape.Unbounded, 'F')
		if n == 0 && dots > 0 {
			break
		}
		dots, last = dots+1, last+1+n
	}
	if last-header > 8 {
		s.add("jwt", start, last)
		s.notJWTEnd = last
	}
}

// jwtMiddle handles ".ey" between the header and the payload of a token whose header does
// not begin in the usual way.
func (s *scan) jwtMiddle(dot int) {
	if dot < s.notJWTEnd {
		return
	}
	first := shape.Back(s.text, dot, 4096, func(c byte) bool { return shape.InClass('b', c) })
	header := s.text[first:dot]
	if i := strings.Index(header, "ey"); i < 0 || len(header)-i < 17 || !shape.WordStart(header, i) {
		return
	} else {
		first += i
	}
	last := dot
	for last < len(s.text) && s.text[last] == '.' {
		n := shape.CountClass(s.text, last+1, shape.Unbounded, 'J')
		if n < 3 {
			break
		}
		last += 1 + n
	}
	if last-dot > 17 {
		s.add("jwt", first, last)
		s.notJWTEnd = last
	}
}
