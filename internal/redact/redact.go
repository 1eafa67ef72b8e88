package redact

import (
	"fmt"
	"regexp"
	"strings"

	"cairn/internal/fault"
)

// The replacements for redacted text.
const (
	Mark        = "[REDACTED]" // a secret
	PrivateMark = "[PRIVATE]"  // a section that the user marked with <private>
)

// Level is the sensitivity to the entropy of words without a known shape or name. The
// empty level is Standard.
type Level string

// The levels, from most to least sensitive. All other rules are the same in all three.
const (
	Strict   Level = "strict"   // words of 16 bytes and more with 3.5 bits per byte
	Standard Level = "standard" // words of 20 bytes and more with 4.0 bits per byte
	Relaxed  Level = "relaxed"  // no check of entropy
)

// Options contains the settings under [observations.filter].
type Options struct {
	Level         Level    // "" means Standard
	ExtraPatterns []string // RE2 expressions; their matches are secrets too
	Allow         []string // exact strings that are never redacted
}

// Filter finds and replaces secrets. It is immutable and safe for concurrent use. Use New
// to create one.
type Filter struct {
	index   *literalIndex
	entropy entropyLimits
	extra   []*regexp.Regexp
	allow   []string
}

// New returns a Filter. It fails with a fault of kind Invalid. The code is
// "invalid_pattern" if an extra pattern does not compile, or "invalid_level" for an
// unknown level. The message contains the number of the pattern, counted from 1, but not
// its text. After an error the caller must not store anything. Built-in rules are not
// compiled, so New is cheap without extra patterns.
func New(o Options) (*Filter, error) {
	f := &Filter{index: newLiteralIndex()}
	switch o.Level {
	case "", Standard:
		f.entropy = entropyLimits{length: 20, bits: 4.0}
	case Strict:
		f.entropy = entropyLimits{length: 16, bits: 3.5}
	case Relaxed:
		f.entropy = entropyLimits{off: true}
	default:
		return nil, fault.New(fault.Invalid, "invalid_level", "the filter level must be standard, strict or relaxed")
	}
	for i, p := range o.ExtraPatterns {
		re, err := regexp.Compile(p)
		if err != nil {
			return nil, fault.New(fault.Invalid, "invalid_pattern", fmt.Sprintf("extra pattern %d is not a valid RE2 expression", i+1))
		}
		f.extra = append(f.extra, re)
	}
	for _, a := range o.Allow {
		if a != "" {
			f.allow = append(f.allow, a)
		}
	}
	return f, nil
}

// maxPasses is the maximum number of passes over a text. Another pass is needed if a
// replacement changes the surroundings; two passes are usual.
const maxPasses = 8

// Text returns s without its secrets and whether anything was replaced. A text without
// secrets is returned without a copy. Text is idempotent: Text(Text(s)) is Text(s).
// Invalid UTF-8 is kept unchanged where no secret covers it; valid UTF-8 stays valid.
func (f *Filter) Text(s string) (string, bool) {
	return f.text(s, nil)
}

// Counts returns how many replacements Text makes in s, by rule name, for the report of a
// rescan. It is empty, not nil, for a text without secrets. Rules of the configuration are
// named "extra_pattern_N". If two rules cover the same bytes, only the rule whose match
// begins first counts.
func (f *Filter) Counts(s string) map[string]int {
	counts := map[string]int{}
	f.text(s, counts)
	return counts
}

func (f *Filter) text(s string, counts map[string]int) (string, bool) {
	for pass := range maxPasses {
		spans := f.find(s)
		if len(spans) == 0 {
			return s, pass > 0
		}
		for _, sp := range spans {
			if counts != nil {
				counts[sp.rule]++
			}
		}
		s = replace(s, spans)
	}
	return Mark, true // does not converge: redact everything
}

func replace(s string, spans []span) string {
	var b strings.Builder
	b.Grow(len(s))
	end := 0
	for _, sp := range spans {
		b.WriteString(s[end:sp.start])
		b.WriteString(sp.mark())
		end = sp.end
	}
	b.WriteString(s[end:])
	return b.String()
}
