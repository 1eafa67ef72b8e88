package redact

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"cairn/internal/redact/shape"
)

// span is a part of a text to replace, and the rule that found it.
type span struct {
	start, end int // bytes
	rule       string
}

func (sp span) mark() string {
	if sp.rule == rulePrivate {
		return PrivateMark
	}
	return Mark
}

// scan is one pass over one text. The fields after spans store how far each scanner has
// already read, so that repeated anchors cost nothing.
type scan struct {
	f     *Filter
	text  string
	spans []span

	sorted   int // number of sorted spans, without those that words finds
	nextSpan int // the first of these that does not end before the current word

	runs       shape.RunCache
	namedEnd   int // named values up to here are already taken
	notJWTEnd  int // no further web token begins before this
	apiKeyEnd  int // no further key with "sk-" begins before this
	cookieEnd  int // cookies up to here have been read
	seedEnd    int // seed phrases up to here have been read
	secretsEnd int // Kubernetes secrets up to here have been read
	urlEnd     int // URLs up to here are already taken
	run        urlRun
	commandEnd [len(programs)]int // shell commands up to here have been read, by program
}

// find returns the parts of a text to replace, in order and disjoint. None of them is
// inside a mark of an earlier redaction.
func (f *Filter) find(text string) []span {
	s := scan{f: f, text: text}
	s.blocks()
	s.literals()
	s.words()
	for i, re := range f.extra {
		for _, m := range re.FindAllStringIndex(text, -1) {
			s.add("extra_pattern_"+strconv.Itoa(i+1), m[0], m[1])
		}
	}
	if len(s.spans) == 0 {
		return nil
	}
	return mergeSpans(text, s.spans)
}

// add records text[start:end] as a secret, unless the user allows it.
func (s *scan) add(rule string, start, end int) {
	if start < end && !s.allowed(start, end) {
		s.spans = append(s.spans, span{start, end, rule})
	}
}

// allowed reports whether text[start:end] is, or is inside, an allowed string.
func (s *scan) allowed(start, end int) bool {
	for _, a := range s.f.allow {
		from, to := max(0, end-len(a)), min(len(s.text), start+len(a))
		if from < to && strings.Contains(s.text[from:to], a) {
			return true
		}
		const punctuation = `.,;:!?'"()[]{}<>=/\`
		if strings.Trim(s.text[start:end], punctuation) == strings.Trim(a, punctuation) {
			return true
		}
	}
	return false
}

// mergeSpans sorts spans, joins overlapping ones, widens each over marks that it cuts,
// and drops those that contain only marks.
func mergeSpans(text string, spans []span) []span {
	sortSpans(spans)
	kept := spans[:0]
	for _, sp := range spans {
		sp.start, sp.end = widen(text, sp.start, sp.end)
		if n := len(kept); n > 0 && sp.start < kept[n-1].end {
			kept[n-1].end = max(kept[n-1].end, sp.end)
			continue
		}
		kept = append(kept, sp)
	}
	return slices.DeleteFunc(kept, func(sp span) bool { return onlyMarks(text[sp.start:sp.end]) })
}

// sortSpans sorts spans by their beginnings, longer ones first.
func sortSpans(spans []span) {
	slices.SortStableFunc(spans, func(a, b span) int {
		return cmp.Or(a.start-b.start, b.end-a.end)
	})
}

// widen moves both ends of a span out of a mark they would cut in two.
func widen(text string, start, end int) (int, int) {
	for _, mark := range [...]string{Mark, PrivateMark} {
		from := max(0, start-len(mark)+1)
		if i := strings.Index(text[from:min(len(text), start+len(mark)-1)], mark); i >= 0 && from+i < start {
			start = from + i
		}
		from = max(0, end-len(mark)+1)
		if i := strings.Index(text[from:min(len(text), end+len(mark)-1)], mark); i >= 0 && from+i < end {
			end = max(end, from+i+len(mark))
		}
	}
	return start, end
}

func onlyMarks(s string) bool {
	for s != "" {
		rest := strings.TrimPrefix(strings.TrimPrefix(s, Mark), PrivateMark)
		if rest == s {
			return false
		}
		s = rest
	}
	return true
}
